//! Which port of which sandbox a request is for.

use dayfly_types::SandboxId;
use http::header::HOST;
use http::uri::PathAndQuery;
use http::{HeaderValue, Uri, request};

use super::error::GatewayError;
use super::preview::{PreviewDomain, parse_port};
use super::query;

const PATH_START: &str = "/v1/sandboxes/";

/// A port of a sandbox, and how the request names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortAddress {
    pub sandbox: SandboxId,
    pub port: u16,
    pub form: Form,
}

/// The two ways to name a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The name of the host. The service has an origin of its own.
    Host,
    /// The beginning of the path. The service shares the API's origin.
    Path,
}

/// What a path begins with that names a port.
pub(super) fn path_prefix(sandbox: &SandboxId, port: u16) -> String {
    format!("{PATH_START}{sandbox}/ports/{port}/http")
}

impl PortAddress {
    /// The port that a request is for; `None` when it is for the API.
    ///
    /// # Errors
    /// [`GatewayError::Malformed`] when it names a port and leaves doubt about its host: who
    /// stands before or behind us could read another one.
    pub fn of(
        preview: &PreviewDomain,
        parts: &request::Parts,
    ) -> Result<Option<Self>, GatewayError> {
        let hosts: Vec<&[u8]> = parts
            .headers
            .get_all(HOST)
            .iter()
            .map(HeaderValue::as_bytes)
            .collect();
        let authority = parts.uri.authority().map(|name| name.as_str().as_bytes());
        let named = hosts
            .iter()
            .copied()
            .chain(authority)
            .find_map(|name| preview.parse_host(std::str::from_utf8(name).ok()?));
        let found = match named {
            Some((sandbox, port)) => Some((sandbox, port, Form::Host)),
            None => parse_path(parts.uri.path()).map(|(sandbox, port)| (sandbox, port, Form::Path)),
        };
        let Some((sandbox, port, form)) = found else {
            return Ok(None);
        };
        let is_certain = match (hosts.as_slice(), authority) {
            ([_], None) => true,
            ([host], Some(authority)) => host.eq_ignore_ascii_case(authority),
            _ => false,
        };
        if !is_certain {
            let what = "the request must name its host, and only one";
            return Err(GatewayError::Malformed { what });
        }
        Ok(Some(Self {
            sandbox,
            port,
            form,
        }))
    }

    /// What stands before the service's own path.
    #[must_use]
    pub fn prefix(&self) -> String {
        match self.form {
            Form::Host => String::new(),
            Form::Path => path_prefix(&self.sandbox, self.port),
        }
    }

    /// What the service is asked for: everything behind the prefix as it came, without our token.
    ///
    /// # Errors
    /// [`GatewayError::Malformed`] when what is left is no address.
    pub fn target(&self, uri: &Uri) -> Result<Uri, GatewayError> {
        let path = uri.path();
        let path = path.strip_prefix(self.prefix().as_str()).unwrap_or(path);
        let path = if path.is_empty() { "/" } else { path };
        let text = match uri.query().map(query::without_token) {
            Some(query) if !query.is_empty() => format!("{path}?{query}"),
            _ => path.to_owned(),
        };
        let target = PathAndQuery::try_from(text).map_err(|_| GatewayError::Malformed {
            what: "the address cannot be read",
        })?;
        Ok(Uri::from(target))
    }
}

fn parse_path(path: &str) -> Option<(SandboxId, u16)> {
    let rest = path.strip_prefix(PATH_START)?;
    let (sandbox, rest) = rest.split_once('/')?;
    let (port, rest) = rest.strip_prefix("ports/")?.split_once('/')?;
    let rest = rest.strip_prefix("http")?;
    let is_whole = rest.is_empty() || rest.starts_with('/');
    let found = (SandboxId::parse(sandbox).ok()?, parse_port(port)?);
    is_whole.then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(uri: &str, hosts: &[&str]) -> Result<Option<PortAddress>, GatewayError> {
        let mut request = http::Request::builder().uri(uri);
        for host in hosts {
            request = request.header(HOST, *host);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        PortAddress::of(&PreviewDomain::default(), &parts)
    }

    #[test]
    fn a_request_with_a_doubtful_host_is_refused_when_it_names_a_port() {
        let name = "80-sb-x.localhost";
        let form = |uri: &str, hosts: &[&str]| {
            address(uri, hosts)
                .map(|found| found.map(|found| found.form))
                .ok()
        };
        assert_eq!(form("/", &[name]), Some(Some(Form::Host)));
        assert_eq!(form("/", &["localhost"]), Some(None));
        assert_eq!(
            form("http://80-sb-x.localhost/", &[name]),
            Some(Some(Form::Host))
        );
        for (uri, hosts) in [
            ("/", [name, "localhost"]),
            ("/", ["localhost", name]),
            ("/", [name, name]),
        ] {
            assert_eq!(form(uri, &hosts), None, "{uri} {hosts:?}");
        }
        assert_eq!(form("http://localhost/", &[name]), None);
        assert_eq!(form("http://80-sb-x.localhost/", &["localhost"]), None);
        assert_eq!(form("/v1/sandboxes/sb-x/ports/80/http/", &[]), None);
    }

    #[test]
    fn the_rest_of_a_path_reaches_the_service_as_it_came() {
        let target = |uri: &str| {
            let found = address(uri, &["localhost"]).unwrap()?;
            Some(found.target(&uri.parse().unwrap()).unwrap().to_string())
        };
        let base = "/v1/sandboxes/sb-x/ports/80/http";
        for (rest, expected) in [
            ("", "/"),
            ("/", "/"),
            ("//a", "//a"),
            ("/../..//%2e%2e/%2F?a=%00&b", "/../..//%2e%2e/%2F?a=%00&b"),
            ("/a?dayfly_token=t", "/a"),
            ("/a?x=1&dayfly_token=t&y", "/a?x=1&y"),
        ] {
            assert_eq!(target(&format!("{base}{rest}")).as_deref(), Some(expected));
        }
        for other in [
            "/v1/sandboxes/sb-x/ports/80/https/",
            "/v1/sandboxes/sb-x/ports/080/http/",
            "/v1/sandboxes/sb-x/ports/80",
            "/v1/sandboxes/SB/ports/80/http/",
            "/v1/sandboxes/sb-x/../ports/80/http/",
            "/v1//sandboxes/sb-x/ports/80/http/",
        ] {
            assert_eq!(target(other), None, "{other}");
        }
    }
}

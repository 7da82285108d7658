//! The domain under which ports have host names.

use std::fmt;
use std::str::FromStr;

use dayfly_types::SandboxId;
use http::uri::Authority;

/// What is left of a name of 253 characters for `PORT-SANDBOX.` in front.
const DOMAIN_CHARACTERS_MAX: usize = 190;
const DOMAIN_DEFAULT: &str = "localhost";

/// Where visitors reach ports by host name: `PORT-SANDBOX.DOMAIN`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviewDomain {
    domain: String,
    /// How visitors come, when somebody in front of us changes it.
    front: Option<Front>,
}

/// What stands in front of the listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Front {
    is_secure: bool,
    port: Option<u16>,
}

/// What a visitor speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VisitScheme {
    Http,
    Https,
}

impl VisitScheme {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// How a caller reached the API.
#[derive(Debug)]
pub(crate) struct ApiAddress {
    pub(crate) host: Option<Authority>,
    /// Over TLS, of our own or of a trusted proxy.
    pub(crate) is_secure: bool,
}

/// Why a text is not a preview domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a preview domain is a name such as `example.com`, or its address as visitors write it, such as `https://example.com:8443`"
)]
pub struct InvalidPreviewDomain;

impl Default for PreviewDomain {
    fn default() -> Self {
        Self {
            domain: DOMAIN_DEFAULT.to_owned(),
            front: None,
        }
    }
}

impl FromStr for PreviewDomain {
    type Err = InvalidPreviewDomain;

    fn from_str(text: &str) -> Result<Self, InvalidPreviewDomain> {
        let (is_secure, rest) = match text.split_once("://") {
            Some(("https", rest)) => (Some(true), rest),
            Some(("http", rest)) => (Some(false), rest),
            Some(_) => return Err(InvalidPreviewDomain),
            None => (None, text),
        };
        let (domain, port) = match (is_secure, rest.split_once(':')) {
            (_, None) => (rest, None),
            (Some(_), Some((domain, port))) => (domain, Some(port)),
            // The port alone would leave open what is spoken there.
            (None, Some(_)) => return Err(InvalidPreviewDomain),
        };
        let port = port
            .map(|port| parse_port(port).ok_or(InvalidPreviewDomain))
            .transpose()?;
        let domain = domain.to_ascii_lowercase();
        if domain.len() > DOMAIN_CHARACTERS_MAX || !domain.split('.').all(is_label) {
            return Err(InvalidPreviewDomain);
        }
        let front = is_secure.map(|is_secure| Front { is_secure, port });
        Ok(Self { domain, front })
    }
}

impl fmt::Display for PreviewDomain {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(front) = self.front else {
            return formatter.write_str(&self.domain);
        };
        write!(
            formatter,
            "{}://{}",
            self.scheme(false).as_str(),
            self.domain
        )?;
        match front.port {
            Some(port) => write!(formatter, ":{port}"),
            None => Ok(()),
        }
    }
}

fn is_label(label: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&label.len())
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label.bytes().all(inner)
}

/// A port in the one way that it can be written.
pub(crate) fn parse_port(text: &str) -> Option<u16> {
    let port: u16 = text.parse().ok()?;
    (port > 0 && port.to_string() == text).then_some(port)
}

impl PreviewDomain {
    /// What a visitor speaks, whose request came over TLS or not.
    #[must_use]
    pub(crate) fn scheme(&self, is_secure: bool) -> VisitScheme {
        if is_secure || self.front.is_some_and(|front| front.is_secure) {
            VisitScheme::Https
        } else {
            VisitScheme::Http
        }
    }

    /// The port that a host name stands for. Exactly one label of the right form in front of the
    /// domain; every other name is the API's.
    pub(super) fn parse_host(&self, authority: &str) -> Option<(SandboxId, u16)> {
        let authority: Authority = authority.parse().ok()?;
        if authority.as_str().contains('@') {
            return None;
        }
        let host = authority.host().to_ascii_lowercase();
        let label = host.strip_suffix(&self.domain)?.strip_suffix('.')?;
        let (port, sandbox) = label.split_once('-')?;
        Some((SandboxId::parse(sandbox).ok()?, parse_port(port)?))
    }

    /// The address of a port by host name. `api` is how the caller reached the API: without
    /// anything in front, ports are reached through the same listener.
    #[must_use]
    pub(crate) fn host_url(&self, sandbox: &SandboxId, port: u16, api: &ApiAddress) -> String {
        let (scheme, listener) = match self.front {
            Some(front) => (self.scheme(false), front.port),
            None => {
                let port = api.host.as_ref().and_then(Authority::port_u16);
                (self.scheme(api.is_secure), port)
            }
        };
        let listener = listener.map_or_else(String::new, |number| format!(":{number}"));
        let (scheme, domain) = (scheme.as_str(), &self.domain);
        format!("{scheme}://{port}-{sandbox}.{domain}{listener}/")
    }

    /// The address of a port by path.
    #[must_use]
    pub(crate) fn path_url(&self, sandbox: &SandboxId, port: u16, api: &ApiAddress) -> String {
        let prefix = super::address::path_prefix(sandbox, port);
        let scheme = self.scheme(api.is_secure).as_str();
        match &api.host {
            Some(host) => format!("{scheme}://{host}{prefix}/"),
            None => format!("{prefix}/"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<String> {
        text.parse()
            .ok()
            .map(|domain: PreviewDomain| domain.to_string())
    }

    #[test]
    fn a_domain_is_a_name_or_an_address() {
        assert_eq!(parse("Example.com").as_deref(), Some("example.com"));
        let whole = "https://example.com:8443";
        assert_eq!(parse(whole).as_deref(), Some(whole));
        for bad in [
            "",
            ".",
            ".example.com",
            "example.com.",
            "a..b",
            "example.com:80",
            "ftp://a",
            "http://a/b",
            "http://a:0",
            "a b",
            "-a",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn exactly_one_label_in_front_of_the_domain_is_a_port() {
        let domain: PreviewDomain = "example.com".parse().unwrap();
        let found = |host: &str| {
            let (sandbox, port) = domain.parse_host(host)?;
            Some(format!("{sandbox} {port}"))
        };
        let expected = Some("sb-local-x 8080".to_owned());
        assert_eq!(found("8080-sb-local-x.example.com"), expected);
        assert_eq!(found("8080-SB-local-x.EXAMPLE.com:7070"), expected);
        for other in [
            "example.com",
            "8080.example.com",
            "sb-local-x.example.com",
            "x.8080-sb-local-x.example.com",
            "8080-sb-local-x.x.example.com",
            "8080-sb-local-xexample.com",
            "8080-sb-local-x.example.com.evil.test",
            "8080-sb-local-x.example.com.",
            "08080-sb-local-x.example.com",
            "+80-sb-local-x.example.com",
            "0-sb-local-x.example.com",
            "65536-sb-local-x.example.com",
            "8080-.example.com",
            "8080-sb_x.example.com",
            "8080-sb-x.example.com/a",
            "a@8080-sb-x.example.com",
            "",
        ] {
            assert_eq!(found(other), None, "{other}");
        }
    }

    #[test]
    fn addresses_are_those_that_visitors_can_use() {
        let sandbox = SandboxId::parse("sb-x").unwrap();
        let api = |is_secure| ApiAddress {
            host: Some("127.0.0.1:7070".parse().unwrap()),
            is_secure,
        };
        let plain = PreviewDomain::default();
        assert_eq!(
            plain.host_url(&sandbox, 80, &api(false)),
            "http://80-sb-x.localhost:7070/"
        );
        assert_eq!(
            plain.path_url(&sandbox, 80, &api(false)),
            "http://127.0.0.1:7070/v1/sandboxes/sb-x/ports/80/http/"
        );
        let front: PreviewDomain = "https://example.com".parse().unwrap();
        assert_eq!(
            front.host_url(&sandbox, 80, &api(false)),
            "https://80-sb-x.example.com/"
        );
    }
}

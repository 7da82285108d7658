//! Which hosts and origins a request may name.
//!
//! A page in a browser can be made to speak to this server under a name of its own (DNS rebinding).
//! It then names that host, and an origin. No page can choose an address, so those are allowed.

use std::net::IpAddr;

use http::HeaderMap;
use http::header::{HOST, ORIGIN};
use http::uri::Authority;

use super::HttpRefusal;

const LOCALHOST: &str = "localhost";

/// Names under which the server is known, beside addresses and `localhost`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedHosts(Vec<String>);

impl AllowedHosts {
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        let names = names.into_iter().map(|name| name.to_ascii_lowercase());
        Self(names.collect())
    }

    /// Checks what a request says of its host and of the page that made it.
    pub(super) fn check(&self, headers: &HeaderMap) -> Result<(), HttpRefusal> {
        let mut hosts = headers.get_all(HOST).iter();
        let host = hosts.next().and_then(|value| value.to_str().ok());
        let host = host.filter(|_| hosts.next().is_none());
        let host: Authority = host
            .and_then(|text| text.parse().ok())
            .ok_or(HttpRefusal::ForeignHost)?;
        if !self.knows(host.host()) {
            return Err(HttpRefusal::ForeignHost);
        }
        for origin in headers.get_all(ORIGIN) {
            let origin = origin.to_str().ok().and_then(authority_of);
            let is_same =
                origin.is_some_and(|origin| origin.as_str().eq_ignore_ascii_case(host.as_str()));
            if !is_same {
                return Err(HttpRefusal::ForeignOrigin);
            }
        }
        Ok(())
    }

    fn knows(&self, host: &str) -> bool {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = host.trim_end_matches('.').to_ascii_lowercase();
        host.parse::<IpAddr>().is_ok() || name == LOCALHOST || self.0.contains(&name)
    }
}

/// The host and port of an origin; `None` for one that has none.
fn authority_of(origin: &str) -> Option<Authority> {
    let (scheme, rest) = origin.split_once("://")?;
    matches!(scheme, "http" | "https").then(|| rest.parse().ok())?
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter().map(|(name, value)| {
            let name: http::HeaderName = name.parse().unwrap();
            (name, HeaderValue::from_static(value))
        });
        let mut headers = HeaderMap::new();
        pairs.for_each(|(name, value)| {
            headers.append(name, value);
        });
        headers
    }

    #[test]
    fn addresses_and_known_names_are_hosts_and_no_others() {
        let hosts = AllowedHosts::new(["Box.Example.org".to_owned()]);
        for host in [
            "127.0.0.1:7070",
            "[::1]:7070",
            "10.1.2.3",
            "localhost:1",
            "box.example.org",
        ] {
            assert!(hosts.check(&headers(&[("host", host)])).is_ok(), "{host}");
        }
        for host in [
            "evil.example",
            "box.example.org.evil.example",
            "",
            "127.0.0.1.evil.example",
        ] {
            let refused = hosts.check(&headers(&[("host", host)]));
            assert!(matches!(refused, Err(HttpRefusal::ForeignHost)), "{host}");
        }
        let two = headers(&[("host", "localhost"), ("host", "127.0.0.1")]);
        assert!(hosts.check(&two).is_err());
        assert!(hosts.check(&HeaderMap::new()).is_err());
    }

    #[test]
    fn only_pages_of_the_server_itself_may_ask() {
        let hosts = AllowedHosts::default();
        let check =
            |origin| hosts.check(&headers(&[("host", "localhost:7070"), ("origin", origin)]));
        assert!(check("http://localhost:7070").is_ok());
        for origin in [
            "http://localhost:1",
            "http://evil.example",
            "null",
            "",
            "file://localhost:7070",
        ] {
            assert!(
                matches!(check(origin), Err(HttpRefusal::ForeignOrigin)),
                "{origin}"
            );
        }
    }
}

//! Which host a request is for.

use std::net::{Ipv4Addr, SocketAddrV4};

use dayfly_types::egress::HostName;
use http::header::HOST;
use http::request::Parts;
use http::uri::Scheme;

/// Who a request is for, in its one form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Authority {
    Name(HostName),
    /// The very address that the connection is addressed to.
    Destination,
}

/// Why nobody can be meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadAuthority {
    #[error("the host is not a name")]
    Name,
    #[error("the host, the target and the connection do not agree")]
    Mismatch,
}

/// Reads the host of a request. Where it is said twice, both must say the same, and the port must be
/// the one that the connection is addressed to.
///
/// # Errors
/// [`BadAuthority`].
pub(super) fn read(head: &Parts, destination: SocketAddrV4) -> Result<Authority, BadAuthority> {
    let mut hosts = head.headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return Err(BadAuthority::Mismatch);
    };
    let host = host.to_str().map_err(|_| BadAuthority::Name)?;
    let authority = parse(host, destination)?;
    if let Some(target) = head.uri.authority() {
        let is_plain = head.uri.scheme() == Some(&Scheme::HTTP);
        if !is_plain || parse(target.as_str(), destination)? != authority {
            return Err(BadAuthority::Mismatch);
        }
    }
    Ok(authority)
}

fn parse(text: &str, destination: SocketAddrV4) -> Result<Authority, BadAuthority> {
    let (host, port) = match text.split_once(':') {
        None => (text, None),
        Some((host, port)) => (host, Some(port)),
    };
    if let Some(port) = port {
        let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number {
            return Err(BadAuthority::Name);
        }
        if port.parse() != Ok(destination.port()) {
            return Err(BadAuthority::Mismatch);
        }
    }
    if let Ok(address) = host.parse::<Ipv4Addr>() {
        return if address == *destination.ip() {
            Ok(Authority::Destination)
        } else {
            Err(BadAuthority::Mismatch)
        };
    }
    HostName::parse(host)
        .map(Authority::Name)
        .map_err(|_| BadAuthority::Name)
}

impl Authority {
    pub(super) const fn name(&self) -> Option<&HostName> {
        match self {
            Self::Name(name) => Some(name),
            Self::Destination => None,
        }
    }

    /// What the request says when it goes on.
    pub(super) fn host_field(&self, destination: SocketAddrV4) -> String {
        let host = match self {
            Self::Name(name) => name.to_string(),
            Self::Destination => destination.ip().to_string(),
        };
        match destination.port() {
            80 => host,
            port => format!("{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DESTINATION: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(93, 184, 216, 34), 8080);

    fn request(target: &str, hosts: &[&str]) -> Result<Authority, BadAuthority> {
        let mut request = http::Request::builder().uri(target);
        for host in hosts {
            request = request.header(HOST, *host);
        }
        read(&request.body(()).unwrap().into_parts().0, DESTINATION)
    }

    #[test]
    fn a_host_has_one_form_and_is_said_once() {
        let authority = Authority::Name(HostName::parse("allowed.test").unwrap());
        let name = Ok(authority.clone());
        assert_eq!(request("/", &["Allowed.Test."]), name);
        assert_eq!(request("/", &["allowed.test:8080"]), name);
        assert_eq!(
            request("http://allowed.test:8080/", &["allowed.test"]),
            name
        );
        assert_eq!(request("/", &["93.184.216.34"]), Ok(Authority::Destination));
        assert_eq!(authority.host_field(DESTINATION), "allowed.test:8080");
    }

    #[test]
    fn d8_d12_what_is_not_one_host_is_refused() {
        let mismatch = Err(BadAuthority::Mismatch);
        assert_eq!(request("http://evil.test/", &["allowed.test"]), mismatch);
        assert_eq!(
            request("https://allowed.test/", &["allowed.test"]),
            mismatch
        );
        assert_eq!(request("/", &["allowed.test", "evil.test"]), mismatch);
        assert_eq!(request("/", &[]), mismatch);
        assert_eq!(request("/", &["allowed.test:80"]), mismatch);
        assert_eq!(request("/", &["169.254.169.254"]), mismatch);
        for host in [
            "",
            ":8080",
            "user@allowed.test",
            "allowed.test:8080@evil.test",
            "allowed.test#evil.test",
            "allowed.test evil.test",
            "allowed.test\\evil.test",
            "allowed.test/evil.test",
            "allowed.test:",
            "allowed.test:+8080",
            "[::ffff:169.254.169.254]",
            "0xa9fea9fe",
            "2852039166",
            "0251.0376.0251.0376",
            "127.1",
            "a%00.allowed.test",
        ] {
            assert_eq!(request("/", &[host]), Err(BadAuthority::Name), "{host:?}");
        }
    }
}

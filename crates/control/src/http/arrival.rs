//! Who a request is from and how it came. Behind a proxy that the operator trusts, the proxy says it.

use std::net::{IpAddr, SocketAddr};

use http::{Extensions, HeaderMap, HeaderName, HeaderValue};
use ipnet::IpNet;

static FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
static FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// How a request came. The listener puts it on every one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// The address at the other end of the connection.
    pub(crate) peer: SocketAddr,
    /// Who asked: the peer, or whom a trusted proxy names.
    pub(crate) client: IpAddr,
    /// Over TLS, of our own or of a trusted proxy.
    pub(crate) is_secure: bool,
}

/// Who asks: whoever came over a connection, or whom a client in this process asks for. Nothing that
/// is sent becomes an extension.
pub(crate) fn client_of(extensions: &Extensions) -> Option<IpAddr> {
    match extensions.get::<Arrival>() {
        Some(arrival) => Some(arrival.client),
        None => extensions.get::<IpAddr>().copied(),
    }
}

/// Whose word is taken for where a request comes from: `X-Forwarded-For` and `X-Forwarded-Proto`
/// of anybody else are what a stranger claims.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    #[must_use]
    pub fn new(networks: Vec<IpNet>) -> Self {
        Self(networks)
    }

    fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// How a request came over a connection.
    pub(super) fn arrival(&self, peer: SocketAddr, is_tls: bool, headers: &HeaderMap) -> Arrival {
        let direct = Arrival {
            peer,
            client: peer.ip().to_canonical(),
            is_secure: is_tls,
        };
        if !self.trusts(direct.client) {
            return direct;
        }
        Arrival {
            client: self.client(direct.client, headers),
            is_secure: said_scheme(headers).map_or(is_tls, |scheme| scheme == "https"),
            ..direct
        }
    }

    /// Each proxy adds whom it heard at the end. Read from there, the first that is none of ours is
    /// who asked; what is in front of that, anybody may have written.
    fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer;
        let values = headers.get_all(&FORWARDED_FOR).iter().rev();
        for text in values.flat_map(|value| entries(value).rev()) {
            let Some(address) = address(text) else {
                return client;
            };
            client = address;
            if !self.trusts(client) {
                return client;
            }
        }
        client
    }
}

fn entries(value: &HeaderValue) -> impl DoubleEndedIterator<Item = &str> {
    value.to_str().unwrap_or_default().split(',').map(str::trim)
}

/// An address as proxies write it: alone, or with a port.
fn address(text: &str) -> Option<IpAddr> {
    let alone = text.parse().ok();
    let address = alone.or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip()));
    address.map(|address: IpAddr| address.to_canonical())
}

fn said_scheme(headers: &HeaderMap) -> Option<&str> {
    let last = headers.get_all(&FORWARDED_PROTO).iter().next_back()?;
    entries(last).next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(peer: &str, headers: &[(&str, &str)]) -> (String, bool) {
        let proxies = ["10.0.0.0/8", "fd00::/8", "127.0.0.1/32"];
        let proxies = proxies.iter().map(|text| text.parse().unwrap()).collect();
        let proxies = TrustedProxies::new(proxies);
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name: HeaderName = name.parse().unwrap();
            map.append(name, value.parse().unwrap());
        }
        let arrival = proxies.arrival(peer.parse().unwrap(), false, &map);
        assert_eq!(arrival.peer, peer.parse().unwrap());
        (arrival.client.to_string(), arrival.is_secure)
    }

    fn all<'a>(name: &'a str, values: &[&'a str]) -> Vec<(&'a str, &'a str)> {
        values.iter().map(|value| (name, *value)).collect()
    }

    #[test]
    fn a_stranger_is_who_it_is_whatever_it_says() {
        let headers = [
            ("x-forwarded-for", "1.2.3.4"),
            ("x-forwarded-proto", "https"),
        ];
        assert_eq!(
            arrival("8.8.8.8:1", &headers),
            ("8.8.8.8".to_owned(), false)
        );
    }

    #[test]
    fn a_trusted_proxy_is_believed_as_far_as_it_can_know() {
        let client = |forwarded: &[&str]| {
            let headers = all("x-forwarded-for", forwarded);
            arrival("[::ffff:10.0.0.1]:1", &headers).0
        };
        assert_eq!(client(&["1.2.3.4"]), "1.2.3.4");
        assert_eq!(client(&["1.2.3.4:5678"]), "1.2.3.4");
        assert_eq!(client(&["[2001:db8::1]:5678"]), "2001:db8::1");
        // What the client wrote itself stands in front of what our proxies added.
        assert_eq!(client(&["6.6.6.6, 1.2.3.4, 10.0.0.2"]), "1.2.3.4");
        assert_eq!(client(&["6.6.6.6", "1.2.3.4", "10.0.0.2"]), "1.2.3.4");
        assert_eq!(client(&["1.2.3.4, unknown, 10.0.0.2"]), "10.0.0.2");
        assert_eq!(client(&[""]), "10.0.0.1");
        assert_eq!(client(&[]), "10.0.0.1");
    }

    #[test]
    fn the_last_proxy_says_what_was_spoken() {
        let is_secure = |values: &[&str]| {
            let headers = all("x-forwarded-proto", values);
            arrival("127.0.0.1:1", &headers).1
        };
        assert!(is_secure(&["https"]));
        assert!(is_secure(&["http", "https"]));
        assert!(!is_secure(&["https, http"]));
        assert!(!is_secure(&[]));
    }
}

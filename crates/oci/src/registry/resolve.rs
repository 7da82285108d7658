//! Which addresses an image may be pulled from, decided when a connection is made: a name that
//! meant something harmless a moment ago can mean something else now.

use std::error::Error;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use dayfly_core::egress::{embedded_ipv4, is_never};
use dayfly_types::egress::{HostName, InternalNetwork};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::lookup::Lookup;

/// All addresses of a name are inside.
#[derive(Debug, thiserror::Error)]
#[error("{address} is inside")]
pub(super) struct InsideAddress {
    pub(super) address: IpAddr,
}

/// Which of a name's addresses are dialled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Addresses {
    Outside,
    /// For a host that the operator allowed.
    Any,
    /// What is outside, and what these networks open at the port that is dialled.
    Permitted {
        networks: Arc<[InternalNetwork]>,
        port: u16,
    },
    /// For plain HTTP.
    Loopback,
}

impl Addresses {
    /// `host` is the name that led to the address, if one did.
    pub(super) fn contain(&self, host: Option<&str>, address: IpAddr) -> bool {
        match self {
            Self::Outside => !is_inside(address),
            Self::Any => true,
            Self::Permitted { networks, port } => {
                !is_inside(address) || is_opened(networks, host, *port, address)
            }
            Self::Loopback => address.is_loopback(),
        }
    }
}

/// Whether an address is this host's, of a network inside, or nobody's.
fn is_inside(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_never(address),
        IpAddr::V6(address) => match embedded_ipv4(address) {
            Some(inner) => is_never(inner),
            None => !is_global(address),
        },
    }
}

/// Whether one of the networks opens an address as it is dialled. They have no other than IPv4.
fn is_opened(networks: &[InternalNetwork], host: Option<&str>, port: u16, address: IpAddr) -> bool {
    let IpAddr::V4(address) = address else {
        return false;
    };
    let name = match host.map(HostName::parse) {
        None => None,
        Some(Ok(name)) => Some(name),
        Some(Err(_)) => return false,
    };
    let mut networks = networks.iter();
    networks.any(|network| network.opens(name.as_ref(), Some(port), address))
}

/// Only what is given out to the internet, without what is reserved in there.
fn is_global(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    let is_given_out = first & 0xe000 == 0x2000;
    let is_protocol = first == 0x2001 && second < 0x200;
    let is_documentation = (first == 0x2001 && second == 0xdb8) || first & 0xfff0 == 0x3ff0;
    is_given_out && !is_protocol && !is_documentation
}

#[derive(Debug)]
pub(super) struct CheckedResolver {
    pub(super) which: Addresses,
    pub(super) lookup: Lookup,
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (which, lookup) = (self.which.clone(), self.lookup.clone());
        Box::pin(async move {
            let found = lookup.addresses(name.as_str()).await?.into_iter();
            let found: Vec<SocketAddr> = found.map(|one| SocketAddr::new(one, 0)).collect();
            let first = found.first().map(SocketAddr::ip);
            let is_open = |one: &SocketAddr| which.contain(Some(name.as_str()), one.ip());
            let open: Vec<SocketAddr> = found.into_iter().filter(is_open).collect();
            match (open.is_empty(), first) {
                (true, Some(address)) => Err(InsideAddress { address }.into()),
                _ => Ok(Box::new(open.into_iter()) as Addrs),
            }
        })
    }
}

/// What the resolver said, under all that the library has put around it.
pub(super) fn inside_address(error: &reqwest::Error) -> Option<IpAddr> {
    let mut source: Option<&(dyn Error + 'static)> = error.source();
    while let Some(error) = source {
        if let Some(inside) = error.downcast_ref::<InsideAddress>() {
            return Some(inside.address);
        }
        source = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_inside_are_told_from_those_outside() {
        for text in [
            "127.0.0.1",
            "169.254.169.254",
            "10.0.0.1",
            "0.0.0.0",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::a00:1",
            "2002:7f00:1::",
            "fe80::1",
            "fec0::1",
            "fd00:ec2::254",
            "ff02::1",
            "100::1",
            "2001:2::1",
            "2001:db8::1",
            "3fff::1",
            "4000::1",
        ] {
            assert!(is_inside(text.parse().unwrap()), "{text}");
            assert!(
                !Addresses::Outside.contain(None, text.parse().unwrap()),
                "{text}"
            );
            assert!(
                Addresses::Any.contain(None, text.parse().unwrap()),
                "{text}"
            );
        }
        for text in [
            "1.1.1.1",
            "2606:4700::1111",
            "2a00:1450::1",
            "64:ff9b::101:101",
        ] {
            assert!(!is_inside(text.parse().unwrap()), "{text}");
            assert!(
                !Addresses::Loopback.contain(None, text.parse().unwrap()),
                "{text}"
            );
        }
        assert!(Addresses::Loopback.contain(None, "127.0.0.1".parse().unwrap()));
        assert!(!Addresses::Loopback.contain(None, "10.0.0.1".parse().unwrap()));
    }

    #[test]
    fn a_network_opens_its_addresses_at_its_ports_under_its_names_alone() {
        let networks = |hosts: &str| -> Arc<[InternalNetwork]> {
            let text = format!(
                r#"[{{"name":"a","projects":["team"],"ranges":["10.20.0.0/24"],"ports":[5000]{hosts}}}]"#
            );
            let networks: Vec<InternalNetwork> = serde_json::from_str(&text).unwrap();
            networks.into()
        };
        let opens = |hosts: &str, port: u16, host: Option<&str>, address: &str| {
            let networks = networks(hosts);
            let which = Addresses::Permitted { networks, port };
            which.contain(host, address.parse().unwrap())
        };
        let (name, named) = (Some("r.example"), r#","hosts":["r.example"]"#);
        assert!(opens("", 5000, name, "10.20.0.7"));
        assert!(opens("", 5000, None, "10.20.0.7"));
        assert!(opens(named, 5000, name, "10.20.0.7"));
        assert!(
            opens("", 443, name, "1.1.1.1"),
            "outside is as for everybody"
        );
        for (hosts, port, host, address) in [
            ("", 5001, name, "10.20.0.7"),
            ("", 5000, name, "10.20.1.7"),
            ("", 5000, name, "127.0.0.1"),
            ("", 5000, name, "169.254.169.254"),
            ("", 5000, name, "::ffff:10.20.0.7"),
            (named, 5000, Some("other.example"), "10.20.0.7"),
            (named, 5000, None, "10.20.0.7"),
        ] {
            assert!(!opens(hosts, port, host, address), "{address} {host:?}");
        }
    }
}

//! Addresses that no sandbox reaches, whatever its policy says, and what the operator has opened of
//! them.

use std::net::{Ipv4Addr, Ipv6Addr};

use dayfly_types::egress::{HostName, InternalNetwork, NEVER_NETWORKS};

/// Whether nobody may reach this address without the operator's leave.
#[must_use]
pub fn is_never(address: Ipv4Addr) -> bool {
    NEVER_NETWORKS
        .iter()
        .any(|(network, prefix)| (address.to_bits() ^ network.to_bits()) >> (32 - prefix) == 0)
}

/// What is known about a connection whose address is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EgressApproach<'a> {
    pub name: Option<&'a HostName>,
    /// None for a question: it is asked before a port is chosen.
    pub port: Option<u16>,
    /// A rule of the sandbox itself speaks of it. An open mode is no rule.
    pub has_rule: bool,
}

/// By whose leave an address is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EgressReach<'a> {
    Public,
    /// The operator has opened this network to the sandbox's project.
    Internal(&'a InternalNetwork),
}

/// Whether an address may be dialled. `internal` is what is open to the sandbox's project. Into an
/// internal network it takes two: the operator, and a rule of the sandbox.
#[must_use]
pub fn reach<'a>(
    approach: EgressApproach<'_>,
    address: Ipv4Addr,
    internal: &'a [InternalNetwork],
) -> Option<EgressReach<'a>> {
    if !is_never(address) {
        return Some(EgressReach::Public);
    }
    let EgressApproach {
        name,
        port,
        has_rule,
    } = approach;
    let mut open = internal.iter().filter(|_| has_rule);
    let found = open.find(|network| network.opens(name, port, address));
    found.map(EgressReach::Internal)
}

/// The IPv4 address that an IPv6 one stands for: mapped, compatible, NAT64, 6to4, Teredo.
#[must_use]
pub fn embedded_ipv4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, high, low] = address.segments();
    let pair = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match (a, b, c, d, e, f) {
        (0, 0, 0, 0, 0, 0 | 0xffff) | (0, 0, 0, 0, 0xffff, 0) => Some(pair(high, low)),
        (0x64, 0xff9b, 0, 0, 0, 0) | (0x64, 0xff9b, 1, ..) => Some(pair(high, low)),
        (0x2002, ..) => Some(pair(b, c)),
        // Teredo hides the client's address behind a complement.
        (0x2001, 0, ..) => Some(pair(!high, !low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn special_addresses_are_never_reached() {
        for text in [
            "0.1.2.3",
            "10.0.0.5",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "168.63.129.16",
            "169.254.169.254",
            "169.254.170.2",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.9",
            "224.0.0.251",
            "239.1.1.1",
            "240.0.0.1",
            "255.255.255.255",
        ] {
            assert!(is_never(text.parse().unwrap()), "{text}");
        }
        for text in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "93.184.216.34",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
        ] {
            assert!(!is_never(text.parse().unwrap()), "{text}");
        }
    }

    fn internal(hosts: Option<&[&str]>) -> Vec<InternalNetwork> {
        let mut network = serde_json::json!({"name": "mirror", "projects": ["*"],
            "ranges": ["10.20.0.0/16", "172.20.0.0/14"], "ports": [443]});
        if let Some(hosts) = hosts {
            network["hosts"] = serde_json::json!(hosts);
        }
        vec![serde_json::from_value(network).unwrap()]
    }

    #[test]
    fn an_internal_address_takes_the_operators_leave_and_a_rule() {
        let mirror = HostName::parse("mirror.corp.example").unwrap();
        let approach = |name, port, has_rule| EgressApproach {
            name,
            port,
            has_rule,
        };
        let inside = Ipv4Addr::new(10, 20, 0, 10);
        let named = internal(Some(&["mirror.corp.example"]));
        let goes = |approach, address, internal: &[InternalNetwork]| {
            reach(approach, address, internal).is_some()
        };
        let good = approach(Some(&mirror), Some(443), true);
        assert!(goes(good, inside, &named));
        assert!(goes(approach(Some(&mirror), None, true), inside, &named));
        assert!(!goes(good, inside, &[]), "no leave");
        assert!(
            !goes(approach(Some(&mirror), Some(443), false), inside, &named),
            "no rule"
        );
        assert!(!goes(
            approach(Some(&mirror), Some(80), true),
            inside,
            &named
        ));
        assert!(!goes(approach(None, Some(443), true), inside, &named));
        assert!(goes(
            approach(None, Some(443), true),
            inside,
            &internal(None)
        ));
        for never in ["169.254.169.254", "127.0.0.1", "10.21.0.0", "10.19.255.255"] {
            assert!(!goes(good, never.parse().unwrap(), &named), "{never}");
        }
        let public = Ipv4Addr::new(93, 184, 216, 34);
        assert_eq!(reach(good, public, &named), Some(EgressReach::Public));
    }

    #[test]
    fn embedded_addresses_are_seen() {
        let metadata = Ipv4Addr::new(169, 254, 169, 254);
        for text in [
            "::ffff:169.254.169.254",
            "::169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::a9fe:a9fe",
            "2002:a9fe:a9fe::",
            "2001:0:1:2:3:4:5601:5601",
        ] {
            assert_eq!(
                embedded_ipv4(text.parse().unwrap()),
                Some(metadata),
                "{text}"
            );
        }
        assert_eq!(embedded_ipv4("2606:2800:220:1::1".parse().unwrap()), None);
    }

    proptest! {
        #[test]
        fn what_is_reached_is_public_or_inside_what_was_opened(
            bits in any::<u32>(),
            private in 0xac10_0000_u32..0xac20_0000,
            has_rule in any::<bool>(),
        ) {
            let open = internal(None);
            for address in [bits, private].map(Ipv4Addr::from_bits) {
                let approach = EgressApproach { name: None, port: Some(443), has_rule };
                match reach(approach, address, &open) {
                    Some(EgressReach::Internal(network)) => {
                        prop_assert!(has_rule && network.contains(address));
                        prop_assert!(address.is_private());
                    }
                    Some(EgressReach::Public) => {
                        prop_assert!(!address.is_private() && !address.is_loopback());
                        prop_assert!(!address.is_link_local() && !address.is_multicast());
                        prop_assert!(!address.is_documentation() && !address.is_broadcast());
                        prop_assert!(!address.is_unspecified());
                    }
                    None => prop_assert!(is_never(address)),
                }
            }
        }
    }
}

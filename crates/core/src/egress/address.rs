//! Addresses that no sandbox reaches, whatever its policy says, and what the operator has opened of
//! them.

use std::net::{Ipv4Addr, Ipv6Addr};

use dayfly_types::egress::{
    EgressPolicy, EgressRule, EgressTarget, HostName, InternalNetwork, NEVER_NETWORKS,
};

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
    /// Of the sandbox. Into an internal network its rules lead, and its mode does not.
    pub policy: &'a EgressPolicy,
    pub name: Option<&'a HostName>,
    /// None for a question: it is asked before a port is chosen.
    pub port: Option<u16>,
}

/// Whether an address may be dialled. `internal` is what is open to the sandbox's project. Into an
/// internal network it takes two: the operator, and a rule of the sandbox.
#[must_use]
pub fn may_reach(
    approach: EgressApproach<'_>,
    address: Ipv4Addr,
    internal: &[InternalNetwork],
) -> bool {
    let leads_into = |network: &InternalNetwork| {
        let mut rules = approach.policy.rules().iter();
        network.opens(approach.name, approach.port, address)
            && rules.any(|rule| leads_into(rule, network, approach, address))
    };
    !is_never(address) || internal.iter().any(leads_into)
}

/// Whether some policy of the project would let an address be dialled under this name.
#[must_use]
pub fn may_ever_reach(name: &HostName, address: Ipv4Addr, internal: &[InternalNetwork]) -> bool {
    let opens = |network: &InternalNetwork| network.opens(Some(name), None, address);
    !is_never(address) || internal.iter().any(opens)
}

/// Whether a rule speaks of what the operator opened. A name stands for whatever its zone says, so a
/// rule for a name counts only where the operator believes that name too; elsewhere the rule has to
/// say the address.
fn leads_into(
    rule: &EgressRule,
    network: &InternalNetwork,
    approach: EgressApproach<'_>,
    address: Ipv4Addr,
) -> bool {
    let is_meant = match (&rule.target, network.hosts()) {
        (EgressTarget::Host(pattern), Some(_)) => {
            approach.name.is_some_and(|name| pattern.matches(name))
        }
        (EgressTarget::Network(range), None) => range.contains(address),
        (EgressTarget::Host(_), None) | (EgressTarget::Network(_), Some(_)) => false,
    };
    let is_port = |port: &u16| {
        network.ports().contains(*port) && approach.port.is_none_or(|asked| asked == *port)
    };
    is_meant && rule.ports.as_slice().iter().any(is_port)
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

    /// An allowlist of these targets at a port that is open and one that is not.
    fn policy(targets: &[&str]) -> EgressPolicy {
        let rule = |target: &&str| {
            let kind = if target.contains('/') {
                "network"
            } else {
                "host"
            };
            serde_json::json!({"id": target, kind: target, "ports": [80, 443]})
        };
        let rules: Vec<_> = targets.iter().map(rule).collect();
        serde_json::from_value(serde_json::json!({"mode": "allowlist", "rules": rules})).unwrap()
    }

    const INSIDE: Ipv4Addr = Ipv4Addr::new(10, 20, 0, 10);

    #[test]
    fn an_internal_address_takes_the_operators_leave_and_a_rule() {
        let mirror = HostName::parse("mirror.corp.example").unwrap();
        let named = internal(Some(&["mirror.corp.example"]));
        let list = policy(&["**.corp.example", "10.20.0.0/16"]);
        let goes = |policy: &EgressPolicy, name, port, address, internal: &[InternalNetwork]| {
            let approach = EgressApproach { policy, name, port };
            may_reach(approach, address, internal)
        };
        let name = Some(&mirror);
        assert!(goes(&list, name, Some(443), INSIDE, &named));
        assert!(goes(&list, name, None, INSIDE, &named));
        assert!(!goes(&list, name, Some(443), INSIDE, &[]), "no leave");
        assert!(!goes(&list, name, Some(80), INSIDE, &named), "no such port");
        assert!(!goes(&list, None, Some(443), INSIDE, &named), "no name");
        for other in [policy(&[]), policy(&["10.20.0.0/16", "other.example"])] {
            assert!(!goes(&other, name, Some(443), INSIDE, &named), "no rule");
            assert!(!goes(&other, name, None, INSIDE, &named), "no rule");
        }
        let other = HostName::parse("other.corp.example").unwrap();
        assert!(!goes(&list, Some(&other), Some(443), INSIDE, &named));
        for never in ["169.254.169.254", "127.0.0.1", "10.21.0.0", "10.19.255.255"] {
            let never = never.parse().unwrap();
            assert!(!goes(&list, name, Some(443), never, &named), "{never}");
        }
        let public = Ipv4Addr::new(93, 184, 216, 34);
        assert!(goes(&policy(&[]), name, Some(80), public, &named));
    }

    #[test]
    fn where_the_operator_names_no_hosts_a_name_never_leads_inside() {
        let unnamed = internal(None);
        let name = HostName::parse("db.cloud.example").unwrap();
        let goes = |targets: &[&str], name, port| {
            let policy = &policy(targets);
            may_reach(EgressApproach { policy, name, port }, INSIDE, &unnamed)
        };
        for name in [Some(&name), None] {
            for port in [Some(443), None] {
                assert!(!goes(&["**.cloud.example", "db.cloud.example"], name, port));
                assert!(!goes(&["db.cloud.example", "10.20.0.11/32"], name, port));
                assert!(goes(&["db.cloud.example", "10.20.0.10/32"], name, port));
            }
            assert!(!goes(&["10.20.0.10/32"], name, Some(80)));
        }
        assert!(may_ever_reach(&name, INSIDE, &unnamed), "by such a rule");
        let elsewhere = Ipv4Addr::new(10, 21, 0, 0);
        assert!(!may_ever_reach(&name, elsewhere, &unnamed));
        let named = internal(Some(&["mirror.corp.example"]));
        assert!(!may_ever_reach(&name, INSIDE, &named));
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
            let rules: &[&str] = if has_rule { &["172.0.0.0/8"] } else { &[] };
            let policy = &policy(rules);
            for address in [bits, private].map(Ipv4Addr::from_bits) {
                let approach = EgressApproach { policy, name: None, port: Some(443) };
                let reached = may_reach(approach, address, &open);
                if is_never(address) {
                    let is_open = open[0].contains(address) && address.octets()[0] == 172;
                    prop_assert_eq!(reached, has_rule && is_open);
                } else {
                    prop_assert!(reached);
                    prop_assert!(!address.is_private() && !address.is_loopback());
                    prop_assert!(!address.is_link_local() && !address.is_multicast());
                    prop_assert!(!address.is_documentation() && !address.is_broadcast());
                    prop_assert!(!address.is_unspecified());
                }
            }
        }
    }
}

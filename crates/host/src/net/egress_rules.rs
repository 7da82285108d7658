//! The rules of the egress namespace: what no sandbox may reach, whatever decided about it.
//!
//! They stand behind a program that has already decided, in case it was wrong. So they know no
//! policy; the ranges here can be opened by nobody.

use std::net::{SocketAddr, SocketAddrV4};

use dayfly_types::egress::NEVER_NETWORKS;

use super::error::NetworkError;

pub(super) const TABLE: &str = "dayfly_egress";

/// Resolvers that rules can be written for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Resolvers(Vec<SocketAddrV4>);

/// Refuses resolvers that nothing could reach.
pub(super) fn check(resolvers: &[SocketAddr]) -> Result<Resolvers, NetworkError> {
    let checked = resolvers.iter().map(|&address| match address {
        SocketAddr::V4(address) => Ok(address),
        SocketAddr::V6(_) => Err(NetworkError::Resolver { address }),
    });
    checked.collect::<Result<_, _>>().map(Resolvers)
}

/// Only new TCP and questions to the resolvers leave; only answers come in; nothing passes through.
pub(super) fn write(resolvers: &Resolvers) -> String {
    let never = never_set();
    let to_resolvers = to_resolvers(resolvers);
    format!(
        r#"table inet {TABLE}
delete table inet {TABLE}
table inet {TABLE} {{
  counter deny_never {{ }}
  counter deny_v6 {{ }}
  counter deny_other {{ }}
{never}
  chain output {{
    type filter hook output priority filter; policy drop;
    meta nfproto ipv6 counter name deny_v6 drop
    oifname "lo" ct state established accept
{to_resolvers}    ip daddr @never counter name deny_never drop
    meta l4proto tcp accept
    counter name deny_other drop
  }}
  chain input {{
    type filter hook input priority filter; policy drop;
    ct state established,related accept
    iifname "lo" accept
  }}
  chain forward {{
    type filter hook forward priority filter; policy drop;
  }}
}}
"#
    )
}

/// A set of the ranges, for a table.
pub(super) fn never_set() -> String {
    let elements = NEVER_NETWORKS.map(|(network, bits)| format!("{network}/{bits}"));
    let elements = elements.join(", ");
    format!(
        "  set never {{\n    type ipv4_addr; flags interval;\n    elements = {{ {elements} }}\n  }}"
    )
}

/// Rules that accept questions to each resolver at its own port, and nothing else of it.
pub(super) fn to_resolvers(resolvers: &Resolvers) -> String {
    let lines = resolvers.0.iter().flat_map(|resolver| {
        let (address, port) = (resolver.ip(), resolver.port());
        ["udp", "tcp"].map(|kind| format!("    ip daddr {address} {kind} dport {port} accept\n"))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolvers_are_excepted_before_the_ranges_are_dropped() {
        let resolvers = check(&["10.0.0.2:53".parse().unwrap()]).unwrap();
        let rules = write(&resolvers);
        let place = |words: &str| rules.find(words).unwrap();
        let dropped = place("ip daddr @never counter name deny_never drop");
        assert!(place("ip daddr 10.0.0.2 udp dport 53 accept") < dropped);
        assert!(place("ip daddr 10.0.0.2 tcp dport 53 accept") < dropped);
        assert!(dropped < place("meta l4proto tcp accept"));
        assert_eq!(rules.matches("policy drop;").count(), 3);
    }

    #[test]
    fn without_resolvers_only_tcp_leaves() {
        let rules = write(&check(&[]).unwrap());
        assert!(!rules.contains("udp"), "{rules}");
    }

    #[test]
    fn a_resolver_on_ipv6_is_refused() {
        let error = check(&["[2001:db8::1]:53".parse().unwrap()]).unwrap_err();
        assert!(error.to_string().contains("[2001:db8::1]:53"), "{error}");
    }
}

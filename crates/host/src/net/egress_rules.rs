//! The rules of the egress namespace: what no sandbox may reach, whatever decided about it.
//!
//! They stand behind a program that has already decided, in case it was wrong. So they know no
//! policy and no project; of the ranges here nothing is open but what the operator has opened to
//! somebody, at its ports, and never an address of the host.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use dayfly_types::egress::{InternalNetworks, NEVER_NETWORKS};

use super::addresses::own_addresses;
use super::error::{Failed, NetworkError};

pub(super) const TABLE: &str = "dayfly_egress";

/// What leaves beside TCP to public addresses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EgressExceptions {
    /// Questions go here, to each at its own address and port.
    pub resolvers: Vec<SocketAddr>,
    /// TCP goes here, whoever it is open to; the program behind knows that.
    pub internal: InternalNetworks,
    /// With one, TCP to public addresses does not leave: it goes through here.
    pub proxy: Option<SocketAddrV4>,
}

/// Exceptions that rules can be written for, on the host as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Exceptions {
    resolvers: Vec<SocketAddrV4>,
    proxy: Option<SocketAddrV4>,
    internal: InternalNetworks,
    /// Addresses of the host that are inside of them.
    own_addresses: Vec<Ipv4Addr>,
}

impl Exceptions {
    pub(super) const fn internal(&self) -> &InternalNetworks {
        &self.internal
    }
}

/// Refuses resolvers that nothing could reach.
pub(super) fn check(exceptions: &EgressExceptions) -> Result<Exceptions, NetworkError> {
    let resolvers = exceptions.resolvers.iter().map(|&address| match address {
        SocketAddr::V4(address) => Ok(address),
        SocketAddr::V6(_) => Err(NetworkError::Resolver { address }),
    });
    let resolvers = resolvers.collect::<Result<_, _>>()?;
    let internal = exceptions.internal.clone();
    let networks = internal.as_slice();
    let own_addresses = if networks.is_empty() {
        Vec::new()
    } else {
        let mut addresses = own_addresses().map_err(Failed::on_host)?;
        addresses.retain(|one| networks.iter().any(|network| network.contains(*one)));
        addresses
    };
    Ok(Exceptions {
        resolvers,
        proxy: exceptions.proxy,
        internal,
        own_addresses,
    })
}

/// Only new TCP, or that to the proxy, and questions to the resolvers leave; only answers come in;
/// nothing passes through.
pub(super) fn write(exceptions: &Exceptions) -> String {
    let never = never_set();
    let to_resolvers = to_resolvers(exceptions);
    let to_internal = to_internal(exceptions);
    let to_public = to_public(exceptions);
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
{to_resolvers}{to_internal}    ip daddr @never counter name deny_never drop
{to_public}    counter name deny_other drop
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

/// The rule that accepts TCP to public addresses, behind those that drop the others. With a proxy
/// there is none.
pub(super) const fn to_public(exceptions: &Exceptions) -> &'static str {
    match exceptions.proxy {
        None => "    meta nfproto ipv4 meta l4proto tcp accept\n",
        Some(_) => "",
    }
}

/// Rules that accept questions to each resolver at its own port, and TCP to the proxy at its own,
/// and nothing else of them.
pub(super) fn to_resolvers(exceptions: &Exceptions) -> String {
    let to_proxy = exceptions.proxy.map(|proxy| {
        let (address, port) = (proxy.ip(), proxy.port());
        format!("    ip daddr {address} tcp dport {port} accept\n")
    });
    let lines = exceptions.resolvers.iter().flat_map(|resolver| {
        let (address, port) = (resolver.ip(), resolver.port());
        ["udp", "tcp"].map(|kind| format!("    ip daddr {address} {kind} dport {port} accept\n"))
    });
    lines.chain(to_proxy).collect()
}

/// Rules that accept TCP into each internal network at its ports. First the host's own addresses are
/// dropped; what leads back into this namespace leaves by `lo` and is not accepted either.
pub(super) fn to_internal(exceptions: &Exceptions) -> String {
    let listed = |items: &mut dyn Iterator<Item = String>| items.collect::<Vec<_>>().join(", ");
    let networks = exceptions.internal.as_slice();
    let mut lines = String::new();
    let own = listed(&mut exceptions.own_addresses.iter().map(ToString::to_string));
    if !own.is_empty() {
        lines += &format!("    ip daddr {{ {own} }} counter drop\n");
    }
    for network in networks {
        let ranges = listed(&mut network.ranges().iter().map(ToString::to_string));
        let ports = listed(&mut network.ports().as_slice().iter().map(ToString::to_string));
        let what = format!("ip daddr {{ {ranges} }} tcp dport {{ {ports} }}");
        lines += &format!("    oifname != \"lo\" {what} accept\n");
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(resolvers: &[&str]) -> EgressExceptions {
        EgressExceptions {
            resolvers: resolvers.iter().map(|one| one.parse().unwrap()).collect(),
            ..EgressExceptions::default()
        }
    }

    #[test]
    fn resolvers_are_excepted_before_the_ranges_are_dropped() {
        let resolvers = check(&to(&["10.0.0.2:53"])).unwrap();
        let rules = write(&resolvers);
        let place = |words: &str| rules.find(words).unwrap();
        let dropped = place("ip daddr @never counter name deny_never drop");
        assert!(place("ip daddr 10.0.0.2 udp dport 53 accept") < dropped);
        assert!(place("ip daddr 10.0.0.2 tcp dport 53 accept") < dropped);
        assert!(dropped < place("meta nfproto ipv4 meta l4proto tcp accept"));
        assert_eq!(rules.matches("policy drop;").count(), 3);
    }

    #[test]
    fn with_a_proxy_only_what_goes_there_leaves() {
        let mut exceptions = to(&[]);
        exceptions.proxy = Some("10.40.0.1:3128".parse().unwrap());
        let rules = write(&check(&exceptions).unwrap());
        assert!(rules.contains("ip daddr 10.40.0.1 tcp dport 3128 accept"));
        assert_eq!(rules.matches("l4proto tcp accept").count(), 0);
    }

    #[test]
    fn without_resolvers_only_tcp_leaves() {
        let rules = write(&check(&to(&[])).unwrap());
        assert!(!rules.contains("udp"), "{rules}");
    }

    #[test]
    fn a_resolver_on_ipv6_is_refused() {
        let error = check(&to(&["[2001:db8::1]:53"])).unwrap_err();
        assert!(error.to_string().contains("[2001:db8::1]:53"), "{error}");
    }

    #[test]
    fn an_internal_network_is_accepted_behind_the_hosts_own_addresses() {
        let network = serde_json::json!([{"name": "corp", "projects": ["a"],
            "ranges": ["10.20.0.0/16", "10.30.0.1"], "ports": [443, 8080]}]);
        let exceptions = Exceptions {
            resolvers: Vec::new(),
            proxy: None,
            internal: serde_json::from_value(network).unwrap(),
            own_addresses: vec![Ipv4Addr::new(10, 20, 0, 7)],
        };
        let rules = write(&exceptions);
        let place = |words: &str| rules.find(words).unwrap();
        let accepted = place(
            "oifname != \"lo\" ip daddr { 10.20.0.0/16, 10.30.0.1/32 } tcp dport { 443, 8080 } accept",
        );
        assert!(place("ip daddr { 10.20.0.7 } counter drop") < accepted);
        assert!(accepted < place("ip daddr @never counter name deny_never drop"));
    }
}

//! A link from the egress namespace to the host, and the host's part in it.
//!
//! The link comes first and goes last, so whoever finds no link finds nothing else of it either.

use std::net::Ipv4Addr;
use std::path::Path;

use super::addresses::address_in;
use super::egress_rules::{Exceptions, never_set, to_internal, to_public, to_resolvers};
use super::error::{Failed, NetworkError, within};
use super::program::IP;
use super::subnet::{self, Ends, PREFIX_BITS};
use super::{nft, sysctl};

/// Begins the name of every such interface on a host, of every instance.
const INTERFACE_PREFIX: &str = "dfy-";
/// The end inside the namespace.
const UPLINK: &str = "uplink";
/// There while an instance of Dayfly is the reason that this host forwards.
const FORWARDING_TABLE: &str = "dayfly_forwarding";
const NAME_BYTES_MAX: usize = 8;
const FORWARDING: &str = "ipv4/ip_forward";

/// The link of an egress namespace to its host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NatLink {
    /// The host's end.
    pub interface: String,
    pub host_address: Ipv4Addr,
    /// What the host hides behind its own address.
    pub address: Ipv4Addr,
}

/// What an instance calls its things on the host.
#[derive(Debug)]
struct Names {
    interface: String,
    table: String,
}

impl Names {
    /// Names of interfaces are short, so a long or odd instance goes by its digest.
    fn of(instance: &str) -> Self {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let fits = !instance.is_empty() && instance.len() <= NAME_BYTES_MAX;
        let short = if fits && instance.bytes().all(is_plain) {
            instance.to_owned()
        } else {
            blake3::hash(instance.as_bytes()).to_hex()[..NAME_BYTES_MAX].to_owned()
        };
        Self {
            interface: format!("{INTERFACE_PREFIX}{short}"),
            table: format!("dayfly_nat_{short}"),
        }
    }
}

/// Makes the link, or finds it, and loads the host's rules for it.
pub(super) fn ensure(
    namespace: &Path,
    instance: &str,
    exceptions: &Exceptions,
) -> Result<NatLink, NetworkError> {
    let names = Names::of(instance);
    let ends = match find_ends(&names, namespace)? {
        Some(ends) => ends,
        None => make_link(&names, namespace, exceptions)?,
    };
    let rules = host_rules(&names, ends, exceptions);
    nft::load(&rules).map_err(Failed::on_host)?;
    ensure_forwarding().map_err(Failed::on_host)?;
    let up = ["link", "set", names.interface.as_str(), "up"];
    run(&up, "bring the link up").map_err(Failed::on_host)?;
    Ok(NatLink {
        interface: names.interface,
        host_address: ends.host,
        address: ends.inside,
    })
}

/// Whether the link is whole, the host's rules for it are exactly ours, and the host forwards.
pub(super) fn holds(
    namespace: &Path,
    instance: &str,
    exceptions: &Exceptions,
) -> Result<bool, NetworkError> {
    let names = Names::of(instance);
    let Some(ends) = find_ends(&names, namespace)? else {
        return Ok(false);
    };
    let looked = || {
        let expected = nft::canonical(host_rules(&names, ends, exceptions), || Ok(()))?;
        let listed = nft::list_table(&names.table)?;
        Ok(listed.is_some_and(|listed| listed == expected) && sysctl::read(FORWARDING)? == "1")
    };
    looked().map_err(Failed::on_host)
}

/// Removes the link and the host's rules for it. What is absent is no error.
pub(super) fn remove(instance: &str) -> Result<(), NetworkError> {
    let names = Names::of(instance);
    let removed = || {
        stop_forwarding(&names)?;
        nft::remove_table(&names.table)?;
        remove_link(&names)
    };
    removed().map_err(Failed::on_host)
}

/// Removes what an earlier choice of uplink left, and costs nothing when that is nothing.
pub(super) fn remove_if_there(instance: &str) -> Result<(), NetworkError> {
    if has_interface(&Names::of(instance).interface).map_err(Failed::on_host)? {
        remove(instance)?;
    }
    Ok(())
}

/// The addresses of a link that is whole.
fn find_ends(names: &Names, namespace: &Path) -> Result<Option<Ends>, NetworkError> {
    if !has_interface(&names.interface).map_err(Failed::on_host)? {
        return Ok(None);
    }
    let host = address_of(&names.interface).map_err(Failed::on_host)?;
    let inside = within(namespace, || match has_interface(UPLINK)? {
        true => address_of(UPLINK),
        false => Ok(None),
    })?;
    let ends = host.zip(inside).map(|(host, inside)| Ends { host, inside });
    Ok(ends.filter(|ends| u32::from(ends.inside) == u32::from(ends.host) + 1))
}

fn make_link(
    names: &Names,
    namespace: &Path,
    exceptions: &Exceptions,
) -> Result<Ends, NetworkError> {
    let ends = make_host_end(names, namespace, exceptions)?;
    within(namespace, move || {
        let address = format!("{}/{PREFIX_BITS}", ends.inside);
        let gateway = ends.host.to_string();
        let what = "set up the link";
        run(&["address", "add", &address, "dev", UPLINK], what)?;
        run(&["link", "set", UPLINK, "up"], what)?;
        run(
            &[
                "route", "replace", "default", "via", &gateway, "dev", UPLINK,
            ],
            what,
        )
    })?;
    Ok(ends)
}

fn make_host_end(
    names: &Names,
    namespace: &Path,
    exceptions: &Exceptions,
) -> Result<Ends, NetworkError> {
    // Half a link, or one whose other end is in a namespace that is gone.
    remove_link(names).map_err(Failed::on_host)?;
    let routes = IP.run(&["-4", "route", "show", "table", "all"], "");
    let routes = routes
        .map_err(Failed::at("list the routes"))
        .map_err(Failed::on_host)?;
    let ends = subnet::choose(&routes, exceptions.internal()).ok_or(NetworkError::NoRange)?;
    let interface = names.interface.as_str();
    let namespace = namespace.to_string_lossy();
    let made = || {
        let what = "make the link";
        let peer = ["peer", "name", UPLINK, "netns", &namespace];
        run(
            &[&["link", "add", interface, "type", "veth"], &peer[..]].concat(),
            what,
        )?;
        // Absent on a kernel without IPv6, which has nothing to shut.
        let _ = sysctl::write(&format!("ipv6/conf/{interface}/disable_ipv6"), "1");
        let address = format!("{}/{PREFIX_BITS}", ends.host);
        run(&["address", "add", &address, "dev", interface], what)
    };
    made().map_err(Failed::on_host)?;
    Ok(ends)
}

fn remove_link(names: &Names) -> Result<(), Failed> {
    if !has_interface(&names.interface)? {
        return Ok(());
    }
    let removed = run(&["link", "delete", &names.interface], "remove the link");
    unless_gone(&names.interface, removed)
}

/// An interface whose other end was in a namespace that ended goes by itself, at any moment.
fn unless_gone<T: Default>(interface: &str, result: Result<T, Failed>) -> Result<T, Failed> {
    match result {
        Err(_) if !has_interface(interface)? => Ok(T::default()),
        other => other,
    }
}

/// A host that did not forward before goes on refusing to, for everybody but us: it may stand
/// between networks that must not meet.
fn ensure_forwarding() -> Result<(), Failed> {
    if sysctl::read(FORWARDING)? == "1" {
        return Ok(());
    }
    nft::load(&format!(
        r#"table inet {FORWARDING_TABLE}
delete table inet {FORWARDING_TABLE}
table inet {FORWARDING_TABLE} {{
  chain forward {{
    type filter hook forward priority filter; policy drop;
    iifname "{INTERFACE_PREFIX}*" accept
    oifname "{INTERFACE_PREFIX}*" accept
  }}
}}
"#
    ))?;
    sysctl::write(FORWARDING, "1")
}

/// Undoes [`ensure_forwarding`] when nobody else needs it.
fn stop_forwarding(names: &Names) -> Result<(), Failed> {
    let has_others = interfaces()?
        .iter()
        .any(|name| name.starts_with(INTERFACE_PREFIX) && *name != names.interface);
    if has_others || nft::list_table(FORWARDING_TABLE)?.is_none() {
        return Ok(());
    }
    sysctl::write(FORWARDING, "0")?;
    nft::remove_table(FORWARDING_TABLE)
}

/// What comes over the link goes to the internet, to the resolvers and into internal networks that
/// the operator has opened, and neither to the host itself nor to its other networks. Packets to the
/// host itself come to `input` by whichever of its addresses, old or new.
fn host_rules(names: &Names, ends: Ends, exceptions: &Exceptions) -> String {
    let Names { interface, table } = names;
    let inside = ends.inside;
    let never = never_set();
    let to_resolvers = to_resolvers(exceptions);
    let to_internal = to_internal(exceptions);
    let to_public = to_public(exceptions);
    format!(
        r#"table inet {table}
delete table inet {table}
table inet {table} {{
{never}
  chain forward {{
    type filter hook forward priority filter; policy accept;
    iifname "{interface}" jump outgoing
    oifname "{interface}" ct state established,related accept
    oifname "{interface}" counter drop
  }}
  chain outgoing {{
    ip saddr != {inside} counter drop
{to_resolvers}{to_internal}    ip daddr @never counter drop
{to_public}    counter drop
  }}
  chain input {{
    type filter hook input priority filter; policy accept;
    iifname "{interface}" jump incoming
  }}
  chain incoming {{
    ip saddr != {inside} counter drop
{to_resolvers}    counter drop
  }}
  chain postrouting {{
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr {inside} oifname != "{interface}" masquerade
  }}
}}
"#
    )
}

fn has_interface(name: &str) -> Result<bool, Failed> {
    Ok(interfaces()?.iter().any(|interface| interface == name))
}

fn interfaces() -> Result<Vec<String>, Failed> {
    super::interface_names().map_err(Failed::at("list the interfaces"))
}

/// The first IPv4 address of an interface.
fn address_of(interface: &str) -> Result<Option<Ipv4Addr>, Failed> {
    let words = IP
        .run(&["-4", "-o", "address", "show", "dev", interface], "")
        .map_err(Failed::at(format!("read the address of {interface}")));
    let words = unless_gone(interface, words)?;
    let first = words.lines().next().map(address_in);
    first
        .transpose()
        .map_err(Failed::at(format!("read the address of {interface}")))
}

fn run(arguments: &[&str], what: &str) -> Result<(), Failed> {
    IP.run(arguments, "").map(drop).map_err(Failed::at(what))
}

#[cfg(test)]
mod tests {
    use dayfly_types::egress::InternalNetworks;

    use super::super::EgressExceptions;
    use super::*;

    #[test]
    fn names_follow_the_instance_and_fit() {
        assert_eq!(Names::of("1a2b3c4d").interface, "dfy-1a2b3c4d");
        assert_eq!(Names::of("1a2b3c4d").table, "dayfly_nat_1a2b3c4d");
        for odd in ["", "a-b", "Upper", "longer-than-eight", "a\"b"] {
            let names = Names::of(odd);
            assert_eq!(names.interface.len(), 12, "{odd}");
            assert_ne!(names.interface, Names::of("other one").interface);
        }
    }

    #[test]
    fn the_host_lets_through_less_than_everything() {
        let ends = subnet::choose("", &InternalNetworks::default()).unwrap();
        let exceptions = EgressExceptions {
            resolvers: vec!["10.1.1.1:53".parse().unwrap()],
            ..EgressExceptions::default()
        };
        let exceptions = super::super::egress_rules::check(&exceptions).unwrap();
        let rules = host_rules(&Names::of("test"), ends, &exceptions);
        let outgoing = rules.split("chain outgoing {").nth(1).unwrap();
        let place = |words: &str| outgoing.find(words).unwrap();
        assert!(place("10.1.1.1 udp dport 53 accept") < place("@never counter drop"));
        assert!(place("@never counter drop") < place("l4proto tcp accept"));
        assert!(rules.contains("ip saddr 100.127.253.2 oifname != \"dfy-test\" masquerade"));
    }
}

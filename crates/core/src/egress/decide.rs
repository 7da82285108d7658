//! The verdict about one name or address.

use std::net::Ipv4Addr;

use dayfly_types::egress::{
    DenyReason, EgressMode, EgressPolicy, EgressRule, EgressTarget, HostName, InternalNetwork,
};

use super::address::{EgressApproach, may_reach};

/// Ports that `public` keeps shut: mail, and what worms look for.
pub const ABUSE_PORTS: [u16; 9] = [19, 25, 135, 137, 139, 445, 465, 587, 6667];

/// What was let through, and by what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict<'a> {
    /// None in the modes that need no rule.
    pub rule: Option<&'a str>,
    /// In `observe`: an allowlist with the same rules says no.
    pub would_deny: bool,
}

/// Whether a connection to a name and port is let through. The address is looked at when the name
/// has been resolved, by [`may_reach`].
///
/// # Errors
/// Why it is not.
pub fn decide<'a>(
    policy: &'a EgressPolicy,
    name: &HostName,
    port: u16,
) -> Result<Verdict<'a>, DenyReason> {
    let names = |rule: &EgressRule| matches!(&rule.target, EgressTarget::Host(pattern) if pattern.matches(name));
    by_mode(
        policy,
        port,
        find(policy, names, Some(port), DenyReason::NoRule),
    )
}

/// Whether a connection of which no name is known is let through. `internal` is what the operator
/// has opened to the sandbox's project.
///
/// # Errors
/// Why it is not.
pub fn decide_address<'a>(
    policy: &'a EgressPolicy,
    address: Ipv4Addr,
    port: u16,
    internal: &[InternalNetwork],
) -> Result<Verdict<'a>, DenyReason> {
    let approach = EgressApproach {
        policy,
        name: None,
        port: Some(port),
    };
    if !may_reach(approach, address, internal) {
        return Err(DenyReason::NeverAddress);
    }
    let contains = |rule: &EgressRule| matches!(&rule.target, EgressTarget::Network(network) if network.contains(address));
    by_mode(
        policy,
        port,
        find(policy, contains, Some(port), DenyReason::NoName),
    )
}

/// Whether a name may be asked for at all: any rule that names it, whatever its ports.
///
/// # Errors
/// Why it may not.
pub fn decide_question<'a>(
    policy: &'a EgressPolicy,
    name: &HostName,
) -> Result<Verdict<'a>, DenyReason> {
    let names = |rule: &EgressRule| matches!(&rule.target, EgressTarget::Host(pattern) if pattern.matches(name));
    by_mode(policy, 0, find(policy, names, None, DenyReason::NoRule))
}

/// The first rule that speaks of it, or which part of it no rule speaks of.
fn find(
    policy: &EgressPolicy,
    is_meant: impl Fn(&EgressRule) -> bool,
    port: Option<u16>,
    otherwise: DenyReason,
) -> Result<&str, DenyReason> {
    let mut reason = otherwise;
    for rule in policy.rules().iter().filter(|rule| is_meant(rule)) {
        if port.is_none_or(|port| rule.ports.contains(port)) {
            return Ok(&rule.id);
        }
        reason = DenyReason::Port;
    }
    Err(reason)
}

fn by_mode<'a>(
    policy: &EgressPolicy,
    port: u16,
    found: Result<&'a str, DenyReason>,
) -> Result<Verdict<'a>, DenyReason> {
    let is_open = match policy.mode() {
        EgressMode::Deny => return Err(DenyReason::ModeDeny),
        EgressMode::Allowlist => false,
        EgressMode::Public | EgressMode::Observe => true,
    };
    if is_open && found.is_err() && ABUSE_PORTS.contains(&port) {
        return Err(DenyReason::AbusePort);
    }
    match found {
        Ok(rule) => Ok(Verdict {
            rule: Some(rule),
            would_deny: false,
        }),
        Err(_) if is_open => Ok(Verdict {
            rule: None,
            would_deny: policy.mode() == EgressMode::Observe,
        }),
        Err(reason) => Err(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(text: &str) -> EgressPolicy {
        serde_json::from_str(text).unwrap()
    }

    fn name(text: &str) -> HostName {
        HostName::parse(text).unwrap()
    }

    const LIST: &str = r#"{"mode":"allowlist","rules":[
        {"id":"one","host":"example.com","ports":[443]},
        {"id":"net","network":"93.184.216.0/24","ports":[22]}]}"#;

    #[test]
    fn an_allowlist_names_host_port_and_range() {
        let policy = policy(LIST);
        assert_eq!(
            decide(&policy, &name("example.com"), 443).unwrap().rule,
            Some("one")
        );
        assert_eq!(
            decide(&policy, &name("example.com"), 80),
            Err(DenyReason::Port)
        );
        assert_eq!(
            decide(&policy, &name("evil.test"), 443),
            Err(DenyReason::NoRule)
        );
        assert!(decide_question(&policy, &name("example.com")).is_ok());
        assert_eq!(
            decide_question(&policy, &name("evil.test")),
            Err(DenyReason::NoRule)
        );
        let inside = Ipv4Addr::new(93, 184, 216, 34);
        let decide_address = |address, port| decide_address(&policy, address, port, &[]);
        assert_eq!(decide_address(inside, 22).unwrap().rule, Some("net"));
        assert_eq!(decide_address(inside, 25), Err(DenyReason::Port));
        assert_eq!(
            decide_address(Ipv4Addr::new(1, 1, 1, 1), 22),
            Err(DenyReason::NoName)
        );
    }

    #[test]
    fn an_address_that_nobody_reaches_beats_every_mode_and_rule() {
        let metadata = Ipv4Addr::new(169, 254, 169, 254);
        for text in [
            r#"{"mode":"public"}"#,
            r#"{"mode":"observe"}"#,
            r#"{"mode":"allowlist","rules":[{"id":"all","network":"0.0.0.0/0"}]}"#,
        ] {
            let policy = policy(text);
            let verdict = decide_address(&policy, metadata, 80, &[]);
            assert_eq!(verdict, Err(DenyReason::NeverAddress), "{text}");
        }
    }

    #[test]
    fn an_internal_address_needs_a_rule_in_every_mode() {
        let internal = [serde_json::from_str(
            r#"{"name":"db","projects":["*"],"ranges":["10.20.0.0/16"],"ports":[5432]}"#,
        )
        .unwrap()];
        let inside = Ipv4Addr::new(10, 20, 0, 10);
        let rules = r#""rules":[{"id":"db","network":"10.20.0.10/32","ports":[22,5432]}]"#;
        for mode in ["allowlist", "observe"] {
            let policy = policy(&format!(r#"{{"mode":"{mode}",{rules}}}"#));
            let decide = |port, internal| decide_address(&policy, inside, port, internal);
            assert_eq!(decide(5432, &internal[..]).unwrap().rule, Some("db"));
            assert_eq!(decide(22, &internal[..]), Err(DenyReason::NeverAddress));
            assert_eq!(decide(5432, &[]), Err(DenyReason::NeverAddress), "{mode}");
        }
        for text in [
            r#"{"mode":"public"}"#,
            r#"{"mode":"observe"}"#,
            r#"{"mode":"deny"}"#,
        ] {
            let policy = policy(text);
            let verdict = decide_address(&policy, inside, 5432, &internal);
            assert_eq!(verdict, Err(DenyReason::NeverAddress), "{text}");
        }
    }

    #[test]
    fn modes_differ() {
        let somewhere = name("somewhere.test");
        assert_eq!(
            decide(&EgressPolicy::deny(), &somewhere, 443),
            Err(DenyReason::ModeDeny)
        );
        let empty = policy(r#"{"mode":"allowlist","rules":[]}"#);
        assert_eq!(decide(&empty, &somewhere, 443), Err(DenyReason::NoRule));
        let public = policy(r#"{"mode":"public"}"#);
        assert!(!decide(&public, &somewhere, 443).unwrap().would_deny);
        for port in [25, 465, 587] {
            assert_eq!(
                decide(&public, &somewhere, port),
                Err(DenyReason::AbusePort)
            );
        }
        let observe = policy(&LIST.replace("allowlist", "observe"));
        assert!(decide(&observe, &somewhere, 443).unwrap().would_deny);
        assert!(
            !decide(&observe, &name("example.com"), 443)
                .unwrap()
                .would_deny
        );
    }
}

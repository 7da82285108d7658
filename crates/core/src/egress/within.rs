//! Comparing policies: what a fork may be given, and what nobody may be given.

use dayfly_types::egress::{
    EgressMode, EgressPolicy, EgressRule, EgressTarget, HostPattern, InternalNetwork, Ipv4Network,
    NEVER_NETWORKS,
};

/// A rule that names addresses which nobody reaches.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TooWide {
    #[error(
        "the range {network} of a rule contains {never}, which no sandbox may reach; name a \
         smaller range"
    )]
    Contains {
        network: Ipv4Network,
        never: Ipv4Network,
    },
    #[error(
        "{network} is inside {never}, which no sandbox may reach, whatever its rules say, unless the \
         operator opens an internal network to its project"
    )]
    Inside {
        network: Ipv4Network,
        never: Ipv4Network,
    },
}

impl TooWide {
    /// Of two that overlap.
    fn of(network: Ipv4Network, never: Ipv4Network) -> Self {
        if never.prefix() <= network.prefix() {
            Self::Inside { network, never }
        } else {
            Self::Contains { network, never }
        }
    }
}

/// Refuses rules that would name what nobody reaches. They would have no effect there; whoever
/// wrote one expects another. `internal` is what the operator has opened to the project.
///
/// # Errors
/// [`TooWide`].
pub fn check_networks(rules: &[EgressRule], internal: &[InternalNetwork]) -> Result<(), TooWide> {
    for rule in rules {
        let EgressTarget::Network(network) = rule.target else {
            continue;
        };
        // One that takes names is not reached by a range.
        let mut open = internal.iter().filter(|one| one.hosts().is_none());
        if open.any(|one| one.ranges().iter().any(|range| network.is_within(*range))) {
            continue;
        }
        for (address, prefix) in NEVER_NETWORKS {
            match Ipv4Network::new(address, prefix) {
                Ok(never) if network.overlaps(never) => return Err(TooWide::of(network, never)),
                Ok(_) | Err(_) => {}
            }
        }
    }
    Ok(())
}

/// Whether everything that `inner` lets through is let through by `outer` as well, in a project to
/// which the operator has opened `internal`. It errs towards no: two rules of `outer` that together
/// cover one of `inner` are not put together.
#[must_use]
pub fn is_within(inner: &EgressPolicy, outer: &EgressPolicy, internal: &[InternalNetwork]) -> bool {
    let is_open =
        |policy: &EgressPolicy| matches!(policy.mode(), EgressMode::Public | EgressMode::Observe);
    let rules_are_within = inner.rules().iter().all(|rule| {
        outer.rules().iter().any(|wider| covers(wider, rule)) || opens(outer, rule, internal)
    });
    match inner.mode() {
        EgressMode::Deny => true,
        // Rules of an open mode open ports that it keeps shut by itself.
        EgressMode::Public | EgressMode::Observe => is_open(outer) && rules_are_within,
        EgressMode::Allowlist => rules_are_within,
    }
}

/// Whether an open mode lets through what a rule does: all but ports known for abuse, and internal
/// networks, into which only rules lead.
fn opens(outer: &EgressPolicy, rule: &EgressRule, internal: &[InternalNetwork]) -> bool {
    matches!(outer.mode(), EgressMode::Public | EgressMode::Observe)
        && !rule
            .ports
            .as_slice()
            .iter()
            .any(|port| super::decide::ABUSE_PORTS.contains(port))
        && !internal.iter().any(|network| may_lead_into(rule, network))
}

fn may_lead_into(rule: &EgressRule, network: &InternalNetwork) -> bool {
    let mut ports = rule.ports.as_slice().iter();
    let is_meant = match (&rule.target, network.hosts()) {
        (EgressTarget::Network(range), None) => {
            network.ranges().iter().any(|open| open.overlaps(*range))
        }
        (EgressTarget::Host(name), Some(hosts)) => hosts
            .iter()
            .any(|host| covers_host(host, name) || covers_host(name, host)),
        (EgressTarget::Network(_), Some(_)) | (EgressTarget::Host(_), None) => false,
    };
    is_meant && ports.any(|port| network.ports().contains(*port))
}

fn covers(wider: &EgressRule, rule: &EgressRule) -> bool {
    let ports = rule
        .ports
        .as_slice()
        .iter()
        .all(|port| wider.ports.contains(*port));
    let target = match (&wider.target, &rule.target) {
        (EgressTarget::Host(wider), EgressTarget::Host(rule)) => covers_host(wider, rule),
        (EgressTarget::Network(wider), EgressTarget::Network(rule)) => {
            wider.overlaps(*rule) && wider.prefix() <= rule.prefix()
        }
        (EgressTarget::Host(_), EgressTarget::Network(_))
        | (EgressTarget::Network(_), EgressTarget::Host(_)) => false,
    };
    ports && target
}

fn covers_host(wider: &HostPattern, rule: &HostPattern) -> bool {
    match (wider, rule) {
        (_, HostPattern::Exact(name)) => wider.matches(name),
        (HostPattern::OneLabel(wider), HostPattern::OneLabel(name))
        | (HostPattern::AnyDepth(wider), HostPattern::AnyDepth(name))
            if wider == name =>
        {
            true
        }
        // Whatever stands in front of a name below the suffix is below the suffix as well.
        (
            HostPattern::AnyDepth(suffix),
            HostPattern::OneLabel(name) | HostPattern::AnyDepth(name),
        ) => suffix == name || wider.matches(name),
        (
            HostPattern::Exact(_) | HostPattern::OneLabel(_),
            HostPattern::OneLabel(_) | HostPattern::AnyDepth(_),
        ) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(mode: &str, rules: &[(&str, &[u16])]) -> EgressPolicy {
        let rules: Vec<_> = rules
            .iter()
            .map(|(target, ports)| {
                let kind = if target.contains('/') {
                    "network"
                } else {
                    "host"
                };
                serde_json::json!({"id": target, kind: target, "ports": ports})
            })
            .collect();
        serde_json::from_value(serde_json::json!({"mode": mode, "rules": rules})).unwrap()
    }

    #[test]
    fn rights_are_only_lost() {
        let outer = policy(
            "allowlist",
            &[
                ("**.example.com", &[80, 443]),
                ("*.one.test", &[443]),
                ("93.184.0.0/16", &[22]),
            ],
        );
        for inner in [
            EgressPolicy::deny(),
            policy("allowlist", &[]),
            policy("allowlist", &[("a.b.example.com", &[443])]),
            policy(
                "allowlist",
                &[("*.a.example.com", &[80]), ("**.b.example.com", &[443])],
            ),
            policy("allowlist", &[("93.184.216.0/24", &[22])]),
            outer.clone(),
        ] {
            assert!(is_within(&inner, &outer, &[]), "{inner:?}");
            assert!(is_within(&inner, &policy("public", &[]), &[]), "{inner:?}");
        }
        for inner in [
            policy("public", &[]),
            policy("observe", &[]),
            policy("allowlist", &[("example.com", &[443])]),
            policy("allowlist", &[("a.example.com", &[8080])]),
            policy("allowlist", &[("**.one.test", &[443])]),
            policy("allowlist", &[("*.a.one.test", &[443])]),
            policy("allowlist", &[("93.0.0.0/8", &[22])]),
            policy("allowlist", &[("93.185.0.0/16", &[22])]),
        ] {
            assert!(!is_within(&inner, &outer, &[]), "{inner:?}");
        }
        for mode in ["allowlist", "observe"] {
            let mail = policy(mode, &[("a.test", &[25])]);
            assert!(!is_within(&mail, &policy("public", &[]), &[]), "{mode}");
        }
    }

    #[test]
    fn ranges_that_nobody_reaches_are_refused() {
        for range in [
            "0.0.0.0/0",
            "10.0.0.0/8",
            "10.1.2.3/32",
            "169.254.169.254/32",
            "168.0.0.0/5",
        ] {
            let policy = policy("allowlist", &[(range, &[443])]);
            assert!(check_networks(policy.rules(), &[]).is_err(), "{range}");
        }
        let public = policy("allowlist", &[("93.184.216.0/24", &[443])]);
        assert_eq!(check_networks(public.rules(), &[]), Ok(()));
    }

    fn internal(hosts: Option<&str>) -> [InternalNetwork; 1] {
        let mut network = serde_json::json!({"name": "corp", "projects": ["*"],
            "ranges": ["10.20.0.0/16"], "ports": [443]});
        if let Some(host) = hosts {
            network["hosts"] = serde_json::json!([host]);
        }
        [serde_json::from_value(network).unwrap()]
    }

    #[test]
    fn a_range_inside_what_the_operator_opened_may_be_written() {
        let check = |range: &str, internal: &[InternalNetwork]| {
            check_networks(policy("allowlist", &[(range, &[443])]).rules(), internal)
        };
        let open = internal(None);
        assert_eq!(check("10.20.0.0/16", &open), Ok(()));
        assert_eq!(check("10.20.3.4/32", &open), Ok(()));
        for range in ["10.0.0.0/8", "10.21.0.0/16", "10.20.0.0/15"] {
            assert!(check(range, &open).is_err(), "{range}");
        }
        let named = internal(Some("mirror.corp.example"));
        assert!(check("10.20.3.4/32", &named).is_err(), "it takes names");
    }

    #[test]
    fn an_open_mode_is_no_way_into_an_internal_network() {
        let public = policy("public", &[]);
        let rule = |target: &str, port: u16| policy("allowlist", &[(target, &[port])]);
        let named = internal(Some("*.corp.example"));
        for (inner, is_inside) in [
            (rule("mirror.corp.example", 443), false),
            (rule("**.corp.example", 443), false),
            (rule("mirror.corp.example", 80), true),
            (rule("pypi.org", 443), true),
        ] {
            assert_eq!(is_within(&inner, &public, &named), is_inside, "{inner:?}");
            assert!(is_within(&inner, &inner, &named));
        }
        // Without names, only a range leads inside.
        let unnamed = internal(None);
        assert!(is_within(&rule("pypi.org", 443), &public, &unnamed));
        for range in ["10.20.0.0/24", "10.20.3.4/32"] {
            assert!(!is_within(&rule(range, 443), &public, &unnamed), "{range}");
        }
    }
}

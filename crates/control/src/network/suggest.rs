//! Drafting the smallest allowlist for what a sandbox was seen to use. Pure.
//!
//! Only connections that were let through count: a name that was merely asked for, or refused,
//! was not needed to get this far, and naming it would open more than was used.

use std::collections::{BTreeMap, BTreeSet};

use dayfly_types::egress::{
    Decision, EgressMode, EgressPolicy, EgressRecord, EgressRecordKind, EgressRule, EgressTarget,
    HostName, HostPattern, Ports,
};
use dayfly_types::limits::{EGRESS_PORTS_MAX, EGRESS_RULES_MAX};

use crate::network::rule::is_public_suffix;

/// More names than this right below one name become one rule.
const SIBLINGS_MAX: usize = 8;
/// Addresses without a name that are told.
const UNNAMED_MAX: usize = 64;

/// An allowlist, and what it leaves out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Draft {
    pub(crate) policy: EgressPolicy,
    /// `address:port` of connections whose name is not known.
    pub(crate) unnamed: Vec<String>,
    pub(crate) is_truncated: bool,
}

/// What was used of one name.
#[derive(Debug, Default)]
struct Use {
    ports: BTreeSet<u16>,
    connections: usize,
}

/// A rule on its way, with how often it was needed.
struct Candidate {
    pattern: HostPattern,
    ports: BTreeSet<u16>,
    connections: usize,
}

/// Drafts an allowlist from records.
pub(crate) fn suggest(records: &[EgressRecord]) -> Draft {
    let mut names: BTreeMap<HostName, Use> = BTreeMap::new();
    let mut unnamed = BTreeSet::new();
    for record in records.iter().filter(|record| was_connected(record)) {
        let Some(address) = record.destination.or(record.dialed) else {
            continue;
        };
        let Some(name) = &record.name else {
            unnamed.insert(address);
            continue;
        };
        let used = names.entry(name.clone()).or_default();
        used.ports.insert(address.port());
        used.connections += 1;
    }
    let mut candidates = fold(names);
    candidates.sort_by_key(|candidate| std::cmp::Reverse(candidate.connections));
    let mut rules: Vec<EgressRule> = candidates.iter().flat_map(rules_of).collect();
    let is_truncated = rules.len() > EGRESS_RULES_MAX;
    rules.truncate(EGRESS_RULES_MAX);
    rules.sort_by(|one, other| one.id.cmp(&other.id));
    Draft {
        // Every rule has an id of its own and there are not too many, so this cannot be refused;
        // if it were, a draft that lets nothing through is the safe one.
        policy: EgressPolicy::new(EgressMode::Allowlist, rules)
            .unwrap_or_else(|_| EgressPolicy::deny()),
        unnamed: unnamed
            .iter()
            .take(UNNAMED_MAX)
            .map(ToString::to_string)
            .collect(),
        is_truncated,
    }
}

fn was_connected(record: &EgressRecord) -> bool {
    let is_connection = match record.kind {
        EgressRecordKind::Dns => false,
        EgressRecordKind::Tls | EgressRecordKind::Http | EgressRecordKind::Tcp => true,
    };
    // The end of a connection tells of it when its beginning is no longer recorded.
    let was_let_through = match record.decision {
        Decision::Allowed | Decision::Closed => true,
        // It may also have been cut while it was still being made.
        Decision::Cut => record.dialed.is_some(),
        Decision::Denied | Decision::Failed => false,
    };
    is_connection && was_let_through
}

/// Puts many siblings together. Only those that use the same ports make a rule wild; once it is,
/// it spares the others what it lets through.
fn fold(names: BTreeMap<HostName, Use>) -> Vec<Candidate> {
    let mut families: BTreeMap<(&HostName, &BTreeSet<u16>), usize> = BTreeMap::new();
    let parents: Vec<Option<HostName>> = names.keys().map(wildcard_parent).collect();
    for (used, parent) in names.values().zip(&parents) {
        if let Some(parent) = parent {
            *families.entry((parent, &used.ports)).or_default() += 1;
        }
    }
    let mut wild: BTreeMap<HostName, Use> = BTreeMap::new();
    for ((parent, ports), siblings) in families {
        if siblings > SIBLINGS_MAX {
            wild.entry(parent.clone()).or_default().ports.extend(ports);
        }
    }
    let mut candidates = Vec::new();
    for ((name, used), parent) in names.into_iter().zip(parents) {
        let mut ports = used.ports;
        if let Some(wild) = parent.and_then(|parent| wild.get_mut(&parent)) {
            wild.connections += used.connections;
            ports.retain(|port| !wild.ports.contains(port));
        }
        candidates.push(Candidate {
            pattern: HostPattern::Exact(name),
            ports,
            connections: used.connections,
        });
    }
    candidates.retain(|candidate| !candidate.ports.is_empty());
    candidates.extend(wild.into_iter().map(|(parent, used)| Candidate {
        pattern: HostPattern::OneLabel(parent),
        ports: used.ports,
        connections: used.connections,
    }));
    candidates
}

/// The name above, when a rule may speak of everything right below it.
fn wildcard_parent(name: &HostName) -> Option<HostName> {
    let (_, parent) = name.as_str().split_once('.')?;
    let parent = HostName::parse(parent).ok()?;
    let may_be_wild = parent.labels() >= 2 && !is_public_suffix(&parent);
    may_be_wild.then_some(parent)
}

/// One rule, or several when there are more ports than one has.
fn rules_of(candidate: &Candidate) -> Vec<EgressRule> {
    let ports: Vec<u16> = candidate
        .ports
        .iter()
        .copied()
        .filter(|port| *port != 0)
        .collect();
    let rule = |(index, ports): (usize, &[u16])| {
        let pattern = &candidate.pattern;
        let id = match index {
            0 => pattern.to_string(),
            _ => format!("{pattern}:{}", ports.first().copied().unwrap_or_default()),
        };
        Some(EgressRule {
            id,
            target: EgressTarget::Host(candidate.pattern.clone()),
            ports: Ports::new(ports.to_vec()).ok()?,
        })
    };
    ports
        .chunks(EGRESS_PORTS_MAX)
        .enumerate()
        .filter_map(rule)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4};

    use dayfly_core::egress::decide;
    use dayfly_types::egress::NameSource;
    use proptest::prelude::*;

    use super::*;

    fn record(kind: EgressRecordKind, decision: Decision, name: &str, port: u16) -> EgressRecord {
        let address = SocketAddrV4::new(Ipv4Addr::new(93, 184, 216, 34), port);
        EgressRecord {
            sequence: 1,
            at_ms: 1,
            kind,
            decision,
            name: HostName::parse(name).ok(),
            name_source: NameSource::Sni,
            destination: (kind != EgressRecordKind::Dns).then_some(address),
            dialed: None,
            answers: Vec::new(),
            rule: None,
            internal_network: None,
            reason: None,
            would_deny: decision == Decision::Allowed,
            bytes_up: 0,
            bytes_down: 0,
            duration_ms: 0,
            suppressed: 0,
        }
    }

    fn allowed(name: &str, port: u16) -> EgressRecord {
        record(EgressRecordKind::Tls, Decision::Allowed, name, port)
    }

    fn rules(draft: &Draft) -> Vec<(String, Vec<u16>)> {
        let rules = draft.policy.rules().iter();
        rules
            .map(|rule| (rule.id.clone(), rule.ports.as_slice().to_vec()))
            .collect()
    }

    #[test]
    fn names_that_were_connected_to_are_named_with_their_ports() {
        let draft = suggest(&[
            allowed("pypi.org", 443),
            allowed("pypi.org", 443),
            record(EgressRecordKind::Http, Decision::Closed, "deb.example", 80),
            EgressRecord {
                dialed: Some(SocketAddrV4::new(Ipv4Addr::new(93, 184, 216, 34), 8443)),
                ..record(EgressRecordKind::Tls, Decision::Cut, "pypi.org", 8443)
            },
            record(
                EgressRecordKind::Tls,
                Decision::Cut,
                "never-there.test",
                443,
            ),
            record(
                EgressRecordKind::Dns,
                Decision::Allowed,
                "only-asked.test",
                0,
            ),
            record(EgressRecordKind::Tls, Decision::Denied, "denied.test", 443),
            record(EgressRecordKind::Tls, Decision::Failed, "silent.test", 443),
            record(EgressRecordKind::Tcp, Decision::Allowed, "", 22),
        ]);
        assert_eq!(draft.policy.mode(), EgressMode::Allowlist);
        assert_eq!(
            rules(&draft),
            [
                ("deb.example".to_owned(), vec![80]),
                ("pypi.org".to_owned(), vec![443, 8443])
            ]
        );
        assert_eq!(draft.unnamed, ["93.184.216.34:22"]);
        assert!(!draft.is_truncated);
    }

    #[test]
    fn nothing_recorded_lets_nothing_through() {
        let draft = suggest(&[]);
        assert_eq!(draft.policy.mode(), EgressMode::Allowlist);
        assert!(draft.policy.rules().is_empty());
    }

    #[test]
    fn only_many_siblings_below_a_name_of_somebody_become_one_rule() {
        let below = |parent: &str, count: usize| -> Vec<EgressRecord> {
            let name = |number| format!("h{number}.{parent}");
            (0..count)
                .map(|number| allowed(&name(number), 443))
                .collect()
        };
        assert_eq!(
            suggest(&below("cdn.example.com", 8)).policy.rules().len(),
            8
        );
        let nine = suggest(&below("cdn.example.com", 9));
        assert_eq!(rules(&nine), [("*.cdn.example.com".to_owned(), vec![443])]);
        for suffix in ["co.uk", "github.io", "com"] {
            assert_eq!(suggest(&below(suffix, 9)).policy.rules().len(), 9);
        }
        // Another port of one of them is a right of that one alone.
        let mut other = below("cdn.example.com", 9);
        other.push(allowed("h3.cdn.example.com", 8443));
        other.push(allowed("h9.cdn.example.com", 443));
        assert_eq!(
            rules(&suggest(&other)),
            [
                ("*.cdn.example.com".to_owned(), vec![443]),
                ("h3.cdn.example.com".to_owned(), vec![8443])
            ]
        );
    }

    #[test]
    fn more_than_a_policy_holds_is_cut_at_the_least_used() {
        let mut records: Vec<EgressRecord> = (0..EGRESS_RULES_MAX)
            .map(|number| allowed(&format!("h{number}.t{number}.test"), 443))
            .collect();
        records.extend([allowed("often.test", 443), allowed("often.test", 443)]);
        let ports = (1000..1040).map(|port| allowed("many.test", port));
        records.extend(ports);
        let draft = suggest(&records);
        assert!(draft.is_truncated);
        assert_eq!(draft.policy.rules().len(), EGRESS_RULES_MAX);
        let ids: Vec<String> = rules(&draft).into_iter().map(|(id, _)| id).collect();
        for id in ["often.test", "many.test", "many.test:1032"] {
            assert!(ids.contains(&id.to_owned()), "{id}");
        }
    }

    proptest! {
        #[test]
        fn it_is_enough_and_one_entry_fewer_is_not(
            used in proptest::collection::vec(
                ("[a-l]", prop_oneof![
                    Just("cdn.example.com"), Just("example.com"), Just("co.uk"), Just("test"),
                ], prop_oneof![Just(443u16), Just(80), Just(8443)]),
                0..80,
            ),
        ) {
            let used: Vec<(String, u16)> = used
                .into_iter()
                .map(|(label, parent, port)| (format!("{label}.{parent}"), port))
                .collect();
            let records: Vec<EgressRecord> =
                used.iter().map(|(name, port)| allowed(name, *port)).collect();
            let rules = suggest(&records).policy.rules().to_vec();
            let suffices = |rules: Vec<EgressRule>| {
                let policy = EgressPolicy::new(EgressMode::Allowlist, rules).unwrap();
                used.iter().all(|(name, port)| {
                    decide(&policy, &HostName::parse(name).unwrap(), *port).is_ok()
                })
            };
            prop_assert!(suffices(rules.clone()));
            for left_out in 0..rules.len() {
                let mut fewer = rules.clone();
                fewer.remove(left_out);
                prop_assert!(!suffices(fewer), "{:?} is not needed", rules[left_out]);
            }
        }
    }
}

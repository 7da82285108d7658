//! A wished-for policy, checked.

use dayfly_api::{NetworkMode, NetworkWish, RuleWish};
use dayfly_core::egress::{check_networks, is_within};
use dayfly_types::egress::{EgressMode, EgressPolicy, EgressRule, EgressTarget, InternalNetwork};
use dayfly_types::limits::EGRESS_RULES_MAX;

use crate::input::Invalid;
use crate::network::presets;
use crate::network::rule::{self, Entry, ParsedRule};

/// A policy travels in one message of at most 128 KiB.
const POLICY_BYTES_MAX: usize = 96 << 10;

/// The policy that a create or a fork asks for; `None` when it says nothing. `internal` is what the
/// operator has opened to the project, here and below.
///
/// # Errors
/// [`Invalid`].
pub(crate) fn of_request(
    network: Option<NetworkWish>,
    allowlist: Option<Vec<RuleWish>>,
    internal: &[InternalNetwork],
) -> Result<Option<EgressPolicy>, Invalid> {
    match (network, allowlist) {
        (Some(_), Some(_)) => Err(Invalid::field(
            "egress_allowlist",
            "is short for a network of mode allowlist, so the two exclude each other; \
             leave one of them out",
        )),
        (Some(network), None) => of_network(network, internal).map(Some),
        (None, Some(list)) => of_allowlist(&list, internal).map(Some),
        (None, None) => Ok(None),
    }
}

/// The policy of a `network` object.
///
/// # Errors
/// [`Invalid`].
pub(crate) fn of_network(
    wish: NetworkWish,
    internal: &[InternalNetwork],
) -> Result<EgressPolicy, Invalid> {
    let mode = from_wire(wish.mode);
    let rules = collect("network", Vec::new(), &wish.rules, internal)?;
    finish("network", mode, rules)
}

fn of_allowlist(list: &[RuleWish], internal: &[InternalNetwork]) -> Result<EgressPolicy, Invalid> {
    const FIELD: &str = "egress_allowlist";
    // The one entry that is a mode, when nothing stands beside it.
    if let [only] = list
        && rule::parse(only) == Ok(Entry::Public)
    {
        return finish(FIELD, EgressMode::Public, Vec::new());
    }
    let rules = collect(FIELD, Vec::new(), list, internal)?;
    finish(FIELD, EgressMode::Allowlist, rules)
}

/// The same policy with more rules. A policy that let nothing through becomes an allowlist.
///
/// # Errors
/// [`Invalid`].
pub(crate) fn with_rules(
    policy: &EgressPolicy,
    more: &[RuleWish],
    internal: &[InternalNetwork],
) -> Result<EgressPolicy, Invalid> {
    if more.is_empty() {
        return Err(Invalid::field("rules", "is empty; name what to allow"));
    }
    let mode = match policy.mode() {
        EgressMode::Deny | EgressMode::Allowlist => EgressMode::Allowlist,
        EgressMode::Observe => EgressMode::Observe,
        EgressMode::Public => {
            return Err(Invalid::field(
                "rules",
                "cannot be added, because the sandbox may reach everything public already; \
                 PUT .../network with mode allowlist or observe first",
            ));
        }
    };
    let rules = collect("rules", policy.rules().to_vec(), more, internal)?;
    finish("rules", mode, rules)
}

fn collect(
    field: &'static str,
    mut rules: Vec<EgressRule>,
    wishes: &[RuleWish],
    internal: &[InternalNetwork],
) -> Result<Vec<EgressRule>, Invalid> {
    let known = rules.len();
    // As the document has it: also when many of them are the same rule.
    if wishes.len() > EGRESS_RULES_MAX {
        let count = wishes.len();
        let why = format!("has {count} entries, and a policy has at most {EGRESS_RULES_MAX} rules");
        return Err(Invalid::field(field, why));
    }
    for (index, wish) in wishes.iter().enumerate() {
        let wrong = |why: String| {
            let place = index + 1;
            let entry = rule::shown(wish);
            Invalid::field(field, format!("entry {place} ({entry}) {why}"))
        };
        let entry = rule::parse(wish).map_err(|error| wrong(error.to_string()))?;
        match entry {
            Entry::Rule(rule) => add(&mut rules, rule),
            Entry::Preset(name) => {
                for rule in presets::rules(name).unwrap_or_default() {
                    if !rules.contains(&rule) {
                        rules.push(rule);
                    }
                }
            }
            Entry::Public => {
                let why = "is no list of hosts but every public address; use mode public, \
                    without rules";
                return Err(wrong(why.to_owned()));
            }
        }
    }
    // The new ones alone: an old one may name what the operator has closed since, and leads nowhere.
    check_networks(&rules[known..], internal)
        .map_err(|error| Invalid::field(field, format!("cannot be used: {error}")))?;
    Ok(rules)
}

/// Adds a rule under a name of its own, unless it is there.
fn add(rules: &mut Vec<EgressRule>, rule: ParsedRule) {
    let ParsedRule { id, target, ports } = rule;
    let is_same = |known: &&EgressRule| known.target == target && known.ports == ports;
    if id.is_none() && rules.iter().find(is_same).is_some() {
        return;
    }
    let id = id.unwrap_or_else(|| {
        let name = target_text(&target);
        let is_taken = rules.iter().any(|known| known.id == name);
        if is_taken {
            let ports: Vec<String> = ports.as_slice().iter().map(u16::to_string).collect();
            format!("{name}:{}", ports.join("-"))
        } else {
            name
        }
    });
    let rule = EgressRule { id, target, ports };
    // The same rule under the same name twice is one; under the same name another is refused.
    if !rules.contains(&rule) {
        rules.push(rule);
    }
}

fn finish(
    field: &'static str,
    mode: EgressMode,
    rules: Vec<EgressRule>,
) -> Result<EgressPolicy, Invalid> {
    let policy = EgressPolicy::new(mode, rules)
        .map_err(|error| Invalid::field(field, format!("cannot be used: {error}")))?;
    let bytes = serde_json::to_vec(&policy).map_or(0, |text| text.len());
    if bytes > POLICY_BYTES_MAX {
        return Err(Invalid::TooLarge {
            what: "the network policy",
            limit: POLICY_BYTES_MAX,
        });
    }
    Ok(policy)
}

/// Whether `inner` lets nothing through that `outer` does not.
pub(crate) fn is_no_wider(
    inner: &EgressPolicy,
    outer: &EgressPolicy,
    internal: &[InternalNetwork],
) -> bool {
    // Rules beside an open mode still open something: the ports that the mode keeps shut.
    let rules = EgressPolicy::new(EgressMode::Allowlist, inner.rules().to_vec());
    is_within(inner, outer, internal) && rules.is_ok_and(|rules| is_within(&rules, outer, internal))
}

/// What a rule speaks of, as it is written.
pub(crate) fn target_text(target: &EgressTarget) -> String {
    match target {
        EgressTarget::Host(pattern) => pattern.to_string(),
        EgressTarget::Network(network) => network.to_string(),
    }
}

pub(crate) const fn from_wire(mode: NetworkMode) -> EgressMode {
    match mode {
        NetworkMode::Deny => EgressMode::Deny,
        NetworkMode::Allowlist => EgressMode::Allowlist,
        NetworkMode::Public => EgressMode::Public,
        NetworkMode::Observe => EgressMode::Observe,
    }
}

pub(crate) const fn to_wire(mode: EgressMode) -> NetworkMode {
    match mode {
        EgressMode::Deny => NetworkMode::Deny,
        EgressMode::Allowlist => NetworkMode::Allowlist,
        EgressMode::Public => NetworkMode::Public,
        EgressMode::Observe => NetworkMode::Observe,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn network(wish: Value) -> Result<EgressPolicy, Invalid> {
        of_network(serde_json::from_value(wish).unwrap(), &[])
    }

    fn allowlist(list: Value) -> Result<EgressPolicy, Invalid> {
        let list = serde_json::from_value(list).unwrap();
        of_request(None, Some(list), &[]).map(Option::unwrap)
    }

    fn ids(policy: &EgressPolicy) -> Vec<&str> {
        policy.rules().iter().map(|rule| rule.id.as_str()).collect()
    }

    fn refused(outcome: Result<EgressPolicy, Invalid>) -> String {
        outcome.unwrap_err().to_string()
    }

    #[test]
    fn the_two_forms_say_the_same() {
        let list = json!(["pypi.org", "*.example.com", "93.184.216.0/24"]);
        let long = json!({"mode": "allowlist", "rules": [
            {"host": "pypi.org"}, {"host": "*.example.com", "ports": [80, 443]},
            {"cidr": "93.184.216.0/24"}]});
        assert_eq!(allowlist(list).unwrap(), network(long).unwrap());
        assert_eq!(of_request(None, None, &[]), Ok(None));
        let both = of_request(
            Some(NetworkWish {
                mode: NetworkMode::Deny,
                rules: Vec::new(),
            }),
            Some(Vec::new()),
            &[],
        );
        assert!(both.unwrap_err().to_string().contains("leave one of them"));
    }

    #[test]
    fn a_rule_for_what_the_operator_closed_does_not_keep_others_out() {
        let open = json!({"name": "db", "projects": ["*"], "ranges": ["10.30.0.0/24"],
            "ports": [5432]});
        let open = [serde_json::from_value(open).unwrap()];
        let wishes = |text: &str| vec![serde_json::from_value::<RuleWish>(json!(text)).unwrap()];
        let database = wishes("10.30.0.10:5432");
        let policy = of_request(None, Some(database.clone()), &open);
        let policy = policy.unwrap().unwrap();
        let more = with_rules(&policy, &wishes("pypi.org"), &[]).unwrap();
        assert_eq!(ids(&more), ["10.30.0.10/32", "pypi.org"]);
        let other = with_rules(&policy, &wishes("10.30.0.11:5432"), &[]);
        assert!(refused(other).contains("unless the operator"));
        assert!(of_request(None, Some(database), &[]).is_err());
    }

    #[test]
    fn an_empty_list_lets_nothing_through() {
        let policy = allowlist(json!([])).unwrap();
        assert_eq!(policy.mode(), EgressMode::Allowlist);
        assert!(policy.rules().is_empty());
    }

    #[test]
    fn every_rule_has_a_name_of_its_own() {
        let policy = allowlist(json!([
            "a.test",
            "A.test.",
            "a.test:8080",
            {"host": "a.test", "ports": [22], "id": "mine"},
        ]));
        assert_eq!(ids(&policy.unwrap()), ["a.test", "a.test:8080", "mine"]);
        let policy = allowlist(json!([
            "preset:git-hosts",
            "preset:git-hosts",
            "github.com"
        ]));
        let policy = policy.unwrap();
        assert_eq!(ids(&policy)[0], "git-hosts/github.com");
        assert_eq!(ids(&policy).last(), Some(&"github.com"), "other ports");
        let same = network(json!({"mode": "allowlist", "rules": [
            {"host": "a.test", "id": "x"}, {"host": "b.test", "id": "x"}]}));
        assert!(refused(same).contains("two rules have the id x"));
    }

    #[test]
    fn the_public_preset_is_a_mode() {
        let policy = allowlist(json!(["preset:public"])).unwrap();
        assert_eq!(policy.mode(), EgressMode::Public);
        for list in [
            json!(["preset:public", "a.test"]),
            json!(["preset:public", "preset:public"]),
        ] {
            assert!(refused(allowlist(list)).contains("use mode public"));
        }
        let rules = network(json!({"mode": "public", "rules": ["a.test"]}));
        assert!(refused(rules).contains("rules mean nothing in mode public"));
    }

    #[test]
    fn errors_say_what_and_why_and_what_to_do() {
        let text = refused(allowlist(json!(["pypi.org", "*.co.uk"])));
        assert_eq!(
            text,
            "egress_allowlist entry 2 (\"*.co.uk\") is too wide: co.uk is a public suffix, below \
             which anybody can have a name; name the hosts or domains that you mean"
        );
        for range in ["0.0.0.0/0", "168.0.0.0/5"] {
            let text = refused(allowlist(json!([range])));
            assert!(text.contains("no sandbox may reach"), "{text}");
            assert!(text.ends_with("name a smaller range"), "{text}");
        }
        // No smaller range would help.
        for range in ["10.0.0.0/8", "10.1.2.3", "169.254.169.254"] {
            let text = refused(allowlist(json!([range])));
            assert!(text.contains(" is inside "), "{text}");
            assert!(
                text.ends_with("an internal network to its project"),
                "{text}"
            );
        }
        let many: Vec<String> = (0..=EGRESS_RULES_MAX)
            .map(|n| format!("h{n}.test"))
            .collect();
        assert!(refused(allowlist(json!(many))).contains("at most 256 rules"));
        let same = vec!["h.test"; EGRESS_RULES_MAX + 1];
        assert!(refused(allowlist(json!(same))).contains("at most 256 rules"));
        let label = "a".repeat(60);
        let long: Vec<Value> = (0..EGRESS_RULES_MAX)
            .map(|n| {
                json!({"host": format!("{label}.{label}.{label}.h{n}.test"),
                "ports": (10_000..10_032).collect::<Vec<u16>>(), "id": format!("{label}-{n}")})
            })
            .collect();
        let large = network(json!({"mode": "allowlist", "rules": long}));
        assert!(matches!(large, Err(Invalid::TooLarge { .. })));
    }

    #[test]
    fn a_private_range_may_be_written_where_the_operator_opened_it() {
        let open = json!({"name": "db", "projects": ["*"], "ranges": ["10.20.0.0/16"],
            "ports": [5432]});
        let internal = [serde_json::from_value(open).unwrap()];
        let wish = |range: &str| vec![RuleWish::text(format!("{range}:5432"))];
        let policy = of_request(None, Some(wish("10.20.0.10")), &internal);
        assert_eq!(ids(&policy.unwrap().unwrap()), ["10.20.0.10/32"]);
        for range in ["10.21.0.10", "169.254.169.254", "10.0.0.0/8"] {
            let text = of_request(None, Some(wish(range)), &internal).unwrap_err();
            assert!(text.to_string().contains("no sandbox may reach"), "{text}");
        }
        let public = network(json!({"mode": "public"})).unwrap();
        let policy = of_request(None, Some(wish("10.20.0.10")), &internal);
        let policy = policy.unwrap().unwrap();
        assert!(!is_no_wider(&policy, &public, &internal));
    }

    #[test]
    fn an_open_mode_with_a_rule_for_a_shut_port_is_wider() {
        let public = network(json!({"mode": "public"})).unwrap();
        let mail = network(json!({"mode": "observe", "rules": ["a.test:25"]})).unwrap();
        let plain = network(json!({"mode": "observe", "rules": ["a.test"]})).unwrap();
        assert!(!is_no_wider(&mail, &public, &[]) && is_no_wider(&plain, &public, &[]));
        assert!(is_no_wider(&mail, &mail, &[]) && is_no_wider(&public, &mail, &[]));
        assert!(is_no_wider(
            &EgressPolicy::deny(),
            &EgressPolicy::deny(),
            &[]
        ));
    }

    #[test]
    fn rules_are_added_to_what_takes_rules() {
        let more = [RuleWish::text("a.test"), RuleWish::text("b.test")];
        let listed = with_rules(&EgressPolicy::deny(), &more, &[]).unwrap();
        assert_eq!(
            (listed.mode(), listed.rules().len()),
            (EgressMode::Allowlist, 2)
        );
        assert_eq!(with_rules(&listed, &more, &[]), Ok(listed.clone()));
        let observe = network(json!({"mode": "observe"})).unwrap();
        assert_eq!(
            with_rules(&observe, &more, &[]).unwrap().mode(),
            EgressMode::Observe
        );
        let public = network(json!({"mode": "public"})).unwrap();
        assert!(refused(with_rules(&public, &more, &[])).contains("already"));
        assert!(with_rules(&listed, &[], &[]).is_err());
    }
}

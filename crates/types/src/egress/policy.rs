//! The rules of one sandbox.

use serde::{Deserialize, Serialize};

use super::{HostPattern, Ipv4Network};
use crate::limits;

/// Where a rule without ports lets through.
pub const DEFAULT_PORTS: [u16; 2] = [80, 443];

/// What is let through. There is no meaning in an empty list: the mode says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EgressMode {
    /// Nothing.
    #[default]
    Deny,
    /// What a rule names.
    Allowlist,
    /// Every public address, on ports that are not known for abuse.
    Public,
    /// As `public`, and the record says what an allowlist with the same rules would have denied.
    Observe,
}

impl EgressMode {
    const ALL: [Self; 4] = [Self::Deny, Self::Allowlist, Self::Public, Self::Observe];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Allowlist => "allowlist",
            Self::Public => "public",
            Self::Observe => "observe",
        }
    }

    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == text)
    }
}

/// A set of ports, never empty.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<u16>", into = "Vec<u16>")]
pub struct Ports(Vec<u16>);

impl Ports {
    /// # Errors
    /// [`InvalidPolicy::Ports`] when there are none, too many, or one is 0.
    pub fn new(mut ports: Vec<u16>) -> Result<Self, InvalidPolicy> {
        ports.sort_unstable();
        ports.dedup();
        if ports.is_empty() || ports.len() > limits::EGRESS_PORTS_MAX || ports.contains(&0) {
            return Err(InvalidPolicy::Ports);
        }
        Ok(Self(ports))
    }

    #[must_use]
    pub fn contains(&self, port: u16) -> bool {
        self.0.binary_search(&port).is_ok()
    }

    #[must_use]
    pub fn as_slice(&self) -> &[u16] {
        &self.0
    }
}

impl Default for Ports {
    fn default() -> Self {
        Self(DEFAULT_PORTS.to_vec())
    }
}

impl TryFrom<Vec<u16>> for Ports {
    type Error = InvalidPolicy;

    fn try_from(ports: Vec<u16>) -> Result<Self, InvalidPolicy> {
        Self::new(ports)
    }
}

impl From<Ports> for Vec<u16> {
    fn from(ports: Ports) -> Self {
        ports.0
    }
}

/// What a rule speaks of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EgressTarget {
    Host(HostPattern),
    Network(Ipv4Network),
}

/// One thing that is let through.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EgressRule {
    /// What records and answers call it.
    pub id: String,
    #[serde(flatten)]
    pub target: EgressTarget,
    #[serde(default)]
    pub ports: Ports,
}

/// What one sandbox may reach.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "Unchecked", into = "Unchecked")]
pub struct EgressPolicy {
    mode: EgressMode,
    rules: Vec<EgressRule>,
}

#[derive(Serialize, Deserialize)]
struct Unchecked {
    mode: EgressMode,
    #[serde(default)]
    rules: Vec<EgressRule>,
}

/// Why a policy is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPolicy {
    #[error("a rule has 1 to {} ports, none of them 0", limits::EGRESS_PORTS_MAX)]
    Ports,
    #[error("a policy has at most {} rules", limits::EGRESS_RULES_MAX)]
    TooManyRules,
    #[error(
        "a rule's id has 1 to 300 letters, digits, dots, hyphens, stars, slashes, colons or underscores"
    )]
    RuleId,
    #[error("two rules have the id {0}")]
    SameId(String),
    #[error("rules mean nothing in mode {0}")]
    RulesWithoutMeaning(&'static str),
}

impl EgressPolicy {
    /// Nothing may be reached.
    #[must_use]
    pub const fn deny() -> Self {
        Self {
            mode: EgressMode::Deny,
            rules: Vec::new(),
        }
    }

    /// # Errors
    /// [`InvalidPolicy`].
    pub fn new(mode: EgressMode, rules: Vec<EgressRule>) -> Result<Self, InvalidPolicy> {
        if rules.len() > limits::EGRESS_RULES_MAX {
            return Err(InvalidPolicy::TooManyRules);
        }
        let takes_rules = matches!(mode, EgressMode::Allowlist | EgressMode::Observe);
        if !takes_rules && !rules.is_empty() {
            return Err(InvalidPolicy::RulesWithoutMeaning(mode.as_str()));
        }
        for (index, rule) in rules.iter().enumerate() {
            check_id(&rule.id)?;
            if rules[..index].iter().any(|earlier| earlier.id == rule.id) {
                return Err(InvalidPolicy::SameId(rule.id.clone()));
            }
        }
        Ok(Self { mode, rules })
    }

    #[must_use]
    pub const fn mode(&self) -> EgressMode {
        self.mode
    }

    #[must_use]
    pub fn rules(&self) -> &[EgressRule] {
        &self.rules
    }
}

fn check_id(id: &str) -> Result<(), InvalidPolicy> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-*/:_".contains(&byte);
    if id.is_empty() || id.len() > 300 || !id.bytes().all(is_allowed) {
        return Err(InvalidPolicy::RuleId);
    }
    Ok(())
}

impl TryFrom<Unchecked> for EgressPolicy {
    type Error = InvalidPolicy;

    fn try_from(unchecked: Unchecked) -> Result<Self, InvalidPolicy> {
        Self::new(unchecked.mode, unchecked.rules)
    }
}

impl From<EgressPolicy> for Unchecked {
    fn from(policy: EgressPolicy) -> Self {
        Self {
            mode: policy.mode,
            rules: policy.rules,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_survives_its_text_and_an_empty_list_allows_nothing() {
        let text = r#"{"mode":"allowlist","rules":[
            {"id":"pypi","host":"*.example.com","ports":[443]},
            {"id":"net","network":"203.0.113.0/24"}]}"#;
        let policy: EgressPolicy = serde_json::from_str(text).unwrap();
        assert_eq!(policy.rules()[1].ports, Ports::default());
        let again = serde_json::to_string(&policy).unwrap();
        assert_eq!(
            serde_json::from_str::<EgressPolicy>(&again).unwrap(),
            policy
        );
        let empty: EgressPolicy = serde_json::from_str(r#"{"mode":"allowlist"}"#).unwrap();
        assert!(empty.rules().is_empty());
        assert!(
            serde_json::from_str::<EgressPolicy>("{}").is_err(),
            "the mode is required"
        );
        assert!(serde_json::from_str::<EgressPolicy>(r#"{"mode":"Public"}"#).is_err());
    }

    #[test]
    fn rules_are_checked() {
        let rule = |id: &str| EgressRule {
            id: id.to_owned(),
            target: EgressTarget::Host("example.com".parse().unwrap()),
            ports: Ports::default(),
        };
        let allowlist = |rules| EgressPolicy::new(EgressMode::Allowlist, rules);
        assert!(allowlist(vec![rule("a"), rule("b")]).is_ok());
        assert_eq!(
            allowlist(vec![rule("a"), rule("a")]),
            Err(InvalidPolicy::SameId("a".to_owned()))
        );
        assert_eq!(allowlist(vec![rule("a b")]), Err(InvalidPolicy::RuleId));
        assert!(EgressPolicy::new(EgressMode::Deny, vec![rule("a")]).is_err());
        assert!(Ports::new(Vec::new()).is_err() && Ports::new(vec![0]).is_err());
    }
}

//! What a sandbox may reach, and the record of what it tried.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What is let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NetworkMode {
    /// Nothing.
    #[default]
    Deny,
    /// What a rule names.
    Allowlist,
    /// Every public address, on ports that are not known for abuse.
    Public,
    /// As `public`; the record says what an allowlist with the same rules would have denied.
    Observe,
}

impl NetworkMode {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Allowlist => "allowlist",
            Self::Public => "public",
            Self::Observe => "observe",
        }
    }
}

/// A wished-for policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkWish {
    pub mode: NetworkMode,
    /// Only with `allowlist` and `observe`. An allowlist without rules lets nothing through.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 256)]
    pub rules: Vec<RuleWish>,
}

/// A wished-for rule: a text, or an object with `host` or `cidr`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum RuleWish {
    /// `pypi.org`, `*.example.com`, `93.184.216.0/24`, each with `:PORT` or `:PORT,PORT` behind it
    /// if need be, or `preset:NAME`.
    Text(String),
    Rule(RuleParts),
}

/// A wished-for rule in its parts: one of `host` and `cidr`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleParts {
    /// A name; `*.name` for one part in front of it, `**.name` for any number of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 300)]
    pub host: Option<String>,
    /// A range of IPv4 addresses, for what has no name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 18)]
    pub cidr: Option<String>,
    /// Default: 80 and 443.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_items = 1, max_items = 32)]
    pub ports: Option<Vec<u16>>,
    /// What records call the rule. Default: its host or range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[A-Za-z0-9.*/:_-]{1,300}$")]
    pub id: Option<String>,
}

impl RuleWish {
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }
}

// By hand, so that a mistake in an object is named and not answered with "no variant fits".
impl<'de> Deserialize<'de> for RuleWish {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Wish;

        impl<'de> Visitor<'de> for Wish {
            type Value = RuleWish;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(
                    "a rule: a text such as \"pypi.org\" or \"preset:git-hosts\", \
                     or an object with host or cidr",
                )
            }

            fn visit_str<E>(self, text: &str) -> Result<RuleWish, E> {
                Ok(RuleWish::text(text))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RuleWish, A::Error> {
                RuleParts::deserialize(MapAccessDeserializer::new(map)).map(RuleWish::Rule)
            }
        }

        deserializer.deserialize_any(Wish)
    }
}

/// Body of `POST /v1/sandboxes/{id}/network/allow`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AllowNetwork {
    #[schema(min_items = 1, max_items = 256)]
    pub rules: Vec<RuleWish>,
}

/// What a sandbox may reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Network {
    pub mode: NetworkMode,
    pub rules: Vec<NetworkRule>,
    /// Grows with every change.
    pub epoch: u64,
    /// Whether connections are decided by this policy now. False while the sandbox is hibernated,
    /// and while its host has not yet confirmed a change, which is sent again until it has.
    pub enforced: bool,
}

/// What a new sandbox of the project may reach when its create does not say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NetworkDefault {
    pub mode: NetworkMode,
    pub rules: Vec<NetworkRule>,
}

/// One thing that is let through, in its canonical form. It has `host` or `cidr`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NetworkRule {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cidr: Option<String>,
    pub ports: Vec<u16>,
}

/// Response of `GET /v1/sandboxes/{id}/network/log`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NetworkLog {
    /// Oldest first.
    pub records: Vec<NetworkRecord>,
    /// The oldest sequence that is still kept; 0 when there is none.
    pub oldest: u64,
    /// The newest sequence there ever was; 0 when there was none.
    pub latest: u64,
    /// How many records behind `after` are no longer there, or were never written.
    pub lost: u64,
}

/// One decision, or the end of a connection that was let through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NetworkRecord {
    /// Counts the records of one sandbox.
    pub sequence: u64,
    /// RFC 3339, UTC.
    pub at: String,
    /// dns, tls, http or tcp.
    pub kind: String,
    /// allowed, denied, closed, cut or failed.
    pub decision: String,
    /// What the guest asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// sni, host, dns or none.
    pub name_source: String,
    /// Of a connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Where the guest's packet was addressed to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// Where the connection really goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialed: Option<String>,
    /// Addresses in the response to a DNS query.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<String>,
    /// The rule that let it through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Why it was denied, as a stable word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The internal network of the operator's that it goes into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub internal_network: Option<String>,
    /// In mode `observe`: an allowlist with the same rules would have denied it.
    #[serde(default)]
    pub would_deny: bool,
    pub bytes_up: u64,
    pub bytes_down: u64,
    pub duration_ms: u64,
    /// How many like it were not recorded since the last one that was.
    pub suppressed: u64,
}

/// Data of a `lost` event of the record as a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NetworkLost {
    pub count: u64,
}

/// Response of `GET /v1/sandboxes/{id}/network/suggest`: a policy for `PUT .../network`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NetworkSuggestion {
    pub mode: NetworkMode,
    /// Enough for every connection to a name that was let through, and none is left over.
    pub rules: Vec<NetworkRule>,
    /// Connections of which only the address was known, as `address:port`. No rule covers them.
    pub unnamed: Vec<String>,
    /// How many records it is drawn from.
    pub records: u64,
    /// How many records were no longer there to draw from.
    pub lost: u64,
    /// There were more names than a policy has rules; the most used ones are here.
    pub truncated: bool,
}

/// Response of `GET /v1/network-presets`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NetworkPresetList {
    pub items: Vec<NetworkPreset>,
}

/// Rules that go by one name: `preset:NAME`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NetworkPreset {
    pub name: String,
    pub description: String,
    /// `public` for the preset that is a mode and has no rules.
    pub mode: NetworkMode,
    pub rules: Vec<NetworkRule>,
}

/// Reads a field that may be absent but not null: where one means the default and the other would
/// have to mean nothing or everything, a guess is a hole.
pub(crate) fn never_null<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::<T>::deserialize(deserializer)?
        .map(Some)
        .ok_or_else(|| {
            serde::de::Error::custom(
                "network and egress_allowlist must not be null: leave the field out for the \
                 default, or send [] to let nothing through",
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CreateSandbox, ForkSandbox};

    #[test]
    fn a_rule_is_a_text_or_an_object() {
        let text = r#"{"mode":"allowlist","rules":["a.test",{"host":"b.test","ports":[22]}]}"#;
        let wish: NetworkWish = serde_json::from_str(text).unwrap();
        assert_eq!(wish.rules[0], RuleWish::text("a.test"));
        assert_eq!(serde_json::to_string(&wish).unwrap(), text);
        for (json, part) in [
            (r#"{"rules":[]}"#, "mode"),
            (r#"{"mode":"open"}"#, "unknown variant"),
            (r#"{"mode":"deny","allow":[]}"#, "unknown field"),
            (r#"{"mode":"allowlist","rules":[7]}"#, "expected a rule"),
            (r#"{"mode":"allowlist","rules":[null]}"#, "expected a rule"),
            (r#"{"mode":"allowlist","rules":null}"#, "invalid type: null"),
            (
                r#"{"mode":"allowlist","rules":[{"host":"a.test","port":1}]}"#,
                "unknown field `port`",
            ),
            (
                r#"{"mode":"allowlist","rules":[{"host":"a.test","ports":[65536]}]}"#,
                "65536",
            ),
        ] {
            let error = serde_json::from_str::<NetworkWish>(json).unwrap_err();
            assert!(error.to_string().contains(part), "{json}: {error}");
        }
    }

    #[test]
    fn null_is_no_policy() {
        for field in ["network", "egress_allowlist"] {
            let json = format!(r#"{{"{field}":null}}"#);
            for error in [
                serde_json::from_str::<CreateSandbox>(&json).unwrap_err(),
                serde_json::from_str::<ForkSandbox>(&json).unwrap_err(),
            ] {
                assert!(error.to_string().contains("must not be null"), "{error}");
            }
        }
        let fork: ForkSandbox = serde_json::from_str(r#"{"egress_allowlist":[]}"#).unwrap();
        assert_eq!(fork.options.egress_allowlist, Some(Vec::new()));
    }
}

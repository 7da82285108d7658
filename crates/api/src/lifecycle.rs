//! How long a sandbox lives, and what happens when it does nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::environment;
use crate::number::whole_number_or_null;

/// What happens to a sandbox that was idle for too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnTimeout {
    #[default]
    Delete,
    Hibernate,
}

impl OnTimeout {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Hibernate => "hibernate",
        }
    }
}

/// How much of its size a sandbox is promised of its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PromiseClass {
    /// All of it; it never sleeps for others.
    #[default]
    Reserved,
    /// A working set; it may sleep while it is idle and others need the memory.
    Shared,
}

impl PromiseClass {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reserved => "reserved",
            Self::Shared => "shared",
        }
    }
}

/// Body of `POST /v1/sandboxes/{id}/wake`. Every field may be absent or null; unknown fields are
/// refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WakeSandbox {
    /// Environment variables in place of those that it has.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "environment::variables"
    )]
    #[schema(schema_with = environment::replaced_schema)]
    pub env: Option<BTreeMap<String, String>>,
}

/// Body of `PATCH /v1/sandboxes/{id}/lifecycle`. What is absent stays; a null takes away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeLifecycle {
    /// Seconds from now until the sandbox is deleted. Null: no deadline.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole_number_or_null"
    )]
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 31_536_000)]
    pub ttl_seconds: Option<Option<u64>>,
    /// Never reaped for idleness.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent: Option<bool>,
    /// Seconds without activity after which `on_timeout` happens. Null: never.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole_number_or_null"
    )]
    #[schema(value_type = Option<u64>, minimum = 5, maximum = 31_536_000)]
    pub idle_seconds: Option<Option<u64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_timeout: Option<OnTimeout>,
}

/// Response of `GET` and `PATCH /v1/sandboxes/{id}/lifecycle`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Lifecycle {
    /// As it was set; the clock started then. Null: no deadline.
    pub ttl_seconds: Option<u64>,
    pub persistent: bool,
    /// Null: never reaped for idleness.
    pub idle_seconds: Option<u64>,
    pub on_timeout: OnTimeout,
    /// When it is deleted, RFC 3339, UTC. Null: no deadline.
    pub expires_at: Option<String>,
    /// How long ago it was last seen to do something.
    pub idle_for_seconds: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_null_and_a_number_are_three_wishes() {
        let parse = |json| serde_json::from_str::<ChangeLifecycle>(json).unwrap();
        assert_eq!(parse("{}"), ChangeLifecycle::default());
        assert_eq!(parse(r#"{"ttl_seconds":null}"#).ttl_seconds, Some(None));
        assert_eq!(parse(r#"{"ttl_seconds":9.0}"#).ttl_seconds, Some(Some(9)));
        for json in [r#"{"ttl_seconds":null}"#, r#"{"idle_seconds":9}"#, "{}"] {
            assert_eq!(serde_json::to_string(&parse(json)).unwrap(), json);
        }
        assert_eq!(
            parse(r#"{"persistent":null,"on_timeout":null}"#),
            parse("{}")
        );
        for json in [r#"{"ttl_seconds":"9"}"#, r#"{"on_timeout":"stop"}"#] {
            assert!(
                serde_json::from_str::<ChangeLifecycle>(json).is_err(),
                "{json}"
            );
        }
    }
}

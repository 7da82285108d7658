//! Forks: children that continue from one moment of their source.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use crate::environment;
use crate::lifecycle::OnTimeout;
use crate::network::{NetworkWish, RuleWish, never_null};
use crate::number::{required_whole_number, whole_number};
use crate::sandbox::{Sandbox, metadata_schema};
use crate::snapshot::Capture;

/// Body of `POST /v1/sandboxes/{id}/fork`. Every field may be absent, and null unless it says
/// otherwise; unknown fields are refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct ForkSandbox {
    /// How many children. Default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 64)]
    pub count: Option<u64>,
    #[serde(flatten)]
    pub options: ForkOptions,
}

// By hand, here and below: a schema that refuses what it does not know cannot be part of another.
impl<'de> Deserialize<'de> for ForkSandbox {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Asked {
            #[serde(default, deserialize_with = "whole_number")]
            count: Option<u64>,
            #[serde(flatten)]
            options: ForkOptions,
        }
        let Asked { count, options } = Asked::deserialize(deserializer)?;
        Ok(Self { count, options })
    }
}

/// Body of `POST /v1/sandboxes/{id}/fork-tree`. Unknown fields are refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ForkTree {
    /// How many children.
    #[schema(minimum = 1, maximum = 64)]
    pub count: u64,
    #[serde(flatten)]
    pub options: ForkOptions,
}

impl<'de> Deserialize<'de> for ForkTree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Asked {
            #[serde(deserialize_with = "required_whole_number")]
            count: u64,
            #[serde(flatten)]
            options: ForkOptions,
        }
        let Asked { count, options } = Asked::deserialize(deserializer)?;
        Ok(Self { count, options })
    }
}

/// What every child gets. Labels, environment variables, time to live, idle time and `on_timeout`
/// are the source's unless they are given here; a time to live counts from the fork.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ForkOptions {
    /// Labels of every child, over those of the source. `explore_ttl`, seconds as text, is its time
    /// to live when `ttl_seconds` is absent. `fork_parent_id`, `fork_tree_id` and `tree_id` are the
    /// server's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = metadata_schema)]
    pub metadata: Option<BTreeMap<String, String>>,
    /// Environment variables of every child, in place of those of the source.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "environment::variables"
    )]
    #[schema(schema_with = environment::replaced_schema)]
    pub env: Option<BTreeMap<String, String>>,
    /// When one child cannot be made, none stays. Default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all_or_nothing: Option<bool>,
    /// Also run the guest's reseed hooks, for generators in user space. Default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reseed_user_space: Option<bool>,
    /// Absent: the source's, or an hour when it has none.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole_number"
    )]
    #[schema(minimum = 1, maximum = 31_536_000)]
    pub ttl_seconds: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent: Option<bool>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole_number"
    )]
    #[schema(minimum = 5, maximum = 31_536_000)]
    pub idle_seconds: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_timeout: Option<OnTimeout>,
    /// What each child may reach, within what its source may. Absent: the same. Not null, and not
    /// together with `egress_allowlist`.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "never_null"
    )]
    #[schema(nullable = false)]
    pub network: Option<NetworkWish>,
    /// Short for a `network` of mode `allowlist` with these rules. An empty list lets nothing
    /// through.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "never_null"
    )]
    #[schema(nullable = false, max_items = 256)]
    pub egress_allowlist: Option<Vec<RuleWish>>,
}

/// Response of a fork that made at least one child.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Forked {
    /// The first child. Only `fork` has it, not `fork-tree`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Sandbox>,
    pub children: Vec<Sandbox>,
    /// Why a child was not made, by the id that it would have had.
    pub failures: BTreeMap<String, String>,
    /// What every child has of its own.
    pub renewed: Vec<String>,
    /// What children share with their source until their own code changes it.
    pub not_renewed: Vec<String>,
    pub capture: Capture,
}

/// Body of `POST /v1/sandboxes/{id}/promote`. Every field may be absent or null.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PromoteSandbox {
    /// Delete the other children of the same fork. Default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleanup_siblings: Option<bool>,
    /// Must be the child's own tree when it is given and not empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree_id: Option<String>,
}

/// Response of `POST /v1/sandboxes/{id}/promote`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Promoted {
    pub winner: String,
    pub tree_id: String,
    /// The siblings that are gone.
    pub deleted: Vec<String>,
    /// Why a sibling may still exist, by id.
    pub failures: BTreeMap<String, String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nulls_are_absent_and_a_tree_needs_a_count() {
        let nulls = r#"{"count":null,"metadata":null,"ttl_seconds":null,"on_timeout":null}"#;
        let parsed: ForkSandbox = serde_json::from_str(nulls).unwrap();
        assert_eq!(parsed, ForkSandbox::default());
        assert_eq!(serde_json::to_string(&parsed).unwrap(), "{}");
        let tree: ForkTree =
            serde_json::from_str(r#"{"count":3.0,"idle_seconds":9,"metadata":{"a":"b"}}"#).unwrap();
        assert_eq!((tree.count, tree.options.idle_seconds), (3, Some(9)));
        for json in ["{}", r#"{"count":null}"#, r#"{"count":"3"}"#] {
            assert!(serde_json::from_str::<ForkTree>(json).is_err(), "{json}");
        }
        let unknown = r#"{"count":3,"idle_secods":9}"#;
        for refused in [
            serde_json::from_str::<ForkTree>(unknown).unwrap_err(),
            serde_json::from_str::<ForkSandbox>(unknown).unwrap_err(),
        ] {
            assert!(refused.to_string().contains("`idle_secods`"), "{refused}");
        }
    }
}

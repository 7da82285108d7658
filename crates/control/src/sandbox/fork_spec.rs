//! A wished-for fork, checked.

use std::collections::BTreeMap;

use dayfly_api::{ForkOptions, ForkSandbox, ForkTree};
use dayfly_types::egress::EgressPolicy;
use dayfly_types::{CellName, LifetimeRules, SnapshotId, limits};
use serde::Serialize;

use crate::input::{Invalid, ids, quantity};
use crate::network::spec;
use crate::sandbox::lifetime::LifecycleWish;
use crate::sandbox::metadata;

/// The source of a child.
pub const PARENT_KEY: &str = "fork_parent_id";
/// The fork that a child came from.
pub const TREE_KEY: &str = "fork_tree_id";
/// The published clients read this one when there is no [`TREE_KEY`].
const OLD_TREE_KEY: &str = "tree_id";
/// Seconds as text: how the published clients ask for a time to live of candidates.
const EXPLORE_TTL_KEY: &str = "explore_ttl";

/// What a caller wants of a fork. Every value is within its limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ForkPlan {
    pub count: usize,
    /// Without what is the server's to say.
    pub metadata: BTreeMap<String, String>,
    pub lifecycle: LifetimeRules,
    pub all_or_nothing: bool,
    pub reseed_user_space: bool,
    /// `None`: what the source may reach.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<EgressPolicy>,
}

impl TryFrom<ForkSandbox> for ForkPlan {
    type Error = Invalid;

    fn try_from(body: ForkSandbox) -> Result<Self, Invalid> {
        plan(body.count.unwrap_or(1), body.options)
    }
}

impl TryFrom<ForkTree> for ForkPlan {
    type Error = Invalid;

    fn try_from(body: ForkTree) -> Result<Self, Invalid> {
        plan(body.count, body.options)
    }
}

fn plan(count: u64, options: ForkOptions) -> Result<ForkPlan, Invalid> {
    let allowed = 1..=limits::FORK_CHILDREN_MAX;
    let fitting = usize::try_from(count).ok().filter(|n| allowed.contains(n));
    let count =
        fitting.ok_or_else(|| quantity::between("count", allowed.start(), allowed.end()))?;
    let mut metadata = options.metadata.unwrap_or_default();
    metadata::check(&metadata)?;
    // A caller that could set these could have another tree's children deleted by a promote.
    for key in [PARENT_KEY, TREE_KEY, OLD_TREE_KEY] {
        metadata.remove(key);
    }
    let explore_ttl = metadata
        .get(EXPLORE_TTL_KEY)
        .map(|text| parse_explore_ttl(text))
        .transpose()?;
    let wish = LifecycleWish {
        ttl_seconds: options.ttl_seconds.or(explore_ttl),
        persistent: options.persistent,
        idle_seconds: options.idle_seconds,
        on_timeout: options.on_timeout,
    };
    Ok(ForkPlan {
        count,
        metadata,
        lifecycle: wish.check()?,
        all_or_nothing: options.all_or_nothing.unwrap_or(false),
        reseed_user_space: options.reseed_user_space.unwrap_or(false),
        network: spec::of_request(options.network, options.egress_allowlist)?,
    })
}

fn parse_explore_ttl(text: &str) -> Result<u64, Invalid> {
    let seconds = text.parse().ok();
    let allowed = 1..=limits::TTL_SECONDS_MAX;
    seconds.filter(|n| allowed.contains(n)).ok_or_else(|| {
        let rule = format!(
            "explore_ttl must be whole seconds between 1 and {}",
            limits::TTL_SECONDS_MAX
        );
        Invalid::field("metadata", rule)
    })
}

/// The time to live that the labels of a child asked for.
pub(crate) fn explore_ttl(metadata: &BTreeMap<String, String>) -> Option<u64> {
    metadata.get(EXPLORE_TTL_KEY)?.parse().ok()
}

/// The name of one fork. Its capture has the same random part, so that a repeated call names the
/// same capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tree(String);

const TREE_PREFIX: &str = "tree-";
const SNAPSHOT_PREFIX: &str = "snap-";

impl Tree {
    pub(crate) fn draw(cell: &CellName) -> Result<Self, ids::NoRandomness> {
        let snapshot = SnapshotId::from_random(cell, ids::draw()?);
        let rest = snapshot.as_str().trim_start_matches(SNAPSHOT_PREFIX);
        Ok(Self(format!("{TREE_PREFIX}{rest}")))
    }

    /// Reads a name that was written before; `None` when the text is no such name.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let tree = text
            .starts_with(TREE_PREFIX)
            .then(|| Self(text.to_owned()))?;
        tree.snapshot().map(|_| tree)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The capture of this fork.
    pub(crate) fn snapshot(&self) -> Option<SnapshotId> {
        let rest = self.0.strip_prefix(TREE_PREFIX)?;
        SnapshotId::parse(&format!("{SNAPSHOT_PREFIX}{rest}")).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<ForkPlan, Invalid> {
        serde_json::from_str::<ForkSandbox>(json)
            .unwrap()
            .try_into()
    }

    #[test]
    fn a_fork_without_options_makes_one_child_that_lives_as_long_as_a_new_sandbox() {
        let plan = parse("{}").unwrap();
        assert_eq!(plan.count, 1);
        let default = Some(limits::TTL_SECONDS_DEFAULT);
        assert_eq!(plan.lifecycle.ttl_seconds, default);
        assert!(!plan.all_or_nothing && !plan.reseed_user_space);
        assert_eq!(
            parse(r#"{"persistent":true}"#)
                .unwrap()
                .lifecycle
                .ttl_seconds,
            None
        );
    }

    #[test]
    fn the_labels_of_the_server_cannot_be_set() {
        let json =
            r#"{"metadata":{"a":"b","fork_tree_id":"x","fork_parent_id":"y","tree_id":"z"}}"#;
        assert_eq!(parse(json), parse(r#"{"metadata":{"a":"b"}}"#));
    }

    #[test]
    fn explore_ttl_is_a_time_to_live_unless_one_is_given() {
        let ttl = |json| parse(json).unwrap().lifecycle.ttl_seconds;
        assert_eq!(ttl(r#"{"metadata":{"explore_ttl":"600"}}"#), Some(600));
        assert_eq!(
            ttl(r#"{"metadata":{"explore_ttl":"600"},"ttl_seconds":7}"#),
            Some(7)
        );
        for text in ["", "0", "-1", "1.5", "x", "31536001"] {
            let json = format!(r#"{{"metadata":{{"explore_ttl":"{text}"}}}}"#);
            assert!(parse(&json).is_err(), "{text}");
        }
    }

    #[test]
    fn counts_out_of_range_are_refused() {
        for count in ["0", "65", "18446744073709551615"] {
            assert!(
                parse(&format!(r#"{{"count":{count}}}"#)).is_err(),
                "{count}"
            );
        }
        assert_eq!(parse(r#"{"count":64}"#).unwrap().count, 64);
    }

    #[test]
    fn a_tree_names_its_capture() {
        let tree = Tree::draw(&CellName::local()).unwrap();
        assert!(tree.as_str().starts_with("tree-local-"));
        let snapshot = tree.snapshot().unwrap();
        assert!(snapshot.as_str().starts_with("snap-local-"));
        assert_eq!(Tree::parse(tree.as_str()), Some(tree));
        assert_eq!(Tree::parse("sb-local-x"), None);
    }
}

//! A wished-for fork, checked.

use std::collections::BTreeMap;

use dayfly_api::{ForkOptions, ForkSandbox, ForkTree};
use dayfly_types::egress::{EgressPolicy, InternalNetwork};
use dayfly_types::{CellName, LifetimeRules, SnapshotId, limits};
use serde::Serialize;

use crate::input::{Invalid, ids, quantity};
use crate::network::spec;
use crate::sandbox::environment::Environment;
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
    pub lifecycle: ChildLifetime,
    pub all_or_nothing: bool,
    pub reseed_user_space: bool,
    /// `None`: what the source may reach.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<EgressPolicy>,
    /// `None`: the source's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<Environment>,
}

/// How long a child lives: what was asked for, and for the rest what its source does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ChildLifetime {
    asked: LifetimeRules,
    is_ttl_asked: bool,
    is_timeout_asked: bool,
}

impl ChildLifetime {
    fn of(wish: LifecycleWish) -> Result<Self, Invalid> {
        Ok(Self {
            asked: wish.check()?,
            // One that is to stay has none unless it is given.
            is_ttl_asked: wish.ttl_seconds.is_some() || wish.persistent == Some(true),
            is_timeout_asked: wish.on_timeout.is_some(),
        })
    }

    /// A child of a source without an end has one all the same: nobody may know of it.
    pub(crate) fn of_child(self, source: LifetimeRules) -> LifetimeRules {
        let asked = self.asked;
        LifetimeRules {
            ttl_seconds: match self.is_ttl_asked {
                true => asked.ttl_seconds,
                false => source.ttl_seconds.or(asked.ttl_seconds),
            },
            persistent: asked.persistent,
            idle_seconds: asked.idle_seconds.or(source.idle_seconds),
            on_timeout: match self.is_timeout_asked {
                true => asked.on_timeout,
                false => source.on_timeout,
            },
        }
    }
}

/// Labels that say something of one sandbox alone.
fn is_own_label(key: &str) -> bool {
    [PARENT_KEY, TREE_KEY, OLD_TREE_KEY, EXPLORE_TTL_KEY].contains(&key)
}

impl ForkPlan {
    /// The labels of a child: its source's, and over them what was asked for.
    ///
    /// # Errors
    /// [`Invalid`] when they are too many together.
    pub(crate) fn labels(
        &self,
        source: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, Invalid> {
        let inherited = source.iter().filter(|(key, _)| !is_own_label(key));
        let all: BTreeMap<_, _> = inherited.chain(&self.metadata).collect();
        let labels = all
            .into_iter()
            .map(|(key, value)| (key.clone(), value.clone()));
        let labels = labels.collect();
        metadata::check(&labels)?;
        Ok(labels)
    }
}

/// What a fork asks for, in a project to which the operator has opened `internal`.
///
/// # Errors
/// [`Invalid`].
pub(crate) fn of_fork(
    body: ForkSandbox,
    internal: &[InternalNetwork],
) -> Result<ForkPlan, Invalid> {
    plan(body.count.unwrap_or(1), body.options, internal)
}

/// The same of a fork of a whole tree.
///
/// # Errors
/// [`Invalid`].
pub(crate) fn of_tree(body: ForkTree, internal: &[InternalNetwork]) -> Result<ForkPlan, Invalid> {
    plan(body.count, body.options, internal)
}

fn plan(
    count: u64,
    options: ForkOptions,
    internal: &[InternalNetwork],
) -> Result<ForkPlan, Invalid> {
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
        lifecycle: ChildLifetime::of(wish)?,
        all_or_nothing: options.all_or_nothing.unwrap_or(false),
        reseed_user_space: options.reseed_user_space.unwrap_or(false),
        network: spec::of_request(options.network, options.egress_allowlist, internal)?,
        environment: options.env.map(Environment::parse).transpose()?,
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
    use dayfly_types::IdleAction;

    use super::*;

    fn parse(json: &str) -> Result<ForkPlan, Invalid> {
        of_fork(serde_json::from_str(json).unwrap(), &[])
    }

    #[test]
    fn a_child_lives_as_its_source_does_unless_told_otherwise() {
        let source = LifetimeRules {
            ttl_seconds: Some(120),
            persistent: true,
            idle_seconds: Some(30),
            on_timeout: IdleAction::Hibernate,
        };
        let child = |json, source| parse(json).unwrap().lifecycle.of_child(source);
        let same = child("{}", source);
        assert_eq!(
            same,
            LifetimeRules {
                persistent: false,
                ..source
            }
        );
        let other = child(
            r#"{"ttl_seconds":7,"idle_seconds":9,"on_timeout":"delete"}"#,
            source,
        );
        assert_eq!((other.ttl_seconds, other.idle_seconds), (Some(7), Some(9)));
        assert_eq!(other.on_timeout, IdleAction::Delete);
        assert_eq!(child(r#"{"persistent":true}"#, source).ttl_seconds, None);
        // Of a source without an end.
        let endless = LifetimeRules {
            persistent: true,
            ..LifetimeRules::default()
        };
        let default = Some(limits::TTL_SECONDS_DEFAULT);
        assert_eq!(child("{}", endless).ttl_seconds, default);
        let plan = parse("{}").unwrap();
        assert!(plan.count == 1 && !plan.all_or_nothing && !plan.reseed_user_space);
    }

    #[test]
    fn a_child_has_the_labels_of_its_source_under_its_own() {
        let text = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let source = BTreeMap::from([
            text("task", "42"),
            text("kind", "old"),
            text("explore_ttl", "9"),
            text("fork_tree_id", "tree-local-x"),
        ]);
        let plan = parse(r#"{"metadata":{"kind":"new"}}"#).unwrap();
        let wanted = BTreeMap::from([text("task", "42"), text("kind", "new")]);
        assert_eq!(plan.labels(&source), Ok(wanted));
        let many = (0..limits::METADATA_ENTRIES_MAX).map(|n| text(&n.to_string(), ""));
        assert!(plan.labels(&many.collect()).is_err());
    }

    #[test]
    fn the_labels_of_the_server_cannot_be_set() {
        let json =
            r#"{"metadata":{"a":"b","fork_tree_id":"x","fork_parent_id":"y","tree_id":"z"}}"#;
        assert_eq!(parse(json), parse(r#"{"metadata":{"a":"b"}}"#));
    }

    #[test]
    fn explore_ttl_is_a_time_to_live_unless_one_is_given() {
        let source = LifetimeRules::default();
        let ttl = |json| parse(json).unwrap().lifecycle.of_child(source).ttl_seconds;
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

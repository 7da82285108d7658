//! What a sandbox may reach: what can be asked of a node about it.

use std::time::Duration;

use dayfly_types::egress::{EgressPolicy, EgressRecord};
use dayfly_types::{ProjectId, SandboxId};
use serde::{Deserialize, Serialize};

/// A policy, and how new it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetNetwork {
    /// Grows with every change of one sandbox's policy.
    pub epoch: u64,
    pub policy: EgressPolicy,
}

/// The policy that a node has of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkReport {
    pub policy: EgressPolicy,
    pub epoch: u64,
    /// The process that decides has said that it goes by this epoch. Always false while the
    /// sandbox sleeps: then the policy is kept for its wake.
    pub is_enforced: bool,
}

/// Which records are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadNetworkLog {
    /// Only records with a greater sequence, or decisions with a greater number.
    #[serde(default)]
    pub after: u64,
    /// At most this many.
    pub max: usize,
    /// How long to wait for a first record when there is none yet.
    #[serde(default)]
    pub wait: Duration,
}

/// Records, and what the node has of them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NetworkLogPage {
    pub records: Vec<EgressRecord>,
    /// The oldest sequence that is still kept; 0 when there is none.
    pub oldest: u64,
    /// The newest sequence there ever was; 0 when there was none.
    pub latest: u64,
    /// Records between `after` and `oldest`, which are gone, and all that were never written since
    /// the node started.
    pub lost: u64,
}

/// A decision about egress, of whichever sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EgressDecision {
    /// Among the decisions of all sandboxes of the node, from 1.
    pub number: u64,
    pub project: ProjectId,
    pub sandbox: SandboxId,
    /// As the sandbox's own log has it; its sequence is 0 where that log could not be opened.
    pub record: EgressRecord,
}

/// Decisions behind a number. A number of the series that is missing up to `through` is one that
/// is gone, or was never written.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EgressDecisionPage {
    /// Of which the numbers are: another one when they began anew.
    pub series: String,
    /// In the order of their numbers.
    pub decisions: Vec<EgressDecision>,
    /// What comes behind this number is not in the page. Smaller than what was asked for: that was
    /// a number of another series.
    pub through: u64,
}

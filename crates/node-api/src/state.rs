//! Plain data about what a sandbox's state can become: snapshots, forks, volumes, lifecycles.

use dayfly_types::capture::CaptureCost;
use dayfly_types::{
    DiskMib, IdleAction, LifetimeRules, ProjectId, SandboxId, SnapshotId, TemplateName,
    TemplateSize, VolumeName,
};
use serde::{Deserialize, Serialize};

use crate::error::NodeError;
use crate::types::{EnsureSandbox, SandboxReport};

/// Changes of a lifecycle. What is absent stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LifecycleChange {
    /// `Some(None)`: no deadline any more. `Some(Some(n))`: n seconds from now.
    #[serde(default, with = "double_option")]
    pub ttl_seconds: Option<Option<u64>>,
    #[serde(default)]
    pub persistent: Option<bool>,
    #[serde(default, with = "double_option")]
    pub idle_seconds: Option<Option<u64>>,
    #[serde(default)]
    pub on_timeout: Option<IdleAction>,
}

/// The lifecycle as it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LifecycleReport {
    pub lifecycle: LifetimeRules,
    pub expires_in_seconds: Option<u64>,
    /// How long ago the node last saw it do something.
    pub idle_for_seconds: u64,
}

/// A snapshot to take. Repeating it with the same id answers with the same snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotRequest {
    pub id: SnapshotId,
    #[serde(default)]
    pub name: Option<String>,
    /// Seconds until the node deletes it by itself. `None`: never.
    #[serde(default)]
    pub retain_seconds: Option<u64>,
}

/// A snapshot on a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotReport {
    pub id: SnapshotId,
    pub project: ProjectId,
    /// The sandbox that it was taken of.
    pub sandbox: SandboxId,
    pub template: TemplateName,
    /// What its sandboxes have: that of the bake which it lies on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<TemplateSize>,
    pub name: Option<String>,
    /// How large the disk is in it.
    #[serde(default)]
    pub disk_mib: u64,
    /// Bytes on disk that only this snapshot holds.
    pub size_bytes: u64,
    /// Unix seconds.
    pub created_at: i64,
    pub expires_at: Option<i64>,
    pub capture: CaptureCost,
}

/// Children to make from one capture of a running sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkRequest {
    /// Names the capture, so that the call can be repeated.
    pub snapshot: SnapshotId,
    pub children: Vec<EnsureSandbox>,
    /// When one child cannot be made, none stays.
    #[serde(default)]
    pub all_or_nothing: bool,
}

/// How a fork ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkReport {
    pub capture: CaptureCost,
    /// In the order of the request.
    pub children: Vec<ForkChild>,
    /// What every child has of its own.
    pub renewed: Vec<String>,
    /// What children share with their source until their own code changes it.
    pub not_renewed: Vec<String>,
}

/// One child of a fork.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkChild {
    pub id: SandboxId,
    pub outcome: ForkOutcome,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ForkOutcome {
    Made(Box<SandboxReport>),
    Refused(NodeError),
}

/// A volume that should exist. Repeating it answers with the same volume, grown if it was smaller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnsureVolume {
    pub project: ProjectId,
    pub name: VolumeName,
    pub size: DiskMib,
}

/// A volume on a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeReport {
    pub project: ProjectId,
    pub name: VolumeName,
    pub size: DiskMib,
    /// Bytes on disk.
    pub used_bytes: u64,
    /// Unix seconds.
    pub created_at: i64,
    /// Grows with each writer; a writer with an older number is not let in.
    pub fence: u64,
    /// The sandbox that may write.
    pub writer: Option<SandboxId>,
    pub readers: Vec<SandboxId>,
}

/// `null` and absent are two things.
mod double_option {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::option_option, reason = "absent, null and a number all differ")]
    pub(super) fn serialize<S: Serializer>(
        value: &Option<Option<u64>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        // A list of none or one keeps the two apart on a wire that drops nothing.
        value
            .map(|inner| vec![inner])
            .unwrap_or_default()
            .serialize(serializer)
    }

    #[expect(clippy::option_option, reason = "absent, null and a number all differ")]
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Option<u64>>, D::Error> {
        Ok(Vec::<Option<u64>>::deserialize(deserializer)?.pop())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_keeps_absent_null_and_number_apart() {
        for ttl_seconds in [None, Some(None), Some(Some(7))] {
            let change = LifecycleChange {
                ttl_seconds,
                ..LifecycleChange::default()
            };
            let text = serde_json::to_string(&change).unwrap();
            assert_eq!(
                serde_json::from_str::<LifecycleChange>(&text).unwrap(),
                change
            );
        }
    }
}

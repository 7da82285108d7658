//! Snapshots: memory and disk of one moment of one sandbox.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::environment;
use crate::number::whole_number;

/// Body of `POST /v1/sandboxes/{id}/snapshots`. Every field may be absent or null.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateSnapshot {
    /// A name of the caller's own. One of lower-case letters, digits and dashes, of at most 50, that
    /// does not begin with `snap-`, is unique within the project and stands for the snapshot wherever
    /// an id may. Any other is a label for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 128)]
    pub name: Option<String>,
    /// Seconds until the snapshot is deleted by itself. Default: never.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole_number"
    )]
    #[schema(minimum = 1, maximum = 31_536_000)]
    pub retain_seconds: Option<u64>,
}

/// One snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Snapshot {
    pub id: String,
    /// The sandbox that it was taken of, which may be gone.
    pub sandbox_id: String,
    pub template: String,
    pub name: Option<String>,
    /// Bytes on disk that only this snapshot holds.
    pub size_bytes: u64,
    /// RFC 3339, UTC.
    pub created_at: String,
    /// Null: kept until it is deleted.
    pub expires_at: Option<String>,
    pub capture: Capture,
}

/// What one capture cost. Times are milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Capture {
    /// How long the machine stood still.
    pub pause_ms: f64,
    /// How long its user processes did.
    pub frozen_ms: f64,
    /// Of the pause: device state.
    pub device_ms: f64,
    /// Of the pause: changed memory.
    pub memory_ms: f64,
    /// Of the pause: the disk.
    pub disk_ms: f64,
    /// From the call to a snapshot that is safe on disk.
    pub total_ms: f64,
    pub memory_bytes: u64,
    pub disk_bytes: u64,
}

/// Response of `GET /v1/snapshots`, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SnapshotList {
    pub snapshots: Vec<Snapshot>,
}

/// Body of `POST /v1/sandboxes/{id}/rollback`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RollbackSandbox {
    #[schema(pattern = "^[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?$")]
    pub snapshot_id: String,
    /// Environment variables in place of those that it has.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "environment::variables"
    )]
    #[schema(schema_with = environment::replaced_schema)]
    pub env: Option<BTreeMap<String, String>>,
}

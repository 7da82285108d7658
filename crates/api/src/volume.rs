//! Volumes: disks that outlive sandboxes.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::number::whole_number;

/// A volume in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VolumeMount {
    #[schema(pattern = "^[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?$")]
    pub name: String,
    /// Where it is in the guest: absolute, without `.` and `..`. Default `/volumes/NAME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^(/[^/\\u0000]+)+$", max_length = 4096)]
    pub path: Option<String>,
    /// Many sandboxes can read a volume that nobody writes; one can write. Default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
}

/// Body of `POST /v1/volumes`. One of the two sizes must be given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CreateVolume {
    #[schema(pattern = "^[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?$")]
    pub name: String,
    /// MiB.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole_number"
    )]
    #[schema(minimum = 16, maximum = 1_048_576)]
    pub size_mb: Option<u64>,
    /// GiB; may be a fraction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0.015_625, maximum = 1024)]
    pub size_gb: Option<f64>,
}

/// Body of `PATCH /v1/volumes/{name}`. One of the two sizes must be given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GrowVolume {
    /// MiB.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole_number"
    )]
    #[schema(minimum = 16, maximum = 1_048_576)]
    pub size_mb: Option<u64>,
    /// GiB; may be a fraction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0.015_625, maximum = 1024)]
    pub size_gb: Option<f64>,
}

/// One volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Volume {
    pub name: String,
    pub size_mb: u64,
    /// RFC 3339, UTC.
    pub created_at: String,
    /// Bytes on the host's disk.
    pub used_bytes: u64,
    /// The sandbox that may write, when there is one.
    pub writer: Option<String>,
    /// The sandboxes that read.
    pub readers: Vec<String>,
}

/// Answer of `GET /v1/volumes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VolumeList {
    pub items: Vec<Volume>,
}

//! Templates of projects: images of containers, and versions that were made from snapshots.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::exec::{Command, command_schema};
use crate::number::whole_number;
use crate::template::TemplateState;

/// Body of `POST /v1/templates/images`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EnsureImage {
    /// Host, name, and tag or digest: `docker.io/library/debian:12`.
    #[schema(min_length = 1, max_length = 1024)]
    pub image: String,
    /// MiB. Default 512.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole_number"
    )]
    #[schema(minimum = 128, maximum = 65_536)]
    pub memory_mb: Option<u64>,
    /// CPUs. Default 1.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole_number"
    )]
    #[schema(minimum = 1, maximum = 32)]
    pub cpu: Option<u64>,
    /// GiB. Default 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_gb: Option<f64>,
}

/// An image of a container that sandboxes can be made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ImageTemplate {
    pub image: String,
    pub state: TemplateState,
    /// Whether sandboxes can be made from it now.
    pub usable: bool,
    /// 0 to 100.
    pub percent: u8,
    /// The step of the bake, or why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    pub cpu: u32,
    pub memory_mb: u64,
    pub disk_mb: u64,
    /// Of the image's manifest, once it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// What the image says of commands in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The program that it is for, with its arguments.
    #[serde(default)]
    pub entry_point: Vec<String>,
    /// The last arguments, or the program itself: what a build may put another in the place of.
    #[serde(default)]
    pub command: Vec<String>,
    /// What a build gives commands to that are one text, if the image says it.
    #[serde(default)]
    pub shell: Vec<String>,
    /// The first instruction that the image has for whoever builds on it (`ONBUILD`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_build: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_check: Option<TemplateHealthCheck>,
}

/// How it is found out that a template's program is ready.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TemplateHealthCheck {
    /// Good when it exits with 0.
    #[schema(schema_with = command_schema)]
    pub command: Command,
    /// Between two looks. Default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0.001, maximum = 3600)]
    pub interval_seconds: Option<f64>,
    /// Of one look. Default 30.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0.001, maximum = 3600)]
    pub timeout_seconds: Option<f64>,
    /// How long failures do not count. Default 60.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 3600)]
    pub start_period_seconds: Option<f64>,
    /// How many may fail in a row after that. Default 3.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole_number"
    )]
    #[schema(minimum = 1, maximum = 1000)]
    pub retries: Option<u64>,
}

/// Body of `POST /v1/templates`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateTemplate {
    #[schema(pattern = "^[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?$")]
    pub name: String,
    /// Whose disk it has. Nothing of its memory is used: the machine boots anew on the disk, the
    /// entry point is started, and what runs when the health check is good runs in every sandbox.
    #[schema(pattern = "^[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?$")]
    pub from_snapshot: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1000)]
    pub description: Option<String>,
    /// Of commands that do not say otherwise: a name or a number, behind a colon a group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 128)]
    pub user: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 4096)]
    pub directory: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<BTreeMap<String, String>>,
    /// Started before the capture and left running in every sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 1000)]
    pub entry_point: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_check: Option<TemplateHealthCheck>,
    /// MiB. Default: what the sandbox of the snapshot has.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole_number"
    )]
    #[schema(minimum = 128, maximum = 65_536)]
    pub memory_mb: Option<u64>,
    /// CPUs. Default: what the sandbox of the snapshot has.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole_number"
    )]
    #[schema(minimum = 1, maximum = 32)]
    pub cpu: Option<u64>,
    /// How it came to be, in the words of whoever made it. Kept as it is, at most 64 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub provenance: Option<Map<String, Value>>,
}

/// A version of a template of a project. Nothing about it changes but its tags.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TemplateVersion {
    pub id: String,
    pub name: String,
    /// Tags that mean it, in order.
    pub tags: Vec<String>,
    pub state: TemplateState,
    /// Whether sandboxes can be made from it now.
    pub usable: bool,
    /// 0 to 100.
    pub percent: u8,
    /// The step of the bake, or why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    pub description: String,
    pub cpu: u32,
    pub memory_mb: u64,
    pub disk_mb: u64,
    /// Bytes on the host's disk.
    pub size_bytes: u64,
    pub from_snapshot: String,
    /// The prefix of the key that it was made with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<String>,
    /// RFC 3339, UTC.
    pub created_at: String,
    /// As it was given.
    #[schema(value_type = Object)]
    pub provenance: Map<String, Value>,
}

/// All versions of a template, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TemplateVersionList {
    pub items: Vec<TemplateVersion>,
}

/// Body of `PUT /v1/templates/{name}/tags/{tag}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetTemplateTag {
    /// The id of a version of the same template.
    #[schema(pattern = "^tv-[0-9a-z]{1,40}$")]
    pub version: String,
}

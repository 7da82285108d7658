//! Sandboxes.

use std::collections::BTreeMap;

use dayfly_types::limits;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};

use crate::environment;
use crate::lifecycle::{OnTimeout, PromiseClass};
use crate::network::{NetworkMode, NetworkWish, RuleWish, never_null};
use crate::number::whole_number;
use crate::volume::{VolumeMount, asked_mounts};

/// Body of `POST /v1/sandboxes`. Every field may be absent, and null unless it says
/// otherwise. Unknown fields are refused: one that is not understood might have been meant to
/// narrow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateSandbox {
    /// Which template to restore: one of the server, or one of the project as `NAME` (its tag
    /// `latest`), `NAME:TAG` or `NAME@VERSION`. Default `base`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(
        pattern = "^[a-z0-9](\\.?[a-z0-9_-])*\\.?([:@][a-z0-9][a-z0-9._-]*)?$",
        max_length = 115
    )]
    pub template: Option<String>,
    /// Make it from the image of a container instead: `python:3.12`, `HOST/NAME:TAG`,
    /// `HOST/NAME@sha256:DIGEST`. The first time the image is fetched and baked
    /// (`template_baking`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 1024)]
    pub image: Option<String>,
    /// A name of the caller's own, which stands for the sandbox wherever a path has its id, until
    /// it is deleted: a second sandbox of the same name is refused (`already_exists`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?$")]
    pub name: Option<String>,
    /// Labels of the caller's own, text to text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = metadata_schema)]
    pub metadata: Option<BTreeMap<String, String>>,
    /// Environment variables of every command and context.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "environment::variables"
    )]
    #[schema(schema_with = environment::created_schema)]
    pub env: Option<BTreeMap<String, String>>,
    /// Seconds until the sandbox is deleted. Default 3600; a persistent sandbox has none unless
    /// it is given here.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole_number"
    )]
    #[schema(minimum = 1, maximum = 31_536_000)]
    pub ttl_seconds: Option<u64>,
    /// Never reaped for idleness and not deleted by a client's context manager.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent: Option<bool>,
    /// Restore this snapshot; its template is then the sandbox's, whatever `template` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?$")]
    pub from_snapshot: Option<String>,
    /// Take the disk of `from_snapshot` alone: the machine boots anew on it, in the engine of today.
    /// All files are there and no process is. This also works where the snapshot's memory cannot
    /// be restored any more. The response comes when the machine is up, which takes half a minute
    /// under emulation and three minutes at most. Default false; true needs `from_snapshot`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_only: Option<bool>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "asked_mounts"
    )]
    #[schema(max_items = 3)]
    pub volumes: Option<Vec<VolumeMount>>,
    /// CPUs that it may use at most; may be a fraction. Default: all of the template's. More than
    /// the template has makes it a sandbox of a variant with as many, see `memory_mb`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0.1, maximum = 32)]
    pub cpu: Option<f64>,
    /// MiB of memory: the template's, or a larger multiple of 128. Default: the template's. Another
    /// size than the template's is a variant of it, which is baked when somebody first asks for it:
    /// until then the response is `template_baking` with `Retry-After` and `percent`, and the same
    /// request succeeds later. With `from_snapshot` it can only be what the snapshot has.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole_number"
    )]
    #[schema(minimum = 128, maximum = 65_536)]
    pub memory_mb: Option<u64>,
    /// GiB of disk; may be a fraction, and not less than the template's. Default: the template's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0.001, maximum = 1024)]
    pub disk_gb: Option<f64>,
    /// Seconds without activity after which `on_timeout` happens. Default: never.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole_number"
    )]
    #[schema(minimum = 5, maximum = 31_536_000)]
    pub idle_seconds: Option<u64>,
    /// Default `delete`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_timeout: Option<OnTimeout>,
    /// `reserved`: the host promises all of its memory and its disk, and it never sleeps for others.
    /// `shared`: the host promises a working set, and may put it to sleep while it is idle and
    /// others need the memory; the next request wakes it. Default: `shared` where the host's
    /// settings allow it (`memory_share`), else `reserved`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<PromiseClass>,
    /// What it may reach. Absent: what the project's default says. Not null, and not together with
    /// `egress_allowlist`.
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

/// One sandbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Sandbox {
    pub id: String,
    /// Whose it is, in a view over all projects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// What the project calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub template: String,
    /// creating, running, pausing, paused, resuming, hibernating, hibernated, waking, deleting,
    /// deleted, failed, or unavailable: the node keeps it and cannot use it until what `reason` says
    /// is over.
    pub status: String,
    /// Why it failed or is unavailable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What is wrong with it beside its status. `disk_full`: the host's disk has no room for what
    /// it writes; it stands still, loses nothing, and goes on by itself. `disk_damaged`: a write
    /// to its disk failed; it is not captured any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    pub cpu: u32,
    pub memory_mb: u64,
    /// In the response of a create, when its size is not the template's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<SandboxVariant>,
    /// RFC 3339, UTC.
    pub created_at: String,
    pub metadata: BTreeMap<String, String>,
    /// The names of its environment variables, sorted. Their values are never told.
    #[serde(default)]
    pub env_names: Vec<String>,
    pub persistent: bool,
    /// Null: no deadline.
    pub ttl_seconds: Option<u64>,
    /// When the node deletes it, RFC 3339, UTC.
    pub expires_at: Option<String>,
    /// Null: never reaped for idleness.
    #[serde(default)]
    pub idle_seconds: Option<u64>,
    #[serde(default)]
    pub on_timeout: OnTimeout,
    /// How much of its size the host promises.
    #[serde(default)]
    pub class: PromiseClass,
    /// Why it sleeps, if neither its user nor its rules asked for that. `pressure`: it was idle, and
    /// others needed the memory; the next request wakes it, and what runs in it goes on by itself
    /// when there is room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sleep_reason: Option<String>,
    /// GiB.
    #[serde(default)]
    pub disk_gb: f64,
    /// CPUs that it may use at most. Null: all of `cpu`.
    #[serde(default)]
    pub cpu_limit: Option<f64>,
    /// The snapshot that it was created from.
    #[serde(default)]
    pub from_snapshot: Option<String>,
    #[serde(default)]
    pub volumes: Vec<VolumeMount>,
    /// What it may reach: deny, allowlist, public or observe. `GET .../network` has the rules.
    #[serde(default)]
    pub network_mode: NetworkMode,
    /// `restore`, or `boot` for one that was created with `disk_only`.
    pub boot_mode: String,
    /// Milliseconds from the node's start of work to a guest that runs user code.
    pub boot_ms: Option<u64>,
    /// The parts of `boot_ms`, in microseconds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub boot_stages_us: BTreeMap<String, u64>,
    /// What stands between the guest and its host: hardware or emulated.
    pub isolation: String,
}

/// The variant of a template that a sandbox was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SandboxVariant {
    /// CPUs.
    pub cpu: u32,
    /// MiB.
    pub memory_mb: u64,
    /// It had to be baked for a create, and this is the first sandbox since: the time was spent
    /// waiting. False: it was there.
    pub first_use: bool,
    /// Milliseconds that its bake took, whenever that was.
    #[serde(default)]
    pub bake_ms: Option<u64>,
}

/// Response of `GET /v1/sandboxes`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SandboxList {
    /// Oldest first.
    pub items: Vec<Sandbox>,
    /// Ask with this as `cursor` for the next page. Absent: this was the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

pub(crate) fn metadata_schema() -> Schema {
    let text = |limit| {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .max_length(Some(limit))
    };
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Object, Type::Null]))
        .max_properties(Some(limits::METADATA_ENTRIES_MAX))
        .property_names(Some(text(limits::METADATA_KEY_BYTES_MAX)))
        .additional_properties(Some(text(limits::METADATA_VALUE_BYTES_MAX)))
        .into()
}

//! Sandboxes.

use std::collections::BTreeMap;

use dayfly_types::limits;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};

/// Body of `POST /v1/sandboxes`. Every field may be absent or null; unknown fields are ignored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CreateSandbox {
    /// Which template to restore. Default `base`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[a-z0-9](\\.?[a-z0-9_-])*\\.?$", max_length = 64)]
    pub template: Option<String>,
    /// Labels of the caller's own, text to text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = metadata_schema)]
    pub metadata: Option<BTreeMap<String, String>>,
    /// Seconds until the sandbox is deleted. Default 3600; a persistent sandbox has none unless
    /// it is given here.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole_number"
    )]
    #[schema(minimum = 1, maximum = 31_536_000)]
    pub ttl_seconds: Option<u64>,
    /// Not reaped when idle and not deleted by a client's context manager.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent: Option<bool>,
    /// Not built yet: refused when given, because ignoring it would restore something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub from_snapshot: Option<serde_json::Value>,
    /// Not built yet: refused when not empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub volumes: Option<Vec<serde_json::Value>>,
}

/// One sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Sandbox {
    pub id: String,
    pub template: String,
    /// creating, running, pausing, paused, resuming, hibernating, hibernated, waking, deleting,
    /// deleted or failed.
    pub status: String,
    /// Why it failed, when it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub cpu: u32,
    pub memory_mb: u64,
    /// RFC 3339, UTC.
    pub created_at: String,
    pub metadata: BTreeMap<String, String>,
    pub persistent: bool,
    /// Null: no deadline.
    pub ttl_seconds: Option<u64>,
    /// When the node deletes it, RFC 3339, UTC.
    pub expires_at: Option<String>,
    /// Always `restore`: a sandbox is never booted.
    pub boot_mode: String,
    /// Milliseconds from the node's start of work to a guest that runs user code.
    pub boot_ms: Option<u64>,
    /// The parts of `boot_ms`, in microseconds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub boot_stages_us: BTreeMap<String, u64>,
    /// What stands between the guest and its host: hardware or emulated.
    pub isolation: String,
}

/// Answer of `GET /v1/sandboxes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SandboxList {
    pub items: Vec<Sandbox>,
}

fn metadata_schema() -> Schema {
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

/// Takes `3600` and `3600.0` alike: JSON has one kind of number, and some clients print the latter.
fn whole_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let Some(number) = Option::<serde_json::Number>::deserialize(deserializer)? else {
        return Ok(None);
    };
    let whole = number.as_u64().or_else(|| {
        let text = number.to_string();
        text.strip_suffix(".0")
            .and_then(|digits| digits.parse().ok())
    });
    whole
        .map(Some)
        .ok_or_else(|| serde::de::Error::custom("expected a whole number"))
}

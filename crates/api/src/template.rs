//! Templates.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::number::whole_number;

/// How far a template is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TemplateState {
    /// Baked as soon as somebody asks for it.
    NotBaked,
    Waiting,
    Baking,
    Ready,
    Failed,
}

/// What `run` means in a template's sandboxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TemplateRun {
    /// A shell command.
    Shell,
    /// The text of a Python program, which a new process runs.
    Python,
    /// Python for the sandbox's own context: what one run defines, the next one sees.
    PythonContext,
}

/// One template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Template {
    pub name: String,
    pub description: String,
    /// The template that this is only a further name of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias_of: Option<String>,
    /// How far its last bake is.
    pub state: TemplateState,
    /// Whether sandboxes can be made from it now: also while it is baked anew, and when that failed.
    /// Sizes and times are those of the bake that is used.
    #[serde(default)]
    pub usable: bool,
    /// 0 to 100.
    pub percent: u8,
    /// The step of the bake, or why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    pub cpu: u32,
    pub memory_mb: u64,
    pub disk_mb: u64,
    /// Bytes on the host's disk.
    pub size_bytes: u64,
    pub run: TemplateRun,
    /// Languages in which its sandboxes can hold contexts.
    pub contexts: Vec<String>,
    /// The operator's templates are seen by all projects.
    pub is_global: bool,
    /// RFC 3339, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baked_at: Option<String>,
    /// Its other sizes that were asked for, smallest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<TemplateVariant>,
}

/// A template in another size than its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TemplateVariant {
    pub cpu: u32,
    /// MiB.
    pub memory_mb: u64,
    /// How far its last bake is.
    pub state: TemplateState,
    /// Whether sandboxes can be made from it now.
    pub usable: bool,
    /// 0 to 100.
    pub percent: u8,
    /// The step of the bake, or why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Bytes on the host's disk.
    pub size_bytes: u64,
    /// RFC 3339, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baked_at: Option<String>,
    /// Milliseconds that the bake took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bake_ms: Option<u64>,
}

/// Body of `POST /v1/templates/{name}/bake`. Every field may be absent or null; with none the
/// template is baked in its own size.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BakeTemplate {
    /// MiB of memory: the template's, or a larger multiple of 128.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole_number"
    )]
    #[schema(minimum = 128, maximum = 65_536)]
    pub memory_mb: Option<u64>,
    /// CPUs: the template's, or more.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole_number"
    )]
    #[schema(minimum = 1, maximum = 32)]
    pub cpu: Option<u64>,
}

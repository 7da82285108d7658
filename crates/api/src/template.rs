//! Templates.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How far a template is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TemplateState {
    Waiting,
    Baking,
    Ready,
    Failed,
}

/// One template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Template {
    pub name: String,
    pub description: String,
    pub state: TemplateState,
    /// 0 to 100.
    pub percent: u8,
    /// The step of the bake, or why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    pub cpu: u32,
    pub memory_mb: u64,
    pub disk_mb: u64,
    pub size_bytes: u64,
    /// The operator's templates are seen by all projects.
    pub is_global: bool,
    /// RFC 3339, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baked_at: Option<String>,
}

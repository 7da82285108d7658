//! Snapshots and the way back to them.

use dayfly_api::CreateSnapshot;
use serde::Deserialize;
use serde_json::json;

use super::Site;
use crate::error::ToolError;
use crate::names::named;
use crate::output::ToolOutput;

const LABEL_CHARACTERS_MAX: usize = 100;

#[derive(Debug, Deserialize)]
pub(super) struct SnapshotArguments {
    name: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct RollbackArguments {
    snapshot_id: String,
}

pub(super) async fn snapshot(
    site: Site<'_>,
    arguments: SnapshotArguments,
) -> Result<ToolOutput, ToolError> {
    let wish = CreateSnapshot {
        name: arguments.name.as_deref().map(label),
        retain_seconds: site.home.retains(site.sandbox),
    };
    // Not cut short: it takes moments, and nobody would know of what came of it.
    let taken = site.client.create_snapshot(site.sandbox, &wish).await?;
    site.home.took(site.sandbox, &taken.id);
    let text = format!("snapshot {} was taken; rollback goes back to it", taken.id);
    let facts = json!({"snapshot_id": taken.id, "name": taken.name,
        "created_at": taken.created_at, "expires_at": taken.expires_at});
    Ok(ToolOutput::text(text).structured(facts))
}

/// What a model calls a snapshot, as a label for people. A plain word would be a name, and unique
/// within the project: the second model that calls one `before` would be refused.
fn label(name: &str) -> String {
    let kept: String = name.chars().take(LABEL_CHARACTERS_MAX).collect();
    format!("by a tool: {kept}")
}

pub(super) async fn rollback(
    site: Site<'_>,
    arguments: RollbackArguments,
) -> Result<ToolOutput, ToolError> {
    let id = arguments.snapshot_id;
    site.client.rollback_sandbox(site.sandbox, &id).await?;
    let shown = named(&id);
    let text = format!("the sandbox is as it was at snapshot {shown}; what came after is lost");
    Ok(ToolOutput::text(text).structured(json!({"snapshot_id": id})))
}

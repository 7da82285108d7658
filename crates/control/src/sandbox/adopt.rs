//! Giving a row to a sandbox that the node has and the database does not know.
//!
//! A row is written before its sandbox is made, so this happens only to a database that lost rows:
//! a copy that was put back, for example. What the row says comes from the node's journal. Whoever
//! deleted a sandbox left a row that says so, and nothing else is a reason to delete one.

use dayfly_node_api::{NodeCalls, NodeError, SandboxReport};
use dayfly_types::{SandboxId, SandboxState};

use crate::control::Control;
use crate::sandbox::environment::Environment;
use crate::sandbox::fork_spec::{PARENT_KEY, TREE_KEY};
use crate::store::{
    EgressRow, LimitsRow, ProjectRow, ProjectState, SandboxRow, SandboxSpec, StoreError,
};
use crate::time::{deadline_ms, now_ms};

/// Why a sandbox has still no row.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AdoptError {
    #[error("the node does not say what the sandbox may reach")]
    Node(#[source] NodeError),
    #[error("cannot write its row")]
    Store(#[source] StoreError),
}

/// Whether the sandbox is neither on its way in nor on its way out.
pub(crate) fn is_settled(report: &SandboxReport) -> bool {
    !matches!(
        report.state,
        SandboxState::Creating | SandboxState::Deleting | SandboxState::Deleted
    )
}

/// Writes the row of a sandbox that has none.
///
/// # Errors
/// [`AdoptError`]; the next comparison tries again.
pub(crate) async fn adopt(control: &Control, report: &SandboxReport) -> Result<(), AdoptError> {
    let network = control.node.network(&report.id).await;
    let network = network.map_err(AdoptError::Node)?;
    let now = now_ms();
    ensure_project(control, report, now)
        .await
        .map_err(AdoptError::Store)?;
    let label = |name: &str| report.metadata.get(name);
    let isolation = control.view.status().map(|status| status.isolation);
    let row = SandboxRow {
        id: report.id.clone(),
        project: report.project.clone(),
        node: control.node_id.clone(),
        state: report.state,
        generation: report.generation,
        // Only the database knew it.
        name: None,
        spec: SandboxSpec {
            template: report.template.clone(),
            called: None,
            // What it runs on is on the node, and is not made again.
            size: None,
            metadata: report.metadata.clone(),
            cpu_limit: report.cpu,
            disk_wanted: None,
            from_snapshot: report.from_snapshot.clone(),
            disk_only: report.disk_only,
            volumes: report.volumes.clone(),
            class: report.class,
            fork_parent: label(PARENT_KEY).and_then(|parent| SandboxId::parse(parent).ok()),
            isolation: isolation
                .map_or("", |isolation| isolation.as_str())
                .to_owned(),
        },
        // Likewise.
        environment: Environment::default(),
        status: report.into(),
        lifetime: report.lifecycle,
        expires_at_ms: deadline_ms(report.expires_in_seconds, now),
        cpu: u32::from(report.vcpus.get()),
        memory_mb: u64::from(report.memory.get()),
        disk_mib: report.disk_mib,
        fork_tree: label(TREE_KEY).cloned(),
        egress: EgressRow {
            policy: network.policy,
            epoch: network.epoch,
            reserved: network.epoch,
            confirmed: network.epoch,
            changed_at_ms: now,
        },
        created_at_ms: report.created_at_ms.unwrap_or(now),
        deleted_at_ms: None,
        ended: None,
    };
    control
        .store
        .adopt_sandbox(&row, now)
        .await
        .map_err(AdoptError::Store)?;
    tracing::warn!(sandbox_id = %report.id, project = %report.project,
        "adopted a sandbox that the database did not know");
    Ok(())
}

/// A project that the database does not know either gets a row with which nothing new can be made:
/// what it was allowed is not known, and it has no key.
async fn ensure_project(
    control: &Control,
    report: &SandboxReport,
    now_ms: i64,
) -> Result<(), StoreError> {
    let project = ProjectRow {
        state: ProjectState::Active,
        id: report.project.clone(),
        created_at_ms: now_ms,
        limits: LimitsRow {
            sandboxes: Some(0),
            ..LimitsRow::default()
        },
    };
    if control.store.insert_project(&project).await? {
        tracing::warn!(project = %report.project,
            "a project that the database did not know is there again, without keys and with a \
             limit of no new sandbox; set its limits and make it a key");
    }
    Ok(())
}

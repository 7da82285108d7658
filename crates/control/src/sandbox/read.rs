//! Finding sandboxes: rows, with the node's last word on each.

use std::time::Duration;

use dayfly_api::Sandbox;
use dayfly_types::volume::MountedVolume;
use dayfly_types::{EndReason, ProjectId, SandboxId, SandboxState};
use tokio::time::Instant;

use crate::control::Control;
use crate::input::quantity;
use crate::network::spec::to_wire;
use crate::sandbox::create::is_wanted;
use crate::sandbox::{class, lifetime};
use crate::store::{SandboxRow, SandboxSpec, SandboxStatus, StoreError};
use crate::time::{now_ms, rfc3339};
use crate::view::Live;

/// Why a sandbox was not found.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// Never made, made by another project, or deleted long ago: the three look the same from
    /// outside.
    #[error("there is no sandbox {id}")]
    NotFound { id: SandboxId },
    /// It was the caller's own, and went not long ago.
    #[error("sandbox {id} is gone: {how}")]
    Gone { id: SandboxId, how: String },
    #[error("cannot look for sandbox {id}")]
    Store {
        id: SandboxId,
        #[source]
        source: StoreError,
    },
}

/// One sandbox of a project.
///
/// # Errors
/// [`FindError`].
pub async fn get(
    control: &Control,
    project: &ProjectId,
    id: &SandboxId,
) -> Result<Sandbox, FindError> {
    let row = row_alive(control, project, id).await?;
    Ok(present_now(control, &row))
}

/// How long the word of a sandbox's end may be behind the end itself.
const NEWS_DEADLINE: Duration = Duration::from_secs(2);
/// What a sandbox is called that the node keeps and cannot use.
const UNAVAILABLE: &str = "unavailable";

/// A sandbox as the public API shows it, with the reason when the node cannot use it now.
#[must_use]
pub fn present_now(control: &Control, row: &SandboxRow) -> Sandbox {
    let mut sandbox = present(row, control.view.get(&row.id).as_ref());
    let unavailable = control.view.unavailable(&row.id);
    if let Some(reason) = unavailable.filter(|_| is_wanted(row.state)) {
        sandbox.status = UNAVAILABLE.to_owned();
        sandbox.reason = Some(reason);
    }
    sandbox
}

/// Checks that the project has this sandbox, from memory when the node has spoken of it. Whether
/// it can take a call is for the node to say.
///
/// # Errors
/// [`FindError`].
pub async fn locate(
    control: &Control,
    project: &ProjectId,
    id: &SandboxId,
) -> Result<(), FindError> {
    if control.view.is_of(id, project) {
        return Ok(());
    }
    // Another project's takes the way of one that is not there, so that the time tells nothing.
    row_alive(control, project, id).await.map(drop)
}

/// The row of a sandbox that was not deleted.
///
/// # Errors
/// [`FindError`].
pub(crate) async fn row_alive(
    control: &Control,
    project: &ProjectId,
    id: &SandboxId,
) -> Result<SandboxRow, FindError> {
    let row = row(control, project, id).await?;
    match row.deleted_at_ms {
        None => Ok(row),
        Some(at_ms) => Err(FindError::Gone {
            id: row.id.clone(),
            how: how_it_went(&row, at_ms),
        }),
    }
}

/// What became of a sandbox while somebody used it, when it is gone or going.
pub(crate) async fn gone(
    control: &Control,
    project: &ProjectId,
    id: &SandboxId,
) -> Option<FindError> {
    let row = after_the_news(control, project, id).await?;
    let now = now_ms();
    let is_going = !is_wanted(row.state) || row.is_past(now);
    is_going.then(|| FindError::Gone {
        id: row.id.clone(),
        how: how_it_went(&row, row.deleted_at_ms.unwrap_or(now)),
    })
}

/// The row as soon as it says of a sandbox that runs that it does not, or has nothing to say of it.
/// What breaks off with a sandbox is told by another stream of the node than its end, and may be first.
async fn after_the_news(
    control: &Control,
    project: &ProjectId,
    id: &SandboxId,
) -> Option<SandboxRow> {
    let deadline = Instant::now() + NEWS_DEADLINE;
    loop {
        let signal = control.store.new_event();
        let mut told = std::pin::pin!(signal.notified());
        // Before the look, so that what is written in between is not missed.
        told.as_mut().enable();
        let row = row(control, project, id).await.ok()?;
        let has_ended = row.state != SandboxState::Running;
        if has_ended || tokio::time::timeout_at(deadline, told).await.is_err() {
            return Some(row);
        }
    }
}

fn how_it_went(row: &SandboxRow, at_ms: i64) -> String {
    let at = rfc3339(at_ms);
    let unsaid = match row.is_past(at_ms) {
        true => EndReason::Ttl,
        false => EndReason::Unknown,
    };
    let reason = row.ended.as_ref().map_or(unsaid, |ended| ended.reason);
    let seconds = |seconds: Option<u64>| seconds.map(|seconds| format!(" of {seconds} s"));
    match reason {
        EndReason::Ttl => {
            let length = seconds(row.lifetime.ttl_seconds).unwrap_or_default();
            format!("its time to live{length} ended at {at}")
        }
        EndReason::Idle => {
            let length = seconds(row.lifetime.idle_seconds).unwrap_or_default();
            format!("nothing happened in it for its idle time{length}, and it was deleted at {at}")
        }
        EndReason::Lost => format!("its node did not have it any more at {at}"),
        EndReason::Deleted | EndReason::Unknown => {
            let by = row.ended.as_ref().and_then(|ended| ended.by.as_deref());
            let by = by
                .map(|key| format!(" by the key {key}"))
                .unwrap_or_default();
            format!("it was deleted{by} at {at}")
        }
    }
}

async fn row(
    control: &Control,
    project: &ProjectId,
    id: &SandboxId,
) -> Result<SandboxRow, FindError> {
    let found = control.store.sandbox(project, id).await;
    found
        .map_err(|source| FindError::Store {
            id: id.clone(),
            source,
        })?
        .ok_or_else(|| FindError::NotFound { id: id.clone() })
}

/// A sandbox as the public API shows it.
#[must_use]
pub fn present(row: &SandboxRow, live: Option<&Live>) -> Sandbox {
    // The wish to delete is newer than what the node says.
    let live = live.filter(|_| is_wanted(row.state));
    let live = live.filter(|live| live.report.generation >= row.generation);
    let report = live.map(|live| &live.report);
    let lifecycle = report.map_or(row.lifetime, |report| report.lifecycle);
    // Only the node knows: it keeps the clock, and a change starts it again.
    let expires_at_ms = live.map_or(row.expires_at_ms, |live| live.expires_at_ms);
    let disk_mib = report.map_or(row.disk_mib, |report| report.disk_mib);
    let (spec, kept) = (&row.spec, &row.status);
    let mut status = report.map_or_else(|| kept.clone(), SandboxStatus::from);
    if status.stages.is_empty() {
        status.stages.clone_from(&kept.stages);
    }
    Sandbox {
        id: row.id.to_string(),
        project: None,
        name: row.name.clone().map(String::from),
        template: spec
            .called
            .clone()
            .unwrap_or_else(|| spec.template.to_string()),
        status: report
            .map_or(row.state, |report| report.state)
            .as_str()
            .to_owned(),
        reason: status.reason,
        condition: report
            .and_then(|report| report.condition)
            .map(|condition| condition.as_str().to_owned()),
        cpu: report.map_or(row.cpu, |report| u32::from(report.vcpus.get())),
        memory_mb: report.map_or(row.memory_mb, |report| u64::from(report.memory.get())),
        variant: None,
        created_at: rfc3339(row.created_at_ms),
        metadata: spec.metadata.clone(),
        env_names: row.environment.names(),
        persistent: lifecycle.persistent,
        ttl_seconds: lifecycle.ttl_seconds,
        expires_at: expires_at_ms.map(rfc3339),
        idle_seconds: lifecycle.idle_seconds,
        on_timeout: lifetime::to_wire(lifecycle.on_timeout),
        class: class::to_wire(report.map_or(spec.class, |report| report.class)),
        sleep_reason: report
            .and_then(|report| report.sleep_reason)
            .map(|reason| reason.as_str().to_owned()),
        disk_gb: quantity::gigabytes(disk_mib),
        cpu_limit: spec.cpu_limit.map(|limit| f64::from(limit.get()) / 1000.0),
        from_snapshot: spec.from_snapshot.as_ref().map(ToString::to_string),
        volumes: spec.volumes.iter().map(present_mount).collect(),
        network_mode: to_wire(row.egress.policy.mode()),
        boot_mode: boot_mode(spec).to_owned(),
        boot_ms: status.ready_ms.or(kept.ready_ms),
        boot_stages_us: status.stages,
        isolation: spec.isolation.clone(),
    }
}

/// How it came to be. What sleeps is restored whatever this was.
fn boot_mode(spec: &SandboxSpec) -> &'static str {
    match spec.disk_of() {
        Some(_) => "boot",
        None => "restore",
    }
}

fn present_mount(mount: &MountedVolume) -> dayfly_api::VolumeMount {
    dayfly_api::VolumeMount {
        name: mount.name.to_string(),
        path: Some(mount.path.clone()),
        read_only: Some(mount.read_only),
    }
}

//! What an owner tells of its sandbox.

use dayfly_core::expiry;
use dayfly_node_api::SandboxReport;
use dayfly_types::capture::MachineOrigin;
use dayfly_types::{EndReason, SandboxCondition, SandboxState, SnapshotId};

use super::stages::Laps;
use crate::journal::SandboxRecord;
use crate::parts::Parts;

/// The captures that must stay for a sandbox.
pub(super) fn captures_of(record: &SandboxRecord) -> Vec<SnapshotId> {
    record.phase.captures().cloned().collect()
}

/// Why a sleeping sandbox cannot be woken now. Found out anew each time, never written down.
pub(super) fn unavailable(parts: &Parts, record: &SandboxRecord) -> Option<String> {
    if !matches!(
        record.state(),
        SandboxState::Hibernated | SandboxState::Waking
    ) {
        return None;
    }
    let capture = record.phase.asleep_in()?;
    if parts.captures.get(capture).is_some() {
        return None;
    }
    Some(format!(
        "the capture {capture} that it sleeps in cannot be read; it can be woken when that is there \
         again"
    ))
}

const fn is_asleep(state: SandboxState) -> bool {
    matches!(
        state,
        SandboxState::Hibernating | SandboxState::Hibernated | SandboxState::Waking
    )
}

pub(super) fn report(
    parts: &Parts,
    record: &SandboxRecord,
    laps: &Laps,
    condition: Option<SandboxCondition>,
    ended: Option<EndReason>,
) -> SandboxReport {
    SandboxReport {
        id: record.id.clone(),
        project: record.project.clone(),
        template: record.template.clone(),
        state: record.state(),
        generation: record.generation,
        reason: record.phase.reason().map(str::to_owned),
        memory: record.machine.memory,
        vcpus: record.machine.vcpus,
        ready_ms: record.ready_ms,
        stages: laps.stages.clone(),
        stages_began_us: laps.began_us,
        expires_in_seconds: record
            .expires
            .map(|deadline| expiry::seconds_left(parts.clock.now(), deadline)),
        lifecycle: record.lifecycle,
        cpu: record.cpu,
        disk_mib: record.disk.unwrap_or(record.machine.disk).into(),
        from_snapshot: record.from_snapshot.clone(),
        disk_only: matches!(record.phase.origin(), Some(MachineOrigin::DiskOf(_))),
        volumes: record
            .volumes
            .iter()
            .map(|volume| volume.mount.clone())
            .collect(),
        unavailable: unavailable(parts, record),
        metadata: record.metadata.clone(),
        created_at_ms: record.created_at_ms,
        condition,
        ended,
        class: record.class,
        sleep_reason: record.sleep_reason.filter(|_| is_asleep(record.state())),
    }
}

//! Which build of the engine a machine runs in, and which restores what an earlier one saved.

use dayfly_snapshots::EngineIdentity;
use dayfly_types::capture::MachineOrigin;
use dayfly_vmm::{Capabilities, Engine};

use crate::bake::engine_identity;
use crate::journal::SandboxRecord;
use crate::parts::Parts;
use crate::templates::ReadyTemplate;

/// No engine of this node can load what another saved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "it was saved by {} {} ({}, processor {}), and no such engine can be used here now",
    made_by.kind.as_str(), made_by.version, made_by.accelerator.as_str(), made_by.cpu_model
)]
pub(crate) struct NoEngine {
    made_by: EngineIdentity,
}

/// The build that restores what `made_by` saved: that very one where it is still there, or else
/// one of the same version, the installed one first.
pub(crate) fn engine_for(
    engine: &dyn Engine,
    made_by: &EngineIdentity,
) -> Result<Capabilities, NoEngine> {
    let installed = engine.capabilities().clone();
    let newest_first = engine.kept().into_iter().rev();
    let fitting: Vec<Capabilities> = std::iter::once(installed)
        .chain(newest_first)
        .filter(|one| made_by.fits(&engine_identity(one)).is_ok())
        .collect();
    let same_build = |one: &&Capabilities| made_by.build.is_some() && one.build == made_by.build;
    let found = fitting.iter().find(same_build).or(fitting.first());
    found.cloned().ok_or_else(|| NoEngine {
        made_by: made_by.clone(),
    })
}

/// What the machine of a record runs in.
pub(crate) fn engine_of(parts: &Parts, record: &SandboxRecord) -> EngineIdentity {
    let noted = record.engine.clone();
    noted.unwrap_or_else(|| engine_identity(parts.engine.capabilities()))
}

/// What the machine of an older program's record runs in: the engine that saved what it was
/// restored from, since no other could have restored it.
pub(crate) fn engine_before_noted(
    parts: &Parts,
    record: &SandboxRecord,
    template: &ReadyTemplate,
) -> Option<EngineIdentity> {
    let origin = record.phase.origin().and_then(MachineOrigin::restored_from);
    let captured = origin.and_then(|id| parts.captures.get(id));
    let captured = captured.map(|capture| capture.engine.clone());
    captured.or_else(|| template.made_by.clone())
}

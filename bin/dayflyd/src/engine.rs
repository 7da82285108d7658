//! Which engine this host has, and in what it runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use dayfly_host::files::write_atomic;
use dayfly_host::probe::kernel_release;
use dayfly_installation::DataDirectory;
use dayfly_vmm::Accelerator;
use dayfly_vmm_qemu::{
    BareSlots, ENGINE_PROGRAM, EngineVersion, ProbeSpec, QemuConfig, QemuEngine, probe_accelerator,
};
use serde::{Deserialize, Serialize};

/// What makes disk layers; it comes with the engine.
pub(crate) const IMAGE_PROGRAM: &str = "/usr/bin/qemu-img";

/// Asks the installed engine for its version.
pub(crate) async fn installed_version() -> Result<EngineVersion> {
    let version = dayfly_vmm_qemu::installed_version().await;
    version.context("no engine that can be used")
}

/// An engine that only takes over what runs already, for which its version does not matter.
pub(crate) fn for_adoption() -> Result<QemuEngine> {
    let nowhere = std::env::temp_dir();
    let slots = BareSlots::new(&nowhere).context("cannot find a temporary directory")?;
    let version = EngineVersion {
        major: 0,
        minor: 0,
        micro: 0,
    };
    let config = QemuConfig::installed(version, Accelerator::Tcg);
    Ok(QemuEngine::new(config, Arc::new(slots)))
}

/// What a probe found, and what decides whether that still holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProbeRecord {
    host_kernel: String,
    engine_version: String,
    has_device: bool,
    pub(crate) accelerator: Accelerator,
    pub(crate) reason: String,
}

/// Where a data directory remembers what a probe found.
pub(crate) fn probe_file(directory: &DataDirectory) -> PathBuf {
    directory.node().join("accelerator.json")
}

/// What an earlier probe on this very host found.
pub(crate) fn remembered_probe(file: &Path, version: EngineVersion) -> Option<ProbeRecord> {
    let record: ProbeRecord = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
    let holds = record.host_kernel == kernel_release()
        && record.engine_version == version.to_string()
        && record.has_device == has_device();
    holds.then_some(record)
}

/// Boots a guest to find the accelerator, and remembers the answer.
pub(crate) async fn find_accelerator(
    file: &Path,
    version: EngineVersion,
    kernel: &Path,
    limit: Duration,
) -> Result<Accelerator> {
    let spec = ProbeSpec {
        program: PathBuf::from(ENGINE_PROGRAM),
        kernel: kernel.to_owned(),
        // A guest that has not printed anything by then does not boot on this accelerator.
        limit,
    };
    let outcome = probe_accelerator(&spec)
        .await
        .context("cannot probe the accelerator")?;
    let record = ProbeRecord {
        host_kernel: kernel_release(),
        engine_version: version.to_string(),
        has_device: has_device(),
        accelerator: outcome.accelerator,
        reason: outcome.reason,
    };
    tracing::info!(
        accelerator = record.accelerator.as_str(),
        reason = record.reason,
        "accelerator found"
    );
    write_atomic(file, &serde_json::to_vec_pretty(&record)?, 0o644)
        .context("cannot remember the accelerator")?;
    Ok(outcome.accelerator)
}

pub(crate) fn has_device() -> bool {
    Path::new("/dev/kvm").exists()
}

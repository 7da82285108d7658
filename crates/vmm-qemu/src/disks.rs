//! The layer that writable disks begin with, and names of files as the engine sees them.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use dayfly_types::DiskMib;
use tokio::process::Command;

use crate::error::LayoutError;

/// `qemu-img` writes a few hundred kilobytes.
const EMPTY_LAYER_DEADLINE: Duration = Duration::from_secs(30);

/// Why an empty layer was not made.
#[derive(Debug, thiserror::Error)]
pub enum EmptyLayerError {
    #[error("cannot run {program}; install qemu-utils")]
    Run { program: PathBuf, source: io::Error },
    #[error("{program} ended with {status}: {message}")]
    Failed {
        program: PathBuf,
        status: ExitStatus,
        message: String,
    },
    #[error("{program} took longer than {limit:?}")]
    TimedOut { program: PathBuf, limit: Duration },
}

/// Makes the layer that every vm's writable disk starts as a copy of. Only baking does this.
///
/// # Errors
/// [`EmptyLayerError`]; a file may be left at `path`.
///
/// # Cancel safety
/// Dropping the future ends `qemu-img`.
pub async fn create_empty_layer(
    qemu_img: &Path,
    path: &Path,
    size: DiskMib,
) -> Result<(), EmptyLayerError> {
    let program = || qemu_img.to_owned();
    let run = Command::new(qemu_img)
        .args(["create", "-q", "-f", "qcow2"])
        .arg(path)
        .arg(size.bytes().to_string())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(EMPTY_LAYER_DEADLINE, run)
        .await
        .map_err(|_| EmptyLayerError::TimedOut {
            program: program(),
            limit: EMPTY_LAYER_DEADLINE,
        })?
        .map_err(|source| EmptyLayerError::Run {
            program: program(),
            source,
        })?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(EmptyLayerError::Failed {
        program: program(),
        status: output.status,
        message,
    })
}

/// Turns the host path of a file in the run directory into the engine's name for it. Only a file
/// directly in it will do: a longer path could lead out again.
pub(crate) fn engine_path_of(slot: &dayfly_vmm::Slot, host: &Path) -> Result<PathBuf, LayoutError> {
    match host.file_name() {
        Some(name) if host.parent() == Some(&slot.run_directory) => {
            Ok(slot.engine_run_directory.join(name))
        }
        _ => Err(LayoutError::OutsideRunDirectory {
            path: host.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use dayfly_vmm::{EngineView, Slot, SlotIndex};

    use super::*;

    #[test]
    fn a_capture_stays_in_the_run_directory() {
        let slot = Slot {
            index: SlotIndex(0),
            run_directory: "/slots/0/run".into(),
            engine_run_directory: "/run".into(),
            engine_view: EngineView::Jailed,
        };
        let inside = engine_path_of(&slot, Path::new("/slots/0/run/device.state")).unwrap();
        assert_eq!(inside, Path::new("/run/device.state"));
        for outside in [
            "/etc/passwd",
            "/slots/0/run/../x",
            "/slots/0/run/..",
            "/slots/0/run",
        ] {
            assert!(
                engine_path_of(&slot, Path::new(outside)).is_err(),
                "{outside}"
            );
        }
    }
}

//! The files that a slot's run directory holds before its engine starts.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use dayfly_types::DiskMib;
use dayfly_vmm::{MachineSpec, file_names};
use tokio::process::Command;

use crate::error::LayoutError;

/// Large enough to be a disk, small enough to cost nothing until a volume takes its place.
const SPARE_DISK_BYTES: u64 = 4096;

/// `qemu-img` writes a few hundred kilobytes.
const EMPTY_LAYER_DEADLINE: Duration = Duration::from_secs(30);

pub(crate) fn spare_disk_name(index: u8) -> String {
    format!("spare{index}.img")
}

/// Lays a fresh writable disk and the spare disks into a run directory that nothing runs in yet.
/// They belong to whom the directory belongs to.
pub(crate) async fn lay_out(
    run_directory: &Path,
    machine: &MachineSpec,
    empty_layer: &Path,
) -> Result<(), LayoutError> {
    let run_directory = run_directory.to_owned();
    let empty_layer = empty_layer.to_owned();
    let spare_disks = machine.spare_disks;
    let task = move || lay_out_blocking(&run_directory, spare_disks, &empty_layer);
    tokio::task::spawn_blocking(task)
        .await
        .map_err(|_| LayoutError::Lost)?
}

fn lay_out_blocking(
    run_directory: &Path,
    spare_disks: u8,
    empty_layer: &Path,
) -> Result<(), LayoutError> {
    let unreadable = |path: &Path, source| LayoutError::Read {
        path: path.to_owned(),
        source,
    };
    let owner = Owner::of(run_directory).map_err(|source| unreadable(run_directory, source))?;
    let mut empty = File::open(empty_layer).map_err(|source| unreadable(empty_layer, source))?;

    let path = run_directory.join(file_names::WRITABLE_DISK);
    let unmade = |path: &Path, source| LayoutError::Make {
        path: path.to_owned(),
        source,
    };
    let mut disk = owner
        .create(&path)
        .map_err(|source| unmade(&path, source))?;
    io::copy(&mut empty, &mut disk).map_err(|source| unmade(&path, source))?;
    for index in 0..spare_disks {
        let path = run_directory.join(spare_disk_name(index));
        owner
            .create(&path)
            .and_then(|file| file.set_len(SPARE_DISK_BYTES))
            .map_err(|source| unmade(&path, source))?;
    }
    Ok(())
}

#[derive(Debug, Clone, Copy)]
struct Owner {
    user: u32,
    group: u32,
}

impl Owner {
    fn of(directory: &Path) -> io::Result<Self> {
        let metadata = std::fs::symlink_metadata(directory)?;
        Ok(Self {
            user: metadata.uid(),
            group: metadata.gid(),
        })
    }

    /// Refuses a name that exists, so a planted link is never followed.
    fn create(self, path: &Path) -> io::Result<File> {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        let metadata = file.metadata()?;
        if (metadata.uid(), metadata.gid()) != (self.user, self.group) {
            fchown(&file, Some(self.user), Some(self.group))?;
        }
        Ok(file)
    }
}

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
    use dayfly_types::{MemoryMib, Vcpus};
    use dayfly_vmm::{EngineView, Slot, SlotIndex};

    use super::*;

    fn machine() -> MachineSpec {
        MachineSpec {
            memory: MemoryMib::new(128).unwrap(),
            vcpus: Vcpus::new(1).unwrap(),
            disk: DiskMib::new(64).unwrap(),
            spare_disks: 2,
        }
    }

    #[tokio::test]
    async fn a_layout_holds_a_copy_of_the_empty_layer_and_the_spare_disks() {
        let directory = tempfile::tempdir().unwrap();
        let run = directory.path().join("run");
        std::fs::create_dir(&run).unwrap();
        let empty = directory.path().join("empty");
        std::fs::write(&empty, b"layer").unwrap();
        lay_out(&run, &machine(), &empty).await.unwrap();
        assert_eq!(
            std::fs::read(run.join(file_names::WRITABLE_DISK)).unwrap(),
            b"layer"
        );
        for index in 0..2 {
            let spare = std::fs::metadata(run.join(spare_disk_name(index))).unwrap();
            assert_eq!(spare.len(), SPARE_DISK_BYTES);
        }
    }

    #[tokio::test]
    async fn a_planted_link_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let run = directory.path().join("run");
        std::fs::create_dir(&run).unwrap();
        let victim = directory.path().join("victim");
        std::fs::write(&victim, b"precious").unwrap();
        std::os::unix::fs::symlink(&victim, run.join(file_names::WRITABLE_DISK)).unwrap();
        let result = lay_out(&run, &machine(), &victim).await;
        assert!(matches!(result, Err(LayoutError::Make { .. })));
        assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
    }

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

//! Volumes: copied while nobody writes to them, or as after a power cut.
//!
//! A volume that nobody has, or whose writer sleeps, does not change; that it did not is looked at
//! afterwards, and it is copied again if it did. One whose writer runs is cloned in one step where
//! the file system can, or copied until it was not written to meanwhile, or, when that does not
//! happen, copied while its writer is paused. In each case the copy is one state of the disk.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};
use dayfly_host::files::copy_sparse;
use dayfly_installation::DataDirectory;
use dayfly_node_api::{NodeCalls, NodeClient};
use dayfly_types::{SandboxId, SandboxState};
use rustix::fs::ioctl_ficlone;
use serde::Deserialize;
use tokio::runtime::Handle;

use super::contents::{CopiedVolume, VolumeState};
use super::output::Output;
use super::records::Records;

const DISK: &str = "disk.img";
const RECORD: &str = "volume.json";
const MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;
const TRIES_MAX: u32 = 4;
/// Times of files have the grain of the kernel's clock, which is a few milliseconds.
const GRAIN: Duration = Duration::from_millis(50);

/// What a backup has to know of a volume's record.
#[derive(Debug, Deserialize)]
struct VolumeText {
    /// In MiB.
    size: u64,
    writer: Option<SandboxId>,
}

/// Copies every volume. Sleepers that wake meanwhile are left out.
pub(super) fn copy_all(
    directory: &DataDirectory,
    output: &mut Output<'_>,
    records: &mut Records,
    runtime: &Handle,
) -> Result<Vec<CopiedVolume>> {
    let is_running = directory.running()?.is_some();
    let node = is_running.then(|| NodeClient::new(directory.node_socket()));
    let top = directory.node().join("volumes");
    let mut copied = Vec::new();
    if !top.exists() {
        return Ok(copied);
    }
    output.directory("node/volumes", &top)?;
    for project in directories(&top)? {
        let name = file_name(&project);
        output.directory(&format!("node/volumes/{name}"), &project)?;
        for path in directories(&project)? {
            let volume = Volume {
                path,
                node: node.as_ref(),
                runtime,
            };
            copied.extend(volume.copy(output, records)?);
        }
    }
    Ok(copied)
}

fn directories(path: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for item in fs::read_dir(path).context("cannot list the volumes")? {
        let path = item.context("cannot list the volumes")?.path();
        if path.is_dir() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// One volume that is being copied.
struct Volume<'a> {
    path: PathBuf,
    /// Absent while no daemon runs.
    node: Option<&'a NodeClient>,
    runtime: &'a Handle,
}

/// Who could write.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Holder {
    Nobody,
    Sleeper(SandboxId),
    Running(SandboxId),
}

/// What tells whether a disk was written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    modified: (i64, i64),
    bytes: u64,
}

impl Stamp {
    /// Waits until a later write would be another moment.
    fn settled(disk: &File) -> io::Result<Self> {
        let age = SystemTime::now().duration_since(disk.metadata()?.modified()?);
        if age.is_ok_and(|age| age < GRAIN) {
            std::thread::sleep(GRAIN);
        }
        Self::of(disk)
    }

    fn of(disk: &File) -> io::Result<Self> {
        let found = disk.metadata()?;
        Ok(Self {
            modified: (found.mtime(), found.mtime_nsec()),
            bytes: found.len(),
        })
    }
}

impl Volume<'_> {
    /// `None`: it was deleted before it was copied, or is being made.
    fn copy(&self, output: &mut Output<'_>, records: &mut Records) -> Result<Option<CopiedVolume>> {
        let (Some(_), Ok(disk)) = (self.text()?, File::open(self.path.join(DISK))) else {
            return Ok(None);
        };
        let (project, name) = (self.path.parent().map(file_name), file_name(&self.path));
        let project = project.unwrap_or_default();
        let path = format!("node/volumes/{project}/{name}");
        output.directory_of_mode(&path, DIRECTORY_MODE)?;
        let mut outcome = None;
        let filled = output.filled(&format!("{path}/{DISK}"), MODE, &mut |file| {
            let copied = self.fill(&disk, file, records);
            outcome = Some(copied.map_err(|error| io::Error::other(format!("{error:#}")))?);
            Ok(())
        });
        filled.with_context(|| format!("cannot copy volume {project}/{name}"))?;
        let (text, state) = outcome.context("the volume was not copied")?;
        output.bytes(&format!("{path}/{RECORD}"), MODE, &text)?;
        Ok(Some(CopiedVolume {
            project,
            name,
            state,
        }))
    }

    /// Its record, as it is now.
    fn text(&self) -> Result<Option<Vec<u8>>> {
        match fs::read(self.path.join(RECORD)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).context("cannot read the record of a volume"),
        }
    }

    /// Copies the disk until the copy is one state of it, with the record of that state.
    fn fill(
        &self,
        disk: &File,
        to: &File,
        records: &mut Records,
    ) -> Result<(Vec<u8>, VolumeState)> {
        let mut last = Vec::new();
        for attempt in 1..=TRIES_MAX {
            // One that was deleted meanwhile is still open here, and was last held by nobody.
            let text = self.text()?.unwrap_or(last);
            let Ok(known) = serde_json::from_slice::<VolumeText>(&text) else {
                // Of a later program, or damaged: kept as it is.
                copy_once(disk, to)?;
                return Ok((text, VolumeState::CrashConsistent));
            };
            let holder = holder(&known, records);
            let (is_clone, is_same) = match &holder {
                Holder::Running(id) if attempt == TRIES_MAX => {
                    self.while_paused(id, || copy_watched(disk, to, None))?
                }
                Holder::Nobody | Holder::Sleeper(_) | Holder::Running(_) => {
                    // One whose growth was cut short is longer for good.
                    let size = (attempt < TRIES_MAX).then_some(known.size << 20);
                    copy_watched(disk, to, size)?
                }
            };
            let is_same_record = self.text()?.is_none_or(|now| now == text);
            match &holder {
                Holder::Sleeper(id) if !records.sleeps_on(id) => records.leave_out(id),
                Holder::Sleeper(_) if is_same => return Ok((text, VolumeState::WithSleeper)),
                Holder::Nobody if is_same && is_same_record => {
                    return Ok((text, VolumeState::AtRest));
                }
                Holder::Running(_) if is_clone || is_same => {
                    return Ok((text, VolumeState::CrashConsistent));
                }
                Holder::Nobody | Holder::Sleeper(_) | Holder::Running(_) => {}
            }
            last = text;
        }
        bail!("it changed hands again and again while it was copied; try again")
    }

    /// Pauses the machine that writes to it for a while.
    fn while_paused<T>(&self, id: &SandboxId, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let node = self.node.with_context(|| {
            format!("{id} writes to it all the time, and no daemon runs that could pause it")
        })?;
        let state = self.runtime.block_on(node.sandbox(id));
        let is_running = state.is_ok_and(|report| report.state == SandboxState::Running);
        if is_running {
            let paused = self.runtime.block_on(node.pause(id));
            paused.with_context(|| format!("cannot pause {id}, which writes to it"))?;
        }
        let done = work();
        if is_running {
            let resumed = self.runtime.block_on(node.resume(id));
            resumed.with_context(|| format!("{id} was paused and cannot be resumed"))?;
        }
        done
    }
}

fn holder(known: &VolumeText, records: &Records) -> Holder {
    match &known.writer {
        None => Holder::Nobody,
        Some(id) if records.asleep.contains_key(id) => Holder::Sleeper(id.clone()),
        Some(id) => Holder::Running(id.clone()),
    }
}

/// Copies once. Says whether it was cloned in one step, and whether the disk was the same before
/// and behind, and as long as it should be.
fn copy_watched(disk: &File, to: &File, bytes: Option<u64>) -> Result<(bool, bool)> {
    let before = Stamp::settled(disk)?;
    let is_clone = copy_once(disk, to)?;
    // While it grows it is longer than its record says.
    let is_grown = bytes.is_none_or(|bytes| bytes == before.bytes);
    Ok((is_clone, is_grown && Stamp::of(disk)? == before))
}

fn copy_once(disk: &File, to: &File) -> Result<bool> {
    to.set_len(0)?;
    if ioctl_ficlone(to, disk).is_ok() {
        return Ok(true);
    }
    copy_sparse(disk, to)?;
    Ok(false)
}

#[cfg(test)]
#[path = "volumes_tests.rs"]
mod tests;

//! From a command to an engine that answers on its monitor.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use dayfly_host::guest_memory::{GuestMemory, GuestMemoryError};
use dayfly_host::memory::mapped_size;
use dayfly_types::limits::{ENGINE_START_DEADLINE, TEARDOWN_STEP_DEADLINE};
use dayfly_vmm::{EngineCommand, MemoryLayer, Slot, SlotProvider, file_names};

use crate::error::{MemoryError, MonitorError, StartError};
use crate::layout::is_guest_memory;
use crate::process::{ENDING_GRACE, Watched, last_words};
use crate::qmp::Monitor;

/// An engine that answers.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) watched: Watched,
    pub(crate) monitor: Monitor,
}

/// Launches the engine and opens its monitor. After an error the process is dead.
pub(crate) async fn start(
    slots: &dyn SlotProvider,
    slot: &Slot,
    command: EngineCommand,
) -> Result<Started, StartError> {
    let process = slots
        .launch(slot, command)
        .await
        .map_err(StartError::Launch)?;
    let mut watched = Watched::open(process).map_err(StartError::Watch)?;
    let socket = slot.run_directory.join(file_names::MONITOR_SOCKET);
    let opened = tokio::select! {
        opened = Monitor::open(&socket, ENGINE_START_DEADLINE) => opened,
        _ = watched.wait() => Err(MonitorError::Closed),
    };
    match opened {
        // An engine that answers has made its sockets. It makes nothing else.
        Ok(monitor) => match slots.close_directory(slot).await {
            Ok(()) => Ok(Started { watched, monitor }),
            Err(error) => {
                end(&mut watched).await;
                Err(StartError::Close(error))
            }
        },
        Err(error) => {
            let error = start_error(error, &mut watched, slot).await;
            end(&mut watched).await;
            Err(error)
        }
    }
}

/// An engine that ends itself may be seen first by its socket, in any of several ways.
async fn start_error(error: MonitorError, watched: &mut Watched, slot: &Slot) -> StartError {
    if let MonitorError::TimedOut(limit) = error {
        return StartError::TimedOut(limit);
    }
    if watched.ends_within(ENDING_GRACE).await {
        return StartError::Exited {
            last_words: last_words(slot),
        };
    }
    StartError::Monitor(error)
}

/// Ends a process that nobody will own. What is left after the limit, the slot's release ends.
pub(crate) async fn end(watched: &mut Watched) {
    let pid = watched.process().pid;
    match watched.end(TEARDOWN_STEP_DEADLINE).await {
        Ok(true) => {}
        Ok(false) => tracing::warn!(pid, "an engine outlives its kill"),
        Err(error) => tracing::warn!(pid, %error, "cannot kill an engine"),
    }
}

/// How guest memory must be mapped.
#[derive(Debug)]
pub(crate) struct MappedMemory {
    pub(crate) image: PathBuf,
    pub(crate) bytes: u64,
    /// No other layer lies over the topmost, so all of it must be mapped.
    pub(crate) top: Option<MemoryLayer>,
}

/// Makes sure that the engine's writes to guest memory cannot reach an image, and that the layers
/// are where they should be: the library that maps them may not have been loaded.
pub(crate) async fn check_memory(
    watched: &Watched,
    memory: MappedMemory,
) -> Result<(), MemoryError> {
    let pid = watched.process().pid;
    let MappedMemory {
        image,
        bytes: wanted,
        top,
    } = memory;
    let look = move || {
        let memory = GuestMemory::find(pid, is_guest_memory).map_err(|error| match error {
            GuestMemoryError::Shared => MemoryError::Shared,
            GuestMemoryError::Mappings(_)
            | GuestMemoryError::NotMapped
            | GuestMemoryError::PageTable(_)
            | GuestMemoryError::Read(_)
            | GuestMemoryError::Write(_)
            | GuestMemoryError::Track(_) => MemoryError::Mappings(error),
        })?;
        let mapped = mapped_bytes(pid, &image)?;
        if memory.bytes() != wanted || (mapped == 0 && top.is_none()) {
            return Err(MemoryError::NotMapped { path: image });
        }
        if let Some(top) = top {
            let size: u64 = top.extents.iter().map(|extent| extent.bytes()).sum();
            if mapped_bytes(pid, &top.file)? != size {
                return Err(MemoryError::NotMapped { path: top.file });
            }
        }
        Ok(())
    };
    let lost = |_| MemoryError::Lost;
    tokio::task::spawn_blocking(look).await.map_err(lost)?
}

fn mapped_bytes(pid: i32, file: &Path) -> Result<u64, MemoryError> {
    let metadata = std::fs::metadata(file).map_err(|source| MemoryError::Image {
        path: file.to_owned(),
        source,
    })?;
    // The path differs inside a jail; the inode does not.
    mapped_size(pid, metadata.ino())
        .map_err(|error| MemoryError::Mappings(GuestMemoryError::Mappings(error)))
}

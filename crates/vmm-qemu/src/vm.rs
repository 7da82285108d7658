//! One running or paused machine.

use std::io;
use std::path::Path;
use std::time::Instant;

use async_trait::async_trait;
use dayfly_types::DiskMib;
use dayfly_types::limits::{ENGINE_COMMAND_DEADLINE, TEARDOWN_STEP_DEADLINE};
use dayfly_vmm::{
    Afterwards, CaptureSpec, Captured, ControlError, EngineCaptureError, EngineProcess, FrameRange,
    GiveBackError, GivenBack, MemoryCapture, SealError, Slot, Vm, VmEvent, VmExit, file_names,
};
use serde_json::{Value, json};

use crate::disks::engine_path_of;
use crate::error::{LayoutError, MonitorError};
use crate::events::{Events, Heard, STOPPED_BY_ERROR};
use crate::give_back::Noted;
use crate::launch::writable_file;
use crate::layout::{make_layer, make_state_file};
use crate::memory::{self, Ahead};
use crate::process::{ENDING_GRACE, Watched, open_regular};
use crate::qmp::{LAYER_SUFFIX, Monitor, WritableNode};

/// A machine with its process.
///
/// The monitor is open while the machine is paused or a command runs. Each operation takes it out
/// and puts it back at its end, so an operation that was dropped half-way or failed leaves none,
/// and the next one starts a new conversation.
#[derive(Debug)]
pub(crate) struct QemuVm {
    pub(crate) slot: Slot,
    watched: Watched,
    pub(crate) monitor: Option<Monitor>,
    events: Events,
    prepared: Option<Prepared>,
    /// What was copied for a capture that is yet to come.
    ahead: Option<Ahead>,
    /// There while writes are noted for memory that is to be given back. Never beside `ahead`: each
    /// takes the notes that it reads.
    noted: Option<Noted>,
}

/// A layer that is open, and what it is to lie over. Asking for that takes the engine a millisecond for
/// every four layers of the disk, so it is asked before the pause.
#[derive(Debug)]
struct Prepared {
    layer: String,
    over: WritableNode,
}

impl QemuVm {
    pub(crate) fn new(slot: Slot, watched: Watched, monitor: Option<Monitor>) -> Self {
        Self {
            slot,
            watched,
            monitor,
            events: Events::default(),
            prepared: None,
            ahead: None,
            noted: None,
        }
    }

    pub(crate) async fn take_monitor(&mut self) -> Result<Monitor, MonitorError> {
        match self.monitor.take() {
            Some(monitor) => Ok(monitor),
            None => {
                let socket = self.slot.run_directory.join(file_names::MONITOR_SOCKET);
                Monitor::open(&socket, ENGINE_COMMAND_DEADLINE).await
            }
        }
    }

    /// Whether the reason of a failure is that the process has ended.
    async fn is_gone(&mut self, error: &MonitorError) -> bool {
        match error {
            MonitorError::Connect(_) | MonitorError::Closed | MonitorError::Exchange(_) => {
                self.watched.ends_within(ENDING_GRACE).await
            }
            MonitorError::MessageTooLong { .. }
            | MonitorError::Malformed(_)
            | MonitorError::Refused { .. }
            | MonitorError::Migration { .. }
            | MonitorError::WrongStatus { .. }
            | MonitorError::NoWritableDisk
            | MonitorError::FailedWrites(_)
            | MonitorError::TimedOut(_) => self.watched.has_ended(),
        }
    }

    async fn control(&mut self, command: &str) -> Result<Monitor, ControlError> {
        if self.watched.has_ended() {
            return Err(ControlError::Gone);
        }
        match self.try_control(command).await {
            Ok(monitor) => Ok(monitor),
            Err(error) if self.is_gone(&error).await => Err(ControlError::Gone),
            Err(error) => Err(error.into()),
        }
    }

    async fn try_control(&mut self, command: &str) -> Result<Monitor, MonitorError> {
        let mut monitor = self.take_monitor().await?;
        monitor
            .execute(command, Value::Null, ENGINE_COMMAND_DEADLINE)
            .await?;
        Ok(monitor)
    }

    async fn save_devices(
        &mut self,
        device_state: &Path,
        afterwards: Afterwards,
    ) -> Result<Monitor, MonitorError> {
        let mut monitor = self.paused_monitor().await?;
        // Asked when nothing is written any more: what syncs a disk is also what finds it broken.
        let failed = monitor.failed_writes().await?;
        if failed > 0 {
            self.monitor = Some(monitor);
            return Err(MonitorError::FailedWrites(failed));
        }
        monitor.save_devices(device_state, afterwards).await?;
        Ok(monitor)
    }

    pub(crate) async fn paused_monitor(&mut self) -> Result<Monitor, MonitorError> {
        let mut monitor = self.take_monitor().await?;
        let status = monitor.status(ENGINE_COMMAND_DEADLINE).await?;
        if status == "paused" {
            return Ok(monitor);
        }
        Err(MonitorError::WrongStatus {
            status,
            wanted: "paused",
        })
    }

    async fn open_layer(&mut self, layer: &str) -> Result<WritableNode, MonitorError> {
        let mut monitor = self.take_monitor().await?;
        let now = monitor.writable_node().await?;
        let node = node_name(layer);
        let file = self.slot.engine_run_directory.join(layer);
        let arguments = json!({
            "driver": "qcow2", "node-name": node, "backing": null, "discard": "unmap",
            "file": writable_file(&file),
        });
        let added = monitor
            .execute("blockdev-add", arguments, ENGINE_COMMAND_DEADLINE)
            .await;
        match added {
            // Opened by an earlier attempt, which may not have come to the size.
            Err(MonitorError::Refused { description, .. })
                if description.contains("Duplicate nodes") => {}
            added => drop(added?),
        }
        // A disk that was enlarged is larger than the template's empty layer.
        let size = json!({ "node-name": node, "size": now.bytes });
        monitor
            .execute("block_resize", size, ENGINE_COMMAND_DEADLINE)
            .await?;
        Ok(now)
    }

    async fn switch_layer(&mut self, layer: &str) -> Result<(Monitor, String), MonitorError> {
        let mut monitor = self.paused_monitor().await?;
        let now = match self.prepared.take() {
            Some(prepared) if prepared.layer == layer => prepared.over,
            Some(_) | None => monitor.writable_node().await?,
        };
        let arguments = json!({ "node": now.node, "overlay": node_name(layer) });
        monitor
            .execute("blockdev-snapshot", arguments, ENGINE_COMMAND_DEADLINE)
            .await?;
        Ok((monitor, now.file))
    }

    async fn resize(&mut self, node: Option<&str>, bytes: u64) -> Result<(), MonitorError> {
        let mut monitor = self.take_monitor().await?;
        let node = match node {
            Some(node) => node.to_owned(),
            None => monitor.writable_node().await?.node,
        };
        let arguments = json!({ "node-name": node, "size": bytes });
        monitor
            .execute("block_resize", arguments, ENGINE_COMMAND_DEADLINE)
            .await?;
        Ok(())
    }
}

/// A block node's name has at most 31 characters; layers are named by us and short.
fn node_name(layer: &str) -> &str {
    layer.strip_suffix(LAYER_SUFFIX).unwrap_or(layer)
}

#[async_trait]
impl Vm for QemuVm {
    fn process(&self) -> EngineProcess {
        self.watched.process()
    }

    async fn pause(&mut self) -> Result<(), ControlError> {
        self.monitor = Some(self.control("stop").await?);
        Ok(())
    }

    async fn resume(&mut self) -> Result<(), ControlError> {
        // The conversation ends here: nobody would read what a running guest causes to be said.
        drop(self.control("cont").await?);
        Ok(())
    }

    async fn copy_ahead(
        &mut self,
        memory: &MemoryCapture,
    ) -> Result<Option<u64>, EngineCaptureError> {
        let (pid, memory) = (self.watched.process().pid, memory.clone());
        self.noted = None;
        let ahead = self.ahead.take();
        let round = move || memory::copy_ahead(pid, &memory, ahead);
        let copied = tokio::task::spawn_blocking(round).await;
        let copied = copied.map_err(|error| EngineCaptureError::Memory(error.into()))?;
        let Some((ahead, bytes)) = copied? else {
            return Ok(None);
        };
        self.ahead = Some(ahead);
        Ok(Some(bytes))
    }

    async fn capture(&mut self, spec: &CaptureSpec) -> Result<Captured, EngineCaptureError> {
        let target = engine_path_of(&self.slot, &spec.device_state)
            .map_err(|error| EngineCaptureError::Refused(error.into()))?;
        make_state_file(&spec.device_state)
            .map_err(|error| EngineCaptureError::Refused(error.into()))?;
        let start = Instant::now();
        match self.save_devices(&target, spec.afterwards).await {
            Ok(monitor) => self.monitor = Some(monitor),
            Err(error) if self.is_gone(&error).await => return Err(EngineCaptureError::Gone),
            Err(MonitorError::FailedWrites(_)) => return Err(EngineCaptureError::DiskDamaged),
            Err(MonitorError::WrongStatus { status, .. }) if status == STOPPED_BY_ERROR => {
                return Err(EngineCaptureError::WaitsForRoom);
            }
            Err(error) => return Err(error.into()),
        }
        let device_state_bytes = file_size(&spec.device_state)
            .map_err(|error| EngineCaptureError::Refused(error.into()))?;
        let device_time = start.elapsed();
        let Some(memory) = spec.memory.clone() else {
            return Ok(Captured {
                device_state_bytes,
                device_time,
                ..Captured::default()
            });
        };
        let pid = self.watched.process().pid;
        let start = Instant::now();
        let ahead = self.ahead.take();
        let saved = tokio::task::spawn_blocking(move || memory::save(pid, &memory, ahead)).await;
        let saved = saved.map_err(|error| EngineCaptureError::Memory(error.into()))?;
        let (extents, patched_pages) = saved?;
        Ok(Captured {
            device_state_bytes,
            extents,
            patched_pages,
            device_time,
            memory_time: start.elapsed(),
        })
    }

    async fn note_writes(&mut self, memory_bytes: u64) -> Result<bool, GiveBackError> {
        self.ahead = None;
        self.noted = self.note_writes_now(memory_bytes).await?;
        Ok(self.noted.is_some())
    }

    async fn give_back(
        &mut self,
        free: &[FrameRange],
        least_bytes: u64,
    ) -> Result<GivenBack, GiveBackError> {
        let noted = self.noted.take().ok_or(GiveBackError::NotNoted)?;
        self.give_back_noted(noted, free, least_bytes).await
    }

    async fn prepare_seal(&mut self, layer: &str, empty_layer: &Path) -> Result<(), SealError> {
        match make_layer(&self.slot.run_directory, layer, empty_layer) {
            Ok(()) => {}
            // Prepared by an earlier attempt, which may have gone on to the engine or not.
            Err(LayoutError::Make { source, .. })
                if source.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(SealError::Layer(error.into())),
        }
        match self.open_layer(layer).await {
            Ok(over) => {
                let layer = layer.to_owned();
                self.prepared = Some(Prepared { layer, over });
                Ok(())
            }
            Err(error) if self.is_gone(&error).await => Err(SealError::Gone),
            Err(error) => Err(error.into()),
        }
    }

    async fn seal_disk(&mut self, layer: &str) -> Result<String, SealError> {
        match self.switch_layer(layer).await {
            Ok((monitor, sealed)) => {
                self.monitor = Some(monitor);
                Ok(sealed)
            }
            Err(error) if self.is_gone(&error).await => Err(SealError::Gone),
            Err(error) => Err(error.into()),
        }
    }

    async fn writable_disk(&mut self) -> Result<String, ControlError> {
        let mut monitor = self.take_monitor().await?;
        let node = monitor.writable_node().await?;
        Ok(node.file)
    }

    async fn grow_disk(&mut self, size: DiskMib) -> Result<(), ControlError> {
        Ok(self.resize(None, size.bytes()).await?)
    }

    async fn announce_volume(&mut self, spare: u8, bytes: u64) -> Result<(), ControlError> {
        Ok(self.resize(Some(&format!("spare{spare}")), bytes).await?)
    }

    async fn wait(&mut self) -> VmExit {
        self.watched.wait().await
    }

    async fn next_event(&mut self) -> VmEvent {
        let socket = self.slot.run_directory.join(file_names::EVENTS_SOCKET);
        tokio::select! {
            exit = self.watched.wait() => VmEvent::Ended(exit),
            heard = self.events.next(&socket) => match heard {
                Heard::StoppedByError => VmEvent::WaitsForRoom,
                Heard::WriteFailed => VmEvent::WriteFailed,
                Heard::GuestEnded(end) => VmEvent::GuestEnded(end),
            },
        }
    }

    async fn waits_for_room(&mut self) -> Result<bool, ControlError> {
        let was_open = self.monitor.is_some();
        let mut monitor = self.take_monitor().await?;
        let status = monitor.status(ENGINE_COMMAND_DEADLINE).await?;
        self.monitor = was_open.then_some(monitor);
        Ok(status == STOPPED_BY_ERROR)
    }

    async fn console(&mut self) -> Result<String, ControlError> {
        let was_open = self.monitor.is_some();
        let mut monitor = self.take_monitor().await?;
        let text = monitor.console().await?;
        self.monitor = was_open.then_some(monitor);
        Ok(text)
    }

    async fn kill(&mut self) -> Result<(), ControlError> {
        self.monitor = None;
        match self.watched.end(TEARDOWN_STEP_DEADLINE).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(ControlError::TimedOut(TEARDOWN_STEP_DEADLINE)),
            Err(error) => Err(ControlError::Refused(error.into())),
        }
    }
}

fn file_size(path: &Path) -> io::Result<u64> {
    Ok(open_regular(path)?.metadata()?.len())
}

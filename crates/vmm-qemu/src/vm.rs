//! One running or paused machine.

use std::path::Path;

use async_trait::async_trait;
use dayfly_types::limits::{ENGINE_COMMAND_DEADLINE, TEARDOWN_STEP_DEADLINE};
use dayfly_vmm::{
    CaptureError, Captured, ControlError, EngineProcess, Slot, Vm, VmExit, file_names,
};
use serde_json::Value;

use crate::disks::engine_path_of;
use crate::error::{LayoutError, MonitorError};
use crate::process::{ENDING_GRACE, Watched, open_regular};
use crate::qmp::Monitor;

/// A machine with its process.
///
/// The monitor is open while the machine is paused or a command runs. Each operation takes it out
/// and puts it back at its end, so an operation that was dropped half-way or failed leaves none,
/// and the next one starts a new conversation.
#[derive(Debug)]
pub(crate) struct QemuVm {
    slot: Slot,
    watched: Watched,
    monitor: Option<Monitor>,
}

impl QemuVm {
    pub(crate) fn new(slot: Slot, watched: Watched, monitor: Option<Monitor>) -> Self {
        Self {
            slot,
            watched,
            monitor,
        }
    }

    async fn take_monitor(&mut self) -> Result<Monitor, MonitorError> {
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

    async fn try_capture(&mut self, device_state: &Path) -> Result<Monitor, MonitorError> {
        let mut monitor = self.take_monitor().await?;
        let status = monitor.status(ENGINE_COMMAND_DEADLINE).await?;
        if status != "paused" {
            return Err(MonitorError::WrongStatus {
                status,
                wanted: "paused",
            });
        }
        monitor.prepare_migration(ENGINE_COMMAND_DEADLINE).await?;
        monitor.migrate("migrate", device_state).await?;
        Ok(monitor)
    }
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

    async fn capture(&mut self, device_state: &Path) -> Result<Captured, CaptureError> {
        let target = engine_path_of(&self.slot, device_state)
            .map_err(|error| CaptureError::Refused(error.into()))?;
        match self.try_capture(&target).await {
            Ok(monitor) => self.monitor = Some(monitor),
            Err(error) if self.is_gone(&error).await => return Err(CaptureError::Gone),
            Err(error) => return Err(error.into()),
        }
        let device_state = device_state.to_owned();
        let written = tokio::task::spawn_blocking(move || sync(&device_state))
            .await
            .unwrap_or(Err(LayoutError::Lost))
            .map_err(|error| CaptureError::Refused(error.into()))?;
        Ok(Captured {
            device_state_bytes: written,
        })
    }

    async fn wait(&mut self) -> VmExit {
        self.watched.wait().await
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

/// Writes a capture through to the disk and tells its size.
fn sync(path: &Path) -> Result<u64, LayoutError> {
    let failed = |source| LayoutError::Sync {
        path: path.to_owned(),
        source,
    };
    let file = open_regular(path).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    Ok(file.metadata().map_err(failed)?.len())
}

//! An engine that has its memory and disks and waits for its device state.

use std::path::PathBuf;

use async_trait::async_trait;
use dayfly_types::limits::ENGINE_COMMAND_DEADLINE;
use dayfly_vmm::{EngineProcess, ParkedVm, RestoreError, Slot, Vm};
use serde_json::Value;

use crate::error::{EngineEnded, MonitorError};
use crate::process::{ENDING_GRACE, Watched, last_words};
use crate::qmp::Monitor;
use crate::start::{Started, end};
use crate::vm::QemuVm;

/// A process between its start and its restore.
#[derive(Debug)]
pub(crate) struct ParkedQemu {
    slot: Slot,
    watched: Watched,
    /// Open all the time: a parked engine runs no guest, so it has nothing to say.
    monitor: Monitor,
    /// As the engine sees it.
    device_state: PathBuf,
}

impl ParkedQemu {
    pub(crate) fn new(slot: Slot, started: Started, device_state: PathBuf) -> Self {
        Self {
            slot,
            watched: started.watched,
            monitor: started.monitor,
            device_state,
        }
    }

    async fn load(&mut self) -> Result<(), MonitorError> {
        let file = &self.device_state;
        self.monitor.migrate("migrate-incoming", file).await?;
        self.monitor
            .execute("cont", Value::Null, ENGINE_COMMAND_DEADLINE)
            .await?;
        Ok(())
    }

    /// Tells an engine that was killed from one that ended itself, as it does when it cannot load
    /// a state; it says why before.
    async fn restore_error(&mut self, error: MonitorError) -> RestoreError {
        match error {
            MonitorError::Closed | MonitorError::Exchange(_) => {
                self.watched.ends_within(ENDING_GRACE).await;
                if self.watched.was_killed() {
                    return RestoreError::Gone;
                }
                RestoreError::Refused(
                    EngineEnded {
                        last_words: last_words(&self.slot),
                    }
                    .into(),
                )
            }
            MonitorError::Connect(_)
            | MonitorError::MessageTooLong { .. }
            | MonitorError::Malformed(_)
            | MonitorError::Refused { .. }
            | MonitorError::Migration { .. }
            | MonitorError::WrongStatus { .. }
            | MonitorError::NoWritableDisk
            | MonitorError::FailedWrites(_)
            | MonitorError::TimedOut(_) => error.into(),
        }
    }
}

#[async_trait]
impl ParkedVm for ParkedQemu {
    fn process(&self) -> EngineProcess {
        self.watched.process()
    }

    async fn restore(mut self: Box<Self>) -> Result<Box<dyn Vm>, RestoreError> {
        if self.watched.has_ended() {
            return Err(RestoreError::Gone);
        }
        if let Err(error) = self.load().await {
            let error = self.restore_error(error).await;
            // A machine with half a state is of no use to anybody.
            end(&mut self.watched).await;
            return Err(error);
        }
        let Self { slot, watched, .. } = *self;
        Ok(Box::new(QemuVm::new(slot, watched, None)))
    }
}

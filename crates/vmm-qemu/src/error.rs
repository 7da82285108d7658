//! What fails inside the driver, and what each failure is called at the port.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use dayfly_host::guest_memory::GuestMemoryError;
use dayfly_host::process::ProcessError;
use dayfly_vmm::{
    AdoptError, BootError, ControlError, EngineCaptureError, GiveBackError, LaunchError, ParkError,
    RestoreError, SealError, SlotError,
};

/// Why a conversation with the monitor failed.
#[derive(Debug, thiserror::Error)]
pub enum MonitorError {
    #[error("cannot connect to the monitor")]
    Connect(#[source] io::Error),
    #[error("the monitor closed the connection")]
    Closed,
    #[error("cannot exchange bytes with the monitor")]
    Exchange(#[source] io::Error),
    #[error("a monitor message is longer than {limit} bytes")]
    MessageTooLong { limit: usize },
    #[error("cannot read a monitor message")]
    Malformed(#[source] serde_json::Error),
    #[error("command {command} was refused: {description}")]
    Refused {
        command: String,
        description: String,
    },
    #[error("the migration ended as {status}: {description}")]
    Migration { status: String, description: String },
    #[error("the machine is {status}, not {wanted}")]
    WrongStatus {
        status: String,
        wanted: &'static str,
    },
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    #[error("the engine does not say which file it writes to")]
    NoWritableDisk,
    #[error("{0} writes of the guest have failed")]
    FailedWrites(u64),
}

/// Why an engine process did not come to answer on its monitor. It is dead in every case.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error("cannot launch the engine")]
    Launch(#[source] LaunchError),
    #[error("cannot watch the engine process")]
    Watch(#[source] ProcessError),
    #[error("the engine ended before it answered; its last words: {last_words}")]
    Exited { last_words: String },
    #[error("cannot talk to the engine")]
    Monitor(#[source] MonitorError),
    #[error("the engine did not answer within {0:?}")]
    TimedOut(Duration),
    #[error("the engine's directory could not be closed")]
    Close(#[source] SlotError),
}

/// Why the files of a slot could not be laid out or read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LayoutError {
    #[error("cannot make {path}")]
    Make { path: PathBuf, source: io::Error },
    #[error("cannot read {path}")]
    Read { path: PathBuf, source: io::Error },
    #[error("{path} is not in the slot's run directory")]
    OutsideRunDirectory { path: PathBuf },
    #[error("a blocking task was lost")]
    Lost,
}

/// Why guest memory is not what a restore needs it to be.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MemoryError {
    #[error("cannot read the memory image {path}")]
    Image { path: PathBuf, source: io::Error },
    #[error("cannot read the engine's mappings")]
    Mappings(#[source] GuestMemoryError),
    #[error("the engine does not map {path} as it should")]
    NotMapped { path: PathBuf },
    #[error("a blocking task was lost")]
    Lost,
    #[error("the memory image is mapped shared")]
    Shared,
}

/// The engine ended in the middle of an operation.
#[derive(Debug, thiserror::Error)]
#[error("the engine ended; its last words: {last_words}")]
pub(crate) struct EngineEnded {
    pub(crate) last_words: String,
}

impl From<StartError> for BootError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Launch(source) => Self::Launch(source),
            StartError::TimedOut(limit) => Self::TimedOut(limit),
            StartError::Watch(_)
            | StartError::Exited { .. }
            | StartError::Monitor(_)
            | StartError::Close(_) => Self::Refused(error.into()),
        }
    }
}

impl From<StartError> for ParkError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Launch(source) => Self::Launch(source),
            StartError::TimedOut(limit) => Self::TimedOut(limit),
            StartError::Watch(_)
            | StartError::Exited { .. }
            | StartError::Monitor(_)
            | StartError::Close(_) => Self::Refused(error.into()),
        }
    }
}

impl From<MemoryError> for ParkError {
    fn from(error: MemoryError) -> Self {
        match error {
            MemoryError::Shared => Self::MemoryShared,
            MemoryError::Image { .. }
            | MemoryError::Mappings(_)
            | MemoryError::NotMapped { .. }
            | MemoryError::Lost => Self::Refused(error.into()),
        }
    }
}

/// Port errors that a monitor error becomes: timed out, or refused with the monitor's own error.
macro_rules! from_monitor_error {
    ($($port:ty),+) => {$(
        impl From<MonitorError> for $port {
            fn from(error: MonitorError) -> Self {
                match error {
                    MonitorError::TimedOut(limit) => Self::TimedOut(limit),
                    MonitorError::Connect(_)
                    | MonitorError::Closed
                    | MonitorError::Exchange(_)
                    | MonitorError::MessageTooLong { .. }
                    | MonitorError::Malformed(_)
                    | MonitorError::Refused { .. }
                    | MonitorError::Migration { .. }
                    | MonitorError::NoWritableDisk
                    | MonitorError::FailedWrites(_)
                    | MonitorError::WrongStatus { .. } => Self::Refused(error.into()),
                }
            }
        }
    )+};
}

from_monitor_error!(
    BootError,
    ParkError,
    RestoreError,
    AdoptError,
    ControlError,
    EngineCaptureError,
    SealError,
    GiveBackError
);

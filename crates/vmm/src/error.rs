//! One error enum for each operation of the port.
//!
//! Drivers differ in what fails inside them, so each enum carries the driver's own error as a
//! boxed source and says in its variant what the caller can do about it.

use std::error::Error;
use std::time::Duration;

use crate::capabilities::EngineBuild;
use crate::slot::LaunchError;

/// The driver's own error, for the log.
pub type ErrorSource = Box<dyn Error + Send + Sync + 'static>;

/// Why a machine did not boot. No process is left.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    #[error("cannot launch the engine")]
    Launch(#[source] LaunchError),
    #[error("the engine did not answer within {0:?}")]
    TimedOut(Duration),
    #[error("the engine refused the machine")]
    Refused(#[source] ErrorSource),
}

/// Why an engine could not be parked. The slot's owner releases the slot.
#[derive(Debug, thiserror::Error)]
pub enum ParkError {
    #[error("build {build} of the engine is not kept any more")]
    NoBuild { build: EngineBuild },
    #[error("cannot launch the engine")]
    Launch(#[source] LaunchError),
    #[error("cannot lay out the slot's files")]
    Layout(#[source] ErrorSource),
    #[error("the engine did not answer within {0:?}")]
    TimedOut(Duration),
    #[error("the engine refused the machine")]
    Refused(#[source] ErrorSource),
    #[error("guest memory is mapped shared; the engine was killed")]
    MemoryShared,
}

/// Why a parked engine did not become a running machine.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error("the engine did not answer within {0:?}")]
    TimedOut(Duration),
    #[error("the engine refused the device state")]
    Refused(#[source] ErrorSource),
    #[error("the parked engine is gone")]
    Gone,
}

/// Why a running machine could not be taken over.
#[derive(Debug, thiserror::Error)]
pub enum AdoptError {
    #[error("no such engine process")]
    Gone,
    #[error("the engine did not answer within {0:?}")]
    TimedOut(Duration),
    #[error("the engine refused")]
    Refused(#[source] ErrorSource),
}

/// Why a pause, a resume or a kill did not happen.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    #[error("the engine did not answer within {0:?}")]
    TimedOut(Duration),
    #[error("the engine refused")]
    Refused(#[source] ErrorSource),
    #[error("the engine is gone")]
    Gone,
}

/// Why a disk was not sealed. The guest writes to where it wrote before.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    #[error("the engine did not answer within {0:?}")]
    TimedOut(Duration),
    #[error("cannot make the new layer")]
    Layer(#[source] ErrorSource),
    #[error("the engine refused")]
    Refused(#[source] ErrorSource),
    #[error("the engine is gone")]
    Gone,
}

/// Why a machine was not saved. The machine is still paused.
#[derive(Debug, thiserror::Error)]
pub enum EngineCaptureError {
    #[error("cannot save memory")]
    Memory(#[source] ErrorSource),
    #[error("{wanted_bytes} bytes of memory have changed, and {limit_bytes} may be written")]
    TooMuch { wanted_bytes: u64, limit_bytes: u64 },
    #[error("the guest was told that a write to its disk failed")]
    DiskDamaged,
    #[error("a write of the guest waits for room on the host's disk")]
    WaitsForRoom,
    #[error("the engine did not answer within {0:?}")]
    TimedOut(Duration),
    #[error("the engine refused the capture")]
    Refused(#[source] ErrorSource),
    #[error("the engine is gone")]
    Gone,
}

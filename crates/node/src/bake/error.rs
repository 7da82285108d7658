//! Why a bake failed.

use std::error::Error;
use std::io;
use std::time::Duration;

use dayfly_guest_client::CallError;
use dayfly_snapshots::{
    ImageError, InitialRamDiskError, PublishError, StagingError, WritableDiskError,
};
use dayfly_vmm::{BootError, ControlError, EngineCaptureError, SlotError, VmExit};

use super::warm_up::WarmUpError;
use crate::guest::OpenAgentError;

/// Why a template was not baked. Nothing of it is visible and nothing of it runs.
#[derive(Debug, thiserror::Error)]
pub enum BakeError {
    #[error("cannot get the image")]
    Image(#[source] ImageError),
    #[error("cannot read the guest agent")]
    Agent(#[source] io::Error),
    #[error("cannot stage the template")]
    Stage(#[source] StagingError),
    #[error("cannot write the initial RAM disk")]
    InitialRamDisk(#[source] InitialRamDiskError),
    #[error("cannot make the writable disk")]
    WritableDisk(#[source] WritableDiskError),
    #[error("cannot make an empty layer")]
    EmptyLayer(#[source] Box<dyn Error + Send + Sync>),
    #[error("cannot get a slot")]
    Slot(#[source] SlotError),
    #[error("no slot within {0:?}")]
    SlotTimedOut(Duration),
    #[error("cannot boot the machine")]
    Boot(#[source] BootError),
    #[error("the guest did not come up; its console ends with: {console}")]
    NoAgent {
        console: String,
        #[source]
        source: OpenAgentError,
    },
    #[error("the machine ended by itself ({exit:?}); its console ends with: {console}")]
    Ended { exit: VmExit, console: String },
    #[error("the guest does not say what it is")]
    Status(#[source] CallError),
    #[error("the warm-up failed")]
    WarmUp(#[source] WarmUpError),
    #[error("the guest could not be quiesced")]
    Quiesce(#[source] CallError),
    #[error("the machine could not be {what}")]
    Control {
        what: &'static str,
        #[source]
        source: ControlError,
    },
    #[error("the machine could not be captured")]
    Capture(#[source] EngineCaptureError),
    #[error("the machine took longer than {0:?}")]
    TimedOut(Duration),
    #[error("the template was not made within {0:?}")]
    TookTooLong(Duration),
    #[error("cannot publish the template")]
    Publish(#[source] PublishError),
    #[error("the work on the disk was stopped")]
    Stopped,
}

//! Giving memory that a guest has freed back to the host.

use std::time::Duration;

use crate::error::ErrorSource;

/// Neighbouring page frames, as the guest's kernel numbers them. Where the machine has them is for
/// its driver to know. What a guest says may be anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameRange {
    pub first: u64,
    pub count: u64,
}

/// What [`crate::Vm::give_back`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GivenBack {
    pub bytes: u64,
    /// What is free as well, and was not given back: it was too little to stop for, or it was
    /// written meanwhile.
    pub left_bytes: u64,
    /// How often the machine stood still, and for how long at most.
    pub stops: u32,
    pub longest_stop: Duration,
}

/// Why no memory was given back, or not all of it. The machine runs, unless the error says
/// otherwise.
#[derive(Debug, thiserror::Error)]
pub enum GiveBackError {
    #[error("nobody has noted what the guest writes")]
    NotNoted,
    #[error("cannot find out which memory the guest has changed")]
    Memory(#[source] ErrorSource),
    #[error("the engine does not discard memory")]
    Discard(#[source] ErrorSource),
    #[error("the machine did not run")]
    NotRunning,
    #[error("the machine may stand still")]
    MayStandStill(#[source] ErrorSource),
    #[error("the engine did not answer within {0:?}")]
    TimedOut(Duration),
    #[error("the engine refused")]
    Refused(#[source] ErrorSource),
    #[error("the engine is gone")]
    Gone,
}

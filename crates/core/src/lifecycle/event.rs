//! What moves a sandbox from one phase to another.

use dayfly_types::SnapshotId;

/// Something that happened, or that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LifecycleEvent {
    Ready,
    Pause,
    PauseDone,
    PauseUndone,
    Resume,
    ResumeDone,
    ResumeUndone,
    Hibernate,
    /// With the capture that it sleeps in.
    HibernateDone(SnapshotId),
    HibernateUndone,
    Wake,
    WakeDone,
    WakeUndone,
    /// To a snapshot of its own.
    Rollback(SnapshotId),
    /// A fresh process has found its machine.
    TakenOver,
    /// A sleeper that an older program called failed.
    StillAsleep,
    Delete,
    Gone,
    /// With the reason, for its owner.
    Fault(String),
}

impl LifecycleEvent {
    /// Whether it has happened even if the journal could not be told: an end is an end, and what was
    /// undone is undone. Anything else that is not written down did not happen.
    #[must_use]
    pub const fn holds_unwritten(&self) -> bool {
        matches!(
            self,
            Self::Delete
                | Self::Fault(_)
                | Self::PauseUndone
                | Self::ResumeUndone
                | Self::HibernateUndone
                | Self::WakeUndone
                | Self::Rollback(_)
        )
    }
}

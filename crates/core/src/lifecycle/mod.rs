//! The phases of a sandbox, and which follows which.
//!
//! ```text
//!   creating ──Ready──> running ──Pause──> pausing ──PauseDone──> paused
//!                        │  ^ ^                                     │ Resume
//!              Hibernate │  │ └────────── ResumeDone ── resuming <──┘
//!                        v  │ WakeDone
//!               hibernating │
//!                        │  └──── waking <──Wake── hibernated
//!                        └──────HibernateDone────────^
//!
//!   running, paused, hibernated ──Rollback──> waking
//!   pausing ──PauseUndone──> running         resuming ──ResumeUndone──> paused
//!   hibernating ──HibernateUndone──> running
//!   waking ──WakeUndone──> hibernated, also from running when its guest was not let go
//!   pausing, resuming, hibernating ──TakenOver──> running     (by a fresh process)
//!   failed ──StillAsleep──> hibernated       (an older program mistook an unread capture)
//!   any but deleted ──Delete──> deleting ──Gone──> deleted
//!   any but deleting, deleted ──Fault──> failed
//! ```
//!
//! Delete wins from every phase. What is not drawn is refused. Only this module makes a phase: the
//! variants of [`Phase`] cannot be built outside of this crate.

mod event;
mod next;
mod phase;
mod stored;
#[cfg(test)]
mod tests;

pub use event::LifecycleEvent;
pub use next::{IllegalTransition, next};
pub use phase::{Asleep, DiskLayers, Machine, Phase, Remains, RunningEngine, Sealing, Start, Wake};

use dayfly_types::SandboxState;

/// Whether the guest answers calls in this state.
#[must_use]
pub const fn takes_calls(state: SandboxState) -> bool {
    matches!(state, SandboxState::Running)
}

//! Which state follows which.
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
//!   any but deleted ──Delete──> deleting ──Gone──> deleted
//!   any but deleting, deleted ──Fault──> failed          (only Delete leaves failed)
//! ```
//!
//! Delete wins from every state. What is not drawn is refused.

use dayfly_types::SandboxState;

/// Something that happened, or that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LifecycleEvent {
    Ready,
    Pause,
    PauseDone,
    Resume,
    ResumeDone,
    Hibernate,
    HibernateDone,
    Wake,
    WakeDone,
    Delete,
    Gone,
    Fault,
}

impl LifecycleEvent {
    pub const ALL: [Self; 12] = [
        Self::Ready,
        Self::Pause,
        Self::PauseDone,
        Self::Resume,
        Self::ResumeDone,
        Self::Hibernate,
        Self::HibernateDone,
        Self::Wake,
        Self::WakeDone,
        Self::Delete,
        Self::Gone,
        Self::Fault,
    ];
}

/// A change that the lifecycle does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a sandbox that is {} does not take {event:?}", from.as_str())]
pub struct IllegalTransition {
    pub from: SandboxState,
    pub event: LifecycleEvent,
}

/// The state after `event`.
///
/// # Errors
/// [`IllegalTransition`] for every pair that the drawing above does not show.
pub const fn next(
    from: SandboxState,
    event: LifecycleEvent,
) -> Result<SandboxState, IllegalTransition> {
    use SandboxState as S;
    let to = match (from, event) {
        (S::Creating, LifecycleEvent::Ready) => S::Running,
        (S::Running, LifecycleEvent::Pause) => S::Pausing,
        (S::Pausing, LifecycleEvent::PauseDone) => S::Paused,
        (S::Paused, LifecycleEvent::Resume) => S::Resuming,
        (S::Resuming, LifecycleEvent::ResumeDone) => S::Running,
        (S::Running, LifecycleEvent::Hibernate) => S::Hibernating,
        (S::Hibernating, LifecycleEvent::HibernateDone) => S::Hibernated,
        (S::Hibernated, LifecycleEvent::Wake) => S::Waking,
        (S::Waking, LifecycleEvent::WakeDone) => S::Running,
        (S::Deleting, LifecycleEvent::Gone) => S::Deleted,
        (S::Deleted, _) => return Err(IllegalTransition { from, event }),
        (_, LifecycleEvent::Delete) => S::Deleting,
        (S::Deleting, _) => return Err(IllegalTransition { from, event }),
        (_, LifecycleEvent::Fault) => S::Failed,
        _ => return Err(IllegalTransition { from, event }),
    };
    Ok(to)
}

/// Whether the guest answers calls in this state.
#[must_use]
pub const fn takes_calls(state: SandboxState) -> bool {
    matches!(state, SandboxState::Running)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_event() -> impl Strategy<Value = LifecycleEvent> {
        (0..LifecycleEvent::ALL.len()).prop_map(|index| LifecycleEvent::ALL[index])
    }

    fn walk(events: &[LifecycleEvent]) -> SandboxState {
        events.iter().fold(SandboxState::Creating, |state, event| {
            next(state, *event).unwrap_or(state)
        })
    }

    #[test]
    fn delete_wins_from_every_state_but_deleted() {
        for state in SandboxState::ALL {
            let after = next(state, LifecycleEvent::Delete);
            if state == SandboxState::Deleted {
                assert!(after.is_err());
            } else {
                assert_eq!(after, Ok(SandboxState::Deleting));
            }
        }
    }

    #[test]
    fn every_state_is_reachable_and_can_end() {
        let mut reached = vec![SandboxState::Creating];
        let mut index = 0;
        while index < reached.len() {
            for event in LifecycleEvent::ALL {
                if let Ok(state) = next(reached[index], event)
                    && !reached.contains(&state)
                {
                    reached.push(state);
                }
            }
            index += 1;
        }
        assert_eq!(reached.len(), SandboxState::ALL.len());
    }

    proptest! {
        #[test]
        fn after_a_delete_only_the_end_follows(before in proptest::collection::vec(any_event(), 0..40),
                                               after in proptest::collection::vec(any_event(), 0..40)) {
            let mut events = before;
            events.push(LifecycleEvent::Delete);
            events.extend(after);
            let state = walk(&events);
            prop_assert!(matches!(state, SandboxState::Deleting | SandboxState::Deleted));
        }

        #[test]
        fn deleted_is_final(events in proptest::collection::vec(any_event(), 0..60)) {
            let mut state = SandboxState::Creating;
            let mut was_deleted = false;
            for event in events {
                state = next(state, event).unwrap_or(state);
                prop_assert!(!was_deleted || state == SandboxState::Deleted);
                was_deleted = state == SandboxState::Deleted;
            }
        }

        #[test]
        fn a_failed_sandbox_never_runs_again(events in proptest::collection::vec(any_event(), 0..60)) {
            let mut state = SandboxState::Creating;
            let mut failed = false;
            for event in events {
                state = next(state, event).unwrap_or(state);
                failed |= state == SandboxState::Failed;
                prop_assert!(!failed || !takes_calls(state));
            }
        }
    }
}

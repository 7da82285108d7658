//! Tests of the phases.

use dayfly_types::capture::MachineOrigin;
use dayfly_types::{EngineProcess, SandboxState, SlotIndex, SnapshotId};
use proptest::prelude::*;

use super::*;

fn capture(name: &str) -> SnapshotId {
    SnapshotId::parse(name).unwrap()
}

fn engine() -> RunningEngine {
    RunningEngine {
        slot: SlotIndex(4),
        process: EngineProcess {
            pid: 77,
            start_time_ticks: 99,
        },
        network_start: 9,
    }
}

fn all_events() -> Vec<LifecycleEvent> {
    use LifecycleEvent as E;
    vec![
        E::Ready,
        E::Pause,
        E::PauseDone,
        E::PauseUndone,
        E::Resume,
        E::ResumeDone,
        E::ResumeUndone,
        E::Hibernate,
        E::HibernateDone(capture("snap-asleep")),
        E::HibernateUndone,
        E::Wake,
        E::WakeDone,
        E::WakeUndone,
        E::Rollback(capture("snap-back")),
        E::TakenOver,
        E::StillAsleep,
        E::Delete,
        E::Gone,
        E::Fault("it broke".to_owned()),
    ]
}

/// What follows, with an engine for whoever needs one; the same when that is not drawn.
fn step(mut phase: Phase, event: LifecycleEvent) -> Phase {
    if matches!(phase, Phase::Creating(_) | Phase::Waking(_)) {
        phase.take_engine(engine());
    }
    next(&phase, event).unwrap_or(phase)
}

fn walk(events: &[LifecycleEvent]) -> Phase {
    let first = Phase::creating(MachineOrigin::Capture(capture("snap-origin")));
    events.iter().cloned().fold(first, step)
}

/// Every phase that can be reached, one for each state.
fn reached() -> Vec<Phase> {
    let origin = MachineOrigin::Capture(capture("snap-origin"));
    let mut reached = vec![Phase::creating(origin)];
    let mut index = 0;
    while index < reached.len() {
        for event in all_events() {
            let phase = step(reached[index].clone(), event);
            if reached.iter().all(|known| known.state() != phase.state()) {
                reached.push(phase);
            }
        }
        index += 1;
    }
    reached
}

#[test]
fn delete_wins_from_every_phase_but_deleted() {
    for phase in reached() {
        let after = next(&phase, LifecycleEvent::Delete);
        if phase == Phase::Deleted {
            assert!(after.is_err());
        } else {
            assert_eq!(after.unwrap().state(), SandboxState::Deleting);
        }
    }
}

#[test]
fn every_state_is_reachable_and_can_end() {
    assert_eq!(reached().len(), SandboxState::ALL.len());
}

#[test]
fn nothing_runs_without_an_engine() {
    let creating = Phase::creating(MachineOrigin::Template);
    assert!(next(&creating, LifecycleEvent::Ready).is_err());
    let mut waking = walk(&[
        LifecycleEvent::Ready,
        LifecycleEvent::Hibernate,
        LifecycleEvent::HibernateDone(capture("snap-asleep")),
        LifecycleEvent::Wake,
    ]);
    waking.give_slot_back();
    assert!(next(&waking, LifecycleEvent::WakeDone).is_err());
    waking.take_engine(engine());
    let running = next(&waking, LifecycleEvent::WakeDone).unwrap();
    let origin = MachineOrigin::Capture(capture("snap-asleep"));
    assert_eq!(running.origin(), Some(&origin));
}

#[test]
fn no_way_to_an_end_forgets_a_slot_or_a_capture() {
    for phase in reached() {
        if phase == Phase::Deleted {
            continue;
        }
        let ended = next(&phase, LifecycleEvent::Delete).unwrap();
        assert_eq!(ended.slot(), phase.slot(), "{phase:?}");
        let of = |phase: &Phase| {
            let mut captures: Vec<_> = phase.captures().cloned().collect();
            captures.sort();
            captures
        };
        assert_eq!(of(&ended), of(&phase), "{phase:?}");
    }
}

#[test]
fn a_phase_is_read_as_it_was_written() {
    for phase in reached() {
        let text = serde_json::to_string(&phase).unwrap();
        let read: Phase = serde_json::from_str(&text).unwrap();
        let gone = Phase::Deleting(Remains::default());
        let expected = if phase == Phase::Deleted { gone } else { phase };
        assert_eq!(read, expected, "{text}");
    }
}

#[test]
fn fields_that_make_no_phase_are_refused() {
    let refused = |text: &str| serde_json::from_str::<Phase>(text).unwrap_err().to_string();
    let text = r#"{"state":"hibernated","slot":null,"process":null}"#;
    assert!(refused(text).contains("it is hibernated and has no capture"));
    let text = r#"{"state":"running","slot":3,"process":null}"#;
    assert!(refused(text).contains("it is running and has no engine"));
    let text = r#"{"state":"creating","slot":3,"process":null}"#;
    assert!(refused(text).contains("no process in its slot"));
    let text = r#"{"state":"creating","slot":null,"process":null,"origin_is_disk":true}"#;
    assert!(refused(text).contains("no capture under its disk"));
}

/// The memory of a machine that was booted on a capture's disk is not that capture's, so it never
/// sleeps in it.
#[test]
fn a_booted_machine_keeps_its_capture_and_does_not_sleep_in_it() {
    let origin = MachineOrigin::DiskOf(capture("snap-origin"));
    let first = Phase::creating(origin.clone());
    let running = step(first.clone(), LifecycleEvent::Ready);
    assert_eq!(running.origin(), Some(&origin));
    assert!(next(&running, LifecycleEvent::WakeUndone).is_err());
    let ended = next(&running, LifecycleEvent::Delete).unwrap();
    for phase in [first, running, ended] {
        assert_eq!(phase.captures().next(), Some(&capture("snap-origin")));
        let text = serde_json::to_string(&phase).unwrap();
        assert!(text.contains(r#""origin_is_disk":true"#), "{text}");
        assert_eq!(serde_json::from_str::<Phase>(&text).unwrap(), phase);
    }
    let others = serde_json::to_string(&walk(&[LifecycleEvent::Ready])).unwrap();
    assert!(!others.contains("origin_is_disk"), "{others}");
}

fn any_event() -> impl Strategy<Value = LifecycleEvent> {
    proptest::sample::select(all_events())
}

proptest! {
    #[test]
    fn after_a_delete_only_the_end_follows(before in proptest::collection::vec(any_event(), 0..40),
                                           after in proptest::collection::vec(any_event(), 0..40)) {
        let mut events = before;
        events.push(LifecycleEvent::Delete);
        events.extend(after);
        let state = walk(&events).state();
        prop_assert!(matches!(state, SandboxState::Deleting | SandboxState::Deleted));
    }

    #[test]
    fn deleted_is_final(events in proptest::collection::vec(any_event(), 0..60)) {
        let mut phase = Phase::creating(MachineOrigin::Template);
        let mut was_deleted = false;
        for event in events {
            phase = step(phase, event);
            prop_assert!(!was_deleted || phase == Phase::Deleted);
            was_deleted = phase == Phase::Deleted;
        }
    }

    /// A sleeper that an older program called failed is the only one that comes back.
    #[test]
    fn a_failed_sandbox_never_runs_again(events in proptest::collection::vec(any_event(), 0..60)) {
        let mut phase = Phase::creating(MachineOrigin::Template);
        let mut failed = false;
        for event in events {
            if event == LifecycleEvent::StillAsleep {
                continue;
            }
            phase = step(phase, event);
            failed |= phase.state() == SandboxState::Failed;
            prop_assert!(!failed || !takes_calls(phase.state()));
        }
    }
}

//! When a guest is asked to give back memory that it has freed.
//!
//! A look at all pages of a guest costs it some of its CPU, so the node takes one only when enough
//! would come back. What a guest has freed cannot be told from outside, but how it changes can: the
//! engine's own memory and the guest's free memory together grow when the guest frees a page that it
//! had written to, and shrink when it uses one of those again. A page that it writes to for the first
//! time goes from one to the other. So a look says how much there is, and their sum how much more
//! there is since.

use std::time::Duration;

use dayfly_types::{Moment, limits};

/// What can be seen of a machine without a look at its pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footprint {
    /// Memory that the engine alone has.
    pub own_bytes: u64,
    /// What the guest says that nobody uses in it.
    pub free_bytes: u64,
}

impl Footprint {
    fn sum(self) -> u64 {
        self.own_bytes.saturating_add(self.free_bytes)
    }
}

/// What came of a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    pub before: Footprint,
    pub after: Footprint,
    pub given_bytes: u64,
    /// What could be given back later.
    pub left_bytes: u64,
    /// What the engine had used of a CPU afterwards.
    pub cpu: Duration,
}

/// What is known of one machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct GiveBackHistory {
    /// What the engine had used of a CPU when its guest was last asked.
    asked_at_cpu: Option<Duration>,
    looked: Option<Looked>,
    rests_until: Option<Moment>,
    /// Since it last went well.
    failures: u32,
}

#[derive(Debug, Clone, Copy)]
struct Looked {
    /// What the engine had used of a CPU by then.
    cpu: Duration,
    sum: u64,
    left_bytes: u64,
}

impl GiveBackHistory {
    /// Whether to ask the guest how much is free. It has had some of a CPU since it was asked last,
    /// and its engine has enough that could come back.
    #[must_use]
    pub fn may_ask(&self, now: Moment, own_bytes: u64, cpu: Duration) -> bool {
        let rests = self.rests_until.is_some_and(|until| now < until);
        let has_run = self
            .asked_at_cpu
            .is_none_or(|before| cpu.saturating_sub(before) >= limits::GIVE_BACK_CPU_MIN);
        !rests && has_run && own_bytes >= limits::GIVE_BACK_LEAST_BYTES
    }

    pub fn note_asked(&mut self, cpu: Duration) {
        self.asked_at_cpu = Some(cpu);
    }

    /// Whether enough would come back, as far as can be seen.
    #[must_use]
    pub fn is_worth_a_look(&self, seen: Footprint, cpu: Duration) -> bool {
        let most = seen.own_bytes.min(seen.free_bytes);
        if most < limits::GIVE_BACK_LEAST_BYTES {
            return false;
        }
        let Some(looked) = self.looked else {
            return true;
        };
        let more = seen.sum().saturating_sub(looked.sum);
        let likely = looked.left_bytes.saturating_add(more);
        // What moved while the look was taken may hide some of it.
        let is_outdated = cpu.saturating_sub(looked.cpu) >= limits::GIVE_BACK_LOOK_CPU_MAX;
        likely >= limits::GIVE_BACK_LEAST_BYTES || is_outdated
    }

    /// Takes note of a look. Where it is in doubt what moved meanwhile, more is believed to be there
    /// than less.
    pub fn note(&mut self, now: Moment, look: Look) {
        let before = look.before.sum().saturating_sub(look.given_bytes);
        self.looked = Some(Looked {
            cpu: look.cpu,
            sum: before.min(look.after.sum()),
            left_bytes: look.left_bytes,
        });
        self.rests_until = Some(now.plus(limits::GIVE_BACK_REST));
        self.failures = 0;
    }

    /// It could not be asked, or gave nothing for another reason than that nothing is there. It
    /// rests longer each time: some cannot do it at all, and some are only busy.
    pub fn note_failure(&mut self, now: Moment) {
        let times = 1 << self.failures.min(8);
        let rest = (limits::GIVE_BACK_REST * times).min(limits::GIVE_BACK_RETRY_MAX);
        self.rests_until = Some(now.plus(rest));
        self.failures = self.failures.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const START: Moment = Moment(1_000_000);
    const CPU: Duration = Duration::from_secs(5);

    fn seen(own_mib: u64, free_mib: u64) -> Footprint {
        Footprint {
            own_bytes: own_mib * MIB,
            free_bytes: free_mib * MIB,
        }
    }

    fn looked(before: Footprint, given_mib: u64, left_mib: u64) -> GiveBackHistory {
        let mut history = GiveBackHistory::default();
        history.note(
            START,
            Look {
                before,
                after: Footprint {
                    own_bytes: before.own_bytes - given_mib * MIB,
                    ..before
                },
                given_bytes: given_mib * MIB,
                left_bytes: left_mib * MIB,
                cpu: CPU,
            },
        );
        history
    }

    #[test]
    fn a_small_engine_and_one_that_did_nothing_are_not_asked() {
        let mut history = GiveBackHistory::default();
        assert!(!history.may_ask(START, 20 * MIB, CPU));
        assert!(history.may_ask(START, 100 * MIB, CPU));
        history.note_asked(CPU);
        assert!(!history.may_ask(START, 100 * MIB, CPU + Duration::from_millis(1)));
        assert!(history.may_ask(START, 100 * MIB, CPU + limits::GIVE_BACK_CPU_MIN));
    }

    #[test]
    fn the_first_look_is_taken_when_enough_could_be_there() {
        let history = GiveBackHistory::default();
        assert!(history.is_worth_a_look(seen(100, 300), CPU));
        assert!(!history.is_worth_a_look(seen(100, 60), CPU));
        assert!(!history.is_worth_a_look(seen(60, 300), CPU));
    }

    /// Of 512 MiB the guest uses 100 at first.
    #[test]
    fn a_page_that_is_used_is_not_looked_for_and_one_that_was_freed_is() {
        let history = looked(seen(80, 400), 0, 10);
        // It uses 300 MiB for the first time.
        assert!(!history.is_worth_a_look(seen(380, 100), CPU));
        // It frees them.
        assert!(history.is_worth_a_look(seen(380, 400), CPU));
        let history = looked(seen(380, 400), 295, 5);
        assert!(!history.is_worth_a_look(seen(85, 400), CPU));
        // It uses and frees 50 of them, then 60 more.
        assert!(!history.is_worth_a_look(seen(135, 400), CPU));
        assert!(history.is_worth_a_look(seen(195, 400), CPU));
    }

    #[test]
    fn what_is_freed_while_a_look_is_taken_is_not_missed() {
        let mut history = GiveBackHistory::default();
        let look = Look {
            before: seen(380, 100),
            after: seen(380, 400),
            given_bytes: 0,
            left_bytes: 0,
            cpu: CPU,
        };
        history.note(START, look);
        assert!(history.is_worth_a_look(seen(380, 400), CPU));
    }

    #[test]
    fn a_machine_rests_after_a_look_and_longer_after_failures_and_not_for_ever() {
        let mut history = looked(seen(200, 300), 0, 0);
        let later = START.plus(limits::GIVE_BACK_REST);
        assert!(!history.may_ask(START, 200 * MIB, CPU));
        assert!(history.may_ask(later, 200 * MIB, CPU));
        assert!(!history.is_worth_a_look(seen(200, 300), CPU));
        let much_later = CPU + limits::GIVE_BACK_LOOK_CPU_MAX;
        assert!(history.is_worth_a_look(seen(200, 300), much_later));
        for times in [1, 2, 4] {
            history.note_failure(later);
            let rest = limits::GIVE_BACK_REST * times;
            let nearly = later.plus(rest - Duration::from_millis(1));
            assert!(!history.may_ask(nearly, 200 * MIB, CPU));
            assert!(history.may_ask(later.plus(rest), 200 * MIB, CPU));
        }
        (0..100).for_each(|_| history.note_failure(later));
        assert!(history.may_ask(later.plus(limits::GIVE_BACK_RETRY_MAX), 200 * MIB, CPU));
    }
}

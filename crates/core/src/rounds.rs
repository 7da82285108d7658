//! How often memory is copied before a capture stops the machine.
//!
//! Each round copies what was written during the round before, so that the rounds of a guest that
//! writes slower than the host copies get shorter. A guest that writes faster is held back, a
//! little and then more: what it may still write in a round of that length is less than what was
//! copied. Whatever happens, the rounds end.

use dayfly_types::limits;

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Copy again what is written from now on.
    Round,
    /// The same, with the guest held to this many thousandths of one processor.
    SlowerRound(u64),
    /// Little enough is left for the pause.
    Pause,
}

/// The rounds of one capture so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rounds {
    count: u32,
    /// Of the round before, in bytes.
    last: u64,
    held_back: usize,
}

impl Rounds {
    /// How many there were.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Takes note of a round that has copied so many bytes, and says what comes next.
    pub fn note(&mut self, bytes: u64) -> Next {
        let (is_first, before) = (self.count == 0, self.last);
        self.count += 1;
        self.last = bytes;
        if bytes <= limits::AHEAD_LEFT_BYTES || self.count >= limits::AHEAD_ROUNDS_MAX {
            return Next::Pause;
        }
        // The first has copied what was written in all of the machine's life.
        let shrinks = bytes <= before / 2;
        if is_first || shrinks {
            return Next::Round;
        }
        let step = self.held_back.min(limits::AHEAD_CPU_MILLIS.len() - 1);
        self.held_back += 1;
        Next::SlowerRound(limits::AHEAD_CPU_MILLIS[step])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn an_idle_guest_is_copied_once() {
        let mut rounds = Rounds::default();
        assert_eq!(rounds.note(300 * MIB), Next::Round);
        assert_eq!(rounds.note(MIB), Next::Pause);
        assert_eq!(rounds.count(), 2);
    }

    #[test]
    fn a_guest_whose_rounds_get_shorter_is_not_held_back() {
        let mut rounds = Rounds::default();
        for mib in [400, 200, 100, 50, 25, 12, 6, 3] {
            assert_eq!(rounds.note(mib * MIB), Next::Round, "{mib} MiB");
        }
        assert_eq!(rounds.note(MIB), Next::Pause);
    }

    #[test]
    fn a_guest_that_writes_faster_than_it_is_copied_is_held_back_step_by_step() {
        let mut rounds = Rounds::default();
        assert_eq!(rounds.note(300 * MIB), Next::Round);
        for millis in limits::AHEAD_CPU_MILLIS {
            assert_eq!(rounds.note(300 * MIB), Next::SlowerRound(*millis));
        }
        let last = limits::AHEAD_CPU_MILLIS[limits::AHEAD_CPU_MILLIS.len() - 1];
        assert_eq!(rounds.note(300 * MIB), Next::SlowerRound(last));
        assert_eq!(rounds.note(30 * MIB), Next::Round, "it stays held back");
    }

    proptest! {
        #[test]
        fn rounds_end_whatever_is_written(bytes in proptest::collection::vec(any::<u64>(), 64)) {
            let mut rounds = Rounds::default();
            let ended = bytes.into_iter().any(|bytes| rounds.note(bytes) == Next::Pause);
            prop_assert!(ended);
            prop_assert!(rounds.count() <= limits::AHEAD_ROUNDS_MAX);
        }
    }
}

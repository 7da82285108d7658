//! Whether a wall clock may be believed when something would be deleted for good by it.
//!
//! A host that starts with a wrong clock, or whose clock is set, is usually put right within
//! minutes. So after a jump forward, and after a start, what was made before waits for a while
//! until its time counts as over. The monotonic clock tells a jump from time that passed.

use std::time::SystemTime;

use dayfly_types::{Moment, limits};

/// Watches a wall clock beside a monotonic one.
#[derive(Debug, Clone, Default)]
pub struct WallClock {
    last: Option<(Moment, SystemTime)>,
    steady: Option<(Moment, SystemTime)>,
}

/// How far the wall clock can be believed at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Belief {
    now: SystemTime,
    /// Since when it has been steady.
    since: SystemTime,
    is_old: bool,
}

impl WallClock {
    /// Looks at both clocks. Look often: what passes between two looks is compared.
    pub fn look(&mut self, now: Moment, wall: SystemTime) -> Belief {
        let jumped = self.last.is_none_or(|(last_now, last_wall)| {
            let expected = last_wall + now.since(last_now);
            wall > expected + limits::WALL_CLOCK_TOLERANCE
        });
        self.last = Some((now, wall));
        let steady = match self.steady.filter(|_| !jumped) {
            Some(steady) => steady,
            None => *self.steady.insert((now, wall)),
        };
        Belief {
            now: wall,
            since: steady.1,
            is_old: now.since(steady.0) >= limits::WALL_CLOCK_HOLD,
        }
    }
}

impl Belief {
    /// Whether the time of something that was made at `made` is over.
    #[must_use]
    pub fn is_over(&self, made: SystemTime, expires: SystemTime) -> bool {
        expires <= self.now && (self.is_old || made >= self.since)
    }

    /// Whether the clock has been steady for long enough to go by it for everything.
    #[must_use]
    pub fn is_old(&self) -> bool {
        self.is_old
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    const MINUTE: Duration = Duration::from_secs(60);

    fn at(seconds: u64) -> (Moment, SystemTime) {
        let elapsed = Duration::from_secs(seconds);
        let wall = SystemTime::UNIX_EPOCH + YEAR + elapsed;
        (Moment::default().plus(elapsed), wall)
    }

    #[test]
    fn what_was_made_under_a_steady_clock_ends_on_time() {
        let mut clock = WallClock::default();
        let (now, wall) = at(0);
        clock.look(now, wall);
        let made = wall + Duration::from_secs(1);
        let (now, wall) = at(30);
        assert!(clock.look(now, wall).is_over(made, made + MINUTE / 4));
        assert!(!clock.look(now, wall).is_over(made, made + MINUTE));
    }

    #[test]
    fn a_jump_forward_ends_nothing_before_it_has_lasted() {
        let mut clock = WallClock::default();
        let (now, wall) = at(0);
        clock.look(now, wall);
        let (made, expires) = (wall + MINUTE, wall + YEAR / 12);
        let (now, wall) = at(120);
        assert!(!clock.look(now, wall + YEAR).is_over(made, expires));
        // Put right in time: nothing happened.
        let (later, right) = at(1200);
        assert!(!clock.look(later, right).is_over(made, expires));
        // Or it was no mistake.
        let mut clock = WallClock::default();
        clock.look(now, wall);
        clock.look(now, wall + YEAR);
        let hold = limits::WALL_CLOCK_HOLD;
        let belief = clock.look(now.plus(hold), wall + YEAR + hold);
        assert!(belief.is_over(made, expires));
    }

    #[test]
    fn after_a_start_only_what_was_made_since_ends_at_once() {
        let mut clock = WallClock::default();
        let (now, wall) = at(0);
        let before = wall - MINUTE;
        assert!(!clock.look(now, wall).is_over(before, wall));
        let belief = clock.look(now.plus(MINUTE), wall + MINUTE);
        assert!(belief.is_over(wall, wall + MINUTE));
        assert!(!belief.is_over(before, wall) && !belief.is_old());
    }
}

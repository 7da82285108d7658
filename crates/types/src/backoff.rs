//! Pauses between tries: each twice as long as the one before, up to a limit.

use std::time::Duration;

/// How long to wait before the next try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    most: Duration,
    next: Duration,
}

impl Backoff {
    /// Pauses from `first` to `most`.
    #[must_use]
    pub const fn new(first: Duration, most: Duration) -> Self {
        Self {
            first,
            most,
            next: first,
        }
    }

    /// The pause that comes next, without having waited for it.
    #[must_use]
    pub const fn peek(&self) -> Duration {
        self.next
    }

    /// The pause before the next try; the one after it will be longer.
    #[must_use]
    pub fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = pause.saturating_mul(2).min(self.most).max(self.first);
        pause
    }

    /// A try succeeded: the next failure is the first again.
    pub const fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_to_their_limit_and_begin_anew() {
        let seconds = Duration::from_secs;
        let mut backoff = Backoff::new(seconds(1), seconds(5));
        let pauses: Vec<_> = (0..5).map(|_| backoff.pause()).collect();
        assert_eq!(pauses, [1, 2, 4, 5, 5].map(seconds));
        backoff.reset();
        assert_eq!(backoff.peek(), seconds(1));
        assert_eq!(Backoff::new(seconds(3), seconds(1)).pause(), seconds(3));
    }
}

//! A clock that stands still until a test moves it.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use dayfly_types::{Clock, Moment};
use tokio::sync::watch;

/// Where the wall clock starts: a fixed day, so that output can be compared.
const WALL_START: Duration = Duration::from_secs(1_750_000_000);

/// Time under a test's control.
#[derive(Debug)]
pub struct TestClock {
    now: watch::Sender<Moment>,
    /// How far the wall clock was set forward, in milliseconds.
    ahead_ms: AtomicU64,
}

impl TestClock {
    #[must_use]
    pub fn new() -> Self {
        Self {
            now: watch::Sender::new(Moment::default()),
            ahead_ms: AtomicU64::new(0),
        }
    }

    /// Moves time on and wakes whoever slept until then.
    pub fn advance(&self, duration: Duration) {
        self.now.send_modify(|now| *now = now.plus(duration));
    }

    /// Sets the wall clock ahead of the time that passed; zero puts it right.
    pub fn set_wall_ahead(&self, by: Duration) {
        let by = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        self.ahead_ms.store(by, Ordering::SeqCst);
    }

    /// How many sleeps are under way.
    #[must_use]
    pub fn sleepers(&self) -> usize {
        self.now.receiver_count()
    }
}

impl Default for TestClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for TestClock {
    fn now(&self) -> Moment {
        *self.now.borrow()
    }

    fn wall(&self) -> SystemTime {
        let ahead = Duration::from_millis(self.ahead_ms.load(Ordering::SeqCst));
        SystemTime::UNIX_EPOCH + WALL_START + ahead + self.now().since(Moment::default())
    }

    fn sleep_until(&self, deadline: Moment) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let mut now = self.now.subscribe();
        Box::pin(async move {
            // The sender lives in `self`, which this future borrows, so it cannot be gone.
            let _ = now.wait_for(|now| *now >= deadline).await;
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn advance_wakes_whom_it_passes_and_nobody_else() {
        let clock = Arc::new(TestClock::new());
        let deadline = clock.now().plus(Duration::from_secs(60));
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move { clock.sleep_until(deadline).await }
        });
        while clock.sleepers() == 0 {
            tokio::task::yield_now().await;
        }
        clock.advance(Duration::from_secs(59));
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished());
        clock.advance(Duration::from_secs(1));
        sleeper.await.unwrap();
        assert_eq!(clock.sleepers(), 0);
    }

    #[tokio::test]
    async fn wall_and_monotonic_time_move_together() {
        let clock = TestClock::new();
        let before = clock.wall();
        clock.advance(Duration::from_millis(1500));
        assert_eq!(
            clock.wall().duration_since(before).unwrap(),
            Duration::from_millis(1500)
        );
        clock.sleep_until(clock.now()).await;
    }
}

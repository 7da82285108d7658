//! Time behind a trait, so that a test can move it.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

/// A point on the host's monotonic clock (time since boot, suspend included), in milliseconds.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Moment(pub u64);

impl Moment {
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(millis))
    }

    /// How long from `earlier` to here; zero when `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

/// The clocks of a host. Deadlines use [`Clock::now`]; only display uses [`Clock::wall`].
pub trait Clock: Send + Sync + std::fmt::Debug + 'static {
    fn now(&self) -> Moment;
    fn wall(&self) -> SystemTime;
    /// Resolves when [`Clock::now`] has reached `deadline`. Cancel safe.
    fn sleep_until(&self, deadline: Moment) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

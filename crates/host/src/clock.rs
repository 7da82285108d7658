//! The host's clocks.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::{Duration, SystemTime};

use dayfly_types::{Clock, Moment};
use rustix::time::{ClockId, clock_gettime};

/// The kernel's clocks: time since boot for deadlines, wall time for display.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostClock;

impl Clock for HostClock {
    fn now(&self) -> Moment {
        let time = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or(0);
        Moment(
            seconds
                .saturating_mul(1000)
                .saturating_add(nanoseconds / 1_000_000),
        )
    }

    fn wall(&self) -> SystemTime {
        SystemTime::now()
    }

    fn sleep_until(&self, deadline: Moment) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            // The runtime's timers stand still while the host is suspended and boot time does
            // not, so a long sleep is taken in steps and the clock is asked again after each.
            const STEP_MAX: Duration = Duration::from_secs(30);
            loop {
                let remaining = deadline.since(self.now());
                if remaining.is_zero() {
                    return;
                }
                tokio::time::sleep(remaining.min(STEP_MAX)).await;
            }
        })
    }
}

/// The random id of this boot. [`Moment`]s of two boots must not be compared.
///
/// # Errors
/// When the kernel does not offer it.
pub fn boot_id() -> io::Result<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn sleep_ends_at_its_deadline_and_not_before() {
        let clock = HostClock;
        let deadline = clock.now().plus(Duration::from_millis(20));
        clock.sleep_until(deadline).await;
        assert!(clock.now() >= deadline);
    }

    #[test]
    fn boot_id_is_stable() {
        let first = boot_id().unwrap();
        assert_eq!(first.len(), 36);
        assert_eq!(first, boot_id().unwrap());
    }
}

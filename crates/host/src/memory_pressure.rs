//! What the kernel says of waits for memory (pressure stall information).

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::sys::watch_urgent;

/// Where the kernel says it of the whole host.
const HOST_FILE: &str = "/proc/pressure/memory";

/// Percent of the last ten seconds in which something waited for memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StallPercent {
    /// At least one of those that had work.
    pub some: u64,
    /// All of them.
    pub full: u64,
}

/// Reads how much the whole host stalls. `None`: this kernel does not say.
#[must_use]
pub fn host_stall() -> Option<StallPercent> {
    parse(&std::fs::read_to_string(HOST_FILE).ok()?)
}

fn parse(text: &str) -> Option<StallPercent> {
    let percent = |kind: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(kind))?;
        let value = line.trim_start().strip_prefix("avg10=")?;
        let whole = value.split(['.', ' ']).next()?;
        whole.parse::<u64>().ok()
    };
    Some(StallPercent {
        some: percent("some")?,
        full: percent("full")?,
    })
}

/// Wakes whoever waits as soon as the host stalls on memory.
#[derive(Debug)]
pub struct StallTrigger {
    file: AsyncFd<OwnedFd>,
}

impl StallTrigger {
    /// Asks the kernel to say when something waited for memory for `stall` within any `window`.
    ///
    /// # Errors
    /// When this kernel does not say, or not to this process.
    pub fn of_host(stall: Duration, window: Duration) -> io::Result<Self> {
        Self::open(Path::new(HOST_FILE), stall, window)
    }

    fn open(path: &Path, stall: Duration, window: Duration) -> io::Result<Self> {
        let mut file = OpenOptions::new().read(true).write(true).open(path)?;
        let order = format!("some {} {}\0", stall.as_micros(), window.as_micros());
        file.write_all(order.as_bytes())?;
        Ok(Self {
            file: watch_urgent(file.into())?,
        })
    }

    /// Resolves at the next stall, at most once in a window.
    ///
    /// # Errors
    /// When the kernel has taken the trigger away.
    pub async fn stalled(&self) -> io::Result<()> {
        let mut ready = self.file.ready(Interest::PRIORITY).await?;
        let seen = ready.ready();
        ready.clear_ready();
        if seen.is_error() && !seen.is_priority() {
            return Err(io::Error::other("the trigger is gone"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_read() {
        let text = "some avg10=12.34 avg60=0.00 avg300=0.00 total=14\n\
                    full avg10=3.00 avg60=0.00 avg300=0.00 total=9\n";
        let expected = StallPercent { some: 12, full: 3 };
        assert_eq!(parse(text), Some(expected));
        assert_eq!(parse("some avg10=1.00\n"), None);
        assert_eq!(parse(""), None);
    }

    #[tokio::test]
    async fn a_file_that_is_no_trigger_is_refused() {
        let second = Duration::from_secs(1);
        let missing = StallTrigger::open(Path::new("/nonexistent"), second, second);
        assert!(missing.is_err());
        // A stall that is longer than its window is a mistake that the kernel finds.
        if Path::new(HOST_FILE).exists() {
            assert!(StallTrigger::of_host(10 * second, second).is_err());
        }
    }
}

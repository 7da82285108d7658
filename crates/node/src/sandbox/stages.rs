//! The timed parts of a create. Stages are measured, not guessed.

use std::time::Instant;

use dayfly_node_api::Stage;

/// Stages that are over, and when the first began.
#[derive(Debug, Default)]
pub(crate) struct Laps {
    /// In Unix microseconds.
    pub(crate) began_us: Option<u64>,
    pub(crate) stages: Vec<Stage>,
}

/// A stopwatch with laps.
#[derive(Debug)]
pub(crate) struct Stages {
    began_us: u64,
    start: Instant,
    last: Instant,
    laps: Vec<Stage>,
}

impl Stages {
    /// Begins the first stage, at this moment by the wall clock.
    pub(crate) fn begin(unix_nanos: u64) -> Self {
        let now = Instant::now();
        Self {
            began_us: unix_nanos / 1000,
            start: now,
            last: now,
            laps: Vec::new(),
        }
    }

    /// Ends the stage that ran until now.
    pub(crate) fn end(&mut self, name: &str) {
        let now = Instant::now();
        let micros = u64::try_from(now.duration_since(self.last).as_micros()).unwrap_or(u64::MAX);
        self.laps.push(Stage {
            name: name.to_owned(),
            micros,
        });
        self.last = now;
    }

    pub(crate) fn total_ms(&self) -> u64 {
        u64::try_from(self.last.duration_since(self.start).as_millis()).unwrap_or(u64::MAX)
    }

    pub(crate) fn into_laps(self) -> Laps {
        Laps {
            began_us: Some(self.began_us),
            stages: self.laps,
        }
    }
}

//! The timed parts of a create. Stages are measured, not guessed.

use std::time::{Duration, Instant};

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

    /// The same behind a stage that took so long and ends at this moment.
    pub(crate) fn begin_behind(name: &str, took: Duration, unix_nanos: u64) -> Self {
        let mut stages = Self::begin(unix_nanos);
        let micros = whole_micros(took);
        stages.began_us = stages.began_us.saturating_sub(micros);
        stages.start = stages.start.checked_sub(took).unwrap_or(stages.start);
        stages.laps.push(Stage {
            name: name.to_owned(),
            micros,
        });
        stages
    }

    /// Ends the stage that ran until now.
    pub(crate) fn end(&mut self, name: &str) {
        let now = Instant::now();
        let micros = whole_micros(now.duration_since(self.last));
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

fn whole_micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_before_counts_and_moves_the_beginning() {
        let waited = Duration::from_millis(40);
        let mut stages = Stages::begin_behind("line", waited, 1_000_000_000);
        stages.end("engine");
        assert!(stages.total_ms() >= 40);
        let laps = stages.into_laps();
        assert_eq!(laps.began_us, Some(960_000));
        let names: Vec<&str> = laps.stages.iter().map(|lap| lap.name.as_str()).collect();
        assert_eq!(names, ["line", "engine"]);
        assert_eq!(laps.stages[0].micros, 40_000);
    }
}

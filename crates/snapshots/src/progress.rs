//! How far a long piece of work has come, for a person who waits.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// One report. The percentage never falls during one piece of work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    pub step: String,
    pub percent: u8,
}

/// Hands reports to a listener and keeps them monotonic.
///
/// [`ProgressReporter::part`] gives a share of the range to a sub-step, which then counts from 0
/// to 100 by itself and need not know what surrounds it.
#[derive(Clone)]
pub struct ProgressReporter {
    listener: Arc<dyn Fn(Progress) + Send + Sync>,
    highest: Arc<AtomicU8>,
    from: u8,
    to: u8,
}

impl ProgressReporter {
    /// The listener is called on whatever task does the work, so it must not block.
    pub fn new(listener: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        Self {
            listener: Arc::new(listener),
            highest: Arc::new(AtomicU8::new(0)),
            from: 0,
            to: 100,
        }
    }

    /// For callers that do not want to know.
    #[must_use]
    pub fn silent() -> Self {
        Self::new(|_| {})
    }

    /// Reports `percent` of this reporter's own range.
    pub fn report(&self, step: &str, percent: u8) {
        let percent = self.scale(percent);
        let before = self.highest.fetch_max(percent, Ordering::Relaxed);
        (self.listener)(Progress {
            step: step.to_owned(),
            percent: percent.max(before),
        });
    }

    /// A reporter for the share from `from` to `to` percent of this one.
    #[must_use]
    pub fn part(&self, from: u8, to: u8) -> Self {
        Self {
            from: self.scale(from),
            to: self.scale(to),
            ..self.clone()
        }
    }

    fn scale(&self, percent: u8) -> u8 {
        let width = u16::from(self.to.saturating_sub(self.from));
        let inner = width * u16::from(percent.min(100)) / 100;
        self.from
            .saturating_add(u8::try_from(inner).unwrap_or(u8::MAX))
    }
}

impl fmt::Debug for ProgressReporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgressReporter")
            .field("from", &self.from)
            .field("to", &self.to)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn parts_are_scaled_and_never_fall() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let copy = Arc::clone(&seen);
        let all =
            ProgressReporter::new(move |progress| copy.lock().unwrap().push(progress.percent));
        let first = all.part(0, 50);
        first.report("a", 50);
        first.report("b", 200);
        first.part(50, 100).report("c", 0);
        all.report("d", 10);
        all.report("e", 100);
        assert_eq!(*seen.lock().unwrap(), [25, 50, 50, 50, 100]);
    }
}

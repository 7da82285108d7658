//! Failed bakes that somebody was notified of: whoever waits for a template asks again and again, and
//! must see that it failed; whoever asks later means another try.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use dayfly_types::{TemplateName, limits};

/// Longer than anybody who waits pauses between two looks.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(10);

/// Names, and when the failure was told first.
#[derive(Debug)]
pub(crate) struct FailuresTold {
    retry_after: Duration,
    told: Mutex<HashMap<TemplateName, Instant>>,
}

impl FailuresTold {
    pub(crate) fn new(retry_after: Duration) -> Self {
        Self {
            retry_after,
            told: Mutex::default(),
        }
    }

    /// Somebody asks for a template that has failed. Says whether that means another try; if not,
    /// the failure is told by this.
    pub(crate) fn is_retry(&self, name: &TemplateName) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(since) = told.get(name) {
            let is_late = since.elapsed() >= self.retry_after;
            if is_late {
                told.remove(name);
            }
            return is_late;
        }
        if told.len() >= limits::ORDERED_TEMPLATES_MAX {
            // What is lost of it is one more time that a failure is told.
            told.clear();
        }
        told.insert(name.clone(), Instant::now());
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_for_a_while_and_then_tried_again_once() {
        let name = TemplateName::parse("image.1").unwrap();
        let patient = FailuresTold::new(Duration::from_secs(3600));
        assert!(!patient.is_retry(&name) && !patient.is_retry(&name));
        let quick = FailuresTold::new(Duration::ZERO);
        assert!(!quick.is_retry(&name), "it was never told");
        assert!(quick.is_retry(&name));
        assert!(!quick.is_retry(&name), "the next failure is told first");
    }
}

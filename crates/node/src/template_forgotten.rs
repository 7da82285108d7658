//! Ordered templates that were given up a moment ago. Somebody may have been given one just before,
//! and may not have written down yet that a sandbox needs it; so their files stay for a while.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dayfly_types::{TemplateName, limits};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Longer than anybody takes from being given a template to writing it down.
const STAY: Duration = limits::CREATE_DEADLINE.saturating_add(Duration::from_secs(5));

/// Names, and since when.
#[derive(Debug, Default)]
pub(crate) struct Forgotten {
    names: Mutex<BTreeMap<TemplateName, Instant>>,
    added: Notify,
}

impl Forgotten {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<TemplateName, Instant>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, name: &TemplateName) {
        self.lock().insert(name.clone(), Instant::now());
        self.added.notify_one();
    }

    /// It was ordered again.
    pub(crate) fn remember(&self, name: &TemplateName) {
        self.lock().remove(name);
    }

    /// Whether its files may go. One that was given up before this process began is due.
    pub(crate) fn is_due(&self, name: &TemplateName) -> bool {
        let since = self.lock().get(name).copied();
        since.is_none_or(|since| since.elapsed() >= STAY)
    }

    /// Their files are gone, or somebody else's now.
    pub(crate) fn drop_due(&self) {
        self.lock().retain(|_, since| since.elapsed() < STAY);
    }

    /// Waits until the files of one may go.
    pub(crate) async fn one_is_due(&self) {
        loop {
            let first = self.lock().values().min().copied();
            match first {
                Some(since) => {
                    tokio::select! {
                        () = tokio::time::sleep_until(since + STAY) => return,
                        () = self.added.notified() => {}
                    }
                }
                None => self.added.notified().await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_template_that_was_given_up_stays_for_a_while() {
        let forgotten = Forgotten::default();
        let name = TemplateName::parse("built.1").unwrap();
        assert!(
            forgotten.is_due(&name),
            "it was given up before this process began"
        );
        forgotten.add(&name);
        assert!(!forgotten.is_due(&name));
        forgotten.drop_due();
        assert!(!forgotten.is_due(&name), "it is not due yet");
        forgotten.remember(&name);
        let long_ago = Instant::now().checked_sub(STAY).unwrap();
        forgotten.lock().insert(name.clone(), long_ago);
        assert!(forgotten.is_due(&name));
        forgotten.one_is_due().await;
        forgotten.drop_due();
        assert!(forgotten.lock().is_empty());
    }
}

//! When keys end: what was opened with one must not outlive it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::time::now_ms;

/// Beyond this many, those that nobody holds are forgotten.
const REMEMBERED_MAX: usize = 4096;
/// How often the clock is read again while a key's time runs: it can be set, and a host can sleep.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// The ends of all keys that are in use, by their prefixes.
#[derive(Debug, Default)]
pub(crate) struct KeyEnds {
    keys: Mutex<HashMap<String, Weak<CancellationToken>>>,
}

/// The end of one key.
#[derive(Debug, Clone)]
pub(crate) struct KeyEnd {
    revoked: Arc<CancellationToken>,
    expires_at_ms: Option<i64>,
}

impl KeyEnds {
    fn keys(&self) -> MutexGuard<'_, HashMap<String, Weak<CancellationToken>>> {
        // Every change leaves the map whole.
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn of(&self, prefix: &str, expires_at_ms: Option<i64>) -> KeyEnd {
        let mut keys = self.keys();
        if keys.len() >= REMEMBERED_MAX {
            keys.retain(|_, key| key.strong_count() > 0);
        }
        let known = keys.get(prefix).and_then(Weak::upgrade);
        let revoked = known.unwrap_or_else(|| {
            let new = Arc::<CancellationToken>::default();
            keys.insert(prefix.to_owned(), Arc::downgrade(&new));
            new
        });
        KeyEnd {
            revoked,
            expires_at_ms,
        }
    }

    /// Ends everything that was opened with a key.
    pub(crate) fn revoke(&self, prefix: &str) {
        if let Some(key) = self.keys().remove(prefix).and_then(|key| key.upgrade()) {
            key.cancel();
        }
    }
}

impl KeyEnd {
    /// Waits until the key was revoked or has expired. Cancel safe.
    pub(crate) async fn reached(&self) {
        tokio::select! {
            () = self.revoked.cancelled() => {}
            () = self.expired() => {}
        }
    }

    /// Whether the key was revoked or has expired.
    pub(crate) fn is_over(&self) -> bool {
        let is_expired = self.expires_at_ms.is_some_and(|at| at <= now_ms());
        is_expired || self.revoked.is_cancelled()
    }

    async fn expired(&self) {
        let Some(at) = self.expires_at_ms else {
            return std::future::pending().await;
        };
        loop {
            let left = u64::try_from(at.saturating_sub(now_ms())).unwrap_or(0);
            if left == 0 {
                return;
            }
            let left = Duration::from_millis(left);
            tokio::time::sleep(left.min(LOOK_AGAIN)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_revoked_key_ends_for_all_who_hold_it_and_for_nobody_else() {
        let ends = KeyEnds::default();
        let (one, same, other) = (ends.of("a", None), ends.of("a", None), ends.of("b", None));
        assert!(!one.is_over());
        ends.revoke("a");
        assert!(one.is_over() && !other.is_over());
        one.reached().await;
        same.reached().await;
        let short = Duration::from_millis(20);
        assert!(tokio::time::timeout(short, other.reached()).await.is_err());
    }

    #[tokio::test]
    async fn an_expired_key_ends() {
        KeyEnds::default()
            .of("a", Some(now_ms() + 20))
            .reached()
            .await;
    }
}

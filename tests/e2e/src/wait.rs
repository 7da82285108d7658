//! Waiting for a condition, with a deadline.

use std::future::Future;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

const PAUSE: Duration = Duration::from_millis(20);
const PATIENCE: &str = "DAYFLY_E2E_PATIENCE";
const PATIENCE_MAX: u32 = 10;

/// A limit of time as this host may be held to. The gate runs on builders that are busy with other
/// things and lets everything take some times as long; the soak, on a quiet host, lets it not.
#[must_use]
pub fn patient(limit: Duration) -> Duration {
    limit * patience()
}

/// How many times as long things may take here.
#[must_use]
pub fn patience() -> u32 {
    let told = std::env::var(PATIENCE).ok();
    let times: u32 = told.and_then(|text| text.parse().ok()).unwrap_or(1);
    times.clamp(1, PATIENCE_MAX)
}

/// Asks again and again until the answer is there. Fails with `what` once `limit` has passed, which
/// is as [`patient`] as everything.
///
/// # Errors
/// When the condition did not come true in time.
pub async fn until<T, F, A>(what: &str, limit: Duration, mut ask: A) -> Result<T>
where
    A: FnMut() -> F,
    F: Future<Output = Option<T>>,
{
    let limit = patient(limit);
    let deadline = Instant::now() + limit;
    loop {
        if let Some(answer) = ask().await {
            return Ok(answer);
        }
        if Instant::now() > deadline {
            bail!("{what}: not within {limit:?}");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

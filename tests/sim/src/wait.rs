//! Waiting for what a simulated node does by itself.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

const PATIENCE: Duration = Duration::from_secs(20);
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// Looks until something is found.
///
/// # Errors
/// When it is not there in time.
pub async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> Result<T> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await {
            return Ok(found);
        }
        if Instant::now() > deadline {
            bail!("{what}: not within 20 s");
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Looks until something is so.
///
/// # Errors
/// When it is not in time.
pub async fn until_true(what: &str, mut is_true: impl AsyncFnMut() -> bool) -> Result<()> {
    until(what, async || is_true().await.then_some(())).await
}

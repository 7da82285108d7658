//! Waiting for a condition, with a deadline.

use std::future::Future;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

const PAUSE: Duration = Duration::from_millis(20);

/// Asks again and again until the answer is there. Fails with `what` once `limit` has passed.
///
/// # Errors
/// When the condition did not come true in time.
pub async fn until<T, F, A>(what: &str, limit: Duration, mut ask: A) -> Result<T>
where
    A: FnMut() -> F,
    F: Future<Output = Option<T>>,
{
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

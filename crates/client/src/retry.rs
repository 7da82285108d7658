//! Repeating what may be repeated.

use std::future::Future;

use crate::error::ClientError;
use crate::limits::RETRY_PAUSES;

/// Runs `attempt` until it succeeds, fails for good, or the pauses are used up.
///
/// Only for calls whose repetition changes nothing: the caller vouches for that.
pub(crate) async fn repeat<T, F>(mut attempt: impl FnMut() -> F) -> Result<T, ClientError>
where
    F: Future<Output = Result<T, ClientError>>,
{
    for pause in RETRY_PAUSES {
        match attempt().await {
            Err(error) if error.may_pass() => tokio::time::sleep(pause).await,
            outcome => return outcome,
        }
    }
    attempt().await
}

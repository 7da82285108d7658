//! Forks, and the choice among their children.

use dayfly_api::{ForkSandbox, Forked, PromoteSandbox, Promoted};

use crate::client::{Client, decode};
use crate::error::ClientError;
use crate::limits;
use crate::retry;
use crate::sandboxes::{IDEMPOTENCY_KEY, fresh_key};

impl Client {
    /// Makes children of a sandbox. At least one was made when this succeeds; the others are in
    /// the answer's `failures`.
    ///
    /// # Errors
    /// [`ClientError::Api`] when none was made. After [`ClientError::Timeout`] and
    /// [`ClientError::Lost`] children may exist; their time to live ends them.
    pub async fn fork_sandbox(
        &self,
        id: &str,
        request: &ForkSandbox,
    ) -> Result<Forked, ClientError> {
        let url = self.sandbox_address(id, &["fork"])?;
        let key = fresh_key()?;
        let answer = retry::repeat(|| {
            let call = self.http.post(url.clone());
            let call = call.header(IDEMPOTENCY_KEY, &key).json(request);
            self.call(call, limits::FORK_DEADLINE)
        })
        .await?;
        decode(&answer)
    }

    /// Keeps one child of a fork, and deletes the others when that is asked for. Never sent twice:
    /// the second answer would not name what the first one deleted.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn promote_sandbox(
        &self,
        id: &str,
        request: &PromoteSandbox,
    ) -> Result<Promoted, ClientError> {
        let url = self.sandbox_address(id, &["promote"])?;
        let call = self.http.post(url).json(request);
        decode(&self.call(call, limits::STATE_DEADLINE).await?)
    }
}

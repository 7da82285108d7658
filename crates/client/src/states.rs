//! What a sandbox's state can become.

use dayfly_api::{ChangeLifecycle, Lifecycle, RollbackSandbox, Sandbox, WakeSandbox};

use crate::client::{Client, decode};
use crate::error::ClientError;
use crate::limits;
use crate::retry;

impl Client {
    /// Stops the guest's processors. A paused sandbox is a success.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn pause_sandbox(&self, id: &str) -> Result<(), ClientError> {
        self.change_state(id, "pause").await
    }

    /// Lets a paused sandbox go on. A running one is a success.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn resume_sandbox(&self, id: &str) -> Result<(), ClientError> {
        self.change_state(id, "resume").await
    }

    /// Moves a sandbox to disk, until a call needs it. A hibernated one is a success.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn hibernate_sandbox(&self, id: &str) -> Result<(), ClientError> {
        self.change_state(id, "hibernate").await
    }

    /// Brings a hibernated sandbox back. A running one is a success.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn wake_sandbox(&self, id: &str) -> Result<(), ClientError> {
        self.change_state(id, "wake").await
    }

    /// The same with other environment variables, also of one that runs.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn wake_sandbox_with(
        &self,
        id: &str,
        request: &WakeSandbox,
    ) -> Result<(), ClientError> {
        let url = self.sandbox_address(id, &["wake"])?;
        retry::repeat(|| {
            let call = self.http.post(url.clone()).json(request);
            self.call(call, limits::STATE_DEADLINE)
        })
        .await?;
        Ok(())
    }

    async fn change_state(&self, id: &str, change: &str) -> Result<(), ClientError> {
        let url = self.sandbox_address(id, &[change])?;
        retry::repeat(|| self.call(self.http.post(url.clone()), limits::STATE_DEADLINE)).await?;
        Ok(())
    }

    /// Takes a sandbox back to a snapshot of its own. Never sent twice: what happened after a
    /// first rollback would be lost by a second.
    ///
    /// # Errors
    /// [`ClientError`]; after [`ClientError::Timeout`] and [`ClientError::Lost`] it may have
    /// happened.
    pub async fn rollback_sandbox(
        &self,
        id: &str,
        snapshot_id: &str,
    ) -> Result<Sandbox, ClientError> {
        let request = RollbackSandbox {
            snapshot_id: snapshot_id.to_owned(),
            env: None,
        };
        self.rollback_sandbox_with(id, &request).await
    }

    /// The same with other environment variables.
    ///
    /// # Errors
    /// As [`Client::rollback_sandbox`].
    pub async fn rollback_sandbox_with(
        &self,
        id: &str,
        request: &RollbackSandbox,
    ) -> Result<Sandbox, ClientError> {
        let url = self.sandbox_address(id, &["rollback"])?;
        let call = self.http.post(url).json(request);
        decode(&self.call(call, limits::STATE_DEADLINE).await?)
    }

    /// How long a sandbox lives.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn lifecycle(&self, id: &str) -> Result<Lifecycle, ClientError> {
        self.get_json(self.sandbox_address(id, &["lifecycle"])?)
            .await
    }

    /// Changes how long a sandbox lives; what is absent stays.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn set_lifecycle(
        &self,
        id: &str,
        change: &ChangeLifecycle,
    ) -> Result<Lifecycle, ClientError> {
        let url = self.sandbox_address(id, &["lifecycle"])?;
        let answer = retry::repeat(|| {
            let call = self.http.patch(url.clone()).json(change);
            self.call(call, limits::CALL_DEADLINE)
        })
        .await?;
        decode(&answer)
    }
}

//! Snapshots.

use dayfly_api::{CreateSnapshot, Snapshot, SnapshotList};

use crate::client::{Client, decode};
use crate::error::ClientError;
use crate::limits;
use crate::retry;
use crate::sandboxes::{IDEMPOTENCY_KEY, fresh_key};

impl Client {
    /// Takes a snapshot of a sandbox, which goes on.
    ///
    /// # Errors
    /// [`ClientError::Api`] when it was refused. After [`ClientError::Timeout`] and
    /// [`ClientError::Lost`] a snapshot may exist.
    pub async fn create_snapshot(
        &self,
        sandbox_id: &str,
        request: &CreateSnapshot,
    ) -> Result<Snapshot, ClientError> {
        let url = self.sandbox_address(sandbox_id, &["snapshots"])?;
        let key = fresh_key()?;
        let answer = retry::repeat(|| {
            let call = self.http.post(url.clone());
            let call = call.header(IDEMPOTENCY_KEY, &key).json(request);
            self.call(call, limits::STATE_DEADLINE)
        })
        .await?;
        decode(&answer)
    }

    /// Reads all snapshots of the key's project, newest first; of one sandbox when it is given.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn list_snapshots(
        &self,
        sandbox_id: Option<&str>,
    ) -> Result<Vec<Snapshot>, ClientError> {
        let mut url = self.address(&["v1", "snapshots"]);
        if let Some(id) = sandbox_id {
            url.query_pairs_mut().append_pair("sandbox_id", id);
        }
        let list: SnapshotList = self.get_json(url).await?;
        Ok(list.snapshots)
    }

    /// Reads one snapshot.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `not_found` when there is none.
    pub async fn get_snapshot(&self, id: &str) -> Result<Snapshot, ClientError> {
        self.get_json(self.snapshot_address(id)?).await
    }

    /// Deletes a snapshot. One that is gone already is a success.
    ///
    /// # Errors
    /// [`ClientError`]; the snapshot may still exist then.
    pub async fn delete_snapshot(&self, id: &str) -> Result<(), ClientError> {
        self.delete(self.snapshot_address(id)?).await
    }
}

//! The statements that look at rows of more than one project: finding whose a key is, and
//! repairing what a crash left. Nothing here may be called with a caller's wish.

use dayfly_types::{NodeId, ProjectId};

use super::key::RawKey;
use super::row::{RawSandbox, SandboxRow};
use super::{KeyRow, Store, StoreError};

const ENSURE_PROJECT: &str =
    "INSERT INTO projects (id, created_at_ms) VALUES ($1, $2) ON CONFLICT DO NOTHING";
const ENSURE_KEY: &str = "INSERT INTO api_keys \
    (hash, project_id, prefix, scopes, created_at_ms, expires_at_ms, revoked_at_ms) \
    VALUES ($1, $2, $3, $4, $5, $6, NULL) ON CONFLICT DO NOTHING";
const SELECT_KEY: &str = "SELECT * FROM api_keys WHERE hash = $1";
const REVOKE_OTHERS: &str = "UPDATE api_keys SET revoked_at_ms = $3 \
    WHERE prefix = $1 AND hash <> $2 AND revoked_at_ms IS NULL";
const RESTORE_KEY: &str = "UPDATE api_keys SET revoked_at_ms = NULL WHERE hash = $1";
const SELECT_ALIVE: &str = "SELECT * FROM sandboxes WHERE node_id = $1 AND deleted_at_ms IS NULL";
const PURGE_SANDBOXES: &str = "DELETE FROM sandboxes WHERE deleted_at_ms < $1";
const PURGE_KEYS: &str = "DELETE FROM idempotency_keys WHERE created_at_ms < $1";

/// The prefix of the operator's own key. No generated key can have it: theirs are longer.
const ADMIN_PREFIX: &str = "admin";

impl Store {
    /// Makes sure the project exists.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn ensure_project(&self, id: &ProjectId, now_ms: i64) -> Result<(), StoreError> {
        sqlx::query(ENSURE_PROJECT)
            .bind(id.as_str())
            .bind(now_ms)
            .execute(&self.writer)
            .await
            .map(drop)
            .map_err(StoreError::during("ensure a project"))
    }

    /// Makes sure the key exists. Its project must.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn ensure_key(&self, key: &KeyRow) -> Result<(), StoreError> {
        sqlx::query(ENSURE_KEY)
            .bind(&key.hash)
            .bind(key.project.as_str())
            .bind(&key.prefix)
            .bind(&key.scopes)
            .bind(key.created_at_ms)
            .bind(key.expires_at_ms)
            .execute(&self.writer)
            .await
            .map(drop)
            .map_err(StoreError::during("ensure a key"))
    }

    /// Makes `hash` the operator's key of the default project, and the only one of its kind: an
    /// operator who changes the key expects the old one to stop.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn ensure_admin_key(&self, hash: &str, now_ms: i64) -> Result<(), StoreError> {
        let project = ProjectId::default_project();
        self.ensure_project(&project, now_ms).await?;
        let key = KeyRow {
            hash: hash.to_owned(),
            project,
            prefix: ADMIN_PREFIX.to_owned(),
            scopes: "all".to_owned(),
            created_at_ms: now_ms,
            expires_at_ms: None,
            revoked_at_ms: None,
        };
        self.ensure_key(&key).await?;
        let failed = || StoreError::during("ensure the admin key");
        sqlx::query(RESTORE_KEY)
            .bind(hash)
            .execute(&self.writer)
            .await
            .map_err(failed())?;
        sqlx::query(REVOKE_OTHERS)
            .bind(ADMIN_PREFIX)
            .bind(hash)
            .bind(now_ms)
            .execute(&self.writer)
            .await
            .map(drop)
            .map_err(failed())
    }

    /// The key with this hash, whoever owns it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn key_by_hash(&self, hash: &str) -> Result<Option<KeyRow>, StoreError> {
        let raw: Option<RawKey> = sqlx::query_as(SELECT_KEY)
            .bind(hash)
            .fetch_optional(&self.reader)
            .await
            .map_err(StoreError::during("look up a key"))?;
        raw.map(KeyRow::try_from).transpose()
    }

    /// Every row that says a node should have something.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn sandboxes_of_node(&self, node: &NodeId) -> Result<Vec<SandboxRow>, StoreError> {
        let raw: Vec<RawSandbox> = sqlx::query_as(SELECT_ALIVE)
            .bind(node.as_str())
            .fetch_all(&self.reader)
            .await
            .map_err(StoreError::during("list a node's sandboxes"))?;
        raw.into_iter().map(SandboxRow::try_from).collect()
    }

    /// Removes deleted sandboxes and idempotency keys from before these times.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn purge(
        &self,
        deleted_before_ms: i64,
        keys_before_ms: i64,
    ) -> Result<(), StoreError> {
        for (statement, before) in [
            (PURGE_SANDBOXES, deleted_before_ms),
            (PURGE_KEYS, keys_before_ms),
        ] {
            sqlx::query(statement)
                .bind(before)
                .execute(&self.writer)
                .await
                .map_err(StoreError::during("purge old rows"))?;
        }
        Ok(())
    }
}

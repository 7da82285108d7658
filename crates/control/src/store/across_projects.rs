//! The statements that look at rows of more than one project: finding whose a key or a
//! link is, and repairing what a crash left. Nothing here may be called with a caller's wish.

use std::collections::HashSet;

use dayfly_types::{NodeId, ProjectId, SandboxId, TemplateName};

use super::key::{KnownKey, RawKey};
use super::ordered_templates::{OrderRow, RawOrder};
use super::port_links::{PortLinkRow, RawPortLink, links_with_sandboxes};
use super::project_state::RawState;
use super::projects::RawLimits;
use super::row::{RawSandbox, SandboxRow};
use super::{Cursor, KeyRow, Store, StoreError};
use crate::tenancy::scope::{Reach, Scopes};

const ENSURE_PROJECT: &str =
    "INSERT INTO projects (id, created_at_ms) VALUES ($1, $2) ON CONFLICT DO NOTHING";
const ENSURE_KEY: &str = "INSERT INTO api_keys \
    (hash, project_id, prefix, scopes, label, sandbox_id, created_at_ms, expires_at_ms, \
    revoked_at_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, NULL) ON CONFLICT DO NOTHING";
// The project's limits and state come along, because every request needs them.
const SELECT_KEY: &str = "SELECT api_keys.*, projects.sandboxes_max, projects.vcpus_max, \
    projects.memory_mb_max, projects.snapshot_mb_max, projects.volume_mb_max, \
    projects.requests_per_second, projects.disk_mb_max, projects.keeps_output, projects.state, \
    projects.state_reason FROM api_keys \
    JOIN projects ON projects.id = api_keys.project_id WHERE api_keys.hash = $1";
const REVOKE_OTHERS: &str = "UPDATE api_keys SET revoked_at_ms = $3 \
    WHERE prefix = $1 AND hash <> $2 AND revoked_at_ms IS NULL";
// Touches nothing where there is nothing to do: so a full disk keeps nobody from starting.
const RESTORE_KEY: &str = "UPDATE api_keys SET revoked_at_ms = NULL \
    WHERE hash = $1 AND revoked_at_ms IS NOT NULL";
pub(super) const SELECT_ALIVE: &str = "SELECT * FROM sandboxes WHERE node_id = $1 AND deleted_at_ms IS NULL \
    AND (created_at_ms, id) > ($2, $3) ORDER BY created_at_ms, id LIMIT $4";
const SELECT_UNCONFIRMED: &str = "SELECT * FROM sandboxes WHERE node_id = $1 \
    AND deleted_at_ms IS NULL \
    AND (egress_confirmed <> egress_epoch OR egress_reserved <> egress_epoch) \
    AND state <> 'deleting'";
const SELECT_ORDER_NAMES: &str = "SELECT node_template FROM ordered_templates";
const SELECT_GOING_ORDERS: &str = "SELECT * FROM ordered_templates WHERE is_deleting = 1";
const PURGE_SANDBOXES: &str = "DELETE FROM sandboxes WHERE deleted_at_ms < $1";
const PURGE_KEYS: &str = "DELETE FROM idempotency_keys WHERE created_at_ms < $1";
const SELECT_PORT_LINKS: &str = "SELECT port_links.* FROM port_links \
    JOIN sandboxes ON sandboxes.id = port_links.sandbox_id \
    JOIN projects ON projects.id = port_links.project_id AND projects.state = 'active' \
    WHERE port_links.sandbox_id = $1 AND port_links.port = $2 AND port_links.expires_at_ms > $3 \
    AND sandboxes.deleted_at_ms IS NULL AND sandboxes.state <> 'deleting' \
    AND NOT EXISTS (SELECT 1 FROM api_keys WHERE api_keys.prefix = port_links.made_by \
    AND api_keys.sign_in IS NOT NULL AND api_keys.sign_in <> $4)";
// An operator's key makes keys of other projects.
const REVOKE_MADE: &str = "UPDATE api_keys SET revoked_at_ms = $2 \
    WHERE revoked_at_ms IS NULL AND prefix IN (WITH RECURSIVE made(prefix) AS \
    (SELECT prefix FROM api_keys WHERE made_by = $1 \
    UNION SELECT api_keys.prefix FROM api_keys JOIN made ON api_keys.made_by = made.prefix) \
    SELECT prefix FROM made) RETURNING prefix";
const DELETE_MADE_LINKS: &str = "DELETE FROM port_links \
    WHERE made_by IN (WITH RECURSIVE made(prefix) AS \
    (SELECT CAST($1 AS TEXT) AS prefix \
    UNION SELECT api_keys.prefix FROM api_keys JOIN made ON api_keys.made_by = made.prefix) \
    SELECT prefix FROM made) RETURNING sandbox_id, id";
const REVOKE_SIGN_INS: &str = "UPDATE api_keys SET revoked_at_ms = $2 \
    WHERE sign_in IS NOT NULL AND sign_in <> $1 AND revoked_at_ms IS NULL \
    AND expires_at_ms > $2";
const DELETE_LINKS_OF_SIGN_INS: &str = "DELETE FROM port_links WHERE made_by IN \
    (SELECT prefix FROM api_keys WHERE sign_in IS NOT NULL AND sign_in <> $1)";
// Links to files: no key of theirs made another.
const PURGE_FILE_LINKS: &str = "DELETE FROM api_keys WHERE file IS NOT NULL AND expires_at_ms < $1";
// What such a key made ended no later.
const PURGE_SIGN_INS: &str =
    "DELETE FROM api_keys WHERE sign_in IS NOT NULL AND expires_at_ms < $1";
const PURGE_PORT_LINKS: &str = "DELETE FROM port_links WHERE expires_at_ms < $1";
const PURGE_EVENTS: &str = "DELETE FROM events WHERE at_ms < $1";
const PURGE_AUDIT: &str = "DELETE FROM audit_records WHERE at_ms < $1";
const PURGE_USAGE: &str = "DELETE FROM usage_hours WHERE hour_ms < $1";
const FREE_OLD_AUDIT: &str = "UPDATE projects SET audit_bytes = audit_bytes - CAST((SELECT \
    COALESCE(SUM(audit_records.bytes), 0) FROM audit_records \
    WHERE audit_records.project_id = projects.id AND audit_records.at_ms < $1) AS BIGINT) \
    WHERE id IN (SELECT project_id FROM audit_records WHERE at_ms < $1)";

/// The prefix of the operator's own key. No generated key can have it: theirs are longer.
pub(crate) const ADMIN_PREFIX: &str = "admin";

impl Store {
    /// What the node calls all that are ordered, or on their way out, whoever has them.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn order_names(&self) -> Result<HashSet<TemplateName>, StoreError> {
        let names: Vec<String> = sqlx::query_scalar(SELECT_ORDER_NAMES)
            .fetch_all(&self.reader)
            .await
            .map_err(StoreError::during("list all templates of projects"))?;
        let corrupt = StoreError::Corrupt {
            table: "ordered_templates",
            column: "node_template",
        };
        let names: Result<_, _> = names.iter().map(|name| TemplateName::parse(name)).collect();
        names.map_err(|_| corrupt)
    }

    /// Templates that the node has still to give up.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn going_orders(&self) -> Result<Vec<OrderRow>, StoreError> {
        let raw: Vec<RawOrder> = sqlx::query_as(SELECT_GOING_ORDERS)
            .fetch_all(&self.reader)
            .await
            .map_err(StoreError::during("list templates that go"))?;
        raw.into_iter().map(OrderRow::try_from).collect()
    }

    /// Makes sure the project exists.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn ensure_project(&self, id: &ProjectId, now_ms: i64) -> Result<(), StoreError> {
        let mut writing = self.writer.begin("ensure a project").await?;
        let query = sqlx::query(ENSURE_PROJECT).bind(id.as_str()).bind(now_ms);
        writing.execute(query).await?;
        writing.commit().await
    }

    /// Makes sure the key exists. Its project must.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn ensure_key(&self, key: &KeyRow) -> Result<(), StoreError> {
        let mut writing = self.writer.begin("ensure a key").await?;
        let query = sqlx::query(ENSURE_KEY)
            .bind(&key.hash)
            .bind(key.project.as_str())
            .bind(&key.prefix)
            .bind(key.reach.scopes.to_string())
            .bind(&key.label)
            .bind(key.reach.sandbox.as_ref().map(SandboxId::as_str))
            .bind(key.created_at_ms)
            .bind(key.expires_at_ms);
        writing.execute(query).await?;
        writing.commit().await
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
            reach: Reach::everywhere(Scopes::operator()),
            label: "the operator's own".to_owned(),
            made_by: None,
            person: None,
            created_at_ms: now_ms,
            expires_at_ms: None,
            revoked_at_ms: None,
        };
        self.ensure_key(&key).await?;
        let mut writing = self.writer.begin("ensure the admin key").await?;
        let restore = sqlx::query(RESTORE_KEY).bind(hash);
        writing.execute(restore).await?;
        let revoke = sqlx::query(REVOKE_OTHERS)
            .bind(ADMIN_PREFIX)
            .bind(hash)
            .bind(now_ms);
        writing.execute(revoke).await?;
        writing.commit().await
    }

    /// Ends what people got by signing in under other settings than those with this digest, and what
    /// they made with it. Before anything is served.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn end_other_sign_ins(&self, digest: &str, now_ms: i64) -> Result<(), StoreError> {
        let mut writing = self.writer.begin("end what people signed in for").await?;
        let links = sqlx::query(DELETE_LINKS_OF_SIGN_INS).bind(digest);
        writing.execute(links).await?;
        let keys = sqlx::query(REVOKE_SIGN_INS).bind(digest).bind(now_ms);
        writing.execute(keys).await?;
        writing.commit().await
    }

    /// The key with this hash, whoever owns it, and what its project may use.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn key_by_hash(&self, hash: &str) -> Result<Option<KnownKey>, StoreError> {
        let raw: Option<RawKnownKey> = sqlx::query_as(SELECT_KEY)
            .bind(hash)
            .fetch_optional(&self.reader)
            .await
            .map_err(StoreError::during("look up a key"))?;
        let known = raw.map(|raw| {
            let key = KeyRow::try_from(raw.key)?;
            let limits = raw.limits.into();
            let state = raw.state.try_into()?;
            Ok(KnownKey { key, limits, state })
        });
        known.transpose()
    }

    /// Revokes every key that a key made, and that those made, and says which were not yet.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn revoke_made_keys(
        &self,
        maker: &str,
        now_ms: i64,
    ) -> Result<Vec<String>, StoreError> {
        let mut writing = self.writer.begin("revoke what a key made").await?;
        let query = sqlx::query_as(REVOKE_MADE).bind(maker).bind(now_ms);
        let revoked: Vec<(String,)> = writing.fetch_all(query).await?;
        writing.commit().await?;
        Ok(revoked.into_iter().map(|(prefix,)| prefix).collect())
    }

    /// Deletes every link that a key made, or one that it made, and says which.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn delete_made_links(
        &self,
        maker: &str,
    ) -> Result<Vec<(SandboxId, String)>, StoreError> {
        let operation = "delete the links that a key made";
        let mut writing = self.writer.begin(operation).await?;
        let query = sqlx::query_as(DELETE_MADE_LINKS).bind(maker);
        let deleted: Vec<(String, String)> = writing.fetch_all(query).await?;
        writing.commit().await?;
        links_with_sandboxes(deleted)
    }

    /// Rows that say a node should have something, oldest first: from the beginning or behind a place,
    /// at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn sandboxes_of_node(
        &self,
        node: &NodeId,
        after: Option<&Cursor>,
        limit: i64,
    ) -> Result<Vec<SandboxRow>, StoreError> {
        let raw: Vec<RawSandbox> = sqlx::query_as(SELECT_ALIVE)
            .bind(node.as_str())
            .bind(after.map_or(i64::MIN, |cursor| cursor.created_at_ms))
            .bind(after.map_or("", |cursor| cursor.id.as_str()))
            .bind(limit)
            .fetch_all(&self.reader)
            .await
            .map_err(StoreError::during("list a node's sandboxes"))?;
        raw.into_iter().map(SandboxRow::try_from).collect()
    }

    /// Every row whose network policy the node has not confirmed.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn unconfirmed_networks(&self, node: &NodeId) -> Result<Vec<SandboxRow>, StoreError> {
        let raw: Vec<RawSandbox> = sqlx::query_as(SELECT_UNCONFIRMED)
            .bind(node.as_str())
            .fetch_all(&self.reader)
            .await
            .map_err(StoreError::during("list unconfirmed networks"))?;
        raw.into_iter().map(SandboxRow::try_from).collect()
    }

    /// What may let a visitor in who has no key, and so no project. Not what people made who signed in
    /// under other settings than those with this digest.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn port_links_for_visitor(
        &self,
        sandbox: &SandboxId,
        port: u16,
        now_ms: i64,
        sign_in: &str,
    ) -> Result<Vec<PortLinkRow>, StoreError> {
        let raw: Vec<RawPortLink> = sqlx::query_as(SELECT_PORT_LINKS)
            .bind(sandbox.as_str())
            .bind(i64::from(port))
            .bind(now_ms)
            .bind(sign_in)
            .fetch_all(&self.reader)
            .await
            .map_err(StoreError::during("look up links"))?;
        raw.into_iter().map(PortLinkRow::try_from).collect()
    }

    /// Removes deleted sandboxes, idempotency keys and expired links from before these times, and
    /// events, audit records and usage that are old.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn purge(&self, before: PurgeBefore) -> Result<(), StoreError> {
        let (keys, audit) = (before.keys_ms, before.audit_ms);
        for (statements, before) in [
            (&[PURGE_SANDBOXES][..], before.deleted_ms),
            (&[PURGE_KEYS], keys),
            (&[PURGE_PORT_LINKS, PURGE_FILE_LINKS, PURGE_SIGN_INS], keys),
            (&[PURGE_EVENTS], before.events_ms),
            (&[FREE_OLD_AUDIT, PURGE_AUDIT], audit),
            (&[PURGE_USAGE], before.usage_ms),
        ] {
            // Each by itself, so that nobody waits for all of them.
            let mut writing = self.writer.begin("purge old rows").await?;
            for statement in statements {
                let query = sqlx::query(*statement).bind(before);
                writing.execute(query).await?;
            }
            writing.commit().await?;
        }
        Ok(())
    }
}

/// Before when each kind of row is old.
#[derive(Debug, Clone, Copy)]
pub struct PurgeBefore {
    pub deleted_ms: i64,
    pub keys_ms: i64,
    pub events_ms: i64,
    pub audit_ms: i64,
    pub usage_ms: i64,
}

#[derive(Debug, sqlx::FromRow)]
struct RawKnownKey {
    #[sqlx(flatten)]
    key: RawKey,
    #[sqlx(flatten)]
    limits: RawLimits,
    #[sqlx(flatten)]
    state: RawState,
}

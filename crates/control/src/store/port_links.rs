//! Who may reach a port of a sandbox without a key.

use dayfly_types::{ProjectId, SandboxId};
use sqlx::FromRow;

use super::{Store, StoreError};
use crate::tenancy::key::KeyHash;

// A maker that was revoked meanwhile makes nothing: what it made may have been ended already.
const INSERT: &str = "INSERT INTO port_links (id, project_id, sandbox_id, port, token_hash, \
    created_at_ms, expires_at_ms, made_by) SELECT $1, $2, $3, $4, $5, $6, $7, $8 \
    WHERE CAST($8 AS TEXT) IS NULL OR EXISTS (SELECT 1 FROM api_keys \
    WHERE prefix = $8 AND revoked_at_ms IS NULL)";
const SELECT_OF_SANDBOX: &str = "SELECT * FROM port_links WHERE project_id = $1 \
    AND sandbox_id = $2 AND expires_at_ms > $3 ORDER BY port, created_at_ms, id";
const SELECT: &str = "SELECT * FROM port_links WHERE project_id = $1 AND sandbox_id = $2 \
    AND port = $3 AND expires_at_ms > $4 ORDER BY created_at_ms, id";
const DELETE: &str = "DELETE FROM port_links WHERE project_id = $1 AND sandbox_id = $2 \
    AND port = $3 AND id = $4";
const IS_KNOWN: &str = "SELECT 1 FROM port_links WHERE project_id = $1 AND id = $2";

/// A port of a sandbox of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortOf {
    pub project: ProjectId,
    pub sandbox: SandboxId,
    pub port: u16,
}

/// A link, without its token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortLinkRow {
    pub id: String,
    pub project: ProjectId,
    pub port: u16,
    /// The prefix of the key that made it.
    pub made_by: Option<String>,
    /// Absent when anybody may use it.
    pub token_hash: Option<KeyHash>,
    pub created_at_ms: i64,
    pub expires_at_ms: i64,
}

#[derive(Debug, FromRow)]
pub(super) struct RawPortLink {
    id: String,
    project_id: String,
    port: i64,
    made_by: Option<String>,
    token_hash: Option<String>,
    created_at_ms: i64,
    expires_at_ms: i64,
}

impl TryFrom<RawPortLink> for PortLinkRow {
    type Error = StoreError;

    fn try_from(raw: RawPortLink) -> Result<Self, StoreError> {
        // A hash that cannot be read must not look like a link without one, which is public.
        let token_hash = raw.token_hash.as_deref().map(KeyHash::from_hex).transpose();
        let corrupt = |column| StoreError::Corrupt {
            table: "port_links",
            column,
        };
        Ok(Self {
            id: raw.id,
            project: ProjectId::parse(&raw.project_id).map_err(|_| corrupt("project_id"))?,
            port: u16::try_from(raw.port).map_err(|_| corrupt("port"))?,
            made_by: raw.made_by,
            token_hash: token_hash.map_err(|_| corrupt("token_hash"))?,
            created_at_ms: raw.created_at_ms,
            expires_at_ms: raw.expires_at_ms,
        })
    }
}

/// Links by id, each with its sandbox.
pub(super) fn links_with_sandboxes(
    found: Vec<(String, String)>,
) -> Result<Vec<(SandboxId, String)>, StoreError> {
    let corrupt = |_| StoreError::Corrupt {
        table: "port_links",
        column: "sandbox_id",
    };
    let parsed = found
        .into_iter()
        .map(|(sandbox, link)| Ok((SandboxId::parse(&sandbox).map_err(corrupt)?, link)));
    parsed.collect()
}

impl Store {
    /// Says whether its maker may still be used; else there is no link.
    ///
    /// # Errors
    /// [`StoreError`], also when there is no such sandbox.
    pub async fn insert_port_link(
        &self,
        sandbox: &SandboxId,
        link: &PortLinkRow,
    ) -> Result<bool, StoreError> {
        let operation = "write a link";
        let mut writing = self.writer.begin_in_turn(&link.project, operation).await?;
        let query = sqlx::query(INSERT)
            .bind(&link.id)
            .bind(link.project.as_str())
            .bind(sandbox.as_str())
            .bind(i64::from(link.port))
            .bind(link.token_hash.map(KeyHash::to_hex))
            .bind(link.created_at_ms)
            .bind(link.expires_at_ms)
            .bind(&link.made_by);
        let rows = writing.execute(query).await?;
        writing.commit().await?;
        Ok(rows > 0)
    }

    /// The links of all ports of a sandbox that have not expired, by port, oldest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn port_links_of_sandbox(
        &self,
        project: &ProjectId,
        sandbox: &SandboxId,
        now_ms: i64,
    ) -> Result<Vec<PortLinkRow>, StoreError> {
        let raw: Vec<RawPortLink> = sqlx::query_as(SELECT_OF_SANDBOX)
            .bind(project.as_str())
            .bind(sandbox.as_str())
            .bind(now_ms)
            .fetch_all(&self.reader)
            .await
            .map_err(StoreError::during("list links"))?;
        raw.into_iter().map(PortLinkRow::try_from).collect()
    }

    /// The links of a port that have not expired, oldest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn port_links(
        &self,
        of: &PortOf,
        now_ms: i64,
    ) -> Result<Vec<PortLinkRow>, StoreError> {
        let raw: Vec<RawPortLink> = sqlx::query_as(SELECT)
            .bind(of.project.as_str())
            .bind(of.sandbox.as_str())
            .bind(i64::from(of.port))
            .bind(now_ms)
            .fetch_all(&self.reader)
            .await
            .map_err(StoreError::during("list links"))?;
        raw.into_iter().map(PortLinkRow::try_from).collect()
    }

    /// Says whether there was one.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn delete_port_link(&self, of: &PortOf, id: &str) -> Result<bool, StoreError> {
        let operation = "delete a link";
        let mut writing = self.writer.begin_in_turn(&of.project, operation).await?;
        let query = sqlx::query(DELETE)
            .bind(of.project.as_str())
            .bind(of.sandbox.as_str())
            .bind(i64::from(of.port))
            .bind(id);
        let rows = writing.execute(query).await?;
        writing.commit().await?;
        // As for a key: what is told to be shut must be, as every reader sees it.
        let left: Option<(i64,)> = sqlx::query_as(IS_KNOWN)
            .bind(of.project.as_str())
            .bind(id)
            .fetch_optional(&self.reader)
            .await
            .map_err(StoreError::during("read a link again"))?;
        match left {
            Some(_) if rows > 0 => Err(StoreError::NotKept { operation }),
            Some(_) | None => Ok(rows > 0),
        }
    }
}

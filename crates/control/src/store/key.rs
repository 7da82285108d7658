//! A row of `api_keys`.

use dayfly_types::ProjectId;
use sqlx::FromRow;

use super::StoreError;

/// A key, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    /// SHA-256 of the key, in hexadecimal.
    pub hash: String,
    pub project: ProjectId,
    pub prefix: String,
    pub scopes: String,
    pub created_at_ms: i64,
    pub expires_at_ms: Option<i64>,
    pub revoked_at_ms: Option<i64>,
}

#[derive(Debug, FromRow)]
pub(super) struct RawKey {
    hash: String,
    project_id: String,
    prefix: String,
    scopes: String,
    created_at_ms: i64,
    expires_at_ms: Option<i64>,
    revoked_at_ms: Option<i64>,
}

impl TryFrom<RawKey> for KeyRow {
    type Error = StoreError;

    fn try_from(raw: RawKey) -> Result<Self, StoreError> {
        let project = ProjectId::parse(&raw.project_id).map_err(|_| StoreError::Corrupt {
            table: "api_keys",
            column: "project_id",
        })?;
        Ok(Self {
            hash: raw.hash,
            project,
            prefix: raw.prefix,
            scopes: raw.scopes,
            created_at_ms: raw.created_at_ms,
            expires_at_ms: raw.expires_at_ms,
            revoked_at_ms: raw.revoked_at_ms,
        })
    }
}

//! Who did what in a project.

use dayfly_types::ProjectId;
use sqlx::FromRow;

use super::{Store, StoreError};

const SELECT: &str = "SELECT seq, at_ms, key_prefix, request_id, operation, subject, status, \
    detail FROM audit_records WHERE project_id = $1 AND seq < $2 \
    AND ($3 = '' OR subject = $3) ORDER BY seq DESC LIMIT $4";

/// One thing that somebody did, or tried to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEvent {
    pub project: ProjectId,
    pub at_ms: i64,
    pub key_prefix: String,
    pub request_id: String,
    /// Method and path, as the request named them.
    pub operation: String,
    /// The sandbox, volume, snapshot or key that it was about.
    pub subject: Option<String>,
    pub status: u16,
    /// JSON.
    pub detail: String,
}

/// An entry as it was written.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct AuditRow {
    pub seq: i64,
    pub at_ms: i64,
    pub key_prefix: String,
    pub request_id: String,
    pub operation: String,
    pub subject: Option<String>,
    pub status: i64,
    pub detail: String,
}

impl Store {
    /// Entries before `before`, newest first, at most `limit`; with a subject only those about it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn audit(
        &self,
        project: &ProjectId,
        before: i64,
        subject: Option<&str>,
        limit: i64,
    ) -> Result<Vec<AuditRow>, StoreError> {
        sqlx::query_as(SELECT)
            .bind(project.as_str())
            .bind(before)
            .bind(subject.unwrap_or_default())
            .bind(limit)
            .fetch_all(&self.reader)
            .await
            .map_err(StoreError::during("read the audit record"))
    }
}

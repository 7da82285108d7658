//! Who did what in a project.

use dayfly_types::ProjectId;
use sqlx::FromRow;

use super::{Store, StoreError};

const SELECT: &str = "SELECT seq, at_ms, key_prefix, request_id, operation, subject, status, \
    detail FROM audit_records WHERE project_id = $1 AND seq < $2 \
    AND ($3 = '' OR subject = $3) AND at_ms BETWEEN $4 AND $5 ORDER BY seq DESC LIMIT $6";

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

/// Which entries are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditPage<'a> {
    /// Only those whose number is below this one.
    pub before: i64,
    /// Only those about this.
    pub subject: Option<&'a str>,
    /// Only those of this time or later.
    pub since_ms: i64,
    /// Only those of this time or earlier.
    pub until_ms: i64,
    /// At most so many.
    pub limit: i64,
}

impl AuditPage<'_> {
    /// The newest, whatever they are about.
    #[must_use]
    pub const fn newest(limit: i64) -> Self {
        Self {
            before: i64::MAX,
            subject: None,
            since_ms: i64::MIN,
            until_ms: i64::MAX,
            limit,
        }
    }
}

impl Store {
    /// Entries of a project, newest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn audit(
        &self,
        project: &ProjectId,
        page: AuditPage<'_>,
    ) -> Result<Vec<AuditRow>, StoreError> {
        sqlx::query_as(SELECT)
            .bind(project.as_str())
            .bind(page.before)
            .bind(page.subject.unwrap_or_default())
            .bind(page.since_ms)
            .bind(page.until_ms)
            .bind(page.limit)
            .fetch_all(&self.reader)
            .await
            .map_err(StoreError::during("read the audit record"))
    }
}

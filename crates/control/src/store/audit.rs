//! Who did what in a project.

use dayfly_types::ProjectId;
use sqlx::FromRow;

use super::{Store, StoreError};

// One for each way to look, so that each has an index: a condition that may be absent has none.
const BY_NUMBER: &str = "SELECT project_id, seq, at_ms, key_prefix, request_id, operation, subject, \
    status, detail, client FROM audit_records WHERE project_id = $1 AND seq < $2 \
    AND at_ms BETWEEN $4 AND $5 ORDER BY seq DESC LIMIT $3";
const BY_SUBJECT: &str = "SELECT project_id, seq, at_ms, key_prefix, request_id, operation, subject, \
    status, detail, client FROM audit_records WHERE project_id = $1 AND seq < $2 AND subject = $6 \
    AND at_ms BETWEEN $4 AND $5 ORDER BY seq DESC LIMIT $3";
// The numbers first: those of a span are in the index, in the order of time, which is not always
// theirs. The sums keep the index of numbers from being taken, by which every entry that is newer or
// older than the span would be read.
const BY_TIME: &str = "SELECT project_id, seq, at_ms, key_prefix, request_id, operation, subject, \
    status, detail, client FROM audit_records WHERE project_id = $1 \
    AND seq IN (SELECT seq FROM audit_records WHERE project_id = $1 AND at_ms BETWEEN $4 AND $5 AND seq + 0 < $2 \
    ORDER BY seq + 0 DESC LIMIT $3) ORDER BY seq DESC";
const COUNT_OF_SPAN: &str = "SELECT COUNT(*) FROM (SELECT seq FROM audit_records \
    WHERE project_id = $1 AND at_ms BETWEEN $2 AND $3 LIMIT $4) AS of_span";
/// Entries of a span that are sorted for a page of it. In a longer one a page is soon found by
/// number.
const SPAN_SORTED_MAX: i64 = 10_000;

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
    /// The address that asked.
    pub client: Option<String>,
}

/// An entry as it was written.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct AuditRow {
    pub project_id: String,
    pub seq: i64,
    pub at_ms: i64,
    pub key_prefix: String,
    pub request_id: String,
    pub operation: String,
    pub subject: Option<String>,
    pub status: i64,
    pub detail: String,
    pub client: Option<String>,
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

    const fn is_of_all_time(&self) -> bool {
        self.since_ms == i64::MIN && self.until_ms == i64::MAX
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
        self.audit_with(project, page, SPAN_SORTED_MAX).await
    }

    async fn audit_with(
        &self,
        project: &ProjectId,
        page: AuditPage<'_>,
        sorted_max: i64,
    ) -> Result<Vec<AuditRow>, StoreError> {
        let statement = match page.subject {
            Some(_) => BY_SUBJECT,
            None if page.is_of_all_time() => BY_NUMBER,
            None if self.is_short_span(project, page, sorted_max).await? => BY_TIME,
            None => BY_NUMBER,
        };
        let mut query = sqlx::query_as(statement)
            .bind(project.as_str())
            .bind(page.before)
            .bind(page.limit)
            .bind(page.since_ms)
            .bind(page.until_ms);
        if let Some(subject) = page.subject {
            query = query.bind(subject);
        }
        query
            .fetch_all(&self.reader)
            .await
            .map_err(StoreError::during("read the audit record"))
    }

    async fn is_short_span(
        &self,
        project: &ProjectId,
        page: AuditPage<'_>,
        sorted_max: i64,
    ) -> Result<bool, StoreError> {
        let (count,): (i64,) = sqlx::query_as(COUNT_OF_SPAN)
            .bind(project.as_str())
            .bind(page.since_ms)
            .bind(page.until_ms)
            .bind(sorted_max)
            .fetch_one(&self.reader)
            .await
            .map_err(StoreError::during("count a part of the audit record"))?;
        Ok(count < sorted_max)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use sqlx::AssertSqlSafe;

    use super::*;

    /// How the database goes about a statement.
    pub(in crate::store) async fn plan(store: &Store, statement: &str) -> String {
        let explained = format!("EXPLAIN QUERY PLAN {statement}");
        let steps: Vec<(i64, i64, i64, String)> = sqlx::query_as(AssertSqlSafe(explained))
            .fetch_all(&store.reader)
            .await
            .unwrap();
        let steps = steps.into_iter().map(|(_, _, _, step)| step);
        steps.collect::<Vec<_>>().join("; ")
    }

    #[tokio::test]
    async fn every_look_at_the_record_has_an_index() {
        let place = tempfile::tempdir().unwrap();
        let store = Store::open(&place.path().join("database")).await.unwrap();
        let number = "sqlite_autoindex_audit_records_1 (project_id=? AND seq";
        let time = "COVERING INDEX audit_records_by_time (project_id=? AND at_ms>? AND at_ms<?)";
        let subject = "audit_records_by_subject (project_id=? AND subject=? AND seq<?)";
        for (statement, wanted) in [
            (BY_NUMBER, vec![number]),
            (BY_TIME, vec![time, number]),
            (COUNT_OF_SPAN, vec![time]),
            (BY_SUBJECT, vec![subject]),
        ] {
            let plan = plan(&store, statement).await;
            assert!(!plan.contains("SCAN audit_records"), "{plan}");
            for index in wanted {
                assert!(plan.contains(index), "{index}: {plan}");
            }
        }
    }

    #[tokio::test]
    async fn a_long_span_has_the_entries_that_a_short_one_has() {
        let place = tempfile::tempdir().unwrap();
        let store = Store::open(&place.path().join("database")).await.unwrap();
        let project = ProjectId::default_project();
        store.ensure_project(&project, 1).await.unwrap();
        let entries: Vec<AuditEvent> = (0..20).map(entry).collect();
        store.append_audit(&entries, 1 << 30).await.unwrap();
        let times = async |since_ms, until_ms, sorted_max| {
            let page = AuditPage {
                since_ms,
                until_ms,
                ..AuditPage::newest(3)
            };
            let is_short = store.is_short_span(&project, page, sorted_max).await;
            let rows = store.audit_with(&project, page, sorted_max).await.unwrap();
            let times: Vec<i64> = rows.iter().map(|row| row.at_ms).collect();
            (is_short.unwrap(), times)
        };
        assert_eq!(times(5, 8, 5).await, (true, vec![8, 7, 6]));
        assert_eq!(times(5, 8, 4).await, (false, vec![8, 7, 6]));
        assert_eq!(times(0, 1, 5).await, (true, vec![1, 0]));
        assert_eq!(times(0, 1, 2).await, (false, vec![1, 0]));
    }

    fn entry(at_ms: i64) -> AuditEvent {
        AuditEvent {
            project: ProjectId::default_project(),
            at_ms,
            key_prefix: String::new(),
            request_id: String::new(),
            operation: String::new(),
            subject: None,
            status: 200,
            detail: "{}".to_owned(),
            client: None,
        }
    }
}

//! What an operator sees of all projects. These statements name no project, so only what has asked
//! for the operator's scope may call them: [`crate::tenancy::whose`].

use std::fmt;

use dayfly_types::ProjectId;

use super::key::{KeyPlace, RawKey};
use super::row::RawSandbox;
use super::{
    AuditPage, AuditRow, Cursor, EventRow, HourSpan, KeyRow, SandboxRow, Store, StoreError,
    UsageHourRow,
};

const SANDBOXES: &str = "SELECT * FROM sandboxes WHERE deleted_at_ms IS NULL \
    AND (created_at_ms, id) > ($1, $2) ORDER BY created_at_ms, id LIMIT $3";
const WITH_SANDBOXES: &str = "SELECT DISTINCT project_id FROM sandboxes \
    WHERE deleted_at_ms IS NULL ORDER BY project_id";
const KEYS: &str = "SELECT * FROM api_keys WHERE revoked_at_ms IS NULL \
    AND (expires_at_ms IS NULL OR expires_at_ms > $1) AND (created_at_ms, prefix) > ($2, $3) \
    ORDER BY created_at_ms, prefix LIMIT $4";
const EVENTS: &str = "SELECT project_id, number AS seq, at_ms, sandbox_id, state, reason \
    FROM events WHERE number > $1 ORDER BY number LIMIT $2";
const LAST_EVENT: &str = "SELECT last FROM event_numbers";
/// Gives out the number of the next event among all, in the transaction of what it tells of.
pub(super) const NEXT_EVENT: &str = "UPDATE event_numbers SET last = last + 1";
const AUDIT: &str = "SELECT project_id, seq, at_ms, key_prefix, request_id, operation, subject, \
    status, detail, client FROM audit_records WHERE at_ms BETWEEN $4 AND $5 \
    AND (at_ms, project_id, seq) < ($1, $2, $3) \
    ORDER BY at_ms DESC, project_id DESC, seq DESC LIMIT $6";
// Project by project, because the index of subjects begins with it. The sums keep the index of times
// from being taken, by which every entry of the span would be read.
const AUDIT_BY_SUBJECT: &str = "SELECT project_id, seq, at_ms, key_prefix, request_id, operation, \
    subject, status, detail, client FROM projects CROSS JOIN audit_records \
    WHERE audit_records.project_id = projects.id AND audit_records.subject = $7 \
    AND at_ms + 0 BETWEEN $4 AND $5 AND (at_ms + 0, project_id, seq) < ($1, $2, $3) \
    ORDER BY at_ms DESC, project_id DESC, seq DESC LIMIT $6";
const USAGE_HOURS: &str = "SELECT * FROM usage_hours WHERE hour_ms BETWEEN $1 AND $2 \
    AND (hour_ms, project_id) > ($3, $4) ORDER BY hour_ms, project_id LIMIT $5";

/// A place in the audit record of all projects, which is in the order of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditPlace {
    pub at_ms: i64,
    pub project: String,
    pub seq: i64,
}

impl fmt::Display for AuditPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.at_ms, self.project, self.seq)
    }
}

impl AuditPlace {
    /// Reads one that a page gave out.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (at_ms, rest) = text.split_once('.')?;
        let (project, seq) = rest.split_once('.')?;
        Some(Self {
            at_ms: at_ms.parse().ok()?,
            project: ProjectId::parse(project).ok()?.to_string(),
            seq: seq.parse().ok()?,
        })
    }

    pub(crate) fn of(row: &AuditRow) -> Self {
        Self {
            at_ms: row.at_ms,
            project: row.project_id.clone(),
            seq: row.seq,
        }
    }
}

impl Store {
    /// As [`Store::usage_hours`], of all projects.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn all_usage_hours(&self, span: &HourSpan) -> Result<Vec<UsageHourRow>, StoreError> {
        let (first_ms, last_ms) = span.begins_ms();
        let after = span.after.as_ref();
        sqlx::query_as(USAGE_HOURS)
            .bind(first_ms)
            .bind(last_ms)
            .bind(after.map_or(i64::MIN, |place| place.hour_ms))
            .bind(after.map_or("", |place| place.project.as_str()))
            .bind(span.limit)
            .fetch_all(&self.reader)
            .await
            .map_err(StoreError::during("read usage of all projects by hour"))
    }

    /// As [`Store::sandboxes_after`], of all projects.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn all_sandboxes_after(
        &self,
        after: Option<&Cursor>,
        limit: i64,
    ) -> Result<Vec<SandboxRow>, StoreError> {
        let raw: Vec<RawSandbox> = sqlx::query_as(SANDBOXES)
            .bind(after.map_or(i64::MIN, |cursor| cursor.created_at_ms))
            .bind(after.map_or("", |cursor| cursor.id.as_str()))
            .bind(limit)
            .fetch_all(&self.reader)
            .await
            .map_err(StoreError::during("list the sandboxes of all projects"))?;
        raw.into_iter().map(SandboxRow::try_from).collect()
    }

    /// The projects that have a sandbox.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn projects_with_sandboxes(&self) -> Result<Vec<ProjectId>, StoreError> {
        let found: Vec<(String,)> = sqlx::query_as(WITH_SANDBOXES)
            .fetch_all(&self.reader)
            .await
            .map_err(StoreError::during("list projects with sandboxes"))?;
        let corrupt = |_| StoreError::Corrupt {
            table: "sandboxes",
            column: "project_id",
        };
        let parsed = found
            .into_iter()
            .map(|(id,)| ProjectId::parse(&id).map_err(corrupt));
        parsed.collect()
    }

    /// As [`Store::api_keys`], of all projects.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn all_api_keys(
        &self,
        now_ms: i64,
        after: Option<&KeyPlace>,
        limit: i64,
    ) -> Result<Vec<KeyRow>, StoreError> {
        let raw: Vec<RawKey> = sqlx::query_as(KEYS)
            .bind(now_ms)
            .bind(after.map_or(i64::MIN, |place| place.created_at_ms))
            .bind(after.map_or("", |place| place.prefix.as_str()))
            .bind(limit)
            .fetch_all(&self.reader)
            .await
            .map_err(StoreError::during("list the keys of all projects"))?;
        raw.into_iter().map(KeyRow::try_from).collect()
    }

    /// As [`Store::events`], of all projects: `seq` is the number among them.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn all_events(&self, after: i64, limit: i64) -> Result<Vec<EventRow>, StoreError> {
        sqlx::query_as(EVENTS)
            .bind(after)
            .bind(limit)
            .fetch_all(&self.reader)
            .await
            .map_err(StoreError::during("read the events of all projects"))
    }

    /// The number of the last event of all projects; 0 when there is none.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn last_of_all_events(&self) -> Result<i64, StoreError> {
        sqlx::query_scalar(LAST_EVENT)
            .fetch_one(&self.reader)
            .await
            .map_err(StoreError::during("read the last event of all projects"))
    }

    /// Entries of all projects, newest first: behind `before`, whatever number `page` begins at.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn all_audit(
        &self,
        before: Option<&AuditPlace>,
        page: AuditPage<'_>,
    ) -> Result<Vec<AuditRow>, StoreError> {
        // The bound is repeated as a time of its own, so that the index of ages is entered there.
        let last_ms = before.map_or(i64::MAX, |place| place.at_ms);
        let statement = match page.subject {
            Some(_) => AUDIT_BY_SUBJECT,
            None => AUDIT,
        };
        let mut query = sqlx::query_as(statement)
            .bind(last_ms)
            .bind(before.map_or("~", |place| place.project.as_str()))
            .bind(before.map_or(i64::MAX, |place| place.seq))
            .bind(page.since_ms)
            .bind(page.until_ms.min(last_ms))
            .bind(page.limit);
        if let Some(subject) = page.subject {
            query = query.bind(subject);
        }
        query
            .fetch_all(&self.reader)
            .await
            .map_err(StoreError::during("read the audit record of all projects"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::audit::tests::plan;
    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_written_and_nothing_else_is_one() {
        let place = AuditPlace {
            at_ms: 1_763_000_000_000,
            project: "team-a".to_owned(),
            seq: 7,
        };
        assert_eq!(AuditPlace::parse(&place.to_string()), Some(place));
        for text in ["", "7", "1.team-a", "x.team-a.1", "1.Team.1", "1.team-a.x"] {
            assert_eq!(AuditPlace::parse(text), None, "{text}");
        }
    }

    #[tokio::test]
    async fn every_look_at_all_projects_has_an_index() {
        let place = tempfile::tempdir().unwrap();
        let store = Store::open(&place.path().join("database")).await.unwrap();
        for (statement, index) in [
            (SANDBOXES, "sandboxes_alive_by_age"),
            (
                super::super::across_projects::SELECT_ALIVE,
                "sandboxes_alive_by_node (node_id=? AND (created_at_ms,id)>(?,?))",
            ),
            (EVENTS, "events_by_number (number>?)"),
            (AUDIT, "audit_records_by_age (at_ms>? AND at_ms<?)"),
            (
                AUDIT_BY_SUBJECT,
                "audit_records_by_subject (project_id=? AND subject=?)",
            ),
        ] {
            let plan = plan(&store, statement).await;
            assert!(plan.contains(index), "{index}: {plan}");
        }
    }
}

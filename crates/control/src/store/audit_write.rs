//! Adding to the audit record, and keeping each project's part at its size.

use std::collections::BTreeSet;

use dayfly_types::ProjectId;
use dayfly_types::limits::AUDIT_DROPPED_AT_ONCE_MAX;
use serde_json::json;

use super::writer::Writing;
use super::{AuditEvent, Store, StoreError, export, projects};
use crate::time::{now_ms, rfc3339};

const INSERT: &str = "INSERT INTO audit_records (project_id, seq, at_ms, key_prefix, request_id, \
    operation, subject, status, detail, bytes, client, number) \
    VALUES ($1, (SELECT audit_seq FROM projects WHERE id = $1), $2, $3, $4, $5, $6, $7, $8, $9, $10, \
    (SELECT last FROM audit_numbers))";
const SELECT_OLDEST: &str = "SELECT seq, at_ms, bytes FROM audit_records WHERE project_id = $1 \
    ORDER BY seq LIMIT $2";
const DELETE_OLDEST: &str = "DELETE FROM audit_records WHERE project_id = $1 AND seq <= $2";

/// How the record names that its oldest entries made room.
const DROPPED: &str = "audit.dropped";
/// Who is named where no key did anything. No key begins like it.
const SERVER: &str = "server";
/// What an entry takes beside its texts.
const ENTRY_BYTES: usize = 128;

impl AuditEvent {
    /// An entry about the record itself.
    pub(crate) fn of_server(
        project: &ProjectId,
        operation: &str,
        at_ms: i64,
        detail: String,
    ) -> Self {
        Self {
            project: project.clone(),
            at_ms,
            key_prefix: SERVER.to_owned(),
            request_id: String::new(),
            operation: operation.to_owned(),
            subject: None,
            status: 0,
            detail,
            client: None,
        }
    }

    fn bytes(&self) -> i64 {
        let bytes = ENTRY_BYTES + self.operation.len() + self.detail.len();
        i64::try_from(bytes).unwrap_or(i64::MAX)
    }
}

impl Store {
    /// Adds entries to the audit record, all or none. Where a project's entries take more than
    /// `bytes_max`, the oldest are dropped, and the record says so.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn append_audit(
        &self,
        entries: &[AuditEvent],
        bytes_max: u64,
    ) -> Result<(), StoreError> {
        if entries.is_empty() {
            return Ok(());
        }
        let mut writing = self.writer.begin("add to the audit record").await?;
        for entry in entries {
            add(entry, &mut writing).await?;
        }
        let projects: BTreeSet<&ProjectId> = entries.iter().map(|entry| &entry.project).collect();
        for project in projects {
            make_room(project, bytes_max, &mut writing).await?;
        }
        writing.commit().await?;
        self.new_audit.notify_waiters();
        Ok(())
    }
}

async fn add(entry: &AuditEvent, writing: &mut Writing) -> Result<(), StoreError> {
    let next = sqlx::query(projects::NEXT_AUDIT)
        .bind(entry.project.as_str())
        .bind(entry.bytes());
    if writing.execute(next).await? == 0 {
        // It could hold up the entries of all others.
        tracing::error!(project = %entry.project, "an audit entry is of no project");
        return Ok(());
    }
    writing.execute(sqlx::query(export::NEXT_AUDIT)).await?;
    let insert = sqlx::query(INSERT)
        .bind(entry.project.as_str())
        .bind(entry.at_ms)
        .bind(&entry.key_prefix)
        .bind(&entry.request_id)
        .bind(&entry.operation)
        .bind(&entry.subject)
        .bind(i64::from(entry.status))
        .bind(&entry.detail)
        .bind(entry.bytes())
        .bind(&entry.client);
    writing.execute(insert).await.map(drop)
}

/// Drops the oldest entries of a project that has too many, an eighth more than it must, so that
/// this is not done for every entry.
async fn make_room(
    project: &ProjectId,
    bytes_max: u64,
    writing: &mut Writing,
) -> Result<(), StoreError> {
    let held = sqlx::query_as(projects::AUDIT_BYTES).bind(project.as_str());
    let held: Option<(i64,)> = writing.fetch_all(held).await?.pop();
    let held = held.map_or(0, |(bytes,)| bytes);
    let most = i64::try_from(bytes_max).unwrap_or(i64::MAX);
    if held <= most {
        return Ok(());
    }
    let wanted = held - (most - most / 8);
    let oldest = sqlx::query_as(SELECT_OLDEST)
        .bind(project.as_str())
        .bind(AUDIT_DROPPED_AT_ONCE_MAX);
    let oldest: Vec<(i64, i64, i64)> = writing.fetch_all(oldest).await?;
    let Some(dropped) = Dropped::of(&oldest, wanted) else {
        return Ok(());
    };
    let delete = sqlx::query(DELETE_OLDEST)
        .bind(project.as_str())
        .bind(dropped.last.0);
    writing.execute(delete).await?;
    let freed = sqlx::query(projects::FREE_AUDIT)
        .bind(project.as_str())
        .bind(dropped.bytes);
    writing.execute(freed).await?;
    let detail = json!({
        "dropped": dropped.count,
        "first_seq": dropped.first.0,
        "last_seq": dropped.last.0,
        "from": rfc3339(dropped.first.1),
        "to": rfc3339(dropped.last.1),
        "bytes_max": bytes_max,
    });
    let mark = AuditEvent::of_server(project, DROPPED, now_ms(), detail.to_string());
    add(&mark, writing).await
}

/// The oldest entries, with number and time of the first and the last.
#[derive(Debug)]
struct Dropped {
    count: u64,
    bytes: i64,
    first: (i64, i64),
    last: (i64, i64),
}

impl Dropped {
    /// As many of the oldest as free so many bytes.
    fn of(oldest: &[(i64, i64, i64)], wanted: i64) -> Option<Self> {
        let (seq, at_ms, _) = oldest.first()?;
        let mut dropped = Self {
            count: 0,
            bytes: 0,
            first: (*seq, *at_ms),
            last: (*seq, *at_ms),
        };
        for (seq, at_ms, bytes) in oldest {
            if dropped.bytes >= wanted {
                break;
            }
            dropped.count += 1;
            dropped.bytes += bytes;
            dropped.last = (*seq, *at_ms);
        }
        Some(dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::AuditPage;

    async fn kept(store: &Store, project: &ProjectId) -> (usize, i64, Vec<String>) {
        let rows = store.audit(project, AuditPage::newest(1000)).await.unwrap();
        let last = rows.iter().map(|row| row.seq).max().unwrap();
        let operations = rows.into_iter().map(|row| row.operation).collect();
        let (bytes,): (i64,) = sqlx::query_as(
            "SELECT audit_bytes - (SELECT SUM(bytes) FROM audit_records WHERE project_id = $1) \
             FROM projects WHERE id = $1",
        )
        .bind(project.as_str())
        .fetch_one(&store.reader)
        .await
        .unwrap();
        assert_eq!(bytes, 0, "the account is wrong");
        let operations: Vec<String> = operations;
        (operations.len(), last, operations)
    }

    #[tokio::test]
    async fn a_project_s_record_has_a_size_and_says_what_it_dropped() {
        let place = tempfile::tempdir().unwrap();
        let store = Store::open(&place.path().join("database")).await.unwrap();
        let [many, few] = ["many", "few"].map(|name| ProjectId::parse(name).unwrap());
        for project in [&many, &few] {
            store.ensure_project(project, 1).await.unwrap();
        }
        let entry =
            |project: &ProjectId| AuditEvent::of_server(project, "GET /x", 1000, "x".repeat(866));
        let most = 100 * 1000;
        store.append_audit(&[entry(&few)], most).await.unwrap();
        for _ in 0..50 {
            let entries: Vec<AuditEvent> = (0..10).map(|_| entry(&many)).collect();
            store.append_audit(&entries, most).await.unwrap();
            let (count, _, _) = kept(&store, &many).await;
            assert!(count <= 111, "{count} entries of 1000 bytes");
        }
        let (count, last, operations) = kept(&store, &many).await;
        assert!(count > 80, "{count} entries are left");
        let marks = operations.iter().filter(|text| *text == DROPPED).count();
        assert!(marks >= 1);
        assert!(last > 500, "numbers went back: {last}");
        let rows = store.audit(&many, AuditPage::newest(1000)).await.unwrap();
        let mark = rows.iter().find(|row| row.operation == DROPPED).unwrap();
        let detail: serde_json::Value = serde_json::from_str(&mark.detail).unwrap();
        assert_eq!(detail["last_seq"], rows.last().unwrap().seq - 1);
        assert_eq!(
            kept(&store, &few).await.0,
            1,
            "another's entries were dropped"
        );
    }

    #[tokio::test]
    async fn old_entries_are_taken_out_of_the_account() {
        let place = tempfile::tempdir().unwrap();
        let store = Store::open(&place.path().join("database")).await.unwrap();
        let project = ProjectId::parse("one").unwrap();
        store.ensure_project(&project, 1).await.unwrap();
        for at_ms in [10, 20, 30] {
            let entry = AuditEvent::of_server(&project, "GET /x", at_ms, String::new());
            store.append_audit(&[entry], 1 << 20).await.unwrap();
        }
        let before = super::super::PurgeBefore {
            deleted_ms: 0,
            keys_ms: 0,
            events_ms: 0,
            audit_ms: 25,
            usage_ms: 0,
        };
        store.purge(before).await.unwrap();
        assert_eq!(kept(&store, &project).await.0, 1);
    }
}

//! The audit record of all projects, in the order in which it was written.

use std::sync::Arc;

use sqlx::FromRow;
use tokio::sync::Notify;

use super::{AuditRow, Store, StoreError};

const BEHIND: &str = "SELECT number, project_id, seq, at_ms, key_prefix, request_id, operation, \
    subject, status, detail, client FROM audit_records WHERE number > $1 AND number > 0 \
    ORDER BY number LIMIT $2";
const SERIES: &str = "SELECT series FROM audit_numbers";
// Touches nothing where there is nothing to do: so a full disk keeps nobody from starting.
const NAME_SERIES: &str = "UPDATE audit_numbers SET series = $1 WHERE series = ''";
/// Makes numbers those of another series from the next start on.
pub(super) const FORGET_SERIES: &str = "UPDATE audit_numbers SET series = ''";
/// The same where the database is older than its node knows, at once.
pub(super) const REPLACE_SERIES: &str = "UPDATE audit_numbers SET series = $1 \
    WHERE EXISTS (SELECT 1 FROM database_identity WHERE is_older = 1)";
/// Gives out the number of the next entry among all, in the transaction that adds it.
pub(super) const NEXT_AUDIT: &str = "UPDATE audit_numbers SET last = last + 1";

/// An entry, and its number among those of all projects.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct NumberedAudit {
    pub number: i64,
    #[sqlx(flatten)]
    pub row: AuditRow,
}

impl Store {
    /// Entries of all projects behind a number, in the order in which they were written.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn audit_behind(
        &self,
        number: i64,
        limit: i64,
    ) -> Result<Vec<NumberedAudit>, StoreError> {
        sqlx::query_as(BEHIND)
            .bind(number)
            .bind(limit)
            .fetch_all(&self.reader)
            .await
            .map_err(StoreError::during("read the audit record of all projects"))
    }

    /// The name of the series that numbers belong to: another one when they have gone back.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn export_series(&self) -> Result<String, StoreError> {
        sqlx::query_scalar(SERIES)
            .fetch_one(&self.reader)
            .await
            .map_err(StoreError::during("read the series of the export"))
    }

    /// Gives the series its name where it has none.
    pub(super) async fn name_series(&self, name: &str) -> Result<(), StoreError> {
        let mut writing = self.writer.begin("name the series of the export").await?;
        writing.execute(sqlx::query(NAME_SERIES).bind(name)).await?;
        writing.commit().await
    }

    /// Waits for entries: begin to wait before you look, and nothing is missed.
    #[must_use]
    pub fn new_audit(&self) -> Arc<Notify> {
        Arc::clone(&self.new_audit)
    }
}

#[cfg(test)]
mod tests {
    use dayfly_types::ProjectId;

    use super::super::audit::tests::plan;
    use super::*;
    use crate::store::{AuditEvent, copy_database};

    #[tokio::test]
    async fn a_copy_that_is_put_back_begins_another_series() {
        let place = tempfile::tempdir().unwrap();
        let [first, copy] = ["first", "copy"].map(|name| place.path().join(name));
        let store = Store::open(&first).await.unwrap();
        let series = store.export_series().await.unwrap();
        assert!(!series.is_empty());
        copy_database(&first, &copy).await.unwrap();
        store.close().await;
        let again = Store::open(&first).await.unwrap();
        assert_eq!(again.export_series().await.unwrap(), series);
        let restored = Store::open(&copy).await.unwrap();
        let other = restored.export_series().await.unwrap();
        assert!(!other.is_empty() && other != series, "{other}");
        again.mark_older().await.unwrap();
        let node = dayfly_types::NodeId::parse("node-x").unwrap();
        again.begin_epoch(2, &node, "one").await.unwrap();
        assert_ne!(again.export_series().await.unwrap(), series);
    }

    #[tokio::test]
    async fn numbers_go_on_over_projects_and_over_what_was_dropped() {
        let place = tempfile::tempdir().unwrap();
        let store = Store::open(&place.path().join("database")).await.unwrap();
        let projects = ["one", "two"].map(|name| ProjectId::parse(name).unwrap());
        for project in &projects {
            store.ensure_project(project, 1).await.unwrap();
        }
        for turn in 0..20_usize {
            let project = &projects[turn % 2];
            let entry = AuditEvent::of_server(project, "GET /x", 1000, "x".repeat(900));
            store.append_audit(&[entry], 4000).await.unwrap();
        }
        let read = store.audit_behind(0, 1000).await.unwrap();
        let numbers: Vec<i64> = read.iter().map(|entry| entry.number).collect();
        assert!(numbers.windows(2).all(|two| two[0] < two[1]), "{numbers:?}");
        assert!(numbers[0] > 1, "nothing was dropped");
        // One that does not exist would be a hole that nobody explains.
        let (last,): (i64,) = sqlx::query_as("SELECT last FROM audit_numbers")
            .fetch_one(&store.reader)
            .await
            .unwrap();
        assert_eq!(numbers.last(), Some(&last));
        let rest = store.audit_behind(last - 2, 1000).await.unwrap();
        assert_eq!(rest.len(), 2);
        let plan = plan(&store, BEHIND).await;
        assert!(
            plan.contains("audit_records_by_number (number>?)"),
            "{plan}"
        );
    }
}

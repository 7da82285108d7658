//! What happened to the sandboxes of a project, in order.

use std::sync::Arc;

use dayfly_types::{ProjectId, SandboxId};
use sqlx::FromRow;
use tokio::sync::Notify;

use super::writer::Writing;
use super::{Store, StoreError, all_projects, projects};

const INSERT: &str = "INSERT INTO events (project_id, seq, at_ms, sandbox_id, state, reason, \
    number) VALUES ($1, (SELECT events_seq FROM projects WHERE id = $1), $2, $3, $4, $5, \
    (SELECT last FROM event_numbers))";
const SELECT: &str = "SELECT project_id, seq, at_ms, sandbox_id, state, reason FROM events \
    WHERE project_id = $1 AND seq > $2 ORDER BY seq LIMIT $3";

/// A sandbox came into a state.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct EventRow {
    pub project_id: String,
    pub seq: i64,
    pub at_ms: i64,
    pub sandbox_id: String,
    pub state: String,
    pub reason: Option<String>,
}

/// What is written of an event.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewEvent<'a> {
    pub(super) project: &'a ProjectId,
    pub(super) sandbox: &'a SandboxId,
    pub(super) state: &'a str,
    pub(super) reason: Option<&'a str>,
    pub(super) at_ms: i64,
}

pub(super) async fn insert(event: NewEvent<'_>, writing: &mut Writing) -> Result<(), StoreError> {
    let next = sqlx::query(projects::NEXT_EVENT).bind(event.project.as_str());
    writing.execute(next).await?;
    writing
        .execute(sqlx::query(all_projects::NEXT_EVENT))
        .await?;
    let insert = sqlx::query(INSERT)
        .bind(event.project.as_str())
        .bind(event.at_ms)
        .bind(event.sandbox.as_str())
        .bind(event.state)
        .bind(event.reason);
    writing.execute(insert).await.map(drop)
}

impl Store {
    /// Events behind `after`, oldest first, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn events(
        &self,
        project: &ProjectId,
        after: i64,
        limit: i64,
    ) -> Result<Vec<EventRow>, StoreError> {
        sqlx::query_as(SELECT)
            .bind(project.as_str())
            .bind(after)
            .bind(limit)
            .fetch_all(&self.reader)
            .await
            .map_err(StoreError::during("read events"))
    }

    /// Waits for events: begin to wait before you look, and nothing is missed.
    #[must_use]
    pub fn new_event(&self) -> Arc<Notify> {
        Arc::clone(&self.new_event)
    }

    /// The number of the last event of a project; 0 when there is none.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn last_event(&self, project: &ProjectId) -> Result<i64, StoreError> {
        sqlx::query_scalar(projects::LAST_EVENT)
            .bind(project.as_str())
            .fetch_one(&self.reader)
            .await
            .map_err(StoreError::during("read the last event"))
    }
}

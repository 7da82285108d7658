//! The one way to write (ADR 0016).
//!
//! There is one connection that writes, and it outlives only a transaction that ended as it was
//! told to. After an error SQLite may have rolled back by itself or not, and whoever keeps count
//! of that beside it is wrong sooner or later; so a connection that has seen an error, or whose
//! caller went away, is thrown away with whatever was open on it, and the next write gets a new
//! one. A transaction begins as the first of its connection or not at all.

use std::time::Duration;

use dayfly_types::ProjectId;
use sqlx::pool::PoolConnection;
use sqlx::query::{Query, QueryAs};
use sqlx::{Database, FromRow, Pool};

use super::StoreError;
use crate::admission::turns::{Turn, Turns};

/// The database behind the store. Its statements are ones that PostgreSQL also runs.
pub(super) type Backend = sqlx::Sqlite;
type Arguments = <Backend as Database>::Arguments;
type Row = <Backend as Database>::Row;

// Takes the lock at once, where waiting for it is possible, and is refused by the database inside
// another transaction.
const BEGIN: &str = "BEGIN IMMEDIATE";
const COMMIT: &str = "COMMIT";
const ROLLBACK: &str = "ROLLBACK";

/// Two, so that the writer never waits for the next of a project that is alone.
const TURNS_PER_PROJECT: usize = 2;
const TURN_DEADLINE: Duration = Duration::from_secs(5);

/// Hands out the one transaction that writes.
#[derive(Debug, Clone)]
pub(super) struct Writer {
    /// Of one connection.
    pool: Pool<Backend>,
    /// Who of those that want to write may ask for it.
    turns: Turns,
}

impl Writer {
    /// `pool` has at most one connection.
    pub(super) fn new(pool: Pool<Backend>) -> Self {
        Self {
            pool,
            turns: Turns::new(TURNS_PER_PROJECT),
        }
    }

    /// Begins a transaction.
    ///
    /// # Errors
    /// [`StoreError::Query`].
    pub(super) async fn begin(&self, operation: &'static str) -> Result<Writing, StoreError> {
        let acquired = self.pool.acquire().await;
        let connection = acquired.map_err(StoreError::during(operation))?;
        let mut writing = Writing {
            operation,
            connection: Some(connection),
            has_failed: false,
            turn: None,
        };
        writing.execute(sqlx::query(BEGIN)).await?;
        Ok(writing)
    }

    /// As [`Writer::begin`], when it is the project's turn: there is one writer, and it serves in
    /// the order of asking.
    ///
    /// # Errors
    /// [`StoreError::Query`].
    pub(super) async fn begin_in_turn(
        &self,
        project: &ProjectId,
        operation: &'static str,
    ) -> Result<Writing, StoreError> {
        let turn = self.turn(project, operation).await?;
        let mut writing = self.begin(operation).await?;
        writing.turn = Some(turn);
        Ok(writing)
    }

    /// Waits until it is the project's turn to write.
    ///
    /// # Errors
    /// [`StoreError::Query`].
    pub(super) async fn turn(
        &self,
        project: &ProjectId,
        operation: &'static str,
    ) -> Result<Turn, StoreError> {
        let turn = self.turns.wait(project, TURN_DEADLINE).await;
        turn.map_err(|_| StoreError::during(operation)(sqlx::Error::PoolTimedOut))
    }

    /// Waits for the last transaction, and closes the connection.
    pub(super) async fn close(&self) {
        self.pool.close().await;
    }
}

/// A transaction under way. Dropped before it is committed, it never was.
#[derive(Debug)]
pub(super) struct Writing {
    operation: &'static str,
    /// `None`: over, and given back.
    connection: Option<PoolConnection<Backend>>,
    has_failed: bool,
    turn: Option<Turn>,
}

impl Writing {
    /// Runs a statement. Says how many rows it touched.
    ///
    /// # Errors
    /// [`StoreError::Query`]; the transaction is lost.
    pub(super) async fn execute(
        &mut self,
        query: Query<'_, Backend, Arguments>,
    ) -> Result<u64, StoreError> {
        let connection = self.connection()?;
        let done = query.execute(&mut **connection).await;
        self.settle(done).map(|done| done.rows_affected())
    }

    /// # Errors
    /// [`StoreError::Query`], also when there is no such row; the transaction is lost.
    pub(super) async fn fetch_one<T>(
        &mut self,
        query: QueryAs<'_, Backend, T, Arguments>,
    ) -> Result<T, StoreError>
    where
        T: Send + Unpin + for<'r> FromRow<'r, Row>,
    {
        let connection = self.connection()?;
        let found = query.fetch_one(&mut **connection).await;
        self.settle(found)
    }

    /// # Errors
    /// [`StoreError::Query`]; the transaction is lost.
    pub(super) async fn fetch_all<T>(
        &mut self,
        query: QueryAs<'_, Backend, T, Arguments>,
    ) -> Result<Vec<T>, StoreError>
    where
        T: Send + Unpin + for<'r> FromRow<'r, Row>,
    {
        let connection = self.connection()?;
        let found = query.fetch_all(&mut **connection).await;
        self.settle(found)
    }

    /// Makes it so, for ever.
    ///
    /// # Errors
    /// [`StoreError`]; nothing may be told to be done.
    pub(super) async fn commit(self) -> Result<(), StoreError> {
        self.end(COMMIT).await
    }

    /// Takes it all back, where nothing went wrong and the connection can be kept.
    ///
    /// # Errors
    /// [`StoreError`]; it is taken back all the same.
    pub(super) async fn rollback(self) -> Result<(), StoreError> {
        self.end(ROLLBACK).await
    }

    async fn end(mut self, statement: &'static str) -> Result<(), StoreError> {
        self.execute(sqlx::query(statement)).await?;
        // Only here does a connection go back to be used again.
        self.connection = None;
        Ok(())
    }

    /// A failed statement may have ended the transaction, and what came after it would be
    /// committed piece by piece.
    fn connection(&mut self) -> Result<&mut PoolConnection<Backend>, StoreError> {
        let operation = self.operation;
        let usable = self.connection.as_mut().filter(|_| !self.has_failed);
        usable.ok_or(StoreError::Aborted { operation })
    }

    fn settle<T>(&mut self, done: Result<T, sqlx::Error>) -> Result<T, StoreError> {
        self.has_failed |= done.is_err();
        done.map_err(StoreError::during(self.operation))
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else {
            return;
        };
        let operation = self.operation;
        if self.has_failed {
            tracing::warn!(operation, "the connection to the database is replaced");
        } else {
            tracing::debug!(operation, "a write was given up");
        }
        // Closing it rolls back whatever is open.
        drop(connection.detach());
    }
}

#[cfg(test)]
mod tests {
    use dayfly_types::egress::EgressPolicy;

    use super::super::Store;
    use super::*;

    #[tokio::test]
    async fn writes_of_a_project_wait_for_its_turns_and_those_of_another_do_not() {
        let place = tempfile::tempdir().unwrap();
        let store = Store::open(&place.path().join("database")).await.unwrap();
        let [many, other] = ["many", "other"].map(|name| ProjectId::parse(name).unwrap());
        let policy = EgressPolicy::default();
        for project in [&many, &other] {
            store.ensure_project(project, 1).await.unwrap();
        }
        let mut held = Vec::new();
        for _ in 0..TURNS_PER_PROJECT {
            held.push(store.writer.turn(&many, "test").await.unwrap());
        }
        let soon = Duration::from_millis(300);
        let waits = store.set_network_default(&many, &policy, 1);
        assert!(tokio::time::timeout(soon, waits).await.is_err());
        let passes = store.set_network_default(&other, &policy, 1);
        passes.await.unwrap();
        // A key that floods its project must not hold up its own end.
        store.revoke_api_key(&many, "dfk_x", 1).await.unwrap();
        drop(held);
        let waited = store.set_network_default(&many, &policy, 1);
        waited.await.unwrap();
    }

    async fn add(writing: &mut Writing, id: &'static str) -> Result<u64, StoreError> {
        let add = "INSERT INTO projects (id, created_at_ms) VALUES ($1, 1)";
        writing.execute(sqlx::query(add).bind(id)).await
    }

    async fn projects(store: &Store) -> Vec<String> {
        let found = store.projects().await.unwrap();
        found
            .into_iter()
            .map(|project| project.id.to_string())
            .collect()
    }

    #[tokio::test]
    async fn a_transaction_that_failed_is_never_committed_in_part() {
        let place = tempfile::tempdir().unwrap();
        let store = Store::open(&place.path().join("database")).await.unwrap();
        let mut writing = store.writer.begin("test").await.unwrap();
        add(&mut writing, "one").await.unwrap();
        // What SQLite does by itself when its disk is full.
        writing.execute(sqlx::query("ROLLBACK")).await.unwrap();
        add(&mut writing, "one").await.unwrap();
        let twice = add(&mut writing, "one").await;
        assert!(matches!(twice, Err(StoreError::Query { .. })));
        let after = add(&mut writing, "two").await;
        assert!(matches!(after, Err(StoreError::Aborted { .. })));
        let committed = writing.commit().await;
        assert!(matches!(committed, Err(StoreError::Aborted { .. })));
        let mut writing = store.writer.begin("test").await.unwrap();
        add(&mut writing, "three").await.unwrap();
        writing.commit().await.unwrap();
        assert!(projects(&store).await.contains(&"three".to_owned()));
        assert!(!projects(&store).await.contains(&"two".to_owned()));
    }

    #[tokio::test]
    async fn a_transaction_inside_another_is_refused_and_takes_its_connection_along() {
        let place = tempfile::tempdir().unwrap();
        let store = Store::open(&place.path().join("database")).await.unwrap();
        let mut writing = store.writer.begin("test").await.unwrap();
        add(&mut writing, "outer").await.unwrap();
        writing.execute(sqlx::query(BEGIN)).await.unwrap_err();
        drop(writing);
        // Given up half-way, as when a caller hangs up.
        let mut writing = store.writer.begin("test").await.unwrap();
        add(&mut writing, "given-up").await.unwrap();
        drop(writing);
        let mut writing = store.writer.begin("test").await.unwrap();
        add(&mut writing, "taken-back").await.unwrap();
        writing.rollback().await.unwrap();
        let mut writing = store.writer.begin("test").await.unwrap();
        add(&mut writing, "kept").await.unwrap();
        writing.commit().await.unwrap();
        assert_eq!(projects(&store).await, ["kept"]);
    }
}

//! Opening the database.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sqlx::migrate::Migrator;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Pool, Sqlite};
use tokio::sync::Notify;

use super::StoreError;
use super::writing::TURNS_PER_PROJECT;
use crate::turns::Turns;

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");

const READERS_MAX: u32 = 4;
const BUSY_DEADLINE: Duration = Duration::from_secs(5);
const ACQUIRE_DEADLINE: Duration = Duration::from_secs(5);

/// The database of one control plane.
///
/// There is one connection that writes, because SQLite has one writer: the others would not wait
/// for it in turn but fail when they upgrade.
#[derive(Debug, Clone)]
pub struct Store {
    pub(super) reader: Pool<Sqlite>,
    pub(super) writer: Pool<Sqlite>,
    /// Who of those that want to write may ask the writer.
    pub(super) turns: Turns,
    /// Told of every event that was written.
    pub(super) new_event: Arc<Notify>,
}

impl Store {
    /// Opens the database at `path`, makes it when it does not exist, and brings its schema up
    /// to date.
    ///
    /// # Errors
    /// [`StoreError::Open`] or [`StoreError::Migrate`].
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // An answered create must survive a power cut.
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(BUSY_DEADLINE);
        let open = async |connections: u32| {
            SqlitePoolOptions::new()
                .max_connections(connections)
                .acquire_timeout(ACQUIRE_DEADLINE)
                .connect_with(options.clone())
                .await
                .map_err(|source| StoreError::Open {
                    path: path.to_owned(),
                    source,
                })
        };
        let writer = open(1).await?;
        MIGRATIONS
            .run(&writer)
            .await
            .map_err(|error| StoreError::Migrate(Box::new(error)))?;
        let reader = open(READERS_MAX).await?;
        let store = Self {
            reader,
            writer,
            turns: Turns::new(TURNS_PER_PROJECT),
            new_event: Arc::default(),
        };
        let mut name = [0; 16];
        getrandom::fill(&mut name).map_err(|_| StoreError::Randomness)?;
        store.name_database(&hex::encode(name)).await?;
        Ok(store)
    }

    /// Closes every connection, after the last write.
    pub async fn close(&self) {
        self.reader.close().await;
        self.writer.close().await;
    }
}

//! Opening the database.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use sqlx::migrate::Migrator;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, Pool};
use tokio::sync::{Mutex, Notify};

use super::StoreError;
use super::request_hash::{RequestHash, RequestKey};
use super::writer::{Backend, Writer};

pub(super) static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");

const READERS_MAX: u32 = 4;
const BUSY_DEADLINE: Duration = Duration::from_secs(5);
const ACQUIRE_DEADLINE: Duration = Duration::from_secs(5);

/// The database of one control plane.
///
/// There is one connection that writes, because SQLite has one writer: the others would not wait
/// for it in turn but fail when they upgrade.
#[derive(Debug, Clone)]
pub struct Store {
    /// Connections that cannot write.
    pub(super) reader: Pool<Backend>,
    pub(super) writer: Writer,
    /// Told of every event that was written.
    pub(super) new_event: Arc<Notify>,
    /// Told of every addition to the audit record.
    pub(super) new_audit: Arc<Notify>,
    /// Held while limits of a project are written and read again.
    pub(super) limits_turn: Arc<Mutex<()>>,
    request_key: RequestKey,
}

/// A name that nothing else has.
pub(super) fn new_name() -> Result<String, StoreError> {
    let mut name = [0; 16];
    getrandom::fill(&mut name).map_err(|_| StoreError::Randomness)?;
    Ok(hex::encode(name))
}

impl Store {
    /// Opens the database at `path`, makes it when it does not exist, and brings its schema up
    /// to date.
    ///
    /// # Errors
    /// [`StoreError::Open`], [`StoreError::Migrate`] or [`StoreError::RequestKey`].
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        let failed = |source| StoreError::Open {
            path: path.to_owned(),
            source,
        };
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // An answered create must survive a power cut.
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(BUSY_DEADLINE);
        migrate(&options, failed).await?;
        let pool = |connections: u32, options| {
            SqlitePoolOptions::new()
                .max_connections(connections)
                .acquire_timeout(ACQUIRE_DEADLINE)
                .connect_with(options)
        };
        let writer = pool(1, options.clone()).await.map_err(failed)?;
        // No statement can go around the writer, whatever its author thought.
        let read_only = options.pragma("query_only", "1");
        let reader = pool(READERS_MAX, read_only).await.map_err(failed)?;
        let store = Self {
            reader,
            writer: Writer::new(writer),
            new_event: Arc::default(),
            new_audit: Arc::default(),
            limits_turn: Arc::default(),
            request_key: request_key(path).await?,
        };
        store.name_database(&new_name()?).await?;
        store.name_series(&new_name()?).await?;
        Ok(store)
    }

    /// The same for two requests exactly when they ask for the same.
    #[must_use]
    pub fn hash_of<T: Serialize>(&self, request: &T) -> RequestHash {
        self.request_key.hash_of(request)
    }

    /// Closes every connection, after the last write.
    pub async fn close(&self) {
        self.reader.close().await;
        self.writer.close().await;
    }
}

/// The key beside the database, read or made on a thread that may wait for a disk.
async fn request_key(database: &Path) -> Result<RequestKey, StoreError> {
    let path = database.to_owned();
    let ensured = tokio::task::spawn_blocking(move || RequestKey::ensure(&path)).await;
    ensured.unwrap_or_else(|ended| {
        Err(StoreError::RequestKey {
            path: database.to_owned(),
            source: std::io::Error::other(ended),
        })
    })
}

/// Brings the schema up to date, on a connection of its own: migrations begin and end transactions
/// in their own way.
async fn migrate(
    options: &SqliteConnectOptions,
    failed: impl Fn(sqlx::Error) -> StoreError,
) -> Result<(), StoreError> {
    let mut connection = options.connect().await.map_err(&failed)?;
    MIGRATIONS
        .run(&mut connection)
        .await
        .map_err(|error| StoreError::Migrate(Box::new(error)))?;
    connection.close().await.map_err(failed)
}

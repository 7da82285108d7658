//! The database as a file: copying it while it is used, and looking whether a copy is whole.
//!
//! The one place with statements that are SQLite's own: a database elsewhere is not copied by us.

use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection};

use super::connect::MIGRATIONS;
use super::{StoreError, export};

const COPY: &str = "VACUUM INTO $1";
const CHECK: &str = "PRAGMA integrity_check";
const NEWEST: &str = "SELECT MAX(version) FROM _sqlx_migrations";
const SOUND: &str = "ok";
const BUSY_DEADLINE: Duration = Duration::from_secs(30);

/// Why a database was refused. It was not changed.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseRefusal {
    #[error("it cannot be read as a database")]
    Unreadable(#[source] sqlx::Error),
    #[error("it is damaged: {first}")]
    Damaged { first: String },
    #[error("it was never used by a control plane")]
    Empty,
    #[error(
        "it has schema {found}, and this program knows {newest}; use the release that wrote it, or a \
         later one"
    )]
    Newer { found: i64, newest: i64 },
}

/// Copies the database at `from`, which may be in use, to `to`, which must not exist. The copy is
/// one state of it, and whoever writes meanwhile does not wait. It is not synced.
///
/// # Errors
/// [`StoreError`]; what there is of the copy is of no use.
pub async fn copy_database(from: &Path, to: &Path) -> Result<(), StoreError> {
    let failed = |source| StoreError::Open {
        path: from.to_owned(),
        source,
    };
    let options = SqliteConnectOptions::new()
        .filename(from)
        .read_only(true)
        .busy_timeout(BUSY_DEADLINE);
    let mut connection = options.connect().await.map_err(failed)?;
    let copied = sqlx::query(COPY)
        .bind(to.to_string_lossy().into_owned())
        .execute(&mut connection)
        .await;
    copied.map_err(StoreError::during("copy the database"))?;
    connection.close().await.map_err(failed)?;
    forget_series(to).await
}

/// Whoever goes on from a copy gives out numbers that others have given out already.
async fn forget_series(copy: &Path) -> Result<(), StoreError> {
    let failed = |source| StoreError::Open {
        path: copy.to_owned(),
        source,
    };
    let options = SqliteConnectOptions::new().filename(copy);
    let mut connection = options.connect().await.map_err(failed)?;
    let forgotten = sqlx::query(export::FORGET_SERIES)
        .execute(&mut connection)
        .await;
    match forgotten {
        Ok(_) => {}
        // A copy of an older program's database, which has no export.
        Err(sqlx::Error::Database(error)) if error.message().contains("no such table") => {}
        Err(source) => return Err(StoreError::during("name the copy's series")(source)),
    }
    connection.close().await.map_err(failed)
}

/// Looks at every page of a database that nobody uses, and whether this program knows its schema.
/// Nothing is written beside it.
///
/// # Errors
/// [`DatabaseRefusal`].
pub async fn check_database(path: &Path) -> Result<(), DatabaseRefusal> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .read_only(true)
        .immutable(true);
    let opened = options.connect().await;
    let mut connection = opened.map_err(DatabaseRefusal::Unreadable)?;
    let checked = check(&mut connection).await;
    // What was read is what counts.
    let _ = connection.close().await;
    checked
}

async fn check(connection: &mut SqliteConnection) -> Result<(), DatabaseRefusal> {
    let found: Vec<(String,)> = sqlx::query_as(CHECK)
        .fetch_all(&mut *connection)
        .await
        .map_err(DatabaseRefusal::Unreadable)?;
    if let Some((first,)) = found.into_iter().find(|(line,)| line != SOUND) {
        return Err(DatabaseRefusal::Damaged { first });
    }
    let newest: Result<(Option<i64>,), _> = sqlx::query_as(NEWEST).fetch_one(connection).await;
    let found = newest.map_err(DatabaseRefusal::Unreadable)?.0;
    let found = found.ok_or(DatabaseRefusal::Empty)?;
    let newest = MIGRATIONS.iter().map(|one| one.version).max().unwrap_or(0);
    if found > newest {
        return Err(DatabaseRefusal::Newer { found, newest });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use dayfly_types::ProjectId;

    use super::super::Store;
    use super::*;

    async fn run(path: &Path, statement: &'static str) {
        let options = SqliteConnectOptions::new().filename(path);
        let mut connection = options.connect().await.unwrap();
        sqlx::query(statement)
            .execute(&mut connection)
            .await
            .unwrap();
        connection.close().await.unwrap();
    }

    #[tokio::test]
    async fn a_copy_has_what_was_committed_while_others_write_on() {
        let place = tempfile::tempdir().unwrap();
        let (path, copy) = (place.path().join("database"), place.path().join("copy"));
        let store = Store::open(&path).await.unwrap();
        let [before, after] = ["before", "after"].map(|name| ProjectId::parse(name).unwrap());
        // It is in the log beside the file, where a plain copy would not find it.
        store.ensure_project(&before, 1).await.unwrap();
        copy_database(&path, &copy).await.unwrap();
        store.ensure_project(&after, 1).await.unwrap();
        check_database(&copy).await.unwrap();
        let files: Vec<_> = std::fs::read_dir(place.path()).unwrap().flatten().collect();
        let beside = files.iter().filter(|file| {
            let name = file.file_name();
            name.to_string_lossy().starts_with("copy-")
        });
        assert_eq!(beside.count(), 0, "the check wrote something");
        let copied = Store::open(&copy).await.unwrap();
        let names: Vec<_> = copied.projects().await.unwrap();
        let names: Vec<_> = names.iter().map(|project| project.id.as_str()).collect();
        assert!(
            names.contains(&"before") && !names.contains(&"after"),
            "{names:?}"
        );
        assert!(
            copy_database(&path, &copy).await.is_err(),
            "it was written over"
        );
    }

    #[tokio::test]
    async fn what_is_damaged_newer_or_no_database_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("database");
        Store::open(&path).await.unwrap().close().await;
        check_database(&path).await.unwrap();
        let whole = std::fs::read(&path).unwrap();
        run(
            &path,
            "UPDATE _sqlx_migrations SET version = 9999 WHERE version = 1",
        )
        .await;
        let refused = check_database(&path).await.unwrap_err();
        assert!(
            matches!(refused, DatabaseRefusal::Newer { found: 9999, .. }),
            "{refused:?}"
        );
        let mut torn = whole.clone();
        torn[4096..8192].fill(0xff);
        std::fs::write(&path, torn).unwrap();
        check_database(&path).await.unwrap_err();
        std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        check_database(&path).await.unwrap_err();
        std::fs::write(&path, "no database").unwrap();
        let refused = check_database(&path).await.unwrap_err();
        assert!(
            matches!(refused, DatabaseRefusal::Unreadable(_)),
            "{refused:?}"
        );
    }
}

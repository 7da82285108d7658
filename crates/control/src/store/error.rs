//! Why the database did not do what it was asked.

use std::path::PathBuf;

/// Every variant is a fault of ours or of the disk; none is a caller's.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("cannot open the database {}", path.display())]
    Open {
        path: PathBuf,
        #[source]
        source: sqlx::Error,
    },
    #[error("cannot bring the database schema up to date")]
    Migrate(#[source] Box<sqlx::migrate::MigrateError>),
    #[error("cannot {operation}")]
    Query {
        operation: &'static str,
        #[source]
        source: sqlx::Error,
    },
    #[error("no randomness could be had")]
    Randomness,
    #[error("column {column} of a row of {table} cannot be read")]
    Corrupt {
        table: &'static str,
        column: &'static str,
    },
}

impl StoreError {
    /// For `map_err`: what was being done when the database refused.
    pub(crate) fn during(operation: &'static str) -> impl FnOnce(sqlx::Error) -> Self {
        move |source| Self::Query { operation, source }
    }
}

//! Why the database did not do what it was asked.

use std::error::Error;
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
    #[error("cannot {operation}: a statement of the same transaction failed")]
    Aborted { operation: &'static str },
    #[error("cannot {operation}: it was written, and is not there when it is read")]
    NotKept { operation: &'static str },
    #[error("cannot read or make the key of requests {}", path.display())]
    RequestKey {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("no randomness could be had")]
    Randomness,
    #[error("column {column} of a row of {table} cannot be read")]
    Corrupt {
        table: &'static str,
        column: &'static str,
    },
}

/// A fault of the database that may pass by itself, or when its operator does something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unavailable {
    Locked,
    Full,
    Disk,
    Slow,
    NotKept,
}

impl Unavailable {
    /// Why nothing can be written, for a person.
    #[must_use]
    pub const fn why(self) -> &'static str {
        match self {
            Self::Locked => "another program holds it locked",
            Self::Full => "its disk is full",
            Self::Disk => "its disk cannot be read or written",
            Self::Slow => "too much waits to be written",
            Self::NotKept => "what is written is not there when it is read",
        }
    }

    /// Whether an error, or what caused it, is such a fault.
    #[must_use]
    pub fn find(error: &(dyn Error + 'static)) -> Option<Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(StoreError::NotKept { .. }) = error.downcast_ref() {
                return Some(Self::NotKept);
            }
            if let Some(fault) = error.downcast_ref().and_then(Self::of) {
                return Some(fault);
            }
            next = error.source();
        }
        None
    }

    fn of(error: &sqlx::Error) -> Option<Self> {
        if let sqlx::Error::Database(error) = error {
            return Self::of_sqlite(error.code()?.parse().ok()?);
        }
        if matches!(error, sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed) {
            return Some(Self::Slow);
        }
        matches!(error, sqlx::Error::Io(_) | sqlx::Error::WorkerCrashed).then_some(Self::Disk)
    }

    /// By SQLite's result code. The low byte is the kind, the rest says where.
    const fn of_sqlite(code: u32) -> Option<Self> {
        match code & 0xff {
            // BUSY, LOCKED, PROTOCOL.
            5 | 6 | 15 => Some(Self::Locked),
            // FULL.
            13 => Some(Self::Full),
            // NOMEM, READONLY, IOERR, CANTOPEN.
            7 | 8 | 10 | 14 => Some(Self::Disk),
            _ => None,
        }
    }
}

impl StoreError {
    /// For `map_err`: what was being done when the database refused.
    pub(crate) fn during(operation: &'static str) -> impl FnOnce(sqlx::Error) -> Self {
        move |source| Self::Query { operation, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_that_passes_is_found_under_others() {
        #[derive(Debug, thiserror::Error)]
        #[error("outer")]
        struct Outer(#[source] StoreError);
        let slow = || StoreError::during("test")(sqlx::Error::PoolTimedOut);
        assert_eq!(Unavailable::find(&Outer(slow())), Some(Unavailable::Slow));
        let lasting = StoreError::during("test")(sqlx::Error::RowNotFound);
        assert_eq!(Unavailable::find(&Outer(lasting)), None);
        let gone = StoreError::NotKept { operation: "test" };
        assert_eq!(Unavailable::find(&gone), Some(Unavailable::NotKept));
    }

    #[test]
    fn sqlite_s_codes_are_known_with_their_places() {
        // SQLITE_BUSY_SNAPSHOT, SQLITE_FULL, SQLITE_IOERR_FSYNC, SQLITE_CONSTRAINT_UNIQUE.
        assert_eq!(Unavailable::of_sqlite(517), Some(Unavailable::Locked));
        assert_eq!(Unavailable::of_sqlite(13), Some(Unavailable::Full));
        assert_eq!(Unavailable::of_sqlite(1034), Some(Unavailable::Disk));
        assert_eq!(Unavailable::of_sqlite(2067), None);
    }
}

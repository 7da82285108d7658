//! How a node and a database know each other, and what an operator may say about it.
//!
//! A node remembers which database it last worked for and how far that had come. A database that
//! is another one, or has come less far, must not decide what is to go.

use serde::{Deserialize, Serialize};

/// Who a node is, and whose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdentityReport {
    /// Another one after the node's directory was emptied.
    pub incarnation: String,
    pub database: Option<DatabaseMark>,
    /// The operator has accepted the next database.
    pub accepts_any: bool,
    /// There is nothing that a database could lose: no sandbox, no snapshot, no volume.
    pub is_empty: bool,
}

/// One state of one database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatabaseMark {
    pub id: String,
    /// Grows each time that a control plane begins to work with it.
    pub epoch: u64,
    /// Grows with what is written in between.
    pub changes: u64,
}

impl DatabaseMark {
    /// Whether this is a state of the same database that came before `other`.
    #[must_use]
    pub fn is_before(&self, other: &Self) -> bool {
        self.id == other.id && (self.epoch, self.changes) < (other.epoch, other.changes)
    }
}

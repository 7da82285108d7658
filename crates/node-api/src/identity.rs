//! How a node and a database know each other, and what an operator may say about it.
//!
//! A node remembers which database it last worked for and how far that had come. A database that
//! is another one, or has come less far, must not decide what is to go.

use async_trait::async_trait;
use dayfly_types::SandboxId;
use serde::{Deserialize, Serialize};

use crate::error::NodeError;

/// The part of a node that is about itself and its database.
#[async_trait]
pub trait NodeIdentity: Send + Sync {
    async fn identity(&self) -> Result<IdentityReport, NodeError>;

    /// Has the node remember its database, durably. Refused with `wrong_state` for another one than
    /// it knows, and for less than it knows, unless the operator has accepted it or the node is
    /// empty.
    async fn remember_database(&self, database: DatabaseMark) -> Result<(), NodeError>;

    /// The operator's word that the next database is the right one, whichever it is.
    async fn accept_database(&self) -> Result<(), NodeError>;

    /// The operator's word that a sandbox whose record cannot be read is given up.
    async fn forget_unreadable(&self, id: &SandboxId) -> Result<(), NodeError>;
}

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

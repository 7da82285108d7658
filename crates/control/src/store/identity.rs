//! Who this database is to its node.

use dayfly_types::NodeId;
use sqlx::FromRow;

use super::connect::new_name;
use super::row::bigint;
use super::{Store, StoreError, export};

const NAME: &str = "UPDATE database_identity SET id = $1 WHERE id = ''";
const SELECT: &str = "SELECT id, epoch, is_new, node_id, node_incarnation, is_older, \
    (SELECT CAST(COALESCE(SUM(events_seq + audit_seq), 0) AS BIGINT) FROM projects) AS changes, \
    (SELECT COUNT(*) FROM sandboxes WHERE node_id <> $1) AS elsewhere FROM database_identity";
const NEXT_EPOCH: &str = "UPDATE database_identity SET epoch = $1, is_new = 0, node_id = $2, \
    node_incarnation = $3, is_older = 0";
const MARK_OLDER: &str = "UPDATE database_identity SET is_older = 1";

/// What the database knows of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseIdentity {
    pub id: String,
    /// Of the last control plane that worked with the node.
    pub epoch: u64,
    /// Grows with what happens: the numbers of events and audit records never go back.
    pub changes: u64,
    /// It has never met a node.
    pub is_new: bool,
    pub is_older: bool,
    /// The node that it knows, and which incarnation of it.
    pub node: Option<(String, Option<String>)>,
    /// It has rows of another node than this one.
    pub is_of_others: bool,
}

#[derive(Debug, FromRow)]
struct RawIdentity {
    id: String,
    epoch: i64,
    is_new: i64,
    node_id: Option<String>,
    node_incarnation: Option<String>,
    is_older: i64,
    changes: i64,
    elsewhere: i64,
}

impl Store {
    /// Gives the database its name, once.
    pub(super) async fn name_database(&self, name: &str) -> Result<(), StoreError> {
        let mut writing = self.writer.begin("name the database").await?;
        writing.execute(sqlx::query(NAME).bind(name)).await?;
        writing.commit().await
    }

    /// Who this database is, asked for one node.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn identity(&self, node: &NodeId) -> Result<DatabaseIdentity, StoreError> {
        let raw: RawIdentity = sqlx::query_as(SELECT)
            .bind(node.as_str())
            .fetch_one(&self.reader)
            .await
            .map_err(StoreError::during("read who the database is"))?;
        let count = |number: i64| u64::try_from(number).unwrap_or(0);
        Ok(DatabaseIdentity {
            id: raw.id,
            epoch: count(raw.epoch),
            changes: count(raw.changes),
            is_new: raw.is_new != 0,
            is_older: raw.is_older != 0,
            node: raw.node_id.map(|id| (id, raw.node_incarnation)),
            is_of_others: raw.elsewhere != 0,
        })
    }

    /// Begins an epoch with a node that is known from here on.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn begin_epoch(
        &self,
        epoch: u64,
        node: &NodeId,
        incarnation: &str,
    ) -> Result<(), StoreError> {
        let query = sqlx::query(NEXT_EPOCH)
            .bind(bigint(epoch))
            .bind(node.as_str())
            .bind(incarnation);
        let series = new_name()?;
        let mut writing = self.writer.begin("begin an epoch").await?;
        // Before the mark goes: numbers that were given out may be given out again.
        writing
            .execute(sqlx::query(export::REPLACE_SERIES).bind(series))
            .await?;
        writing.execute(query).await?;
        writing.commit().await
    }

    /// Writes that the node knows a later state of this database.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn mark_older(&self) -> Result<(), StoreError> {
        let mut writing = self.writer.begin("mark the database as older").await?;
        writing.execute(sqlx::query(MARK_OLDER)).await?;
        writing.commit().await
    }
}

//! What an owner puts down before it acts, off the threads that serve calls.

use std::sync::Arc;

use dayfly_node_api::NodeError;

use super::bring_up::Origin;
use super::owner::Owner;
use crate::failure::node_error;
use crate::journal::JournalError;

impl Owner {
    /// Leases and the record first: whoever finds the machine after a crash finds both.
    pub(super) async fn create(&mut self, origin: &mut Origin) -> Result<(), NodeError> {
        let mut noted = self.attach_volumes(origin).await;
        if noted.is_ok() {
            noted = self.write_record().await;
        }
        if let Err(error) = noted {
            // Before the caller hears of it. What is not given back here is by the end.
            self.release_volumes().await;
            return Err(error);
        }
        if let Some(turn) = &mut origin.turn {
            turn.come().await?;
        }
        self.start_machine(origin).await
    }

    pub(super) async fn write_record(&self) -> Result<(), NodeError> {
        let (parts, record) = (Arc::clone(&self.parts), self.record.clone());
        let written = self.disk.run(move || parts.journal.write(&record)).await;
        written.map_err(|error| node_error("the node could not write its journal", &error))
    }

    pub(super) async fn forget_record(&self) -> Result<(), JournalError> {
        let (parts, id) = (Arc::clone(&self.parts), self.record.id.clone());
        self.disk.run(move || parts.journal.remove(&id)).await
    }
}

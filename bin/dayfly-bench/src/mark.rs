//! A mark on every sandbox that a run makes.
//!
//! A list kept here would miss what a call made that was not answered. The server's own list does
//! not, so all of a run's sandboxes are found by their mark, however the run ends.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use dayfly_client::Client;

const KEY: &str = "dayfly_bench";

/// The mark of one run.
#[derive(Debug, Clone)]
pub(crate) struct Mark(String);

impl Mark {
    pub(crate) fn draw() -> Result<Self> {
        let mut random = [0_u8; 16];
        getrandom::fill(&mut random).context("no randomness")?;
        Ok(Self(hex::encode(random)))
    }

    /// The metadata that a marked sandbox is made with.
    pub(crate) fn metadata(&self) -> BTreeMap<String, String> {
        BTreeMap::from([(KEY.to_owned(), self.0.clone())])
    }

    /// Deletes every sandbox with this mark. May be repeated.
    pub(crate) async fn delete_all(&self, client: &Client) -> Result<()> {
        let sandboxes = client.list_sandboxes().await;
        let sandboxes = sandboxes.context("cannot list sandboxes")?;
        let mut outcome = Ok(());
        for sandbox in sandboxes {
            if sandbox.metadata.get(KEY) != Some(&self.0) {
                continue;
            }
            let deleted = client.delete_sandbox(&sandbox.id).await;
            let deleted = deleted.with_context(|| format!("cannot delete {}", sandbox.id));
            // One that stays is no reason to leave the others.
            outcome = outcome.and(deleted);
        }
        outcome
    }
}

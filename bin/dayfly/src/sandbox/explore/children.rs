//! The children of an exploration: made by one fork, and deleted on every path.

use std::collections::BTreeMap;
use std::time::Duration;

use dayfly_api::{ForkOptions, ForkSandbox, Forked, PromoteSandbox};
use dayfly_client::ClientError;
use futures::StreamExt as _;

use crate::dispatch::Session;
use crate::failure::CommandError;
use crate::signals::StopSignals;
use crate::{durations, text};

/// Deletes that are under way at once.
const DELETES_MAX: usize = 16;
/// The label that gives children a time to live which a promote ends.
const EXPLORE_TTL: &str = "explore_ttl";

/// Ids of children that exist.
#[derive(Debug)]
pub(super) struct Children(Vec<String>);

impl Children {
    /// One fork, all children or none. They have a time to live in any case, so that a client that
    /// is killed leaves nothing for good. After a signal nothing is left.
    pub(super) async fn fork(
        session: &Session<'_>,
        id: &str,
        ttl: Option<Duration>,
        count: usize,
        signals: &mut StopSignals,
    ) -> Result<Self, CommandError> {
        let ttl = ttl.map(|ttl| durations::seconds_up(ttl).to_string());
        let request = ForkSandbox {
            count: u64::try_from(count).ok(),
            options: ForkOptions {
                all_or_nothing: Some(true),
                metadata: ttl.map(|ttl| BTreeMap::from([(EXPLORE_TTL.to_owned(), ttl)])),
                ..ForkOptions::default()
            },
        };
        let forking = session.client.fork_sandbox(id, &request);
        tokio::pin!(forking);
        let signal = tokio::select! {
            outcome = &mut forking => return made(session, id, count, outcome, signals).await,
            signal = signals.next() => signal,
        };
        session.printer.note("stopping");
        // Only the answer names the children.
        tokio::select! {
            outcome = &mut forking => if let Ok(forked) = outcome {
                Self::of(&forked).delete(session, signals).await;
            },
            _ = signals.next() => session.printer.warning(
                "children may have been created; `dayfly ls` shows them, \
                 and their time to live deletes them",
            ),
        }
        Err(CommandError::Interrupted { signal })
    }

    fn of(forked: &Forked) -> Self {
        Self(forked.children.iter().map(|one| one.id.clone()).collect())
    }

    pub(super) fn ids(&self) -> &[String] {
        &self.0
    }

    pub(super) fn without(&self, winner: &str) -> Self {
        let others = self.0.iter().filter(|id| *id != winner);
        Self(others.cloned().collect())
    }

    /// Deletes all of them; says whether they are gone. A further signal gives up.
    pub(super) async fn delete(&self, session: &Session<'_>, signals: &mut StopSignals) -> bool {
        let deletes = self
            .0
            .iter()
            .map(async |id| (id, session.client.delete_sandbox(id).await));
        let outcomes = futures::stream::iter(deletes)
            .buffer_unordered(DELETES_MAX)
            .collect::<Vec<(&String, Result<(), ClientError>)>>();
        let outcomes = tokio::select! {
            outcomes = outcomes => outcomes,
            _ = signals.next() => {
                warn(session, &self.0.join(" "), "stopped");
                return false;
            }
        };
        let mut are_gone = true;
        for (id, outcome) in outcomes {
            if let Err(error) = outcome {
                warn(session, id, &error.to_string());
                are_gone = false;
            }
        }
        are_gone
    }

    /// Keeps the winner for good and deletes the others, by one request. When that fails, nobody is
    /// kept: it is not known who is left.
    pub(super) async fn promote(
        &self,
        session: &Session<'_>,
        winner: &str,
        signals: &mut StopSignals,
    ) -> Result<bool, CommandError> {
        let request = PromoteSandbox {
            cleanup_siblings: Some(true),
            tree_id: None,
        };
        let promoted = tokio::select! {
            outcome = session.client.promote_sandbox(winner, &request) => {
                let what = || format!("cannot promote sandbox {winner}");
                outcome.map_err(|source| CommandError::call(what(), source))
            }
            signal = signals.next() => Err(CommandError::Interrupted { signal }),
        };
        match promoted {
            Ok(promoted) => {
                for (id, why) in &promoted.failures {
                    warn(session, id, why);
                }
                Ok(promoted.failures.is_empty())
            }
            Err(error) => {
                self.delete(session, signals).await;
                Err(error)
            }
        }
    }
}

async fn made(
    session: &Session<'_>,
    id: &str,
    count: usize,
    outcome: Result<Forked, ClientError>,
    signals: &mut StopSignals,
) -> Result<Children, CommandError> {
    let failed = |source| CommandError::call(format!("cannot fork sandbox {id}"), source);
    let children = Children::of(&outcome.map_err(failed)?);
    if children.0.len() == count {
        return Ok(children);
    }
    children.delete(session, signals).await;
    Err(CommandError::Refused {
        what: format!("the fork of sandbox {id} has not all of its children"),
        hint: "`dayfly node` shows how much room the host has",
    })
}

fn warn(session: &Session<'_>, ids: &str, why: &str) {
    let (ids, why) = (text::visible(ids), text::visible(why));
    session.printer.warning(&format!(
        "sandbox {ids} may still exist ({why}); `dayfly rm {ids}` deletes it, \
         and so does its time to live"
    ));
}

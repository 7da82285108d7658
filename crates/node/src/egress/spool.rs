//! The decisions about egress of all sandboxes of a node, in one order, for the export.
//!
//! Each has a number. Numbers of a series have no holes but for what is gone: the oldest make room
//! for the newest, and what could not be written keeps its number. So a hole tells how many are
//! missing. No number that a reader was given comes again for another decision, whatever ends the
//! node: what is read is on disk before.
//!
//! Nobody who waits for a connection waits for this. Records come through the bounded inbox of the
//! egress process's client, which counts what it has no room for.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dayfly_node_api::{EgressDecision, EgressDecisionPage};
use tokio::sync::watch;

use super::spool_files::{SpoolFiles, SpoolView};
use crate::disk_lane::off_runtime;

/// What is believed of one message about a loss. The egress process parses what guests send; one that
/// was taken over must not use up the numbers.
const LOST_AT_ONCE_MAX: u64 = u32::MAX as u64;

/// Why decisions could not be kept or read.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the egress decisions in {directory}")]
pub struct SpoolError {
    directory: PathBuf,
    #[source]
    source: io::Error,
}

/// The decisions of a node. Nothing is opened before it is used, so that no disk keeps a node from
/// starting.
#[derive(Debug)]
pub struct EgressSpool {
    directory: PathBuf,
    /// Only who may block takes it.
    writing: Mutex<Writing>,
    /// The last number that is written.
    written: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Writing {
    files: Option<SpoolFiles>,
    /// Decisions that are gone and have no line yet that says so.
    lost: u64,
    /// The last write failed. The log has it once, and not for each write to a full disk.
    is_failing: bool,
}

impl EgressSpool {
    #[must_use]
    pub fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            writing: Mutex::default(),
            written: watch::Sender::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Writing> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self) -> impl Fn(io::Error) -> SpoolError {
        let directory = self.directory.clone();
        move |source| SpoolError {
            directory: directory.clone(),
            source,
        }
    }

    fn files<'a>(&self, writing: &'a mut Writing) -> io::Result<&'a mut SpoolFiles> {
        if writing.files.is_none() {
            let files = SpoolFiles::open(&self.directory)?;
            self.written.send_replace(files.view().last);
            writing.files = Some(files);
        }
        let files = writing.files.as_mut();
        files.ok_or_else(|| io::Error::other("they are not open"))
    }

    /// Numbers decisions and keeps them. Blocks.
    ///
    /// # Errors
    /// [`SpoolError`]; then they count as lost.
    pub fn append(&self, decisions: Vec<EgressDecision>) -> Result<(), SpoolError> {
        let mut writing = self.lock();
        let (count, lost) = (decisions.len() as u64, writing.lost);
        if count.saturating_add(lost) == 0 {
            return Ok(());
        }
        let files = self.files(&mut writing);
        let written = files.and_then(|files| {
            files.append(lost, decisions)?;
            Ok(files.view().last)
        });
        match written {
            Ok(last) => {
                writing.lost = 0;
                if std::mem::take(&mut writing.is_failing) {
                    tracing::info!(lost, "decisions about egress are kept again");
                }
                self.written.send_replace(last);
                Ok(())
            }
            Err(error) => {
                writing.lost = writing.lost.saturating_add(count);
                let error = self.failed()(error);
                if !std::mem::replace(&mut writing.is_failing, true) {
                    let error = crate::error_chain(&error);
                    tracing::error!(error, "decisions about egress are lost");
                }
                Err(error)
            }
        }
    }

    /// Notes that decisions are gone for good. Blocks.
    ///
    /// # Errors
    /// [`SpoolError`]; then it is noted with the next that can be kept.
    pub fn count_lost(&self, count: u64) -> Result<(), SpoolError> {
        let count = count.min(LOST_AT_ONCE_MAX);
        {
            let mut writing = self.lock();
            writing.lost = writing.lost.saturating_add(count);
        }
        self.append(Vec::new())
    }

    fn view(&self) -> io::Result<SpoolView> {
        let mut writing = self.lock();
        let files = self.files(&mut writing)?;
        Ok(files.view().clone())
    }

    async fn page(
        self: &Arc<Self>,
        after: u64,
        max: usize,
    ) -> Result<EgressDecisionPage, SpoolError> {
        let spool = Arc::clone(self);
        let read = off_runtime(move || spool.view()?.read(after, max)).await;
        read.map_err(self.failed())
    }

    /// The decisions behind a number, waiting for as long as `limit` for the first of them.
    pub(crate) async fn follow(
        self: &Arc<Self>,
        after: u64,
        max: usize,
        limit: Duration,
    ) -> Result<EgressDecisionPage, SpoolError> {
        let page = self.page(after, max).await?;
        // A number that was never given out is of another series, which the caller should hear of.
        if limit.is_zero() || page.through != after {
            return Ok(page);
        }
        let mut written = self.written.subscribe();
        let grown = written.wait_for(|last| *last > after);
        if tokio::time::timeout(limit, grown).await.is_err() {
            return Ok(page);
        }
        self.page(after, max).await
    }
}

#[cfg(test)]
#[path = "spool_tests.rs"]
mod tests;

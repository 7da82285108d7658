//! The record of what each sandbox tried to reach, bounded, and found again after a restart.
//!
//! A sandbox has two files of lines, of at most half the limit each; when the newer one is full it
//! becomes the older one. They lie in the sandbox's own directory and go with it.
//!
//! Who reads waits for no disk: the records are in memory before they are in a file, and no lock
//! that a reader takes is held while a file is read or written.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dayfly_types::SandboxId;
use dayfly_types::egress::EgressRecord;
use dayfly_types::limits::EGRESS_RECORDS_MAX;
use tokio::sync::Notify;

use crate::disk_lane::off_runtime;

const NEWER: &str = "network.log";
const OLDER: &str = "network.log.1";
const FILE_RECORDS_MAX: usize = EGRESS_RECORDS_MAX / 2;
/// A file of records is at most this large; more is damage.
const FILE_BYTES_MAX: u64 = 8 << 20;

/// Why records could not be kept or read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("cannot write the network log {path}")]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot read the network log {path}")]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// The logs of all sandboxes of a node.
#[derive(Debug)]
pub struct NetworkLogs {
    /// Where each sandbox has its directory.
    directory: PathBuf,
    open: Mutex<HashMap<SandboxId, Arc<SandboxLog>>>,
}

/// Part of a log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Page {
    pub(crate) records: Vec<EgressRecord>,
    pub(crate) oldest: u64,
    pub(crate) latest: u64,
    pub(crate) lost: u64,
}

#[derive(Debug)]
struct SandboxLog {
    directory: PathBuf,
    /// Held while a file is written, so that lines come in order. Only who may block takes it.
    writing: Mutex<()>,
    kept: Mutex<Kept>,
    grew: Notify,
}

#[derive(Debug, Default)]
struct Kept {
    records: VecDeque<EgressRecord>,
    /// Sequence of the last record that was ever written.
    latest: u64,
    /// How many the egress process could not hand over.
    lost: u64,
    in_newer: usize,
}

/// What is to be done to the files, in order.
#[derive(Debug)]
enum Step {
    Write(Vec<u8>),
    /// The newer file becomes the older one.
    Turn,
}

impl NetworkLogs {
    #[must_use]
    pub fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            open: Mutex::default(),
        }
    }

    fn opened(&self, id: &SandboxId) -> Option<Arc<SandboxLog>> {
        lock(&self.open).get(id).map(Arc::clone)
    }

    /// Reads the files of a log that is not open yet. Blocks then.
    fn log(&self, id: &SandboxId) -> Result<Arc<SandboxLog>, LogError> {
        if let Some(log) = self.opened(id) {
            return Ok(log);
        }
        let loaded = Arc::new(SandboxLog::load(self.directory.join(id.as_str()))?);
        // Somebody else may have read the same meanwhile, and added to it.
        let mut open = lock(&self.open);
        Ok(Arc::clone(open.entry(id.clone()).or_insert(loaded)))
    }

    /// Numbers the records of one sandbox and keeps them. Blocks.
    ///
    /// # Errors
    /// [`LogError`]; the records are in memory all the same.
    pub fn append(&self, id: &SandboxId, records: &mut [EgressRecord]) -> Result<(), LogError> {
        self.log(id)?.append(records)
    }

    /// Notes that records of a sandbox are gone for good. Blocks.
    ///
    /// # Errors
    /// [`LogError`].
    pub fn count_lost(&self, id: &SandboxId, count: u64) -> Result<(), LogError> {
        lock(&self.log(id)?.kept).lost += count;
        Ok(())
    }

    /// The records behind a sequence number, waiting for as long as `limit` for the first of them.
    pub(crate) async fn follow(
        self: &Arc<Self>,
        id: &SandboxId,
        after: u64,
        max: usize,
        limit: std::time::Duration,
    ) -> Result<Page, LogError> {
        let log = match self.opened(id) {
            Some(log) => log,
            None => {
                let (logs, id) = (Arc::clone(self), id.clone());
                off_runtime(move || logs.log(&id)).await?
            }
        };
        let wait = async {
            loop {
                let grown = log.grew.notified();
                tokio::pin!(grown);
                grown.as_mut().enable();
                if lock(&log.kept).latest > after {
                    return;
                }
                grown.await;
            }
        };
        // Whether it came in time shows in the page.
        let _ = tokio::time::timeout(limit, wait).await;
        Ok(log.page(after, max))
    }

    /// Keeps in memory only what is of these sandboxes. The files have the others'.
    pub(crate) fn keep_only(&self, sandboxes: &BTreeSet<SandboxId>) {
        lock(&self.open).retain(|id, _| sandboxes.contains(id));
    }

    /// Forgets a sandbox whose directory is gone.
    pub fn forget(&self, id: &SandboxId) {
        lock(&self.open).remove(id);
    }
}

impl SandboxLog {
    fn load(directory: PathBuf) -> Result<Self, LogError> {
        let mut kept = Kept::default();
        kept.records.extend(read_file(&directory.join(OLDER))?);
        let newer = read_file(&directory.join(NEWER))?;
        kept.in_newer = newer.len();
        kept.records.extend(newer);
        kept.latest = kept.records.back().map_or(0, |record| record.sequence);
        Ok(Self {
            directory,
            writing: Mutex::default(),
            kept: Mutex::new(kept),
            grew: Notify::new(),
        })
    }

    fn append(&self, records: &mut [EgressRecord]) -> Result<(), LogError> {
        let _in_order = lock(&self.writing);
        let steps = lock(&self.kept).add(records);
        let mut written = Ok(());
        for step in steps {
            let done = match step {
                Step::Write(lines) => self.write(&lines),
                Step::Turn => self.turn(),
            };
            written = written.and(done);
        }
        self.grew.notify_waiters();
        written
    }

    fn write(&self, lines: &[u8]) -> Result<(), LogError> {
        let path = self.directory.join(NEWER);
        let file = fs::OpenOptions::new().append(true).create(true).open(&path);
        let written = file.and_then(|mut file| file.write_all(lines));
        written.map_err(|source| LogError::Write { path, source })
    }

    fn turn(&self) -> Result<(), LogError> {
        let path = self.directory.join(OLDER);
        fs::rename(self.directory.join(NEWER), &path)
            .map_err(|source| LogError::Write { path, source })
    }

    fn page(&self, after: u64, max: usize) -> Page {
        let kept = lock(&self.kept);
        let oldest = kept
            .records
            .front()
            .map_or(kept.latest, |record| record.sequence);
        let records = kept.records.iter().filter(|record| record.sequence > after);
        Page {
            records: records.take(max).cloned().collect(),
            oldest,
            latest: kept.latest,
            lost: kept.lost,
        }
    }
}

impl Kept {
    /// Takes records in, and says how the files follow.
    fn add(&mut self, records: &mut [EgressRecord]) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut lines = Vec::new();
        for record in records {
            if self.in_newer == FILE_RECORDS_MAX {
                steps.extend([Step::Write(std::mem::take(&mut lines)), Step::Turn]);
                self.in_newer = 0;
            }
            self.latest += 1;
            self.in_newer += 1;
            record.sequence = self.latest;
            if serde_json::to_writer(&mut lines, record).is_ok() {
                lines.push(b'\n');
            }
            self.records.push_back(record.clone());
            if self.records.len() > EGRESS_RECORDS_MAX {
                self.records.pop_front();
            }
        }
        steps.push(Step::Write(lines));
        steps
    }
}

/// The records of a file, as far as they are whole: the last line may have been cut by a crash.
fn read_file(path: &Path) -> Result<Vec<EgressRecord>, LogError> {
    let failed = |source| LogError::Read {
        path: path.to_owned(),
        source,
    };
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
        Ok(metadata) if metadata.len() > FILE_BYTES_MAX => {
            return Err(failed(io::Error::other("the file is too large")));
        }
        Ok(_) => {}
    }
    let text = fs::read(path).map_err(failed)?;
    let lines = text.split(|byte| *byte == b'\n');
    Ok(lines
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use dayfly_types::egress::{Decision, EgressRecordKind, NameSource};

    use super::*;

    fn record(duration_ms: u64) -> EgressRecord {
        EgressRecord {
            sequence: 0,
            at_ms: 1,
            kind: EgressRecordKind::Tls,
            decision: Decision::Denied,
            name: None,
            name_source: NameSource::None,
            destination: None,
            dialed: None,
            answers: Vec::new(),
            rule: None,
            internal_network: None,
            reason: None,
            would_deny: false,
            bytes_up: 0,
            bytes_down: 0,
            duration_ms,
            suppressed: 0,
        }
    }

    fn id() -> SandboxId {
        SandboxId::parse("sbx-network-log").unwrap()
    }

    fn logs(directory: &Path) -> Arc<NetworkLogs> {
        fs::create_dir_all(directory.join(id().as_str())).unwrap();
        Arc::new(NetworkLogs::new(directory.to_owned()))
    }

    #[tokio::test]
    async fn records_are_numbered_bounded_and_found_again() {
        let directory = tempfile::tempdir().unwrap();
        let first = logs(directory.path());
        let total = EGRESS_RECORDS_MAX as u64 + 100;
        for number in 0..total {
            first.append(&id(), &mut [record(number)]).unwrap();
        }
        let page = first.follow(&id(), 0, 3, Duration::ZERO).await.unwrap();
        assert_eq!((page.latest, page.records.len()), (total, 3));
        assert_eq!(page.records[0].sequence, page.oldest);
        // A cut last line, as a crash leaves it.
        let path = directory.path().join(id().as_str()).join(NEWER);
        let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(b"{\"sequence\":").unwrap();
        let second = logs(directory.path());
        let again = second
            .follow(&id(), total - 1, 10, Duration::ZERO)
            .await
            .unwrap();
        assert_eq!(
            (again.latest, again.records[0].duration_ms),
            (total, total - 1)
        );
        assert!(again.oldest >= page.oldest);
    }

    #[tokio::test]
    async fn a_reader_waits_for_the_next_record() {
        let directory = tempfile::tempdir().unwrap();
        let logs = Arc::new(logs(directory.path()));
        let none = logs.follow(&id(), 0, 10, Duration::ZERO).await.unwrap();
        assert_eq!(none, Page::default());
        let waiting = {
            let logs = Arc::clone(&logs);
            tokio::spawn(async move { logs.follow(&id(), 0, 10, Duration::from_secs(20)).await })
        };
        tokio::task::yield_now().await;
        logs.append(&id(), &mut [record(7)]).unwrap();
        let page = waiting.await.unwrap().unwrap();
        assert_eq!(page.records[0].duration_ms, 7);
    }
}

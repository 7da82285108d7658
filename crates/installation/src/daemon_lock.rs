//! One daemon to a data directory, with all of its processes.
//!
//! Two locks: `lock` is the daemon's own, and refuses a second one. `processes` is held by the
//! daemon and by every process that it starts, as one open file that they share, so that it is free
//! when the last of them is gone. After a kill they end a moment later than the daemon does; one
//! that started in that moment would find the port of the API taken, or a second node at work.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dayfly_types::Backoff;
use dayfly_types::limits::{DAEMON_LOCK_WAIT, PROCESSES_GONE_WAIT};
use rustix::fs::{FlockOperation, flock};

/// A lock that any user could open, any user could hold.
const LOCK_MODE: u32 = 0o600;
const DAEMON_FILE: &str = "lock";
const PROCESSES_FILE: &str = "processes";
/// Pauses between two tries.
const TRY_AGAIN_FIRST: Duration = Duration::from_millis(2);
const TRY_AGAIN_MAX: Duration = Duration::from_millis(50);

/// Why a data directory cannot be taken for a daemon.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("cannot open the lock file {path}")]
    Open { path: PathBuf, source: io::Error },
    #[error("cannot lock {path}")]
    Lock { path: PathBuf, source: io::Error },
    #[error("another dayflyd runs on {root}")]
    Taken { root: PathBuf },
    #[error(
        "processes of a dayflyd that was killed still run on {root}; \
         `fuser -v {root}/processes` names them"
    )]
    ProcessesRun { root: PathBuf },
}

/// Held for as long as a daemon runs on the directory.
#[derive(Debug)]
pub struct DaemonLock {
    _daemon: File,
    processes: File,
}

impl DaemonLock {
    /// Takes the directory at `root`, once nothing of an earlier daemon is left.
    pub(crate) fn take(root: &Path) -> Result<Self, LockError> {
        Self::take_pausing(root, std::thread::sleep)
    }

    fn take_pausing(root: &Path, mut pause: impl FnMut(Duration)) -> Result<Self, LockError> {
        let root = || root.to_owned();
        // Whoever looks whether a daemon runs holds it for a moment.
        let daemon = lock_within(&root().join(DAEMON_FILE), DAEMON_LOCK_WAIT, &mut pause)?;
        let daemon = daemon.ok_or_else(|| LockError::Taken { root: root() })?;
        let path = root().join(PROCESSES_FILE);
        let processes = lock_within(&path, PROCESSES_GONE_WAIT, &mut pause)?;
        let processes = processes.ok_or_else(|| LockError::ProcessesRun { root: root() })?;
        Ok(Self {
            _daemon: daemon,
            processes,
        })
    }

    /// For a process of this daemon to hold until it ends.
    #[must_use]
    pub fn of_processes(&self) -> BorrowedFd<'_> {
        self.processes.as_fd()
    }
}

/// Whether a daemon holds the directory at `root`.
pub(crate) fn is_held(root: &Path) -> Result<bool, LockError> {
    let path = root.join(DAEMON_FILE);
    match File::open(&path) {
        Ok(file) => Ok(flock(&file, FlockOperation::NonBlockingLockShared).is_err()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(LockError::Open { path, source }),
    }
}

fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(LOCK_MODE)
        .open(path)?;
    // One that an older program made was for everybody.
    file.set_permissions(Permissions::from_mode(LOCK_MODE))?;
    Ok(file)
}

/// The file with its lock, or nothing when somebody held it all the time.
///
/// The kernel can wait for a lock, but without a limit: who gave up waiting would still get it one
/// day, and be taken for a daemon. So it is tried again and again, in the rare case that it is held.
fn lock_within(
    path: &Path,
    wait: Duration,
    pause: &mut impl FnMut(Duration),
) -> Result<Option<File>, LockError> {
    let file = open(path).map_err(|source| LockError::Open {
        path: path.to_owned(),
        source,
    })?;
    let mut backoff = Backoff::new(TRY_AGAIN_FIRST, TRY_AGAIN_MAX);
    let end = Instant::now() + wait;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(file)),
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() >= end => return Ok(None),
            Err(rustix::io::Errno::WOULDBLOCK) => pause(backoff.pause()),
            Err(error) => {
                return Err(LockError::Lock {
                    path: path.to_owned(),
                    source: error.into(),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_does_not_keep_a_daemon_from_its_start() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        drop(DaemonLock::take(root).unwrap());
        let look = File::open(root.join(DAEMON_FILE)).unwrap();
        flock(&look, FlockOperation::LockShared).unwrap();
        let mut look = Some(look);
        DaemonLock::take_pausing(root, |_| drop(look.take())).unwrap();
        assert!(look.is_none(), "did not wait for it");
    }

    #[test]
    fn a_daemon_waits_for_the_processes_of_one_that_ended() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        let first = DaemonLock::take(root).unwrap();
        let mut process = Some(first.of_processes().try_clone_to_owned().unwrap());
        drop(first);
        assert!(!is_held(root).unwrap());
        let second = DaemonLock::take_pausing(root, |_| {
            assert!(
                is_held(root).unwrap(),
                "another daemon could start meanwhile"
            );
            drop(process.take());
        });
        assert!(second.is_ok() && process.is_none(), "did not wait for it");
    }

    #[test]
    fn a_second_daemon_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let first = DaemonLock::take(place.path()).unwrap();
        let second = DaemonLock::take(place.path());
        assert!(matches!(second, Err(LockError::Taken { .. })));
        drop(first);
        assert!(!is_held(place.path()).unwrap());
    }
}

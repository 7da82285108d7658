//! The layout of a data directory, and what makes one daemon's resources its own.
//!
//! ```text
//!   DIR/admin.key      the administrator's key, mode 0600
//!   DIR/instance.json  which instance this is, and its range of user ids
//!   DIR/daemon.json    where the running daemon listens
//!   DIR/lock           held by the running daemon
//!   DIR/processes      held by it and by every process that it starts
//!   DIR/run/           node.sock: control and node meet here
//!   DIR/control/       the database and the key of requests; owned by the unprivileged control process
//!   DIR/node/          journal, slots, namespaces, templates, images, engine root; root's alone
//!   DIR/recipes/       the operator's own templates
//! ```

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use dayfly_host::files::{WriteAtomicError, write_atomic};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::daemon_lock::{self, DaemonLock, LockError};

const INSTANCE_FILE: &str = "instance.json";
const RUNNING_FILE: &str = "daemon.json";

/// User ids of all instances lie above this, far from people and from other services.
const FIRST_UID: u32 = 1_000_000_000;
/// One for control, the rest for slots.
const UIDS_OF_AN_INSTANCE: u32 = 4096;

/// What tells this daemon's resources from another's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    pub instance: String,
    /// The control process runs as this; slot `n` as this plus one plus `n`.
    pub first_uid: u32,
}

impl Instance {
    #[must_use]
    pub fn control_uid(&self) -> u32 {
        self.first_uid
    }

    #[must_use]
    pub fn first_slot_uid(&self) -> u32 {
        self.first_uid + 1
    }

    /// The last of the range, which no slot reaches.
    #[must_use]
    pub fn egress_uid(&self) -> u32 {
        self.first_uid + UIDS_OF_AN_INSTANCE - 1
    }

    /// Beside it.
    #[must_use]
    pub fn images_uid(&self) -> u32 {
        self.first_uid + UIDS_OF_AN_INSTANCE - 2
    }
}

/// Where a running daemon can be reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningDaemon {
    pub listen: std::net::SocketAddr,
    pub pid: u32,
}

/// A data directory that exists.
#[derive(Debug, Clone)]
pub struct DataDirectory {
    root: PathBuf,
}

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataDirectoryError {
    #[error("cannot open the data directory {path}")]
    Open { path: PathBuf, source: io::Error },
    #[error("cannot make {path}")]
    Make { path: PathBuf, source: io::Error },
    #[error("cannot look at {path}")]
    Look { path: PathBuf, source: io::Error },
    #[error("cannot set the mode of {path}")]
    SetMode { path: PathBuf, source: io::Error },
    #[error("cannot hand DIR/control to the control process")]
    HandOver { source: io::Error },
    #[error(
        "{ancestor} is closed to other users, and the control process, which does not run as \
         root, must reach {root}; choose a directory such as /var/lib/dayfly, or open it with \
         chmod o+x"
    )]
    Closed { ancestor: PathBuf, root: PathBuf },
    #[error("no randomness")]
    Random { source: getrandom::Error },
    #[error("cannot read {file}")]
    Read {
        file: &'static str,
        source: io::Error,
    },
    #[error("{file} is damaged")]
    Damaged {
        file: &'static str,
        source: serde_json::Error,
    },
    #[error("cannot encode {file}")]
    Encode {
        file: &'static str,
        source: serde_json::Error,
    },
    #[error("cannot write {file}")]
    Write {
        file: &'static str,
        source: WriteAtomicError,
    },
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error("no dayflyd runs on {root}; start it first")]
    NotRunning { root: PathBuf },
}

type Result<T> = std::result::Result<T, DataDirectoryError>;

impl DataDirectory {
    /// Opens a directory that a daemon has used before.
    ///
    /// # Errors
    /// [`DataDirectoryError::Open`].
    pub fn open(path: &Path) -> Result<Self> {
        let root = fs::canonicalize(path).map_err(|source| DataDirectoryError::Open {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self { root })
    }

    /// Opens the directory, making it and its parts when they are not there.
    ///
    /// # Errors
    /// [`DataDirectoryError`]. What was made stays, and the next try goes on from there.
    pub fn create(path: &Path) -> Result<Self> {
        make_directory(path, 0o711)?;
        let directory = Self::open(path)?;
        let instance = directory.ensure_instance()?;
        directory.check_reach()?;
        make_directory(&directory.run(), 0o711)?;
        make_directory(&directory.control(), 0o700)?;
        let uid = instance.control_uid();
        chown(directory.control(), Some(uid), Some(uid))
            .map_err(|source| DataDirectoryError::HandOver { source })?;
        make_directory(&directory.node(), 0o700)?;
        make_directory(&directory.recipes(), 0o755)?;
        Ok(directory)
    }

    /// The control process is not root, so every directory above must let others through.
    fn check_reach(&self) -> Result<()> {
        for ancestor in self.root.ancestors().skip(1) {
            let found = fs::metadata(ancestor).map_err(|source| DataDirectoryError::Look {
                path: ancestor.to_owned(),
                source,
            })?;
            if found.permissions().mode() & 0o001 == 0 {
                return Err(DataDirectoryError::Closed {
                    ancestor: ancestor.to_owned(),
                    root: self.root.clone(),
                });
            }
        }
        Ok(())
    }

    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    #[must_use]
    pub fn run(&self) -> PathBuf {
        self.root.join("run")
    }

    #[must_use]
    pub fn node_socket(&self) -> PathBuf {
        self.run().join("node.sock")
    }

    #[must_use]
    pub fn control(&self) -> PathBuf {
        self.root.join("control")
    }

    #[must_use]
    pub fn database(&self) -> PathBuf {
        self.control().join("dayfly.db")
    }

    #[must_use]
    pub fn node(&self) -> PathBuf {
        self.root.join("node")
    }

    #[must_use]
    pub fn recipes(&self) -> PathBuf {
        self.root.join("recipes")
    }

    #[must_use]
    pub fn admin_key(&self) -> PathBuf {
        self.root.join("admin.key")
    }

    /// The instance of this directory, chosen once.
    fn ensure_instance(&self) -> Result<Instance> {
        if let Some(instance) = self.instance()? {
            return Ok(instance);
        }
        let mut random = [0_u8; 6];
        getrandom::fill(&mut random).map_err(|source| DataDirectoryError::Random { source })?;
        let range = u32::from(u16::from_le_bytes([random[4], random[5]]));
        let instance = Instance {
            instance: hex::encode(&random[..4]),
            first_uid: FIRST_UID + range * UIDS_OF_AN_INSTANCE,
        };
        self.write(INSTANCE_FILE, serde_json::to_vec_pretty(&instance))?;
        Ok(instance)
    }

    /// The instance of this directory, if a daemon has chosen one.
    ///
    /// # Errors
    /// When its file is there and cannot be read.
    pub fn instance(&self) -> Result<Option<Instance>> {
        match self.read(INSTANCE_FILE) {
            Ok(instance) => Ok(Some(instance)),
            Err(DataDirectoryError::Read { source, .. })
                if source.kind() == io::ErrorKind::NotFound =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Takes the directory for one daemon, once all processes of an earlier one have ended.
    ///
    /// # Errors
    /// [`LockError::Taken`] when another has it.
    pub fn lock(&self) -> Result<DaemonLock> {
        Ok(DaemonLock::take(&self.root)?)
    }

    /// Writes down where the daemon that holds the lock is reached.
    ///
    /// # Errors
    /// When it cannot be written; what was written before stands.
    pub fn announce(&self, running: &RunningDaemon) -> Result<()> {
        self.write(RUNNING_FILE, serde_json::to_vec(running))
    }

    /// The daemon that runs on this directory, if one does.
    ///
    /// # Errors
    /// When that cannot be told.
    pub fn running(&self) -> Result<Option<RunningDaemon>> {
        if !daemon_lock::is_held(&self.root)? {
            return Ok(None);
        }
        self.read(RUNNING_FILE).map(Some)
    }

    /// The daemon that must run on this directory.
    ///
    /// # Errors
    /// [`DataDirectoryError::NotRunning`], and when that cannot be told.
    pub fn require_running(&self) -> Result<RunningDaemon> {
        let not_running = || DataDirectoryError::NotRunning {
            root: self.root.clone(),
        };
        self.running()?.ok_or_else(not_running)
    }

    fn read<T: DeserializeOwned>(&self, file: &'static str) -> Result<T> {
        let text = fs::read(self.root.join(file))
            .map_err(|source| DataDirectoryError::Read { file, source })?;
        serde_json::from_slice(&text).map_err(|source| DataDirectoryError::Damaged { file, source })
    }

    fn write(&self, file: &'static str, encoded: serde_json::Result<Vec<u8>>) -> Result<()> {
        let text = encoded.map_err(|source| DataDirectoryError::Encode { file, source })?;
        write_atomic(&self.root.join(file), &text, 0o644)
            .map_err(|source| DataDirectoryError::Write { file, source })
    }
}

fn make_directory(path: &Path, mode: u32) -> Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(path)
        .map_err(|source| DataDirectoryError::Make {
            path: path.to_owned(),
            source,
        })?;
    // An existing directory keeps its owner but not a looser mode.
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(|source| {
        DataDirectoryError::SetMode {
            path: path.to_owned(),
            source,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_runs_for_as_long_as_it_holds_the_lock() {
        let place = tempfile::tempdir().unwrap();
        let directory = DataDirectory::open(place.path()).unwrap();
        assert_eq!(directory.running().unwrap(), None);
        let lock = directory.lock().unwrap();
        let daemon = RunningDaemon {
            listen: "127.0.0.1:7070".parse().unwrap(),
            pid: 7,
        };
        directory.announce(&daemon).unwrap();
        assert_eq!(directory.require_running().unwrap(), daemon);
        let taken = directory.lock();
        let taken = taken.map_err(|error| error.to_string());
        assert!(taken.is_err_and(|error| error.starts_with("another dayflyd runs on")));
        drop(lock);
        let ended = directory.require_running();
        assert!(matches!(ended, Err(DataDirectoryError::NotRunning { .. })));
    }

    #[test]
    fn an_instance_is_chosen_once() {
        let place = tempfile::tempdir().unwrap();
        let directory = DataDirectory::open(place.path()).unwrap();
        assert_eq!(directory.instance().unwrap(), None);
        let chosen = directory.ensure_instance().unwrap();
        assert_eq!(directory.ensure_instance().unwrap(), chosen);
        fs::write(place.path().join(INSTANCE_FILE), "{").unwrap();
        let damaged = directory.instance();
        assert!(matches!(damaged, Err(DataDirectoryError::Damaged { .. })));
    }
}

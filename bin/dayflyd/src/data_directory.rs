//! The layout of a data directory, and what makes one daemon's resources its own.
//!
//! ```text
//!   DIR/admin.key      the administrator's key, mode 0600
//!   DIR/instance.json  which instance this is, and its range of user ids
//!   DIR/daemon.json    where the running daemon listens
//!   DIR/lock           held by the running daemon
//!   DIR/run/           node.sock: control and node meet here
//!   DIR/control/       the database; owned by the unprivileged control process
//!   DIR/node/          journal, slots, namespaces, templates, images, engine root; root's alone
//!   DIR/recipes/       the operator's own templates
//! ```

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use dayfly_host::files::write_atomic;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

/// User ids of all instances lie above this, far from people and from other services.
const FIRST_UID: u32 = 1_000_000_000;
/// One for control, the rest for slots.
const UIDS_OF_AN_INSTANCE: u32 = 4096;

/// Whoever can open the lock can hold it, and so keep the daemon from starting.
const LOCK_MODE: u32 = 0o600;

/// What tells this daemon's resources from another's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Instance {
    pub(crate) instance: String,
    /// The control process runs as this; slot `n` as this plus one plus `n`.
    pub(crate) first_uid: u32,
}

impl Instance {
    pub(crate) fn control_uid(&self) -> u32 {
        self.first_uid
    }

    pub(crate) fn first_slot_uid(&self) -> u32 {
        self.first_uid + 1
    }

    /// The last of the range, which no slot reaches.
    pub(crate) fn egress_uid(&self) -> u32 {
        self.first_uid + UIDS_OF_AN_INSTANCE - 1
    }
}

/// Where a running daemon can be reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Running {
    pub(crate) listen: std::net::SocketAddr,
    pub(crate) pid: u32,
}

/// A data directory that exists.
#[derive(Debug, Clone)]
pub(crate) struct DataDirectory {
    root: PathBuf,
}

/// Held for as long as a daemon runs on the directory.
#[derive(Debug)]
pub(crate) struct DaemonLock {
    _file: fs::File,
}

impl DataDirectory {
    /// Opens a directory that a daemon has used before.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let root = fs::canonicalize(path)
            .with_context(|| format!("cannot open the data directory {}", path.display()))?;
        Ok(Self { root })
    }

    /// Opens the directory, making it and its parts when they are not there.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        make_directory(path, 0o711)?;
        let directory = Self::open(path)?;
        let instance = directory.ensure_instance()?;
        directory.check_reach()?;
        make_directory(&directory.run(), 0o711)?;
        make_directory(&directory.control(), 0o700)?;
        let uid = instance.control_uid();
        chown(directory.control(), Some(uid), Some(uid))
            .context("cannot hand DIR/control to the control process")?;
        make_directory(&directory.node(), 0o700)?;
        make_directory(&directory.recipes(), 0o755)?;
        Ok(directory)
    }

    /// The control process is not root, so every directory above must let others through.
    fn check_reach(&self) -> Result<()> {
        for ancestor in self.root.ancestors().skip(1) {
            let mode = fs::metadata(ancestor)?.permissions().mode();
            if mode & 0o001 == 0 {
                bail!(
                    "{} is closed to other users, and the control process, which does not run as \
                     root, must reach {}; choose a directory such as /var/lib/dayfly, or open it \
                     with chmod o+x",
                    ancestor.display(),
                    self.root.display()
                );
            }
        }
        Ok(())
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn run(&self) -> PathBuf {
        self.root.join("run")
    }

    pub(crate) fn node_socket(&self) -> PathBuf {
        self.run().join("node.sock")
    }

    pub(crate) fn control(&self) -> PathBuf {
        self.root.join("control")
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.control().join("dayfly.db")
    }

    pub(crate) fn node(&self) -> PathBuf {
        self.root.join("node")
    }

    pub(crate) fn recipes(&self) -> PathBuf {
        self.root.join("recipes")
    }

    pub(crate) fn admin_key(&self) -> PathBuf {
        self.root.join("admin.key")
    }

    pub(crate) fn running_file(&self) -> PathBuf {
        self.root.join("daemon.json")
    }

    /// The instance of this directory, chosen once.
    pub(crate) fn ensure_instance(&self) -> Result<Instance> {
        if let Some(instance) = self.instance()? {
            return Ok(instance);
        }
        let mut random = [0_u8; 6];
        getrandom::fill(&mut random).context("no randomness")?;
        let range = u32::from(u16::from_le_bytes([random[4], random[5]]));
        let instance = Instance {
            instance: hex::encode(&random[..4]),
            first_uid: FIRST_UID + range * UIDS_OF_AN_INSTANCE,
        };
        let text = serde_json::to_vec_pretty(&instance)?;
        write_atomic(&self.root.join("instance.json"), &text, 0o644)
            .context("cannot write instance.json")?;
        Ok(instance)
    }

    pub(crate) fn instance(&self) -> Result<Option<Instance>> {
        match fs::read(self.root.join("instance.json")) {
            Ok(text) => Ok(Some(
                serde_json::from_slice(&text).context("instance.json is damaged")?,
            )),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).context("cannot read instance.json"),
        }
    }

    /// Takes the directory for one daemon.
    pub(crate) fn lock(&self) -> Result<DaemonLock> {
        let file = fs::OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(LOCK_MODE)
            .open(self.root.join("lock"))
            .context("cannot open the lock file")?;
        // One that an older program made was for everybody.
        file.set_permissions(fs::Permissions::from_mode(LOCK_MODE))
            .context("cannot set the mode of the lock file")?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            bail!("another dayflyd runs on {}", self.root.display());
        }
        Ok(DaemonLock { _file: file })
    }

    /// The daemon that runs on this directory, if one does.
    pub(crate) fn running(&self) -> Result<Option<Running>> {
        let file = match fs::File::open(self.root.join("lock")) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).context("cannot open the lock file"),
        };
        if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
            return Ok(None);
        }
        let text = fs::read(self.running_file()).context("cannot read daemon.json")?;
        Ok(Some(
            serde_json::from_slice(&text).context("daemon.json is damaged")?,
        ))
    }
}

fn make_directory(path: &Path, mode: u32) -> Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(path)
        .with_context(|| format!("cannot make {}", path.display()))?;
    // An existing directory keeps its owner but not a looser mode.
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .with_context(|| format!("cannot set the mode of {}", path.display()))
}

//! Who this node is, and which database it works for. One small file, replaced in one step.
//!
//! What the file says is only ever a reason to wait: a database that it does not know is told so,
//! and decides nothing until the operator has spoken. `docs/adr/0017-kept.md`.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dayfly_host::files::write_atomic;
use dayfly_node_api::{DatabaseMark, Greeting, IdentityReport, NodeError, NodeIdentity};
use dayfly_snapshots::MANIFEST_FORMAT;
use dayfly_snapshots::capture::CAPTURE_FORMAT;
use dayfly_types::{ErrorCode, SandboxId};
use serde::{Deserialize, Serialize};

use crate::disk_lane::off_runtime;
use crate::journal::JOURNAL_FORMAT_NEWEST;
use crate::kept;
use crate::node::Node;
use crate::parts::Parts;

/// What is known of the database when the file cannot be read: that there was one.
const UNKNOWN_DATABASE: &str = "unknown";

/// Why a node does not know who it is.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    #[error("cannot write {path}")]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("no randomness could be had")]
    Randomness,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Remembered {
    incarnation: String,
    #[serde(default)]
    database: Option<DatabaseMark>,
    #[serde(default)]
    accepts_any: bool,
}

/// The node's memory of itself.
#[derive(Debug)]
pub(crate) struct Identity {
    path: PathBuf,
    remembered: Mutex<Remembered>,
    /// One writer at a time, so that the file is never older than what was answered.
    writing: Mutex<()>,
    /// There was nothing here when this process began, and no database has been remembered since:
    /// whatever there is now came from the one that is about to be.
    began_empty: AtomicBool,
}

impl Identity {
    /// Reads the file, or makes it when there is none. One that cannot be read is left as it is
    /// until the operator accepts a database.
    pub(crate) fn open(path: PathBuf) -> Result<Self, IdentityError> {
        let incarnation = random_name()?;
        let (remembered, is_new) = match fs::read(&path).map(|text| serde_json::from_slice(&text)) {
            Ok(Ok(remembered)) => (remembered, false),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let remembered = Remembered {
                    incarnation,
                    database: None,
                    accepts_any: false,
                };
                (remembered, true)
            }
            Ok(Err(_)) | Err(_) => {
                tracing::error!(path = %path.display(),
                    "cannot read which database this node works for; none is believed before \
                     `dayflyd database accept`");
                let database = DatabaseMark {
                    id: UNKNOWN_DATABASE.to_owned(),
                    epoch: 0,
                    changes: 0,
                };
                let remembered = Remembered {
                    incarnation,
                    database: Some(database),
                    accepts_any: false,
                };
                (remembered, false)
            }
        };
        let identity = Self {
            path,
            remembered: Mutex::new(remembered.clone()),
            writing: Mutex::default(),
            began_empty: AtomicBool::new(false),
        };
        if is_new {
            identity.write(remembered)?;
        }
        Ok(identity)
    }

    fn lock(&self) -> MutexGuard<'_, Remembered> {
        self.remembered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self) -> Remembered {
        self.lock().clone()
    }

    fn write(&self, changed: Remembered) -> Result<(), IdentityError> {
        // Plain data always has a JSON form.
        let text = serde_json::to_vec_pretty(&changed).unwrap_or_default();
        write_atomic(&self.path, &text, 0o600).map_err(|error| IdentityError::Write {
            path: self.path.clone(),
            source: error.source,
        })?;
        *self.lock() = changed;
        Ok(())
    }

    /// Changes what is remembered, on disk and then in memory. Blocks.
    fn change(
        &self,
        change: impl FnOnce(&mut Remembered) -> Result<(), NodeError>,
    ) -> Result<(), NodeError> {
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changed = self.read();
        change(&mut changed)?;
        let written = self.write(changed);
        written.map_err(|error| crate::failure::node_error("the node cannot remember it", &error))
    }
}

fn random_name() -> Result<String, IdentityError> {
    let mut random = [0_u8; 16];
    getrandom::fill(&mut random).map_err(|_| IdentityError::Randomness)?;
    Ok(hex::encode(random))
}

fn has_nothing(parts: &Parts) -> bool {
    parts.sandboxes().is_empty()
        && parts.kept.is_empty()
        && parts.captures.all().is_empty()
        && parts.captures.damaged().is_empty()
        && parts.volumes.is_empty()
}

/// Notes whether there is anything, before anybody is served.
pub(crate) fn note_beginning(parts: &Parts) {
    let began_empty = has_nothing(parts);
    parts
        .identity
        .began_empty
        .store(began_empty, Ordering::SeqCst);
}

impl Node {
    /// Whether there is nothing here that a database could lose.
    async fn is_empty(&self) -> bool {
        let parts = Arc::clone(&self.parts);
        parts.identity.began_empty.load(Ordering::SeqCst)
            || off_runtime(move || has_nothing(&parts)).await
    }

    async fn change_identity(
        &self,
        change: impl FnOnce(&mut Remembered) -> Result<(), NodeError> + Send + 'static,
    ) -> Result<(), NodeError> {
        let parts = Arc::clone(&self.parts);
        let written = tokio::task::spawn_blocking(move || parts.identity.change(change)).await;
        written
            .map_err(|error| crate::failure::node_error("the node cannot remember it", &error))?
    }
}

impl NodeIdentity for Node {
    async fn hello(&self, peer: Greeting) -> Result<Greeting, NodeError> {
        tracing::debug!(program = peer.program, "a control plane begins to speak");
        let formats = [
            ("journal", JOURNAL_FORMAT_NEWEST),
            ("capture", CAPTURE_FORMAT),
            ("template", MANIFEST_FORMAT),
        ];
        let formats = formats.map(|(name, format)| (name.to_owned(), format));
        Ok(Greeting::ours(formats.into()))
    }

    async fn identity(&self) -> Result<IdentityReport, NodeError> {
        let Remembered {
            incarnation,
            database,
            accepts_any,
        } = self.parts.identity.read();
        Ok(IdentityReport {
            incarnation,
            database,
            accepts_any,
            is_empty: self.is_empty().await,
        })
    }

    async fn remember_database(&self, database: DatabaseMark) -> Result<(), NodeError> {
        let is_empty = self.is_empty().await;
        self.change_identity(move |remembered| {
            let known = remembered.database.as_ref();
            let is_strange = known.is_some_and(|known| {
                (known.id != database.id && !is_empty) || database.is_before(known)
            });
            if is_strange && !remembered.accepts_any {
                let text = "this is not the database that the node knows, or an older state of it";
                return Err(NodeError::new(ErrorCode::WrongState, text));
            }
            remembered.database = Some(database);
            remembered.accepts_any = false;
            Ok(())
        })
        .await?;
        self.parts
            .identity
            .began_empty
            .store(false, Ordering::SeqCst);
        Ok(())
    }

    async fn accept_database(&self) -> Result<(), NodeError> {
        tracing::warn!("the operator accepts the next database");
        self.change_identity(|remembered| {
            remembered.accepts_any = true;
            Ok(())
        })
        .await
    }

    async fn forget_unreadable(&self, id: &SandboxId) -> Result<(), NodeError> {
        kept::forget(&self.parts, id).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_found_again_and_an_unreadable_one_knows_no_database() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("identity.json");
        let first = Identity::open(path.clone()).unwrap().read();
        assert!(first.database.is_none());
        assert_eq!(Identity::open(path.clone()).unwrap().read(), first);
        fs::write(&path, b"{ torn").unwrap();
        let torn = Identity::open(path.clone()).unwrap().read();
        assert!(torn.database.is_some() && torn.incarnation != first.incarnation);
        assert_eq!(fs::read(&path).unwrap(), b"{ torn", "it was left alone");
    }
}

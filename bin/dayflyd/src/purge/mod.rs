//! `dayflyd purge`: a data directory goes, with everything that its daemon has on this host.

mod loss;
mod remove;

use std::path::PathBuf;

use anyhow::{Context, Result};
use dayfly_host::leftovers::Leftover;
use dayfly_installation::{DataDirectory, DataDirectoryError, LockError};
use serde::Serialize;

use self::loss::Loss;
use self::remove::Removal;
use crate::args::PurgeArguments;

/// What was lost, or would be.
#[derive(Debug, Serialize)]
pub(crate) struct Purged {
    pub(crate) data_dir: PathBuf,
    pub(crate) instance: String,
    #[serde(flatten)]
    pub(crate) loss: Loss,
    /// Whether it was done.
    pub(crate) purged: bool,
    /// What is still there of the installation. Nothing should be.
    pub(crate) leftovers: Vec<Leftover>,
    /// What somebody else put into the directory, and why it stays.
    pub(crate) stays: Vec<String>,
}

impl Purged {
    /// Whether nothing of the installation is left.
    pub(crate) fn is_done(&self) -> bool {
        self.purged && self.leftovers.is_empty()
    }
}

/// Counts what would be lost, and with `--yes` removes it.
pub(crate) async fn run(arguments: &PurgeArguments) -> Result<Purged> {
    let directory = DataDirectory::open(&arguments.data_dir)?;
    let root = directory.root().to_owned();
    // Whatever has no such file is somebody else's.
    let instance = directory.instance()?.with_context(|| {
        let root = root.display();
        format!("{root} is no data directory of dayflyd: it has no instance.json")
    })?;
    let lock = directory.lock().map_err(|error| {
        let is_taken = matches!(error, DataDirectoryError::Lock(LockError::Taken { .. }));
        let error = anyhow::Error::new(error);
        if is_taken {
            error.context("the daemon must be stopped first (SIGTERM, or systemctl stop dayflyd)")
        } else {
            error
        }
    })?;
    let mut purged = Purged {
        data_dir: root,
        instance: instance.instance.clone(),
        loss: Loss::of(&directory)?,
        purged: false,
        leftovers: Vec::new(),
        stays: Vec::new(),
    };
    if !arguments.yes {
        return Ok(purged);
    }
    let removal = Removal {
        directory,
        instance: instance.instance,
    };
    let removed = tokio::task::spawn_blocking(move || {
        let removed = removal.run();
        drop(lock);
        removed
    });
    (purged.leftovers, purged.stays) = removed.await??;
    purged.purged = true;
    Ok(purged)
}

/// For a person.
pub(crate) fn render(purged: &Purged) -> String {
    let (what, place) = (purged.loss.to_string(), purged.data_dir.display());
    if !purged.purged {
        return format!(
            "{place} would be removed, and with it: {what}\n\
             Nothing was done. `dayflyd backup` keeps what cannot be made again; `--yes` removes it \
             all, for good"
        );
    }
    let mut text = format!("{place} is removed, and with it: {what}");
    for item in &purged.leftovers {
        text.push_str(&format!(
            "\nleft over: {item:?}; try again, or restart the host"
        ));
    }
    for item in &purged.stays {
        text.push_str(&format!("\nstays: {item}"));
    }
    text
}

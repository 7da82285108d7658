//! `dayflyd restore`: a data directory from a backup, whole or not at all.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use dayfly_backup::BackupTarget;
use dayfly_control::store::check_database;
use dayfly_host::CgroupTree;
use dayfly_host::files::{remove_tree, sync_directory, sync_file};
use dayfly_installation::{DataDirectory, runtime};
use serde::Serialize;

use crate::args::RestoreArguments;
use crate::backup::check::read_all;
use crate::backup::progress::Progress;
use crate::backup::{Described, render as render_backup};

/// Of a data directory: the control process passes through.
const ROOT_MODE: u32 = 0o711;

/// What was made.
#[derive(Debug, Serialize)]
pub(crate) struct Restored {
    pub(crate) data_dir: PathBuf,
    pub(crate) backup: Described,
}

/// Makes a data directory. Until the last step nothing is at its place.
pub(crate) async fn run(arguments: &RestoreArguments) -> Result<Restored> {
    let place = Place::find(&arguments.data_dir)?;
    let (aside, target) = Aside::make(&place)?;
    let progress = Progress::new("restored", runtime::stop_on_signal()?);
    let backup = read_all(&arguments.from, Some(target), progress).await?;
    let directory = DataDirectory::open(&aside.path)?;
    let checked = check_database(&directory.database()).await;
    checked.context("the database of the backup is refused")?;
    let instance = directory
        .instance()?
        .context("the backup does not say whose it is")?;
    let groups = CgroupTree::find(&instance.instance).and_then(|tree| tree.list());
    // An empty tree may be left of a daemon that was stopped in the middle of a bake.
    let is_alone = groups
        .context("cannot see what runs on this host")?
        .is_empty();
    ensure!(
        is_alone,
        "the installation that this is a backup of ({}) has control groups on this host: its \
         daemon or its sandboxes may still run. Stop and purge it, or restart the host",
        instance.instance
    );
    hand_over(&directory, instance.control_uid())?;
    aside.take_place(&place)?;
    Ok(Restored {
        data_dir: place.path(),
        backup,
    })
}

/// The control process is not root, and its database is its own.
fn hand_over(directory: &DataDirectory, uid: u32) -> Result<()> {
    for path in [directory.control(), directory.database()] {
        chown(&path, Some(uid), Some(uid)).context("cannot hand the database over")?;
    }
    let root = directory.root();
    fs::set_permissions(root, Permissions::from_mode(ROOT_MODE))
        .and_then(|()| sync_file(&directory.database()))
        .and_then(|()| sync_directory(&directory.control()))
        .and_then(|()| sync_directory(root))
        .context("cannot make the directory durable")
}

/// Where the data directory will be.
#[derive(Debug)]
struct Place {
    parent: PathBuf,
    name: String,
}

impl Place {
    fn find(path: &Path) -> Result<Self> {
        let absolute = std::path::absolute(path).context("that is no path")?;
        let name = absolute
            .file_name()
            .context("that is no directory's name")?;
        let name = name
            .to_str()
            .context("the name of the directory is no text")?
            .to_owned();
        let parent = absolute.parent().context("that is no directory's name")?;
        let parent = parent.canonicalize().with_context(|| {
            format!(
                "cannot find {}, in which the directory would be made",
                parent.display()
            )
        })?;
        let place = Self { parent, name };
        place.must_be_free()?;
        Ok(place)
    }

    fn path(&self) -> PathBuf {
        self.parent.join(&self.name)
    }

    fn must_be_free(&self) -> Result<()> {
        let path = self.path();
        let found = match fs::symlink_metadata(&path) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error).context("cannot look at the data directory"),
        };
        ensure!(found.is_dir(), "{} is no directory", path.display());
        let is_empty = fs::read_dir(&path)
            .context("cannot list the data directory")?
            .next()
            .is_none();
        if !is_empty {
            bail!(
                "{} is not empty, and a restore writes over nothing, be it older or newer. Name \
                 another --data-dir, move what is there away, or remove it with `dayflyd purge`",
                path.display()
            );
        }
        let parent = fs::metadata(&self.parent).context("cannot look beside the data directory")?;
        ensure!(
            found.dev() == parent.dev(),
            "{} is where a file system is mounted, which cannot be put into its place in one step; \
             name a directory below it, and have the daemon use that",
            path.display()
        );
        Ok(())
    }

    fn aside(&self, process: u32) -> PathBuf {
        self.parent.join(format!("{}{process}", self.prefix()))
    }

    fn prefix(&self) -> String {
        format!(".{}.restoring-", self.name)
    }
}

/// A directory beside the place, gone unless it takes it.
#[derive(Debug)]
struct Aside {
    path: PathBuf,
    is_in_place: bool,
}

impl Aside {
    fn make(place: &Place) -> Result<(Self, BackupTarget)> {
        remove_abandoned(place)?;
        let path = place.aside(std::process::id());
        let target =
            BackupTarget::make(&path).context("cannot make a directory beside the data")?;
        let aside = Self {
            path,
            is_in_place: false,
        };
        Ok((aside, target))
    }

    fn take_place(mut self, place: &Place) -> Result<()> {
        // Nobody may have begun to use it while the backup was read.
        place.must_be_free()?;
        fs::rename(&self.path, place.path()).context("cannot put the directory into its place")?;
        self.is_in_place = true;
        sync_directory(&place.parent).context("cannot make the directory durable")
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if !self.is_in_place
            && let Err(error) = remove_tree(&self.path)
        {
            let error = dayfly_types::error_chain(&error);
            tracing::warn!(error, path = %self.path.display(), "something of the restore stays");
        }
    }
}

/// Removes what restores left that were killed.
fn remove_abandoned(place: &Place) -> Result<()> {
    for item in fs::read_dir(&place.parent).context("cannot look beside the data directory")? {
        let name = item
            .context("cannot look beside the data directory")?
            .file_name();
        let name = name.to_string_lossy();
        let process = name
            .strip_prefix(&place.prefix())
            .and_then(|text| text.parse::<u32>().ok());
        let Some(process) = process else { continue };
        if !Path::new(&format!("/proc/{process}")).exists() {
            remove_tree(&place.aside(process)).context("cannot remove what a restore left")?;
        }
    }
    Ok(())
}

/// For a person.
pub(crate) fn render(restored: &Restored) -> String {
    format!(
        "{} is there; start the daemon on it\n{}",
        restored.data_dir.display(),
        render_backup(&restored.backup)
    )
}

#[cfg(test)]
#[path = "restore_tests.rs"]
mod tests;

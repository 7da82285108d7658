//! Filling a root.

use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use super::{EngineRootError, EngineRootSpec, Plan};

const DEVICES: &str = "/dev";
const DIRECTORY_MODE: u32 = 0o755;
const PROGRAM_MODE: u32 = 0o711;
const EXECUTABLE_MODE: u32 = 0o755;
const PLAIN_MODE: u32 = 0o644;

pub(super) fn build(
    spec: &EngineRootSpec,
    plan: &Plan,
    root: &Path,
) -> Result<(), EngineRootError> {
    let mut tree = Tree {
        root: root.to_owned(),
        directories: BTreeSet::new(),
    };
    tree.make_directory(Path::new("/"))?;
    for (target, source) in plan {
        let program = (*target == spec.program).then_some(PROGRAM_MODE);
        tree.copy(source, target, program)?;
    }
    let devices = PathBuf::from(DEVICES);
    for directory in spec.mount_directories.iter().chain([&devices]) {
        let place = tree.place(directory)?;
        tree.make_directory(&place)?;
    }
    for file in &spec.mount_files {
        let place = tree.place(file)?;
        tree.make_parent(&place)?;
        let path = tree.outer(&place);
        File::create_new(&path).map_err(|source| EngineRootError::Write { path, source })?;
    }
    tree.sync()
}

struct Tree {
    root: PathBuf,
    directories: BTreeSet<PathBuf>,
}

impl Tree {
    fn outer(&self, place: &Path) -> PathBuf {
        self.root.join(place.strip_prefix("/").unwrap_or(place))
    }

    /// Where a path ends up. A host with `/lib -> usr/lib` gets the same link in the root, because
    /// loaders have both spellings built in.
    fn place(&self, path: &Path) -> Result<PathBuf, EngineRootError> {
        let Some(Component::Normal(first)) = path.components().nth(1) else {
            return Ok(path.to_owned());
        };
        let top = Path::new("/").join(first);
        let Ok(target) = fs::read_link(&top) else {
            return Ok(path.to_owned());
        };
        let inner = Path::new("/").join(&target);
        let plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
        let rest = path.strip_prefix(&top).unwrap_or(path);
        if !inner.components().all(plain) || rest.as_os_str().is_empty() {
            return Err(EngineRootError::Path {
                path: path.to_owned(),
            });
        }
        let link = self.outer(&top);
        match symlink(inner.strip_prefix("/").unwrap_or(&inner), &link) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(EngineRootError::Write {
                    path: link,
                    source: error,
                })
            }
            _ => Ok(inner.join(rest)),
        }
    }

    fn make_parent(&mut self, place: &Path) -> Result<(), EngineRootError> {
        self.make_directory(place.parent().unwrap_or(Path::new("/")))
    }

    fn make_directory(&mut self, place: &Path) -> Result<(), EngineRootError> {
        if self.directories.contains(place) {
            return Ok(());
        }
        if let Some(parent) = place.parent() {
            self.make_directory(parent)?;
        }
        let path = self.outer(place);
        // The umask must not decide whether the engine's user may pass.
        fs::create_dir(&path)
            .and_then(|()| fs::set_permissions(&path, Permissions::from_mode(DIRECTORY_MODE)))
            .map_err(|source| EngineRootError::Write { path, source })?;
        self.directories.insert(place.to_owned());
        Ok(())
    }

    fn copy(
        &mut self,
        source: &Path,
        target: &Path,
        mode: Option<u32>,
    ) -> Result<(), EngineRootError> {
        let place = self.place(target)?;
        self.make_parent(&place)?;
        let path = self.outer(&place);
        let read = |error| EngineRootError::Read {
            path: source.to_owned(),
            source: error,
        };
        let write = |error| EngineRootError::Write {
            path: path.clone(),
            source: error,
        };
        let mut from = File::open(source).map_err(read)?;
        let is_executable = from.metadata().map_err(read)?.permissions().mode() & 0o111 != 0;
        let plain = if is_executable {
            EXECUTABLE_MODE
        } else {
            PLAIN_MODE
        };
        let mut to = match File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
        {
            // Two spellings of one place; the sources are the same file or the first one wins.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
            other => other.map_err(write)?,
        };
        io::copy(&mut from, &mut to).map_err(write)?;
        let mode = Permissions::from_mode(mode.unwrap_or(plain));
        to.set_permissions(mode)
            .and_then(|()| crate::files::sync(&to))
            .map_err(write)
    }

    fn sync(&self) -> Result<(), EngineRootError> {
        for directory in &self.directories {
            let path = self.outer(directory);
            crate::files::sync_directory(&path)
                .map_err(|source| EngineRootError::Write { path, source })?;
        }
        Ok(())
    }
}

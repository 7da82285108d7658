//! Removing a tree whose contents a hostile process may have arranged.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, ResolveFlags, openat2, renameat_with,
    unlinkat,
};
use rustix::io::Errno;

use super::open_directory;

/// One for each level of depth, so this is far above any tree. It ends the work when a process
/// that was not ended first keeps making new entries.
const PASSES_MAX: u32 = 1_000_000;

/// Removes a file or a directory with all that is in it. What is absent is no error.
///
/// No link is followed and no mount is entered. Depth does not matter: directories are moved up to
/// the top before they are emptied, so that a deep tree costs neither stack nor descriptors.
///
/// # Errors
/// [`RemoveTreeError::Mount`] when something is mounted inside; what could be removed before is.
pub fn remove_tree(path: &Path) -> Result<(), RemoveTreeError> {
    let failed = |source| failure(path, source);
    let name = path.file_name().ok_or_else(|| failed(Errno::INVAL))?;
    let parent = match open_directory(path.parent().unwrap_or(Path::new("/"))) {
        Ok(parent) => parent,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => {
            return Err(RemoveTreeError::Remove {
                path: path.to_owned(),
                source,
            });
        }
    };
    match unlinkat(&parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR) => {}
        Err(error) => return Err(failed(error)),
    }
    let Some(top) = enter(&parent, name).map_err(failed)? else {
        return Ok(());
    };
    empty_top(&top).map_err(failed)?;
    remove_empty(&parent, name).map_err(failed)
}

/// Why a tree could not be removed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveTreeError {
    #[error("something is mounted at or below {path}")]
    Mount { path: PathBuf },
    #[error("cannot remove {path}")]
    Remove { path: PathBuf, source: io::Error },
}

fn failure(path: &Path, error: Errno) -> RemoveTreeError {
    let path = path.to_owned();
    match error {
        // Crossing into a mount, and removing or renaming a mount point.
        Errno::XDEV | Errno::BUSY => RemoveTreeError::Mount { path },
        other => RemoveTreeError::Remove {
            path,
            source: other.into(),
        },
    }
}

/// Opens a directory inside another; `None` when it is gone.
fn enter(parent: impl AsFd, name: impl rustix::path::Arg) -> rustix::io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    match openat2(parent, name, flags, Mode::empty(), resolve) {
        Ok(directory) => Ok(Some(directory)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

fn remove_empty(parent: impl AsFd, name: impl rustix::path::Arg) -> rustix::io::Result<()> {
    match unlinkat(parent, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error),
    }
}

fn empty_top(top: &OwnedFd) -> rustix::io::Result<()> {
    let mut moved = 0_u64;
    for _ in 0..PASSES_MAX {
        let pass = unlink_files(top)?;
        if pass.entries == 0 {
            return Ok(());
        }
        for name in pass.directories {
            let Some(directory) = enter(top, &name)? else {
                continue;
            };
            for inner in unlink_files(&directory)?.directories {
                move_up(&directory, &inner, top, &mut moved)?;
            }
            match remove_empty(top, &name) {
                // A listing may skip entries while others are removed; the next pass finds them.
                Ok(()) | Err(Errno::NOTEMPTY) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Err(Errno::NOTEMPTY)
}

/// What one look at a directory found.
#[derive(Default)]
struct Pass {
    entries: usize,
    directories: Vec<CString>,
}

/// Unlinks all that is not a directory.
fn unlink_files(directory: &OwnedFd) -> rustix::io::Result<Pass> {
    let mut pass = Pass::default();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        pass.entries += 1;
        if entry.file_type() == FileType::Directory || !unlink_file(directory, name)? {
            pass.directories.push(name.to_owned());
        }
    }
    Ok(pass)
}

/// `false` when it turns out to be a directory, which not every file system says when listing.
fn unlink_file(directory: &OwnedFd, name: &CStr) -> rustix::io::Result<bool> {
    match unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::ISDIR) => Ok(false),
        Err(error) => Err(error),
    }
}

fn move_up(from: &OwnedFd, name: &CStr, top: &OwnedFd, moved: &mut u64) -> rustix::io::Result<()> {
    loop {
        *moved += 1;
        let new_name = format!(".removing-{moved}");
        match renameat_with(from, name, top, &new_name, RenameFlags::NOREPLACE) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            // Taken by an entry of the tree itself or by an earlier attempt.
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_out_of_the_tree_are_removed_and_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let outside = root.join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("canary"), "alive").unwrap();
        let tree = root.join("tree");
        fs::create_dir_all(tree.join("a/b/.removing-1")).unwrap();
        fs::write(tree.join("a/b/file"), "x").unwrap();
        symlink(&outside, tree.join("a/link")).unwrap();
        symlink(outside.join("canary"), tree.join("a/b/.removing-1/link")).unwrap();
        remove_tree(&tree).unwrap();
        assert!(!tree.exists());
        assert_eq!(fs::read_to_string(outside.join("canary")).unwrap(), "alive");
        remove_tree(&tree).unwrap();
        remove_tree(&root.join("no/such/parent")).unwrap();
    }

    #[test]
    fn a_link_at_the_top_is_removed_itself_and_one_in_the_path_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("real/inner")).unwrap();
        symlink("real", root.join("alias")).unwrap();
        assert!(remove_tree(&root.join("alias/inner")).is_err());
        assert!(root.join("real/inner").exists());
        remove_tree(&root.join("alias")).unwrap();
        assert!(root.join("real/inner").exists());
    }

    #[test]
    fn many_files_and_directories_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let tree = directory.path().canonicalize().unwrap().join("wide");
        for number in 0..40 {
            let inner = tree.join(format!("d{number}"));
            fs::create_dir_all(inner.join("empty")).unwrap();
            (0..100).for_each(|file| fs::write(inner.join(file.to_string()), "").unwrap());
        }
        remove_tree(&tree).unwrap();
        assert!(!tree.exists());
    }

    #[test]
    fn a_tree_deeper_than_any_path_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let tree = directory.path().canonicalize().unwrap().join("deep");
        fs::create_dir(&tree).unwrap();
        let mut current = open_directory(&tree).unwrap();
        for _ in 0..3000 {
            rustix::fs::mkdirat(&current, "d", Mode::RWXU).unwrap();
            current = enter(&current, "d").unwrap().unwrap();
        }
        remove_tree(&tree).unwrap();
        assert!(!tree.exists());
    }

    #[test]
    fn a_mount_inside_is_not_entered() {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: mounting needs root");
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let (outside, inside) = (root.join("outside"), root.join("tree/a/mount"));
        fs::create_dir_all(&outside).unwrap();
        fs::create_dir_all(&inside).unwrap();
        fs::write(outside.join("canary"), "alive").unwrap();
        rustix::mount::mount_bind(&outside, &inside).unwrap();
        let result = remove_tree(&root.join("tree"));
        let survived = outside.join("canary").exists();
        let mounted: Vec<_> = crate::mounts::own_mounts()
            .unwrap()
            .into_iter()
            .filter(|mount| mount.mount_point.starts_with(&root))
            .collect();
        for mount in &mounted {
            let flags = rustix::mount::UnmountFlags::DETACH;
            rustix::mount::unmount(&mount.mount_point, flags).unwrap();
        }
        assert!(matches!(result, Err(RemoveTreeError::Mount { .. })));
        assert!(survived);
        assert_eq!(mounted.len(), 1);
        remove_tree(&root.join("tree")).unwrap();
    }
}

//! Opening what a path names, and nothing that a link in it points at.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};

/// Opens a path for reference only, refusing a symbolic link in any of its components.
///
/// # Errors
/// `ELOOP` when there is a link, else what the kernel said.
pub fn open_without_links(path: &Path) -> io::Result<OwnedFd> {
    // Not with `NOFOLLOW`: together with `PATH` that asks for the link itself and gets it.
    open_plain(path, OFlags::PATH)
}

/// Opens a directory for reading, refusing a symbolic link in any component of its path.
///
/// # Errors
/// `ELOOP` when there is a link, else what the kernel said.
pub fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    open_plain(path, OFlags::RDONLY | OFlags::DIRECTORY)
}

fn open_plain(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(openat2(
        CWD,
        path,
        flags | OFlags::CLOEXEC,
        Mode::empty(),
        resolve,
    )?)
}

/// Gives a regular file a second name. The first may lie where a hostile process could have
/// planted a link, so what was linked is looked at afterwards. Answers its size.
///
/// # Errors
/// What the kernel said, or [`io::ErrorKind::InvalidInput`] for anything but a regular file that
/// had one name.
pub fn link_regular(from: &Path, to: &Path) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    // A link to a link is a link, which is then found to be no regular file.
    std::fs::hard_link(from, to)?;
    let metadata = std::fs::symlink_metadata(to)?;
    if metadata.is_file() && metadata.nlink() == 2 {
        return Ok(metadata.len());
    }
    std::fs::remove_file(to)?;
    Err(io::ErrorKind::InvalidInput.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_in_any_component_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        std::fs::write(root.join("real/file"), "x").unwrap();
        symlink("real", root.join("alias")).unwrap();
        symlink("file", root.join("real/link")).unwrap();
        assert!(open_without_links(&root.join("real/file")).is_ok());
        for path in ["alias/file", "real/link", "alias"] {
            let error = open_without_links(&root.join(path)).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ELOOP), "{path}");
        }
        assert!(open_directory(&root.join("alias")).is_err());
        assert!(open_without_links(Path::new("")).is_err());
    }
}

//! Small file operations whose order and flags matter.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use dayfly_host::files::{copy_sparse, sync};
use rustix::fs::OFlags;

/// Mode of everything that was published: nobody writes it any more.
pub(crate) const SEALED_MODE: u32 = 0o444;

/// Opens a regular file for reading. A symbolic link is refused, because the file may lie where a
/// less trusted program could have put one.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ));
    }
    Ok(file)
}

/// Makes a file read-only, root's where we are root, and durable.
pub(crate) fn seal(path: &Path) -> io::Result<()> {
    sync(close_to_writers(path)?)
}

/// Makes a file read-only, and root's where we are root.
pub(crate) fn close_to_writers(path: &Path) -> io::Result<File> {
    let file = open_regular(path)?;
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::fchown(&file, Some(0), Some(0))?;
    }
    file.set_permissions(std::fs::Permissions::from_mode(SEALED_MODE))?;
    Ok(file)
}

/// Writes a new file; there must be none of that name, and a link is never followed.
pub(crate) fn write_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)?;
    file.write_all(bytes)?;
    // The mode given at creation passes through the umask.
    file.set_permissions(std::fs::Permissions::from_mode(mode))?;
    sync(&file)
}

/// Moves a file in, by renaming where that is possible and by copying where it is not.
///
/// The source may lie in a directory that an engine could write, so what arrives must be the
/// regular file that was looked at, under no second name.
pub(crate) fn move_regular(from: &Path, to: &Path) -> io::Result<()> {
    let file = open_regular(from)?;
    let looked_at = file.metadata()?;
    if looked_at.nlink() != 1 {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the file has another name",
        ));
    }
    match std::fs::rename(from, to) {
        Ok(()) => {
            let arrived = std::fs::symlink_metadata(to)?;
            if (arrived.dev(), arrived.ino()) != (looked_at.dev(), looked_at.ino()) {
                std::fs::remove_file(to)?;
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "the file was replaced",
                ));
            }
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            copy_open(&file, to)?;
            std::fs::remove_file(from)
        }
        Err(error) => Err(error),
    }
}

/// Puts a sealed file under a second name, by a hard link where that is possible and by copying
/// where it is not.
pub(crate) fn link_or_copy(from: &Path, to: &Path) -> io::Result<()> {
    match std::fs::hard_link(from, to) {
        Ok(()) => Ok(()),
        // Other file system, or one without links or with its link count used up.
        Err(error) if error.kind() != io::ErrorKind::NotFound => copy(from, to),
        Err(error) => Err(error),
    }
}

/// Copies a file, sharing blocks where the file system can and leaving holes where there are.
pub(crate) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    copy_open(&open_regular(from)?, to)
}

fn copy_open(from: &File, to: &Path) -> io::Result<()> {
    let target = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(to)?;
    let copied = match rustix::fs::ioctl_ficlone(&target, from) {
        Ok(()) => Ok(()),
        Err(_) => copy_sparse(from, &target).map(drop),
    };
    if copied.is_err() {
        // Half a copy under the right name would be taken for a whole one.
        let _ = std::fs::remove_file(to);
    }
    copied
}

/// Bytes that the files of a directory take on disk; holes take none. Nothing when it cannot be read.
pub(crate) fn bytes_on_disk(directory: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return 0;
    };
    let blocks = entries
        .flatten()
        .filter_map(|entry| entry.metadata().ok())
        .map(|metadata| metadata.blocks());
    blocks.sum::<u64>() * 512
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_second_names_are_not_moved() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("real"), b"x").unwrap();
        std::os::unix::fs::symlink(at("real"), at("link")).unwrap();
        assert!(move_regular(&at("link"), &at("moved")).is_err());
        std::fs::hard_link(at("real"), at("second")).unwrap();
        assert!(move_regular(&at("real"), &at("moved")).is_err());
        std::fs::remove_file(at("second")).unwrap();
        move_regular(&at("real"), &at("moved")).unwrap();
        assert_eq!(std::fs::read(at("moved")).unwrap(), b"x");
    }

    #[test]
    fn sealed_file_is_read_only() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, b"x").unwrap();
        seal(&path).unwrap();
        assert_eq!(path.metadata().unwrap().mode() & 0o7777, SEALED_MODE);
    }

    #[test]
    fn holes_take_no_room() {
        let place = tempfile::tempdir().unwrap();
        let mut file = File::create(place.path().join("disk")).unwrap();
        file.set_len(64 << 20).unwrap();
        assert!(bytes_on_disk(place.path()) < 1 << 20);
        file.write_all(&[1; 2 << 20]).unwrap();
        file.sync_all().unwrap();
        let taken = bytes_on_disk(place.path());
        assert!((2 << 20..4 << 20).contains(&taken), "{taken}");
        assert_eq!(bytes_on_disk(&place.path().join("absent")), 0);
    }
}

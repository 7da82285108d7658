//! Writing so that a crash leaves the old contents or the new, and nothing between.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, fchmod, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;

use super::sync::sync;

/// How many names to try for the temporary file. A crashed process may have left a few behind.
const ATTEMPTS_MAX: u32 = 1000;

/// Replaces a file with `bytes` in one step that survives a power cut.
///
/// # Errors
/// See [`WriteAtomicError`]. The old contents stand on any error before the rename.
pub fn write_atomic(path: &Path, bytes: &[u8], mode: u32) -> Result<(), WriteAtomicError> {
    let failed = |step| {
        let path = path.to_owned();
        move |source| WriteAtomicError { path, step, source }
    };
    let no_name = || failed("name")(io::Error::from(io::ErrorKind::InvalidInput));
    let name = path.file_name().ok_or_else(no_name)?;
    let directory = open_parent(path).map_err(failed("open the directory of"))?;
    let temporary = create_temporary(&directory, name).map_err(failed("create a copy beside"))?;
    let written = fill(&temporary, bytes, mode).map_err(failed("fill the copy beside"));
    let renamed = written.and_then(|()| {
        renameat(&directory, &temporary.name, &directory, name)
            .map_err(|error| failed("rename the copy over")(error.into()))
    });
    if renamed.is_err() {
        // The failure itself is what the caller needs to hear of.
        let _ = unlinkat(&directory, &temporary.name, AtFlags::empty());
    }
    renamed?;
    sync(&directory).map_err(failed("sync the directory of"))
}

/// Makes a directory and its parents, each synced into its own parent. Existing ones are kept.
///
/// # Errors
/// What the kernel said, also when something else than a directory is in the way.
pub fn make_directory_durable(path: &Path, mode: u32) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        make_directory_durable(parent, mode)?;
    }
    match mkdirat(CWD, path, Mode::from_raw_mode(mode)) {
        Ok(()) => {}
        Err(Errno::EXIST) if path.is_dir() => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    let made = openat(CWD, path, directory_flags(), Mode::empty())?;
    // The mode of `mkdir` is cut by the umask; this one is not.
    fchmod(&made, Mode::from_raw_mode(mode))?;
    sync(&made)?;
    sync(open_parent(path)?)
}

/// Why a file could not be replaced.
#[derive(Debug, thiserror::Error)]
#[error("cannot {step} {path}")]
pub struct WriteAtomicError {
    pub path: PathBuf,
    pub step: &'static str,
    pub source: io::Error,
}

struct Temporary {
    name: String,
    file: File,
}

fn directory_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC
}

fn open_parent(path: &Path) -> io::Result<OwnedFd> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or_else(|| Path::new("."));
    Ok(openat(CWD, parent, directory_flags(), Mode::empty())?)
}

fn create_temporary(directory: &OwnedFd, name: &OsStr) -> io::Result<Temporary> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let process = std::process::id();
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for _ in 0..ATTEMPTS_MAX {
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let name = format!(".{}.{process}-{number}.tmp", name.to_string_lossy());
        match openat(directory, &name, flags, Mode::RUSR | Mode::WUSR) {
            Ok(descriptor) => {
                return Ok(Temporary {
                    name,
                    file: File::from(descriptor),
                });
            }
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::Error::from(io::ErrorKind::AlreadyExists))
}

fn fill(temporary: &Temporary, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = &temporary.file;
    file.write_all(bytes)?;
    fchmod(file, Mode::from_raw_mode(mode))?;
    sync(file)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn contents_and_mode_are_replaced_and_nothing_else_remains() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        write_atomic(&path, b"one", 0o600).unwrap();
        write_atomic(&path, b"two", 0o640).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
            0o640
        );
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_at_the_path_is_replaced_and_its_target_untouched() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("target");
        fs::write(&target, "precious").unwrap();
        let path = directory.path().join("link");
        symlink(&target, &path).unwrap();
        write_atomic(&path, b"new", 0o600).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
    }

    #[test]
    fn failure_names_its_step_and_leaves_no_temporary_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("occupied");
        fs::create_dir(&path).unwrap();
        let error = write_atomic(&path, b"x", 0o600).unwrap_err();
        assert_eq!(error.step, "rename the copy over");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        let error = write_atomic(&directory.path().join("no/file"), b"x", 0o600).unwrap_err();
        assert_eq!(error.step, "open the directory of");
    }

    #[test]
    fn directories_are_made_with_their_parents_and_may_be_made_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/b/c");
        make_directory_durable(&path, 0o711).unwrap();
        make_directory_durable(&path, 0o711).unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
            0o711
        );
        fs::write(path.join("file"), "").unwrap();
        assert!(make_directory_durable(&path.join("file"), 0o700).is_err());
    }
}

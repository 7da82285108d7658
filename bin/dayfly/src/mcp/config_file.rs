//! A configuration file that belongs to another program: read, copied beside itself, replaced as a
//! whole.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tempfile::NamedTempFile;

/// A configuration of a person is far shorter.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Copies that were made within one second.
const COPIES_MAX: usize = 100;

/// Why a file was not read or changed. It is as it was in every case.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigFileError {
    #[error("{} is in a directory of another user", path.display())]
    Foreign { path: PathBuf },
    #[error("{} is a link that leads nowhere", path.display())]
    Dangling { path: PathBuf },
    #[error("{} is too long", path.display())]
    TooLong { path: PathBuf },
    #[error("{} was changed by somebody else meanwhile, and is left as it is", path.display())]
    Changed { path: PathBuf },
    #[error("cannot {action} {}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// A file as it was read.
#[derive(Debug)]
pub(crate) struct ConfigFile {
    path: PathBuf,
    /// Absent: there is no file.
    text: Option<String>,
}

impl ConfigFile {
    /// Reads the file. A link is kept, and what it leads to is meant.
    pub(crate) fn read(path: &Path) -> Result<Self, ConfigFileError> {
        let path = resolved(path)?;
        let text = read(&path)?;
        Ok(Self { path, text })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Replaces the file, and gives where what was there is kept.
    pub(crate) fn replace(&self, new: &str) -> Result<Option<PathBuf>, ConfigFileError> {
        let failed = |source| failed("write", &self.path, source);
        let directory = self.path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(directory).map_err(failed)?;
        let Some(old) = &self.text else {
            let written = prepared(directory, new, None).map_err(failed)?;
            return match written.persist_noclobber(&self.path) {
                Ok(_) => Ok(None),
                Err(error) if is_there(&error.error) => Err(self.changed()),
                Err(error) => Err(failed(error.error)),
            };
        };
        let found = fs::metadata(&self.path).map_err(failed)?;
        let copy = self.copy(directory, old, &found)?;
        let written = prepared(directory, new, Some(&found)).map_err(failed)?;
        // As late as can be: its owner may have written to it since it was read.
        if read(&self.path)?.as_ref() != Some(old) {
            // What was copied is not what is there any more, so the copy is of no use.
            let _ = fs::remove_file(&copy);
            return Err(self.changed());
        }
        written
            .persist(&self.path)
            .map_err(|error| failed(error.error))?;
        Ok(Some(copy))
    }

    fn changed(&self) -> ConfigFileError {
        ConfigFileError::Changed {
            path: self.path.clone(),
        }
    }

    /// Puts what was there beside it, under a name that nothing has yet.
    fn copy(
        &self,
        directory: &Path,
        old: &str,
        found: &fs::Metadata,
    ) -> Result<PathBuf, ConfigFileError> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let seconds = now.map(|since| since.as_secs()).unwrap_or_default();
        let name = self.path.file_name().unwrap_or_default();
        let mut copy = prepared(directory, old, Some(found))
            .map_err(|source| failed("copy", &self.path, source))?;
        for number in 1..=COPIES_MAX {
            let mut name = name.to_os_string();
            name.push(format!(".before-dayfly-{seconds}"));
            if number > 1 {
                name.push(format!("-{number}"));
            }
            let path = self.path.with_file_name(name);
            match copy.persist_noclobber(&path) {
                Ok(_) => return Ok(path),
                Err(error) if is_there(&error.error) => copy = error.file,
                Err(error) => return Err(failed("write", &path, error.error)),
            }
        }
        let source = io::Error::from(io::ErrorKind::AlreadyExists);
        Err(failed("copy", &self.path, source))
    }
}

fn is_there(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AlreadyExists
}

fn failed(action: &'static str, path: &Path, source: io::Error) -> ConfigFileError {
    let path = path.to_owned();
    ConfigFileError::Io {
        action,
        path,
        source,
    }
}

/// Refuses to write where another user is at home, as root does after `sudo`: the file would be
/// root's, and its client could not write it any more.
pub(crate) fn check_owner(home: &Path) -> Result<(), ConfigFileError> {
    let found = fs::metadata(home).map_err(|source| failed("find", home, source))?;
    if found.uid() == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    Err(ConfigFileError::Foreign {
        path: home.to_owned(),
    })
}

/// What a path leads to.
fn resolved(path: &Path) -> Result<PathBuf, ConfigFileError> {
    match fs::canonicalize(path) {
        Ok(resolved) => Ok(resolved),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let is_link = fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
            let path = path.to_owned();
            if is_link {
                return Err(ConfigFileError::Dangling { path });
            }
            Ok(path)
        }
        Err(error) => Err(failed("find", path, error)),
    }
}

fn read(path: &Path) -> Result<Option<String>, ConfigFileError> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("read", path, error)),
        Ok(found) if found.len() > FILE_BYTES_MAX => {
            let path = path.to_owned();
            return Err(ConfigFileError::TooLong { path });
        }
        Ok(_) => {}
    }
    let text = fs::read_to_string(path);
    text.map(Some).map_err(|error| failed("read", path, error))
}

/// A file that has no name yet, with the permissions that another has.
fn prepared(
    directory: &Path,
    text: &str,
    like: Option<&fs::Metadata>,
) -> io::Result<NamedTempFile> {
    let mut new = NamedTempFile::new_in(directory)?;
    new.write_all(text.as_bytes())?;
    if let Some(like) = like {
        new.as_file().set_permissions(like.permissions())?;
    }
    new.as_file().sync_all()?;
    Ok(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_never_takes_the_place_of_another() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a.json");
        let mut copies = Vec::new();
        for number in 0..5 {
            fs::write(&path, number.to_string()).unwrap();
            let file = ConfigFile::read(&path).unwrap();
            copies.push(file.replace("new").unwrap().unwrap());
        }
        for (number, copy) in copies.iter().enumerate() {
            assert_eq!(fs::read_to_string(copy).unwrap(), number.to_string());
        }
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 6);
    }

    #[test]
    fn what_somebody_wrote_meanwhile_stays() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a.json");
        for before in [Some("old"), None] {
            let _ = fs::remove_file(&path);
            if let Some(before) = before {
                fs::write(&path, before).unwrap();
            }
            let file = ConfigFile::read(&path).unwrap();
            fs::write(&path, "theirs").unwrap();
            let refused = file.replace("ours");
            assert!(matches!(refused, Err(ConfigFileError::Changed { .. })));
            assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
            assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
        }
    }

    #[test]
    fn a_link_stays_one_and_a_dangling_one_is_left_alone() {
        let place = tempfile::tempdir().unwrap();
        let (target, link) = (place.path().join("target"), place.path().join("link"));
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let dangling = ConfigFile::read(&link);
        assert!(matches!(dangling, Err(ConfigFileError::Dangling { .. })));
        fs::write(&target, "old").unwrap();
        ConfigFile::read(&link).unwrap().replace("new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");
    }

    #[test]
    fn permissions_stay_also_those_of_the_copy() {
        use std::os::unix::fs::PermissionsExt as _;
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a.json");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let copy = ConfigFile::read(&path).unwrap().replace("new").unwrap();
        for file in [&path, &copy.unwrap()] {
            let mode = fs::metadata(file).unwrap().mode();
            assert_eq!(mode & 0o777, 0o640, "{}", file.display());
        }
    }
}

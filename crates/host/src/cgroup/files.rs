//! The files and directories that groups consist of.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::CgroupError;

/// How long to wait before trying again to remove a group whose last member is still leaving.
const REMOVE_PAUSE: Duration = Duration::from_millis(1);

pub(super) fn make_directory(path: &Path) -> Result<(), CgroupError> {
    match fs::create_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(CgroupError::Make {
            path: path.to_owned(),
            source: error,
        }),
        _ => Ok(()),
    }
}

pub(super) fn remove_directories(
    directories: &[PathBuf],
    limit: Duration,
) -> Result<(), CgroupError> {
    let deadline = Instant::now() + limit;
    for path in directories {
        loop {
            match fs::remove_dir(path) {
                Ok(()) => break,
                Err(error) if is_absent(&error) => break,
                Err(error) if error.kind() != io::ErrorKind::ResourceBusy => {
                    return Err(CgroupError::Remove {
                        path: path.clone(),
                        source: error,
                    });
                }
                Err(source) if Instant::now() >= deadline => {
                    return Err(CgroupError::Busy {
                        path: path.clone(),
                        source,
                    });
                }
                // A member that has ended leaves its group a little later and no event says when.
                Err(_) => std::thread::sleep(REMOVE_PAUSE),
            }
        }
    }
    Ok(())
}

pub(super) fn subdirectories(directory: &Path) -> Result<Vec<String>, CgroupError> {
    let failed = |source| CgroupError::Read {
        path: directory.to_owned(),
        source,
    };
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if is_absent(&error) => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        if entry.file_type().map_err(failed)?.is_dir() {
            names.extend(entry.file_name().into_string());
        }
    }
    Ok(names)
}

pub(super) fn is_absent(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(rustix::io::Errno::NODEV.raw_os_error())
}

pub(super) fn write_value(path: &Path, value: &str) -> Result<(), CgroupError> {
    fs::write(path, value).map_err(|source| CgroupError::Write {
        path: path.to_owned(),
        value: value.to_owned(),
        source,
    })
}

pub(super) fn read_text(path: &Path) -> Result<String, CgroupError> {
    let text = fs::read_to_string(path).map_err(|source| CgroupError::Read {
        path: path.to_owned(),
        source,
    })?;
    Ok(text.trim().to_owned())
}

pub(super) fn read_number(path: &Path) -> Result<u64, CgroupError> {
    let text = read_text(path)?;
    text.parse().map_err(|_| CgroupError::Malformed {
        path: path.to_owned(),
        text,
    })
}

/// Reads one line of a `name value` table.
pub(super) fn read_field(path: &Path, field: &str) -> Result<u64, CgroupError> {
    let text = read_text(path)?;
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(field)?.trim().parse().ok());
    value.ok_or_else(|| CgroupError::Malformed {
        path: path.to_owned(),
        text,
    })
}

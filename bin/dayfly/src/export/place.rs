//! How far the export has come, over every end of this program.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use dayfly_client::ExportNumbers;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::failure::CommandError;

/// Where the export stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Place {
    /// Of which the numbers are. A backup that was put back has another one.
    pub(super) series: String,
    pub(super) audit: u64,
    pub(super) event: u64,
    /// Absent: no page has had decisions about egress yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) egress: Option<EgressPlace>,
}

/// Where the decisions about egress stand, which have numbers of their host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EgressPlace {
    pub(super) series: String,
    pub(super) number: u64,
}

impl Place {
    pub(super) fn numbers(&self) -> ExportNumbers {
        ExportNumbers {
            audit: self.audit,
            event: self.event,
            egress: self.egress.as_ref().map_or(0, |egress| egress.number),
        }
    }
}

/// A file with the place, which nobody else writes meanwhile.
#[derive(Debug)]
pub(super) struct PlaceFile {
    path: PathBuf,
    /// Absent: nothing was exported yet.
    noted: Option<Place>,
    _lock: File,
}

impl PlaceFile {
    /// Reads it; without one the export begins with the oldest that is kept.
    pub(super) fn open(path: &Path) -> Result<Self, CommandError> {
        let what = || format!("cannot use {}", path.display());
        let failed = |source| CommandError::local(what(), source);
        let lock = lock_beside(path).map_err(failed)?;
        let noted = match std::fs::read(path) {
            Ok(text) => serde_json::from_slice(&text)
                .map_err(|error| failed(io::Error::new(io::ErrorKind::InvalidData, error)))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        Ok(Self {
            path: path.to_owned(),
            noted,
            _lock: lock,
        })
    }

    pub(super) const fn noted(&self) -> Option<&Place> {
        self.noted.as_ref()
    }

    /// Notes a place. It is on disk when this returns, whole or not at all.
    pub(super) fn note(&mut self, place: &Place) -> Result<(), CommandError> {
        let what = || format!("cannot write {}", self.path.display());
        replace(&self.path, place).map_err(|source| CommandError::local(what(), source))?;
        self.noted = Some(place.clone());
        Ok(())
    }
}

/// A file beside it, held for as long as this program runs: the place itself is replaced.
fn lock_beside(path: &Path) -> io::Result<File> {
    let lock = OpenOptions::new()
        .create(true)
        .append(true)
        .open(path.with_added_extension("lock"))?;
    hold(&lock)?;
    Ok(lock)
}

/// Keeps every other export from a file for as long as it is open here.
pub(super) fn hold(file: &File) -> io::Result<()> {
    flock(file, FlockOperation::NonBlockingLockExclusive).map_err(|error| {
        if error == rustix::io::Errno::WOULDBLOCK {
            io::Error::other("another export uses it")
        } else {
            error.into()
        }
    })
}

/// The directory that a file is in.
pub(super) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn replace(path: &Path, place: &Place) -> io::Result<()> {
    let directory = directory_of(path);
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    serde_json::to_writer(&mut file, place)?;
    file.write_all(b"\n")?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_found_again_and_belongs_to_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("export.state");
        let place = Place {
            series: "a".to_owned(),
            audit: 12,
            event: 7,
            egress: Some(EgressPlace {
                series: "b".to_owned(),
                number: 3,
            }),
        };
        let mut first = PlaceFile::open(&path).unwrap();
        assert_eq!(first.noted(), None);
        first.note(&place).unwrap();
        assert!(PlaceFile::open(&path).is_err(), "two write it");
        drop(first);
        assert_eq!(PlaceFile::open(&path).unwrap().noted(), Some(&place));
        let before = r#"{"series":"a","audit":1,"event":2}"#;
        std::fs::write(&path, before).unwrap();
        let read = PlaceFile::open(&path).unwrap();
        let egress = read.noted().unwrap().egress.as_ref();
        assert_eq!(egress, None, "it is of the release before");
        drop(read);
        let other = r#"{"series":"a","audit":1,"event":2,"other":3}"#;
        std::fs::write(&path, other).unwrap();
        assert!(PlaceFile::open(&path).is_err(), "what is not known is read");
    }
}

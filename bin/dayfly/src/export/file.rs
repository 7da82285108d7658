//! A file that the export is appended to.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::export::lines::LINE_BEGIN;
use crate::export::place::{directory_of, hold};
use crate::failure::CommandError;

/// What is looked at for the last newline: longer than the longest line.
const TAIL_BYTES_MAX: u64 = 4 << 20;
/// The record is for the operator.
const MODE: u32 = 0o600;
/// How often a file may be moved away while lines are written to it.
const MOVES_MAX: usize = 5;

/// Opened anew for each page, so that it may be moved away in between.
#[derive(Debug)]
pub(super) struct ExportFile(PathBuf);

impl ExportFile {
    pub(super) fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Appends whole lines. They are on disk, and in the file of this name, when this returns.
    pub(super) fn append(&self, lines: &[u8]) -> Result<(), CommandError> {
        let what = || format!("cannot append to {}", self.0.display());
        self.append_here(lines)
            .map_err(|source| CommandError::local(what(), source))
    }

    fn append_here(&self, lines: &[u8]) -> io::Result<()> {
        for _ in 0..MOVES_MAX {
            let mut file = self.open()?;
            hold(&file)?;
            cut_torn_line(&mut file)?;
            file.write_all(lines)?;
            file.sync_data()?;
            // Who moved it away meanwhile may have removed it, too.
            if self.is(&file)? {
                return Ok(());
            }
        }
        Err(io::Error::other("it was moved away again and again"))
    }

    fn open(&self) -> io::Result<File> {
        let is_new = !self.0.exists();
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(MODE)
            .open(&self.0)?;
        if is_new {
            File::open(directory_of(&self.0))?.sync_all()?;
        }
        Ok(file)
    }

    fn is(&self, file: &File) -> io::Result<bool> {
        let here = match std::fs::metadata(&self.0) {
            Ok(here) => here,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        let opened = file.metadata()?;
        Ok((here.dev(), here.ino()) == (opened.dev(), opened.ino()))
    }
}

/// Cuts what a run that was ended left of a line: it was not noted, and comes again. A file that ends
/// in anything else is not ours, and is left as it is.
fn cut_torn_line(file: &mut File) -> io::Result<()> {
    let length = file.metadata()?.len();
    let begin = length.saturating_sub(TAIL_BYTES_MAX);
    file.seek(SeekFrom::Start(begin))?;
    let mut tail = Vec::new();
    Read::by_ref(file)
        .take(TAIL_BYTES_MAX)
        .read_to_end(&mut tail)?;
    let newline = tail.iter().rposition(|byte| *byte == b'\n');
    let torn = &tail[newline.map_or(0, |at| at + 1)..];
    if torn.is_empty() {
        return Ok(());
    }
    let is_ours = (begin == 0 || newline.is_some())
        && (torn.starts_with(LINE_BEGIN) || LINE_BEGIN.starts_with(torn));
    if !is_ours {
        let what = "it ends in something that is no line of an export";
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    file.set_len(length - torn.len() as u64)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_torn_line_is_cut_and_nothing_else_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("export.jsonl");
        let export = ExportFile::new(&path);
        let long = [b"{}\n{\"kind\":\"".as_slice(), &b"x".repeat(200_000)].concat();
        for (before, after) in [
            (b"".as_slice(), b"".as_slice()),
            (b"{\"ki", b""),
            (b"{}\n{\"kind\":\"au", b"{}\n"),
            (b"{}\n", b"{}\n"),
            (&long, b"{}\n"),
        ] {
            std::fs::write(&path, before).unwrap();
            export.append(b"[]\n").unwrap();
            let kept = std::fs::read(&path).unwrap();
            assert_eq!(kept, [after, b"[]\n".as_slice()].concat());
        }
        for foreign in [b"a secret".as_slice(), b"line\nhalf"] {
            std::fs::write(&path, foreign).unwrap();
            assert!(export.append(b"[]\n").is_err());
            assert_eq!(std::fs::read(&path).unwrap(), foreign);
        }
    }

    #[test]
    fn a_file_that_was_moved_is_made_anew_for_its_owner_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("export.jsonl");
        let export = ExportFile::new(&path);
        export.append(b"1\n").unwrap();
        std::fs::rename(&path, directory.path().join("old")).unwrap();
        export.append(b"2\n").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"2\n");
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, MODE);
        let other = File::open(&path).unwrap();
        hold(&other).unwrap();
        assert!(export.append(b"3\n").is_err(), "two write it");
    }
}

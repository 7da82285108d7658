//! A build context that somebody sent: parts of one file that has no name. The names that came with
//! them are looked up in a table, and name nothing on this host.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt as _;

use dayfly_dockerfile::{ContextEntry, SelectedEntry};
use dayfly_types::ContextPath;
use tar::{EntryType, Header};

use crate::context::{Archive, ContextError};

const DIRECTORY_MODE: u32 = 0o755;

/// One file of a context, as a part of the file that holds all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextFile {
    pub path: ContextPath,
    pub offset: u64,
    pub length: u64,
    pub mode: u32,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct UploadedFiles {
    /// Absent when there is no byte in any of them.
    content: Option<File>,
    files: BTreeMap<String, ContextFile>,
}

impl UploadedFiles {
    /// Takes files, and finds the directories that they are in.
    pub(crate) fn new(
        content: Option<File>,
        files: Vec<ContextFile>,
    ) -> Result<(Self, Vec<ContextEntry>), ContextError> {
        let mut entries = BTreeMap::new();
        let mut known = BTreeMap::new();
        for file in files {
            for directory in file.path.directories() {
                entries.insert(directory.to_owned(), true);
            }
            let path = file.path.to_string();
            if known.insert(path.clone(), file).is_some() {
                return Err(ContextError::Twice { path });
            }
        }
        for path in known.keys() {
            if entries.insert(path.clone(), false) == Some(true) {
                return Err(ContextError::Twice { path: path.clone() });
            }
        }
        let entries = entries.into_iter();
        let entries = entries.map(|(path, is_directory)| ContextEntry { path, is_directory });
        let files = Self {
            content,
            files: known,
        };
        Ok((files, entries.collect()))
    }

    /// The text of a file; nothing if there is none.
    pub(crate) fn text(
        &self,
        path: &str,
        bytes_max: usize,
    ) -> Result<Option<String>, ContextError> {
        let Some(file) = self.files.get(path) else {
            return Ok(None);
        };
        let mut text = String::new();
        let most = u64::try_from(bytes_max).unwrap_or(u64::MAX);
        let read = self.part(file).take(most).read_to_string(&mut text);
        read.map_err(|source| ContextError::Read {
            path: path.into(),
            source,
        })?;
        Ok(Some(text))
    }

    pub(crate) fn add_to_archive<W: Write>(
        &self,
        entry: &SelectedEntry,
        to: &str,
        mode: Option<u32>,
        archive: &mut Archive<W>,
    ) -> io::Result<()> {
        let mut header = Header::new_gnu();
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        let Some(file) = self.files.get(&entry.source) else {
            header.set_entry_type(EntryType::Directory);
            header.set_mode(mode.unwrap_or(DIRECTORY_MODE));
            header.set_size(0);
            archive.note("directory", DIRECTORY_MODE, 0, entry, "");
            return archive.add(&mut header, to, io::empty());
        };
        header.set_mode(mode.unwrap_or(file.mode));
        header.set_size(file.length);
        archive.note("file", file.mode, file.length, entry, "");
        archive.add(&mut header, to, self.part(file))
    }

    /// How a file begins; of a directory nothing.
    pub(crate) fn begins(&self, path: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
        let mut begin = Vec::new();
        if let Some(file) = self.files.get(path) {
            self.part(file).take(bytes_max).read_to_end(&mut begin)?;
        }
        Ok(begin)
    }

    fn part(&self, file: &ContextFile) -> Part<'_> {
        Part {
            content: self.content.as_ref(),
            offset: file.offset,
            left: file.length,
        }
    }
}

/// Reads a part of a file, without moving the place that others read at.
struct Part<'a> {
    content: Option<&'a File>,
    offset: u64,
    left: u64,
}

impl Read for Part<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = usize::try_from(self.left).unwrap_or(usize::MAX);
        let room = room.min(buffer.len());
        let Some(content) = self.content.filter(|_| room > 0) else {
            return Ok(0);
        };
        let read = content.read_at(&mut buffer[..room], self.offset)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let moved = u64::try_from(read).unwrap_or(self.left);
        self.offset += moved;
        self.left -= moved;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;
    use crate::context::BuildContext;

    fn uploaded(parts: &[(&str, &str, u32)]) -> Result<BuildContext, ContextError> {
        let mut content = tempfile::tempfile().unwrap();
        let mut offset = 0;
        let mut files = Vec::new();
        for (path, text, mode) in parts {
            content.write_all(text.as_bytes()).unwrap();
            let length = text.len() as u64;
            files.push(ContextFile {
                path: ContextPath::parse(path).unwrap(),
                offset,
                length,
                mode: *mode,
            });
            offset += length;
        }
        BuildContext::uploaded(Some(content), files)
    }

    fn one(source: &str, below: &str) -> Vec<SelectedEntry> {
        vec![SelectedEntry {
            source: source.to_owned(),
            below: below.to_owned(),
            is_directory: false,
        }]
    }

    #[tokio::test]
    async fn files_are_parts_of_one_and_what_is_ignored_is_not_in_it() {
        let context = uploaded(&[
            ("src/deep/a.py", "a", 0o644),
            ("secret.env", "s", 0o600),
            (".dockerignore", "*.env\n", 0o644),
            ("run", "#!/bin/sh\n", 0o755),
        ])
        .unwrap();
        let entries = context.entries().iter();
        let entries: Vec<_> = entries
            .map(|one| (one.path.as_str(), one.is_directory))
            .collect();
        let expected = [
            (".dockerignore", false),
            ("run", false),
            ("src", true),
            ("src/deep", true),
            ("src/deep/a.py", false),
        ];
        assert_eq!(entries, expected);
        let (mut stream, digest) = context.pack(one("run", "bin/run"), None, None).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        digest.await.unwrap();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let mut members = archive.entries().unwrap();
        let mut member = members.next().unwrap().unwrap();
        assert_eq!(member.path().unwrap().to_str(), Some("bin/run"));
        assert_eq!(member.header().mode().unwrap(), 0o755);
        let mut text = String::new();
        member.read_to_string(&mut text).unwrap();
        assert_eq!(text, "#!/bin/sh\n");
    }

    #[test]
    fn a_file_has_the_digest_that_it_has_in_a_directory() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("b.py");
        std::fs::write(&path, "b").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let here = BuildContext::open(directory.path().to_owned()).unwrap();
        let digest = |mode| {
            let sent = uploaded(&[("a", "aa", 0o644), ("b.py", "b", mode)]).unwrap();
            sent.digest(&one("b.py", "c")).unwrap()
        };
        assert_eq!(digest(0o644), here.digest(&one("b.py", "c")).unwrap());
        assert_ne!(digest(0o755), digest(0o644));
    }

    #[test]
    fn one_path_is_one_thing() {
        for parts in [
            [("a", "1", 0o644), ("a", "2", 0o644)],
            [("a", "1", 0o644), ("a/b", "2", 0o644)],
        ] {
            let refused = uploaded(&parts).unwrap_err();
            assert!(matches!(refused, ContextError::Twice { .. }), "{refused}");
        }
    }
}

//! The build context: a directory of whoever builds, or files that somebody sent. Only what a step
//! copies leaves it.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dayfly_client::FileBody;
use dayfly_dockerfile::{ContextEntry, Ignored, InvalidIgnored, SelectedEntry};
use dayfly_types::limits::{ARCHIVE_ENTRIES_MAX, DOCKERIGNORE_BYTES_MAX};
use sha2::{Digest, Sha256};
use tar::{Builder, Header};
use tokio::net::UnixStream;

use crate::uploaded::{ContextFile, UploadedFiles};

const IGNORE_FILE: &str = ".dockerignore";
const PIECE_BYTES: usize = 64 << 10;
/// Of modes: what a file may be used for. Who it belongs to is decided at the other end.
const MODE_BITS: u32 = 0o7777;

/// Why a context cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ContextError {
    #[error("cannot read {path}")]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{path} has a name that is not UTF-8")]
    Name { path: PathBuf },
    #[error(
        "the context has more than {ARCHIVE_ENTRIES_MAX} files; a {IGNORE_FILE} leaves some out"
    )]
    TooMany,
    #[error("{IGNORE_FILE} cannot be used")]
    IgnoreFile(#[source] InvalidIgnored),
    #[error("{path} is neither a file nor a directory nor a link")]
    Kind { path: PathBuf },
    #[error("{path} is in the context twice, or is a file and a directory")]
    Twice { path: String },
    #[error("cannot send the context")]
    Send(#[source] io::Error),
}

/// Files, and what of them counts.
#[derive(Debug, Clone)]
pub struct BuildContext {
    files: ContextFiles,
    entries: Vec<ContextEntry>,
}

/// Where files are.
#[derive(Debug, Clone)]
enum ContextFiles {
    Directory(PathBuf),
    Uploaded(Arc<UploadedFiles>),
}

impl BuildContext {
    /// Looks through a directory, without what its `.dockerignore` hides. Blocks.
    ///
    /// # Errors
    /// [`ContextError`].
    pub fn open(root: PathBuf) -> Result<Self, ContextError> {
        let ignored = ignored(&root)?;
        let mut entries = Vec::new();
        let mut waiting = vec![String::new()];
        while let Some(directory) = waiting.pop() {
            let path = root.join(&directory);
            let wrap = |source| ContextError::Read {
                path: path.clone(),
                source,
            };
            for entry in fs::read_dir(&path).map_err(wrap)? {
                let entry = entry.map_err(wrap)?;
                let name = entry.file_name();
                let found = name
                    .to_str()
                    .ok_or_else(|| ContextError::Name { path: entry.path() })?;
                let name = join(&directory, found);
                let is_directory = entry.file_type().map_err(wrap)?.is_dir();
                let is_hidden = ignored.hides(&name);
                if is_directory && (!is_hidden || !ignored.hides_all_below(&name)) {
                    waiting.push(name.clone());
                }
                if !is_hidden {
                    entries.push(ContextEntry {
                        path: name,
                        is_directory,
                    });
                }
                if entries.len() as u64 > ARCHIVE_ENTRIES_MAX {
                    return Err(ContextError::TooMany);
                }
            }
        }
        entries.sort_by(|one, other| one.path.cmp(&other.path));
        let files = ContextFiles::Directory(root);
        Ok(Self { files, entries })
    }

    /// Takes files that somebody sent, which are parts of `content`, without what their
    /// `.dockerignore` hides. Blocks.
    ///
    /// # Errors
    /// [`ContextError`].
    pub fn uploaded(content: Option<File>, files: Vec<ContextFile>) -> Result<Self, ContextError> {
        let (files, mut entries) = UploadedFiles::new(content, files)?;
        // One byte more than it may have, so that a longer one is refused and not cut.
        let text = files.text(IGNORE_FILE, DOCKERIGNORE_BYTES_MAX + 1)?;
        let ignored = Ignored::parse(&text.unwrap_or_default());
        let ignored = ignored.map_err(ContextError::IgnoreFile)?;
        entries.retain(|entry| !ignored.hides(&entry.path));
        let files = ContextFiles::Uploaded(Arc::new(files));
        Ok(Self { files, entries })
    }

    /// What counts, sorted by path.
    pub(crate) fn entries(&self) -> &[ContextEntry] {
        &self.entries
    }

    /// A digest of files with their names below a destination, kinds, modes and contents. Blocks.
    pub(crate) fn digest(&self, taken: &[SelectedEntry]) -> Result<String, ContextError> {
        let mut hash = Sha256::new();
        for entry in taken {
            match &self.files {
                ContextFiles::Directory(root) => add_to_digest(root, entry, &mut hash)?,
                ContextFiles::Uploaded(files) => files.add_to_digest(entry, &mut hash)?,
            }
        }
        Ok(hex::encode(hash.finalize()))
    }

    /// The same files as an archive, which is read while it is sent.
    pub(crate) fn pack(
        &self,
        taken: Vec<SelectedEntry>,
        mode: Option<u32>,
    ) -> Result<FileBody, ContextError> {
        let (ours, theirs) = BlockingStream::pair().map_err(ContextError::Send)?;
        ours.set_nonblocking(true).map_err(ContextError::Send)?;
        let ours = UnixStream::from_std(ours).map_err(ContextError::Send)?;
        let context = self.clone();
        // A failure breaks the archive, which the server then refuses.
        tokio::task::spawn_blocking(move || context.write_archive(&taken, mode, theirs));
        Ok(FileBody::from_reader(ours, None))
    }

    fn write_archive(
        &self,
        taken: &[SelectedEntry],
        mode: Option<u32>,
        out: impl Write,
    ) -> io::Result<()> {
        let mut archive = Builder::new(out);
        // The destination itself is there.
        for entry in taken.iter().filter(|entry| !entry.below.is_empty()) {
            self.write_entry(entry, mode, &mut archive)?;
        }
        archive.into_inner()?.flush()
    }

    pub(crate) fn write_entry<W: Write>(
        &self,
        entry: &SelectedEntry,
        mode: Option<u32>,
        archive: &mut Builder<W>,
    ) -> io::Result<()> {
        match &self.files {
            ContextFiles::Directory(root) => add_to_archive(root, entry, mode, archive),
            ContextFiles::Uploaded(files) => files.add_to_archive(entry, mode, archive),
        }
    }
}

/// What a digest has of a file before its content.
pub(crate) fn digest_head(kind: &str, mode: u32, size: u64, to: &str, link: &str) -> String {
    format!("{kind} {mode:o} {size} {to}\0{link}\0")
}

fn add_to_digest(
    root: &Path,
    entry: &SelectedEntry,
    hash: &mut Sha256,
) -> Result<(), ContextError> {
    let path = root.join(&entry.source);
    let wrap = |source| ContextError::Read {
        path: path.clone(),
        source,
    };
    let metadata = fs::symlink_metadata(&path).map_err(wrap)?;
    let (kind, link) = kind_of(&path, &metadata)?;
    let mode = metadata.permissions().mode() & MODE_BITS;
    // The size of a directory is that of the file system's list.
    let size = if kind == Kind::File {
        metadata.size()
    } else {
        0
    };
    hash.update(digest_head(
        &kind.to_string(),
        mode,
        size,
        &entry.below,
        &link,
    ));
    if kind == Kind::File {
        let mut file = open_file(&path).map_err(wrap)?;
        let mut buffer = vec![0; PIECE_BYTES];
        loop {
            let read = file.read(&mut buffer).map_err(wrap)?;
            if read == 0 {
                break;
            }
            hash.update(&buffer[..read]);
        }
    }
    Ok(())
}

fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() {
        name.to_owned()
    } else {
        format!("{directory}/{name}")
    }
}

fn ignored(root: &Path) -> Result<Ignored, ContextError> {
    let path = root.join(IGNORE_FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(source) => return Err(ContextError::Read { path, source }),
    };
    Ignored::parse(&text).map_err(ContextError::IgnoreFile)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Directory,
    File,
    Link,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Directory => "directory",
            Self::File => "file",
            Self::Link => "link",
        })
    }
}

/// The kind of a file, and where a link leads.
fn kind_of(path: &Path, metadata: &fs::Metadata) -> Result<(Kind, String), ContextError> {
    if metadata.is_dir() {
        return Ok((Kind::Directory, String::new()));
    }
    if metadata.is_file() {
        return Ok((Kind::File, String::new()));
    }
    if !metadata.is_symlink() {
        let path = path.to_owned();
        return Err(ContextError::Kind { path });
    }
    let target = fs::read_link(path).map_err(|source| ContextError::Read {
        path: path.to_owned(),
        source,
    })?;
    Ok((Kind::Link, target.to_string_lossy().into_owned()))
}

/// Without waiting, should a pipe have come into its place.
fn open_file(path: &Path) -> io::Result<File> {
    const NONBLOCK: i32 = 0o4000;
    File::options().read(true).custom_flags(NONBLOCK).open(path)
}

fn add_to_archive<W: Write>(
    root: &Path,
    entry: &SelectedEntry,
    mode: Option<u32>,
    archive: &mut Builder<W>,
) -> io::Result<()> {
    let (path, to) = (root.join(&entry.source), &entry.below);
    let metadata = fs::symlink_metadata(&path)?;
    let mut header = Header::new_gnu();
    header.set_metadata(&metadata);
    if let Some(mode) = mode {
        header.set_mode(mode);
    }
    if metadata.is_dir() {
        return archive.append_data(&mut header, to, io::empty());
    }
    if metadata.is_symlink() {
        return archive.append_link(&mut header, to, fs::read_link(&path)?);
    }
    let file = open_file(&path)?;
    let size = file.metadata()?.size();
    header.set_size(size);
    // Cut or padded to the size that the header says, should it change meanwhile.
    let content = file.take(size).chain(io::repeat(0)).take(size);
    archive.append_data(&mut header, to, content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context() -> (tempfile::TempDir, BuildContext) {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::create_dir_all(root.join("source/deep")).unwrap();
        fs::write(root.join("source/deep/a.py"), "a").unwrap();
        fs::write(root.join("source/b.py"), "b").unwrap();
        fs::write(root.join("secret.env"), "s").unwrap();
        fs::write(root.join(IGNORE_FILE), "*.env\n").unwrap();
        let context = BuildContext::open(root.to_owned()).unwrap();
        (directory, context)
    }

    #[test]
    fn what_is_ignored_is_not_in_it() {
        let (_directory, context) = context();
        let paths: Vec<&str> = context
            .entries()
            .iter()
            .map(|one| one.path.as_str())
            .collect();
        assert!(paths.contains(&"source/deep/a.py"), "{paths:?}");
        assert!(!paths.contains(&"secret.env"), "{paths:?}");
    }

    #[test]
    fn a_digest_is_of_names_modes_and_contents() {
        let (directory, context) = context();
        let placed = |to: &str| {
            vec![SelectedEntry {
                source: "source/b.py".to_owned(),
                below: to.to_owned(),
                is_directory: false,
            }]
        };
        let first = context.digest(&placed("b.py")).unwrap();
        assert_eq!(context.digest(&placed("b.py")).unwrap(), first);
        assert_ne!(context.digest(&placed("c.py")).unwrap(), first);
        let path = directory.path().join("source/b.py");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let other_mode = context.digest(&placed("b.py")).unwrap();
        assert_ne!(other_mode, first);
        fs::write(&path, "c").unwrap();
        assert_ne!(context.digest(&placed("b.py")).unwrap(), other_mode);
    }
}

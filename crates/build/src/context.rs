//! The build context: a directory of whoever builds, or files that somebody sent. Only what a step
//! copies leaves it.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dayfly_dockerfile::{ContextEntry, Ignored, InvalidIgnored, SelectedEntry};
use dayfly_types::limits::{ARCHIVE_ENTRIES_MAX, DOCKERIGNORE_BYTES_MAX};
use sha2::{Digest, Sha256};
use tar::{Builder, Header};
use tokio::net::UnixStream;

use crate::uploaded::{ContextFile, UploadedFiles};

const IGNORE_FILE: &str = ".dockerignore";
/// Of a file, to see what it is.
const BEGIN_BYTES: u64 = 512;
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
    #[error("{path} is in the context twice, or is a file and a directory")]
    Twice { path: String },
    #[error("cannot send the context")]
    Send(#[source] io::Error),
    #[error("files of the context changed while it was built; build again")]
    Changed,
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
        let mut archive = Archive::new(io::sink());
        for entry in taken {
            let added = self.add(entry, None, None, &mut archive);
            added.map_err(|error| unreadable(entry, error))?;
        }
        Ok(archive.digest())
    }

    /// The same files as an archive, which is read while it is sent, and then the digest of what was
    /// read. `name` is that of the only file.
    pub(crate) fn pack(
        &self,
        taken: Vec<SelectedEntry>,
        name: Option<String>,
        mode: Option<u32>,
    ) -> Result<
        (
            UnixStream,
            impl Future<Output = Result<String, ContextError>>,
        ),
        ContextError,
    > {
        let (ours, theirs) = BlockingStream::pair().map_err(ContextError::Send)?;
        ours.set_nonblocking(true).map_err(ContextError::Send)?;
        let ours = UnixStream::from_std(ours).map_err(ContextError::Send)?;
        let context = self.clone();
        // A failure breaks the archive, which the server then refuses.
        let packed = tokio::task::spawn_blocking(move || {
            let mut archive = Archive::new(theirs);
            for entry in &taken {
                let added = context.add(entry, name.as_deref(), mode, &mut archive);
                added.map_err(|error| unreadable(entry, error))?;
            }
            archive.finish().map_err(ContextError::Send)
        });
        let digest = async {
            let ended = packed.await.map_err(io::Error::other);
            ended.map_err(ContextError::Send)?
        };
        Ok((ours, digest))
    }

    /// How a file begins; nothing if it is a link. Blocks.
    pub(crate) fn begins(&self, path: &str) -> Result<Option<Vec<u8>>, ContextError> {
        let begins = match &self.files {
            ContextFiles::Directory(root) => begins(&root.join(path)),
            ContextFiles::Uploaded(files) => files.begins(path, BEGIN_BYTES).map(Some),
        };
        begins.map_err(|source| ContextError::Read {
            path: path.into(),
            source,
        })
    }

    fn add<W: Write>(
        &self,
        entry: &SelectedEntry,
        name: Option<&str>,
        mode: Option<u32>,
        archive: &mut Archive<W>,
    ) -> io::Result<()> {
        let to = name.unwrap_or(&entry.below);
        match &self.files {
            ContextFiles::Directory(root) => add_to_archive(root, entry, to, mode, archive),
            ContextFiles::Uploaded(files) => files.add_to_archive(entry, to, mode, archive),
        }
    }
}

fn unreadable(entry: &SelectedEntry, source: io::Error) -> ContextError {
    ContextError::Read {
        path: entry.source.clone().into(),
        source,
    }
}

/// An archive that is written, and the digest of what is put into it: the digest is of the very bytes
/// that are sent, because files can change between two looks.
pub(crate) struct Archive<W: Write> {
    builder: Builder<W>,
    hash: Sha256,
}

impl<W: Write> Archive<W> {
    fn new(out: W) -> Self {
        Self {
            builder: Builder::new(out),
            hash: Sha256::new(),
        }
    }

    /// Adds what the digest has of a file before its content.
    pub(crate) fn note(
        &mut self,
        kind: &str,
        mode: u32,
        size: u64,
        entry: &SelectedEntry,
        link: &str,
    ) {
        // Where a file has no name yet, it may have its own: that is decided at the other end.
        let own = entry.source.rsplit('/').next().unwrap_or_default();
        let is_unnamed = entry.below.is_empty() && !entry.is_directory;
        let to = if is_unnamed { own } else { &entry.below };
        let head = format!("{kind} {mode:o} {size} {to}\0{link}\0");
        self.hash.update(head);
    }

    /// Adds a member with content. The destination itself is there.
    pub(crate) fn add(
        &mut self,
        header: &mut Header,
        to: &str,
        content: impl Read,
    ) -> io::Result<()> {
        let (builder, hash) = (&mut self.builder, &mut self.hash);
        let mut content = Hashed { content, hash };
        if to.is_empty() {
            return io::copy(&mut content, &mut io::sink()).map(drop);
        }
        builder.append_data(header, to, content)
    }

    fn digest(self) -> String {
        hex::encode(self.hash.finalize())
    }

    fn finish(self) -> io::Result<String> {
        self.builder.into_inner()?.flush()?;
        Ok(hex::encode(self.hash.finalize()))
    }
}

/// Content on its way.
struct Hashed<'a, R> {
    content: R,
    hash: &'a mut Sha256,
}

impl<R: Read> Read for Hashed<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.content.read(buffer)?;
        self.hash.update(&buffer[..read]);
        Ok(read)
    }
}

fn begins(path: &Path) -> io::Result<Option<Vec<u8>>> {
    if fs::symlink_metadata(path)?.is_symlink() {
        return Ok(None);
    }
    let mut begin = Vec::new();
    open_file(path)?.take(BEGIN_BYTES).read_to_end(&mut begin)?;
    Ok(Some(begin))
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

/// Without waiting, should a pipe have come into its place.
fn open_file(path: &Path) -> io::Result<File> {
    const NONBLOCK: i32 = 0o4000;
    File::options().read(true).custom_flags(NONBLOCK).open(path)
}

fn add_to_archive<W: Write>(
    root: &Path,
    entry: &SelectedEntry,
    to: &str,
    mode: Option<u32>,
    archive: &mut Archive<W>,
) -> io::Result<()> {
    let path = root.join(&entry.source);
    let metadata = fs::symlink_metadata(&path)?;
    let bits = metadata.permissions().mode() & MODE_BITS;
    let mut header = Header::new_gnu();
    header.set_metadata(&metadata);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mode(mode.unwrap_or(bits));
    if metadata.is_dir() {
        // The size of a directory is that of the file system's list.
        archive.note("directory", bits, 0, entry, "");
        return archive.add(&mut header, to, io::empty());
    }
    if metadata.is_symlink() {
        let link = fs::read_link(&path)?;
        archive.note("link", bits, 0, entry, &link.to_string_lossy());
        return archive.builder.append_link(&mut header, to, link);
    }
    if !metadata.is_file() {
        let what = "it is neither a file nor a directory nor a link";
        return Err(io::Error::other(what));
    }
    let file = open_file(&path)?;
    let size = file.metadata()?.size();
    header.set_size(size);
    archive.note("file", bits, size, entry, "");
    // Cut or padded to the size that the header says, should it change meanwhile.
    let content = file.take(size).chain(io::repeat(0)).take(size);
    archive.add(&mut header, to, content)
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

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

    fn one(source: &str, below: &str) -> Vec<SelectedEntry> {
        vec![SelectedEntry {
            source: source.to_owned(),
            below: below.to_owned(),
            is_directory: false,
        }]
    }

    #[test]
    fn a_file_that_gets_another_name_has_another_digest_where_its_own_may_count() {
        let (directory, context) = context();
        let source = directory.path().join("source");
        let first = context.digest(&one("source/b.py", "")).unwrap();
        fs::rename(source.join("b.py"), source.join("c.py")).unwrap();
        assert_ne!(context.digest(&one("source/c.py", "")).unwrap(), first);
        // Where the destination has the name, it does not count.
        let named = context.digest(&one("source/c.py", "x")).unwrap();
        fs::rename(source.join("c.py"), source.join("b.py")).unwrap();
        assert_eq!(context.digest(&one("source/b.py", "x")).unwrap(), named);
    }

    async fn packed(context: &BuildContext, name: &str) -> (Vec<u8>, String) {
        let name = Some(name.to_owned());
        let (mut stream, digest) = context.pack(one("source/b.py", ""), name, None).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        (bytes, digest.await.unwrap())
    }

    #[tokio::test]
    async fn what_is_sent_has_the_digest_of_what_was_looked_at_unless_it_changed() {
        let (directory, context) = context();
        let looked = context.digest(&one("source/b.py", "")).unwrap();
        let (bytes, sent) = packed(&context, "named").await;
        assert_eq!(sent, looked);
        let mut archive = tar::Archive::new(bytes.as_slice());
        let mut entries = archive.entries().unwrap();
        let entry = entries.next().unwrap().unwrap();
        assert_eq!(entry.path().unwrap().to_string_lossy(), "named");
        // Of the same length, so that only the content says it.
        fs::write(directory.path().join("source/b.py"), "c").unwrap();
        assert_ne!(packed(&context, "named").await.1, looked);
    }

    #[test]
    fn links_are_told_from_files() {
        let (directory, context) = context();
        std::os::unix::fs::symlink("b.py", directory.path().join("source/link")).unwrap();
        assert_eq!(context.begins("source/link").unwrap(), None);
        let begins = context.begins("source/b.py").unwrap();
        assert_eq!(begins, Some(b"b".to_vec()));
    }
}

//! The file without a name in which the files of a build context lie, one after the other.
//!
//! Everything here blocks, or is called where that is done.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};

/// What is written at once.
const PIECE_BYTES: usize = 1 << 20;

/// A file that is being filled.
#[derive(Debug)]
pub(super) struct Spool {
    directory: PathBuf,
    file: Option<File>,
    waiting: Vec<u8>,
    length: u64,
}

impl Spool {
    /// Nothing is made until there is something to keep.
    pub(super) fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            file: None,
            waiting: Vec::new(),
            length: 0,
        }
    }

    /// How much was given to it.
    pub(super) const fn length(&self) -> u64 {
        self.length
    }

    pub(super) async fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.waiting.extend_from_slice(bytes);
        self.length += u64::try_from(bytes.len()).unwrap_or_default();
        if self.waiting.len() >= PIECE_BYTES {
            self.write().await?;
        }
        Ok(())
    }

    /// The whole of it; nothing if there is nothing in it.
    pub(super) async fn finish(mut self) -> io::Result<Option<File>> {
        if !self.waiting.is_empty() {
            self.write().await?;
        }
        Ok(self.file)
    }

    async fn write(&mut self) -> io::Result<()> {
        let mut bytes = std::mem::take(&mut self.waiting);
        let (file, directory) = (self.file.take(), self.directory.clone());
        let written = tokio::task::spawn_blocking(move || {
            let mut file = match file {
                Some(file) => file,
                None => nameless(&directory)?,
            };
            file.write_all(&bytes)?;
            bytes.clear();
            Ok::<_, io::Error>((file, bytes))
        });
        let written = written.await.map_err(io::Error::other)?;
        let (file, bytes) = written?;
        self.file = Some(file);
        self.waiting = bytes;
        Ok(())
    }
}

/// A file that nobody else can open, and that goes with its last descriptor.
fn nameless(directory: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    Ok(File::from(openat(CWD, directory, flags, mode)?))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use super::*;

    #[tokio::test]
    async fn what_is_kept_has_no_name() {
        let directory = tempfile::tempdir().unwrap();
        let mut spool = Spool::new(directory.path());
        for piece in [vec![b'a'; PIECE_BYTES], b"bc".to_vec()] {
            spool.push(&piece).await.unwrap();
        }
        let length = spool.length();
        let file = spool.finish().await.unwrap().unwrap();
        assert_eq!(file.metadata().unwrap().len(), length);
        let mut last = [0; 3];
        file.read_exact_at(&mut last, length - 3).unwrap();
        assert_eq!(&last, b"abc");
        assert_eq!(directory.path().read_dir().unwrap().count(), 0);
        let empty = Spool::new(directory.path());
        assert!(empty.finish().await.unwrap().is_none());
    }
}

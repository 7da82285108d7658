//! Writes the bytes of a layer to a new file, and keeps it only when they are the right ones.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use bytes::{Buf as _, Bytes};
use tokio::sync::mpsc;

use crate::digest::{Digest, HashingReader};
use crate::disk::ReadImageError;
use crate::document::LayerBlob;
use crate::registry::RegistryError;

const PIECE_BYTES: usize = 128 << 10;

/// Why a layer was not written.
#[derive(Debug, thiserror::Error)]
pub enum FetchBlobError {
    #[error("the file {path:?} for a layer cannot be made")]
    Create {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("a layer cannot be written")]
    Write {
        #[source]
        source: io::Error,
    },
    #[error("a layer cannot be read")]
    Read {
        #[source]
        source: io::Error,
    },
    #[error("layer {digest} has another size than {wanted} bytes")]
    OtherSize { digest: Digest, wanted: u64 },
    #[error("layer {wanted} has the digest {found}")]
    OtherContent { wanted: Digest, found: Digest },
    #[error("the image on this host cannot be read")]
    Disk(#[from] ReadImageError),
    #[error("the registry did not give the layer")]
    Registry(#[from] RegistryError),
    #[error("the layer was given up")]
    GivenUp,
}

/// Makes a file that only we can read. Whatever is there already is left alone.
fn create(path: &Path) -> Result<File, FetchBlobError> {
    let mut options = OpenOptions::new();
    let made = options.write(true).create_new(true).mode(0o600).open(path);
    made.map_err(|source| FetchBlobError::Create {
        path: path.to_owned(),
        source,
    })
}

/// Blocks. `tell` is told how much is written, and says whether anybody still wants it. A file that
/// did not become the layer is removed.
pub(crate) fn write_verified(
    content: impl Read,
    layer: &LayerBlob,
    into: &Path,
    tell: impl Fn(u64) -> bool,
) -> Result<(), FetchBlobError> {
    let file = create(into)?;
    let written = copy_verified(content, layer, file, tell);
    if written.is_err() {
        // What is not removed is no layer either; whoever called was told.
        let _ = std::fs::remove_file(into);
    }
    written
}

fn copy_verified(
    content: impl Read,
    layer: &LayerBlob,
    mut file: File,
    tell: impl Fn(u64) -> bool,
) -> Result<(), FetchBlobError> {
    let other_size = || FetchBlobError::OtherSize {
        digest: layer.digest.clone(),
        wanted: layer.size,
    };
    let mut content = HashingReader::new(content);
    let mut buffer = vec![0; PIECE_BYTES];
    loop {
        let count = match content.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(source) => return Err(FetchBlobError::Read { source }),
        };
        let bytes = HashingReader::passed(&content);
        if bytes > layer.size {
            return Err(other_size());
        }
        let piece = buffer.get(..count).unwrap_or_default();
        let written = file.write_all(piece);
        written.map_err(|source| FetchBlobError::Write { source })?;
        if !tell(bytes) {
            return Err(FetchBlobError::GivenUp);
        }
    }
    let (found, bytes) = content.finish();
    if bytes != layer.size {
        return Err(other_size());
    }
    if found != layer.digest {
        let wanted = layer.digest.clone();
        return Err(FetchBlobError::OtherContent { wanted, found });
    }
    Ok(())
}

/// Pieces that a task sends, read by a thread that blocks. Ends when the sender says so: one that
/// is only dropped has given up.
pub(crate) struct PieceReader {
    pieces: mpsc::Receiver<Piece>,
    current: Bytes,
    has_ended: bool,
}

/// What is sent to a [`PieceReader`].
#[derive(Debug)]
pub(crate) enum Piece {
    Bytes(Bytes),
    End,
}

impl PieceReader {
    pub(crate) fn new(pieces: mpsc::Receiver<Piece>) -> Self {
        Self {
            pieces,
            current: Bytes::new(),
            has_ended: false,
        }
    }
}

impl Read for PieceReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() && !self.has_ended {
            match self.pieces.blocking_recv() {
                Some(Piece::Bytes(bytes)) => self.current = bytes,
                Some(Piece::End) => self.has_ended = true,
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        let count = self.current.len().min(buffer.len());
        let room = buffer.get_mut(..count).unwrap_or_default();
        self.current.copy_to_slice(room);
        Ok(count)
    }
}

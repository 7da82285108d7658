//! Why an operation on a capture did not happen.

use std::io;
use std::path::{Path, PathBuf};

use dayfly_types::SnapshotId;

use crate::sealing::SealFilesError;
use crate::verify::VerifyError;

/// Why a capture could not be made, opened or removed.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    #[error("cannot read or write {path}")]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot seal the files of the capture")]
    Seal(#[source] SealFilesError),
    #[error("there is no capture {0}")]
    Absent(SnapshotId),
    #[error("capture {id} is damaged")]
    Damaged {
        id: SnapshotId,
        #[source]
        source: VerifyError,
    },
    #[error("capture {id} needs capture {below}, which is not there")]
    Incomplete { id: SnapshotId, below: SnapshotId },
}

impl CaptureError {
    /// Whether the reason is that the disk is full.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        match self {
            Self::File { source, .. }
            | Self::Seal(
                SealFilesError::List(source)
                | SealFilesError::Seal { source, .. }
                | SealFilesError::Digest { source, .. },
            ) => is_full(source),
            Self::Seal(SealFilesError::TooManyFiles)
            | Self::Absent(_)
            | Self::Damaged { .. }
            | Self::Incomplete { .. } => false,
        }
    }
}

/// Whether a write failed because there is no space for it.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

pub(super) fn file_error(path: &Path, source: io::Error) -> CaptureError {
    CaptureError::File {
        path: path.to_owned(),
        source,
    }
}

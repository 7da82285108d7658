//! What a command of a guest prints: passed on as it comes, or kept for the end.

use std::io;

use dayfly_types::limits::EXEC_RESULT_BYTES_MAX;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use crate::failure::CommandError;

/// Takes the two streams of a command.
#[derive(Debug)]
pub(crate) enum GuestOutput {
    /// Passed on unchanged: whoever runs a command gets its own bytes.
    Live,
    Kept(KeptOutput),
}

/// Both streams, each up to the limit of a plain exec.
#[derive(Debug, Default)]
pub(crate) struct KeptOutput {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) is_truncated: bool,
}

impl GuestOutput {
    pub(crate) fn new(is_json: bool) -> Self {
        if is_json {
            Self::Kept(KeptOutput::default())
        } else {
            Self::Live
        }
    }

    /// Something is missing from the output.
    pub(crate) fn note_gap(&mut self) {
        if let Self::Kept(kept) = self {
            kept.is_truncated = true;
        }
    }

    pub(crate) async fn stdout(&mut self, chunk: &[u8]) -> Result<(), CommandError> {
        match self {
            Self::Live => pass_on(tokio::io::stdout(), chunk)
                .await
                .map_err(|source| CommandError::Output { source }),
            Self::Kept(kept) => {
                kept.is_truncated |= keep(&mut kept.stdout, chunk);
                Ok(())
            }
        }
    }

    pub(crate) async fn stderr(&mut self, chunk: &[u8]) -> Result<(), CommandError> {
        match self {
            // Nobody listens to a closed standard error; the command goes on for its output.
            Self::Live => {
                let _ = pass_on(tokio::io::stderr(), chunk).await;
            }
            Self::Kept(kept) => kept.is_truncated |= keep(&mut kept.stderr, chunk),
        }
        Ok(())
    }
}

/// Writes in the runtime's blocking pool, so that a pipe nobody reads does not hold up signals.
async fn pass_on(mut output: impl AsyncWrite + Unpin, chunk: &[u8]) -> io::Result<()> {
    output.write_all(chunk).await?;
    output.flush().await
}

/// Appends within the limit; says whether something was cut.
fn keep(kept: &mut Vec<u8>, chunk: &[u8]) -> bool {
    let room = EXEC_RESULT_BYTES_MAX.saturating_sub(kept.len());
    let end = room.min(chunk.len());
    kept.extend_from_slice(&chunk[..end]);
    end < chunk.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_has_a_limit() {
        let mut kept = vec![b'a'; EXEC_RESULT_BYTES_MAX - 1];
        assert!(!keep(&mut kept, b"b"));
        assert!(keep(&mut kept, b"c"));
        assert_eq!(kept.len(), EXEC_RESULT_BYTES_MAX);
    }
}

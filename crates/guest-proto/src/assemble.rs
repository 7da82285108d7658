//! Control messages out of control frames.

use dayfly_types::limits::CONTROL_MESSAGE_BYTES_MAX;

/// Why control frames make no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AssembleError {
    #[error("control message is longer than {CONTROL_MESSAGE_BYTES_MAX} bytes")]
    TooLong,
    #[error("control frame is empty")]
    Empty,
}

/// Joins the frames of a message. Holds at most one message.
#[derive(Debug, Default)]
pub struct MessageAssembler {
    partial: Vec<u8>,
}

impl MessageAssembler {
    /// Takes one control frame; gives the message when it was the last of it.
    ///
    /// # Errors
    /// [`AssembleError`] when the message is over its limit or the frame carries nothing.
    pub fn push(
        &mut self,
        is_last: bool,
        bytes: Vec<u8>,
    ) -> Result<Option<Vec<u8>>, AssembleError> {
        if bytes.is_empty() {
            return Err(AssembleError::Empty);
        }
        if self.partial.len() + bytes.len() > CONTROL_MESSAGE_BYTES_MAX {
            return Err(AssembleError::TooLong);
        }
        if self.partial.is_empty() {
            self.partial = bytes;
        } else {
            self.partial.extend_from_slice(&bytes);
        }
        Ok(is_last.then(|| std::mem::take(&mut self.partial)))
    }
}

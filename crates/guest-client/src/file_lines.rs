//! Streams of a guest that are lines of JSON.

use std::marker::PhantomData;

use bytes::BytesMut;
use dayfly_types::file::{ChangedPath, WatchEvent};
use serde::de::DeserializeOwned;

use crate::error::StreamError;
use crate::file::GuestStream;

/// Two paths of full length, with every byte escaped, and some words.
const LINE_BYTES_MAX: usize = 64 << 10;

/// Changes of a watched directory, as they happen.
pub type WatchLines = GuestLines<WatchEvent>;
/// What changed on a guest's disk.
pub type ChangeLines = GuestLines<ChangedPath>;

/// One value for each line. Dropping it stops the guest.
#[derive(Debug)]
pub struct GuestLines<T> {
    stream: GuestStream,
    buffer: BytesMut,
    /// How much of the buffer holds no end of a line.
    searched: usize,
    value: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> GuestLines<T> {
    pub(crate) fn new(stream: GuestStream) -> Self {
        Self {
            stream,
            buffer: BytesMut::new(),
            searched: 0,
            value: PhantomData,
        }
    }

    /// The next value; `None` at the end.
    ///
    /// # Errors
    /// [`StreamError::Malformed`] when a line is too long or no such value.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> Result<Option<T>, StreamError> {
        loop {
            if let Some(line) = self.take_line() {
                let value = serde_json::from_slice(&line);
                return value.map(Some).map_err(|_| StreamError::Malformed);
            }
            if self.buffer.len() > LINE_BYTES_MAX {
                return Err(StreamError::Malformed);
            }
            match self.stream.next().await? {
                Some(bytes) => self.buffer.extend_from_slice(&bytes),
                None if self.buffer.is_empty() => return Ok(None),
                None => return Err(StreamError::Malformed),
            }
        }
    }

    fn take_line(&mut self) -> Option<BytesMut> {
        let fresh = &self.buffer[self.searched..];
        let Some(end) = fresh.iter().position(|byte| *byte == b'\n') else {
            self.searched = self.buffer.len();
            return None;
        };
        let line = self.buffer.split_to(self.searched + end + 1);
        self.searched = 0;
        Some(line)
    }
}

//! Orders to the memory library of an engine, which discards pages of guest memory.
//!
//! `bin/dayfly-memory` has the other end, and describes what is said. It lives in the engine, which
//! a guest may have taken over: every wait has an end, and what is read is a number that has to be
//! the right one.

use std::io;
use std::path::Path;

use dayfly_host::guest_memory::Pages;
use dayfly_host::unix::connect_unix;
use dayfly_types::limits::DISCARD_DEADLINE;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

/// Ranges of one order.
pub(crate) const ORDER_RANGES_MAX: usize = 1024;

/// Why pages were not discarded, or it is not known whether they were.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DiscardError {
    #[error("cannot dial the memory library")]
    Dial(#[source] io::Error),
    #[error("cannot exchange bytes with the memory library")]
    Exchange(#[source] io::Error),
    #[error("the memory library has discarded {told} pages, not {wanted}")]
    WrongCount { told: u64, wanted: u64 },
    #[error("the memory library did not answer within {DISCARD_DEADLINE:?}")]
    TimedOut,
}

/// The line to one library.
#[derive(Debug)]
pub(crate) struct Discarding(UnixStream);

impl Discarding {
    /// `None` when the engine has none: one of an earlier release.
    pub(crate) fn dial(socket: &Path) -> Result<Option<Self>, DiscardError> {
        let stream = match connect_unix(socket) {
            Ok(stream) => stream,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(DiscardError::Dial(error)),
        };
        stream.set_nonblocking(true).map_err(DiscardError::Dial)?;
        let stream = UnixStream::from_std(stream).map_err(DiscardError::Dial)?;
        Ok(Some(Self(stream)))
    }

    /// Discards pages: at most [`ORDER_RANGES_MAX`] ranges.
    pub(crate) async fn discard(&mut self, pages: &[Pages]) -> Result<(), DiscardError> {
        if pages.is_empty() {
            return Ok(());
        }
        let wanted: u64 = pages.iter().map(|range| range.count).sum();
        let exchange = self.exchange(encoded(pages));
        let told = timeout(DISCARD_DEADLINE, exchange).await;
        let told = told.map_err(|_| DiscardError::TimedOut)?;
        let told = told.map_err(DiscardError::Exchange)?;
        if told == wanted {
            Ok(())
        } else {
            Err(DiscardError::WrongCount { told, wanted })
        }
    }

    async fn exchange(&mut self, order: Vec<u8>) -> io::Result<u64> {
        self.0.write_all(&order).await?;
        let mut reply = [0; 8];
        self.0.read_exact(&mut reply).await?;
        Ok(u64::from_le_bytes(reply))
    }
}

fn encoded(pages: &[Pages]) -> Vec<u8> {
    let count = u32::try_from(pages.len()).unwrap_or(u32::MAX);
    let numbers = pages.iter().flat_map(|range| [range.first, range.count]);
    let numbers = numbers.flat_map(u64::to_le_bytes);
    count.to_le_bytes().into_iter().chain(numbers).collect()
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> Vec<Pages> {
        vec![Pages { first: 3, count: 2 }, Pages { first: 9, count: 1 }]
    }

    /// Plays a library that reads one order and says this.
    async fn answered(reply: Option<u64>) -> Result<(), DiscardError> {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let library = async move {
            let mut read = [0; 4 + 2 * 16];
            theirs.read_exact(&mut read).await.unwrap();
            assert_eq!(read.as_slice(), encoded(&order()));
            if let Some(reply) = reply {
                theirs.write_all(&reply.to_le_bytes()).await.unwrap();
            }
        };
        let mut line = Discarding(ours);
        let pages = order();
        let (done, ()) = tokio::join!(line.discard(&pages), library);
        done
    }

    #[test]
    fn an_order_is_written_as_the_library_reads_it() {
        let bytes = encoded(&order());
        assert_eq!(bytes[..5], [2, 0, 0, 0, 3]);
        assert_eq!(bytes.len(), 36);
        assert_eq!((bytes[12], bytes[20], bytes[28]), (2, 9, 1));
    }

    #[tokio::test]
    async fn only_the_right_count_is_believed() {
        answered(Some(3)).await.unwrap();
        let wrong = answered(Some(2)).await;
        assert!(matches!(
            wrong,
            Err(DiscardError::WrongCount { told: 2, wanted: 3 })
        ));
        let gone = answered(None).await;
        assert!(matches!(gone, Err(DiscardError::Exchange(_))), "{gone:?}");
    }

    #[tokio::test]
    async fn an_engine_of_an_earlier_release_has_no_line() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().canonicalize().unwrap().join("memory.sock");
        assert!(Discarding::dial(&socket).unwrap().is_none());
        drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
        assert!(Discarding::dial(&socket).unwrap().is_none());
    }
}

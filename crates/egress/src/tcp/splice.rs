//! Moving bytes from one socket to another inside the kernel, through a pipe.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use tokio::io::Interest;

use crate::connection::Socket;

/// What is asked for. The kernel gives one user so much of all pipes together, and less to each
/// beyond that; bytes pass all the same.
const PIPE_BYTES: usize = 256 << 10;
/// Asked for at once. A pipe holds so many pieces, and pieces can be larger than pages.
const MOVE_BYTES: usize = 1 << 20;

/// What came of one move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moved {
    Some,
    /// There is nothing to read yet.
    Nothing,
    /// There will never be anything to read.
    End,
}

/// A pipe that is empty between two calls.
#[derive(Debug)]
pub(super) struct Pipe {
    reader: OwnedFd,
    writer: OwnedFd,
}

impl Pipe {
    pub(super) fn new() -> io::Result<Self> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // A smaller one works as well.
        let _ = fcntl_setpipe_size(&writer, PIPE_BYTES);
        Ok(Self { reader, writer })
    }

    /// Moves what is there, as much as fits. When the future is dropped, what is in the pipe is
    /// lost with it.
    pub(super) async fn pass(&self, from: &Socket, to: &Socket) -> io::Result<Moved> {
        let taken = from.try_io(Interest::READABLE, |socket| {
            let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
            match splice(socket, None, &self.writer, None, MOVE_BYTES, flags) {
                // No other condition than an empty socket: the pipe is empty.
                Err(Errno::AGAIN) => Err(io::ErrorKind::WouldBlock.into()),
                other => Ok(other?),
            }
        });
        let mut left = match taken {
            Ok(0) => return Ok(Moved::End),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Moved::Nothing),
            Err(error) => return Err(error),
        };
        from.count_read(left);
        while left > 0 {
            to.writable().await?;
            let given = to.try_io(Interest::WRITABLE, |socket| {
                let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
                Ok(splice(&self.reader, None, socket, None, left, flags)?)
            });
            match given {
                Ok(count) => {
                    to.count_written(count);
                    left -= count;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Moved::Some)
    }
}

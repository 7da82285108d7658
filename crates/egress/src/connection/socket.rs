//! TCP sockets that count what goes over them and that can end by a reset.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use rustix::net::{Shutdown, shutdown};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

use crate::meter::Meter;
use crate::pace::Pace;

/// Whether sockets end by a reset: because their connection was cut, or its lifecycle ended.
#[derive(Debug, Clone)]
pub(crate) struct Ending {
    of_connection: Arc<AtomicBool>,
    of_lifecycle: Arc<AtomicBool>,
}

impl Ending {
    pub(super) const fn new(of_connection: Arc<AtomicBool>, of_lifecycle: Arc<AtomicBool>) -> Self {
        Self {
            of_connection,
            of_lifecycle,
        }
    }

    fn is_reset(&self) -> bool {
        self.of_connection.load(Ordering::Acquire) || self.of_lifecycle.load(Ordering::Acquire)
    }
}

/// One side of a connection.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: TcpStream,
    meter: Arc<Meter>,
    ending: Ending,
    /// Of what is read here. What is written here was read on the other side.
    pace: Arc<Pace>,
}

impl Socket {
    pub(crate) fn new(stream: TcpStream, ending: Ending, pace: Arc<Pace>) -> Self {
        Self {
            stream,
            meter: Arc::default(),
            ending,
            pace,
        }
    }

    pub(crate) const fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    pub(crate) async fn readable(&self) -> io::Result<()> {
        self.paced().await;
        self.stream.readable().await
    }

    /// Waits until more may be read.
    pub(crate) async fn paced(&self) {
        while let Some(wait) = self.pace.owed(Instant::now()) {
            sleep(wait).await;
        }
    }

    pub(crate) async fn writable(&self) -> io::Result<()> {
        self.stream.writable().await
    }

    /// How many bytes there were; 0 at the end, `WouldBlock` when there are none yet.
    pub(crate) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.stream.try_read(buffer)?;
        self.count_read(count);
        Ok(count)
    }

    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.stream.try_write(bytes)?;
        self.count_written(count);
        Ok(count)
    }

    /// A system call on the socket that says `WouldBlock` when it has to be tried again.
    pub(crate) fn try_io(
        &self,
        interest: Interest,
        call: impl FnOnce(&TcpStream) -> io::Result<usize>,
    ) -> io::Result<usize> {
        self.stream.try_io(interest, || call(&self.stream))
    }

    pub(crate) fn count_read(&self, count: usize) {
        self.meter.count_read(count);
        self.pace.spend(count, Instant::now());
    }

    pub(crate) fn count_written(&self, count: usize) {
        self.meter.count_written(count);
    }

    pub(crate) async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.readable().await?;
            match self.try_read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
        }
    }

    pub(crate) async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.writable().await?;
            match self.try_write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// No more is written; the other side may go on.
    pub(crate) fn finish(&self) -> io::Result<()> {
        Ok(shutdown(&self.stream, Shutdown::Write)?)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.ending.is_reset() {
            // When even this fails it ends in the ordinary way.
            let _ = self.stream.set_zero_linger();
        }
    }
}

/// A socket as the HTTP library takes it. Clones are the same socket.
#[derive(Debug)]
pub(crate) struct Stream {
    socket: Arc<Socket>,
    pause: Option<Pin<Box<Sleep>>>,
}

impl Stream {
    pub(crate) const fn new(socket: Arc<Socket>) -> Self {
        Self {
            socket,
            pause: None,
        }
    }

    /// Ready when more may be read.
    fn poll_paced(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(context));
                self.pause = None;
            }
            let Some(wait) = self.socket.pace.owed(Instant::now()) else {
                return Poll::Ready(());
            };
            self.pause = Some(Box::pin(sleep(wait)));
        }
    }
}

impl Clone for Stream {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.socket))
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_paced(context));
        loop {
            ready!(self.socket.stream.poll_read_ready(context))?;
            match self.socket.try_read(buffer.initialize_unfilled()) {
                Ok(count) => {
                    buffer.advance(count);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.socket.stream.poll_write_ready(context))?;
            match self.socket.stream.try_write_vectored(parts) {
                Ok(count) => {
                    self.socket.count_written(count);
                    return Poll::Ready(Ok(count));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.socket.finish())
    }
}

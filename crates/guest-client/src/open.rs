//! Opening a conversation on two sockets that may hold anything.

use std::io;
use std::time::Duration;

use dayfly_guest_proto::frame::FRAME_BYTES_MAX;
use dayfly_guest_proto::{HostPort, Nonce, Opening, PortRole};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::{Instant, timeout, timeout_at};

use crate::error::ConnectError;

/// How long the first opening may stay without an answer. A retry costs the guest a frame's worth
/// of filler, so it is for guests that are stuck in a dead frame, not for slow ones.
const FIRST_PATIENCE: Duration = Duration::from_millis(400);
const PATIENCE_MAX: Duration = Duration::from_secs(2);
/// How much is read from a port at once.
pub(crate) const READ_BYTES: usize = 64 << 10;

/// A socket and what is known about its bytes.
#[derive(Debug)]
pub(crate) struct OpeningPort {
    role: PortRole,
    pub(crate) socket: UnixStream,
    pub(crate) parser: HostPort,
    unsent: Vec<u8>,
    is_acked: bool,
}

/// Two ports that agreed on a nonce.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) nonce: Nonce,
    pub(crate) control: OpeningPort,
    pub(crate) bulk: OpeningPort,
}

/// Opens both ports with one nonce, again and again with new ones until the deadline.
pub(crate) async fn open(
    control: UnixStream,
    bulk: UnixStream,
    deadline: Duration,
) -> Result<Opened, ConnectError> {
    let mut control = OpeningPort::new(PortRole::Control, control);
    let mut bulk = OpeningPort::new(PortRole::Bulk, bulk);
    let attempts = attempt_until_acked(&mut control, &mut bulk);
    match timeout(deadline, attempts).await {
        Ok(Ok(nonce)) => {
            control.parser.converse(nonce);
            bulk.parser.converse(nonce);
            Ok(Opened {
                nonce,
                control,
                bulk,
            })
        }
        Ok(Err(error)) => Err(error),
        Err(_) => {
            let limit_ms = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX);
            Err(ConnectError::NoAnswer { limit_ms })
        }
    }
}

async fn attempt_until_acked(
    control: &mut OpeningPort,
    bulk: &mut OpeningPort,
) -> Result<Nonce, ConnectError> {
    let mut patience = FIRST_PATIENCE;
    let mut nonce = draw_nonce()?;
    control.begin(nonce);
    bulk.begin(nonce);
    loop {
        let end = Instant::now() + patience;
        let both = async { tokio::try_join!(control.attempt(nonce), bulk.attempt(nonce)) };
        if let Ok(result) = timeout_at(end, both).await {
            result?;
            return Ok(nonce);
        }
        // A guest that does not even take our bytes is not there yet; more of them help nobody.
        if control.unsent.is_empty() && bulk.unsent.is_empty() {
            nonce = draw_nonce()?;
            control.retry(nonce);
            bulk.retry(nonce);
            patience = (patience * 2).min(PATIENCE_MAX);
        }
    }
}

fn draw_nonce() -> Result<Nonce, ConnectError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| ConnectError::Randomness(io::Error::other(error.to_string())))?;
    Ok(Nonce(bytes))
}

impl OpeningPort {
    fn new(role: PortRole, socket: UnixStream) -> Self {
        let parser = HostPort::new(role);
        Self {
            role,
            socket,
            parser,
            unsent: Vec::new(),
            is_acked: false,
        }
    }

    fn begin(&mut self, nonce: Nonce) {
        self.is_acked = false;
        self.unsent
            .extend_from_slice(&Opening::new(nonce, self.role).encode());
    }

    /// The guest may wait for the rest of a frame whose sender died: give it that much of nothing.
    fn retry(&mut self, nonce: Nonce) {
        self.unsent.resize(FRAME_BYTES_MAX, 0);
        self.begin(nonce);
    }

    /// Sends what is unsent and reads until the ack. Cancel safe: nothing is lost or sent twice.
    async fn attempt(&mut self, nonce: Nonce) -> Result<(), ConnectError> {
        let port = self.role;
        let failed = |source| ConnectError::PortFailed { port, source };
        let mut buffer = vec![0; READ_BYTES];
        while !self.is_acked {
            let (mut reader, mut writer) = self.socket.split();
            tokio::select! {
                sent = writer.write(&self.unsent), if !self.unsent.is_empty() => {
                    self.unsent.drain(..sent.map_err(failed)?);
                }
                read = reader.read(&mut buffer) => {
                    let count = read.map_err(failed)?;
                    if count == 0 {
                        return Err(ConnectError::PortClosed { port });
                    }
                    self.parser.push(&buffer[..count]);
                    self.take_ack(nonce)?;
                }
            }
        }
        Ok(())
    }

    fn take_ack(&mut self, nonce: Nonce) -> Result<(), ConnectError> {
        let ack = self.parser.next_ack(nonce);
        let ack = ack.map_err(|source| ConnectError::Stale {
            port: self.role,
            source,
        })?;
        match ack.map(|ack| ack.generation) {
            Some(0) => Err(ConnectError::NoCommonGeneration),
            Some(_) => {
                self.is_acked = true;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

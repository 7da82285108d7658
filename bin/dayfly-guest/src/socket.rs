//! Unix sockets and TCP ports of the guest, each joined with a channel.
//!
//! ```text
//! host --stdin--> waiting --> socket --> service in the guest
//!      <-stdout------------- socket <--
//! ```
//! A connection belongs to its conversation: it ends with it.

use std::collections::VecDeque;
use std::path::Path;

use dayfly_guest_proto::{
    ChannelId, DataHeader, GuestError, GuestErrorCode, ReceiveWindow, SendWindow, StreamKind,
    WindowError,
};
use dayfly_types::limits::FRAME_PAYLOAD_BYTES_MAX;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType, connect, shutdown,
    socket_with,
};

use crate::files::Outlets;
use crate::poller::{Poller, ReadOutcome, Source};
use crate::port::OUTPUT_BYTES_MAX;
use crate::refusal::guest_error;

/// Connections at once: a few for each context that a guest can have, and a browser or two that
/// look at its ports.
const SOCKETS_MAX: usize = 128;

#[derive(Debug, Default)]
pub(crate) struct Sockets {
    list: Vec<Connection>,
}

#[derive(Debug)]
struct Connection {
    channel: ChannelId,
    socket: Source,
    /// What goes to the host.
    outgoing: SendWindow,
    /// What comes from it.
    incoming: ReceiveWindow,
    waiting: VecDeque<Vec<u8>>,
    /// How much of the first waiting piece the service has taken.
    written: usize,
    /// Whether the service can take more.
    can_send: bool,
}

impl Sockets {
    pub(crate) fn connect(
        &mut self,
        channel: ChannelId,
        open: impl FnOnce(&Poller) -> Result<Source, GuestError>,
        poller: &Poller,
    ) -> Result<(), GuestError> {
        if self.list.len() >= SOCKETS_MAX {
            let text = "too many connections at once";
            return Err(GuestError::new(GuestErrorCode::TooMany, text));
        }
        let socket = open(poller)?;
        self.list.push(Connection {
            channel,
            socket,
            outgoing: SendWindow::default(),
            incoming: ReceiveWindow::default(),
            waiting: VecDeque::new(),
            written: 0,
            can_send: true,
        });
        Ok(())
    }

    pub(crate) fn has_channel(&self, channel: ChannelId) -> bool {
        self.list.iter().any(|one| one.channel == channel)
    }

    fn find(&mut self, channel: ChannelId) -> Option<&mut Connection> {
        self.list.iter_mut().find(|one| one.channel == channel)
    }

    /// Takes one data frame of the host. Gives the bytes back if they are for nobody here.
    pub(crate) fn accept(
        &mut self,
        header: DataHeader,
        bytes: Vec<u8>,
    ) -> Result<Option<Vec<u8>>, WindowError> {
        match self.find(header.channel) {
            None => Ok(Some(bytes)),
            Some(connection) => connection.accept(header, bytes).map(|()| None),
        }
    }

    pub(crate) fn grant(&mut self, channel: ChannelId, bytes: u32) -> Result<(), WindowError> {
        let connection = self.find(channel);
        connection.map_or(Ok(()), |one| one.outgoing.grant(bytes))
    }

    pub(crate) fn close(&mut self, channel: ChannelId) {
        self.list.retain(|one| one.channel != channel);
    }

    pub(crate) fn close_all(&mut self) {
        self.list.clear();
    }

    pub(crate) fn wake(&mut self, number: i32) {
        for connection in &mut self.list {
            connection.socket.wake(number);
        }
    }

    /// Moves bytes both ways. Gives whether any moved.
    pub(crate) fn pump(&mut self, outlets: &mut Outlets<'_>, buffer: &mut [u8]) -> bool {
        let mut is_busy = false;
        for connection in &mut self.list {
            is_busy |= connection.send(outlets) | connection.receive(outlets, buffer);
        }
        self.list.retain(|one| !one.outgoing.has_ended());
        // Who was served first comes last next time.
        if !self.list.is_empty() {
            self.list.rotate_left(1);
        }
        is_busy
    }
}

impl Connection {
    fn accept(&mut self, header: DataHeader, bytes: Vec<u8>) -> Result<(), WindowError> {
        self.incoming
            .accept(header.offset, bytes.len(), header.is_end)?;
        if !bytes.is_empty() {
            self.waiting.push_back(bytes);
        }
        Ok(())
    }

    /// Passes on what the host sent.
    fn send(&mut self, outlets: &mut Outlets<'_>) -> bool {
        let mut progressed = false;
        while let Some(piece) = self.waiting.front() {
            let rest = &piece[self.written..];
            let count = if !self.can_send {
                rest.len()
            } else if !self.socket.may_write {
                break;
            } else {
                match self.socket.write(rest) {
                    Some(0) => break,
                    Some(count) => count,
                    // The service reads no more. What it says may still be read.
                    None => {
                        self.can_send = false;
                        rest.len()
                    }
                }
            };
            progressed = true;
            self.written += count;
            if self.written == piece.len() {
                self.waiting.pop_front();
                self.written = 0;
            }
            if let Some(credit) = self.incoming.take(count) {
                let stream = StreamKind::Stdin;
                let encoder = outlets.encoder;
                encoder.credit(self.channel, stream, credit, outlets.bulk);
            }
        }
        if self.waiting.is_empty() && self.incoming.has_ended() && self.can_send {
            self.can_send = false;
            let _ = shutdown(self.socket.as_fd(), Shutdown::Write);
        }
        progressed
    }

    /// Passes on what the service said, one buffer of it.
    fn receive(&mut self, outlets: &mut Outlets<'_>, buffer: &mut [u8]) -> bool {
        let wanted = buffer.len().min(self.outgoing.credit());
        let has_room = outlets.bulk.len() < OUTPUT_BYTES_MAX;
        if wanted == 0 || !has_room || !self.socket.may_read {
            return false;
        }
        match self.socket.read(&mut buffer[..wanted]) {
            ReadOutcome::Bytes(count) => {
                for piece in buffer[..count].chunks(FRAME_PAYLOAD_BYTES_MAX) {
                    self.frame(piece, false, outlets);
                }
            }
            ReadOutcome::Blocked => return false,
            ReadOutcome::Ended => self.frame(&[], true, outlets),
        }
        true
    }

    fn frame(&mut self, bytes: &[u8], is_end: bool, outlets: &mut Outlets<'_>) {
        // Within credit by construction, so there is no error to handle.
        let Ok(offset) = self.outgoing.send(bytes.len(), is_end) else {
            return;
        };
        let header = DataHeader {
            channel: self.channel,
            stream: StreamKind::Stdout,
            offset,
            is_end,
        };
        outlets.encoder.data(header, bytes, outlets.bulk);
    }
}

/// Connects without waiting: a service that has no place for one more is busy.
pub(crate) fn open(path: &str, poller: &Poller) -> Result<Source, GuestError> {
    // A path that begins with a zero byte would be a name of another kind.
    let address = match SocketAddrUnix::new(Path::new(path)) {
        Ok(address) if !path.is_empty() && !path.contains('\0') => address,
        _ => {
            let text = "the path is empty, too long for a socket or not text";
            return Err(GuestError::new(GuestErrorCode::Invalid, text));
        }
    };
    let failed = |error: Errno| guest_error("cannot connect", &error.into());
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None);
    let socket = socket.map_err(failed)?;
    connect(&socket, &address).map_err(|error| connect_error(path, error))?;
    poller
        .watch(socket)
        .map_err(|error| guest_error("cannot watch the connection", &error))
}

fn connect_error(path: &str, error: Errno) -> GuestError {
    let (code, text) = match error {
        Errno::AGAIN => (GuestErrorCode::Busy, "takes no more connections now"),
        // A socket that nobody listens on is as good as none: its service is not up.
        Errno::NOENT | Errno::CONNREFUSED => (GuestErrorCode::NotFound, "has nobody who listens"),
        Errno::PROTOTYPE => (GuestErrorCode::Invalid, "is not a socket of streams"),
        _ => return guest_error(&format!("cannot connect to {path}"), &error.into()),
    };
    GuestError::new(code, format!("{path} {text}"))
}

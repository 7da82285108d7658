//! Packets over a unix socket, with descriptors in them.
//!
//! The runtime has no type for sockets that keep packets apart and in order, so they are watched as
//! datagram sockets, which differ in nothing that the runtime looks at.

use std::fs;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use dayfly_host::files::open_without_links;
use rustix::fs::{Mode, fchmod};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
    recvmsg, sendmsg, socket_with, sockopt,
};
use tokio::io::Interest;
use tokio::net::{UnixDatagram, UnixListener};

use crate::protocol::{OPEN_DESCRIPTORS, PACKET_BYTES_MAX};

/// The kernel doubles what is asked for, and a packet must fit in it whole.
const SEND_BUFFER_BYTES: usize = PACKET_BYTES_MAX / 2 + (64 << 10);
const BACKLOG: i32 = 8;

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct PacketSocket {
    socket: UnixDatagram,
}

/// What came in one packet.
#[derive(Debug)]
pub(crate) struct Packet {
    pub(crate) bytes: Vec<u8>,
    pub(crate) descriptors: Vec<OwnedFd>,
}

impl PacketSocket {
    fn new(socket: OwnedFd) -> io::Result<Self> {
        sockopt::set_socket_send_buffer_size(&socket, SEND_BUFFER_BYTES)?;
        let socket = std::os::unix::net::UnixDatagram::from(socket);
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket: UnixDatagram::from_std(socket)?,
        })
    }

    /// Dials a listener at a path of any length, refusing links in any component.
    pub(crate) fn connect(path: &Path) -> io::Result<Self> {
        let file = open_without_links(path)?;
        let socket = socket_with(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        )?;
        let by_descriptor = format!("/proc/self/fd/{}", file.as_raw_fd());
        rustix::net::connect(&socket, &SocketAddrUnix::new(by_descriptor)?)?;
        Self::new(socket)
    }

    /// # Cancel safety
    /// The packet was sent whole or not at all.
    pub(crate) async fn send(
        &self,
        bytes: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        if bytes.is_empty() || bytes.len() > PACKET_BYTES_MAX {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        loop {
            self.socket.writable().await?;
            let sent = self.socket.try_io(Interest::WRITABLE, || {
                send_one(self.socket.as_fd(), bytes, descriptors)
            });
            match sent {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
        }
    }

    /// The next packet, or none when the other end is gone.
    ///
    /// # Cancel safety
    /// No packet is lost.
    pub(crate) async fn receive(&self) -> io::Result<Option<Packet>> {
        loop {
            self.socket.readable().await?;
            let received = self
                .socket
                .try_io(Interest::READABLE, || receive_one(self.socket.as_fd()));
            match received {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
                other => return other,
            }
        }
    }
}

fn send_one(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(OPEN_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    sendmsg(
        socket,
        &[IoSlice::new(bytes)],
        &mut control,
        SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
    )?;
    Ok(())
}

fn receive_one(socket: BorrowedFd<'_>) -> io::Result<Option<Packet>> {
    let mut bytes = vec![0; PACKET_BYTES_MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(OPEN_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut bytes)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT,
    )?;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    if received
        .flags
        .intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC)
    {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "a packet with more bytes or descriptors than any has",
        ));
    }
    if received.bytes == 0 {
        return Ok(None);
    }
    bytes.truncate(received.bytes);
    bytes.shrink_to_fit();
    Ok(Some(Packet { bytes, descriptors }))
}

/// Where the node dials.
#[derive(Debug)]
pub struct PacketListener {
    listener: UnixListener,
}

impl PacketListener {
    /// Listens at a path that the kernel takes as it is, in place of a socket that a dead process
    /// left there. Only the owner and root can dial.
    ///
    /// # Errors
    /// What the kernel said; `AddrInUse` when something else than a socket is there.
    pub fn bind(path: &Path) -> io::Result<std::os::unix::net::UnixListener> {
        match fs::symlink_metadata(path) {
            Ok(found) if found.file_type().is_socket() => fs::remove_file(path)?,
            Ok(_) => return Err(io::ErrorKind::AddrInUse.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let socket = socket_with(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        )?;
        // The file takes its mode from the socket, so there is no moment with a wider one.
        fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
        rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
        rustix::net::listen(&socket, BACKLOG)?;
        Ok(socket.into())
    }

    /// Watches a listening socket with the runtime of the caller.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] when it does not listen for packets.
    pub fn watch(listener: std::os::unix::net::UnixListener) -> io::Result<Self> {
        let is_fit = sockopt::socket_type(&listener)? == SocketType::SEQPACKET
            && sockopt::socket_acceptconn(&listener)?;
        if !is_fit {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener: UnixListener::from_std(listener)?,
        })
    }

    /// A connection, and the user at its other end. The runtime is asked for that, because a node
    /// outside of this process's namespace has no process id here, which not every library minds.
    ///
    /// # Cancel safety
    /// No connection is lost.
    pub(crate) async fn accept(&self) -> io::Result<(PacketSocket, u32)> {
        let (stream, _) = self.listener.accept().await?;
        let uid = stream.peer_cred()?.uid();
        Ok((PacketSocket::new(stream.into_std()?.into())?, uid))
    }
}

/// Whether a descriptor is a TCP socket that listens, or a UDP one, over IPv4.
pub(crate) fn is_inet(socket: &OwnedFd, kind: SocketType) -> io::Result<bool> {
    Ok(sockopt::socket_domain(socket)? == AddressFamily::INET
        && sockopt::socket_type(socket)? == kind
        && sockopt::socket_acceptconn(socket)? == (kind == SocketType::STREAM))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    async fn pair(path: &Path) -> (PacketSocket, PacketSocket) {
        let listener = PacketListener::watch(PacketListener::bind(path).unwrap()).unwrap();
        let near = PacketSocket::connect(path).unwrap();
        let (far, uid) = listener.accept().await.unwrap();
        assert_eq!(uid, rustix::process::geteuid().as_raw());
        (near, far)
    }

    #[tokio::test]
    async fn packets_keep_their_edges_and_their_descriptors() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap().join("control");
        let (near, far) = pair(&path).await;
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let file = fs::File::open(directory.path()).unwrap();
        let largest = vec![7; PACKET_BYTES_MAX];
        near.send(b"one", &[file.as_fd(); 3]).await.unwrap();
        let first = far.receive().await.unwrap().unwrap();
        assert_eq!(
            (first.bytes.as_slice(), first.descriptors.len()),
            (&b"one"[..], 3)
        );
        near.send(&largest, &[]).await.unwrap();
        assert_eq!(far.receive().await.unwrap().unwrap().bytes, largest);
        drop(near);
        assert!(far.receive().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_dead_process_s_socket_is_replaced_and_a_file_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap().join("control");
        drop(PacketListener::bind(&path).unwrap());
        let (near, _far) = pair(&path).await;
        near.send(b"x", &[]).await.unwrap();
        assert!(near.send(&[], &[]).await.is_err());
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();
        assert_eq!(
            PacketListener::bind(&file).unwrap_err().kind(),
            io::ErrorKind::AddrInUse
        );
    }
}

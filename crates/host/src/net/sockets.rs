//! The sockets at which everything a guest sends arrives.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::net::sockopt::{set_socket_reuseaddr, set_socket_reuseport};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with};

use super::error::{Failed, NetworkError, within};
use super::{CONNECTIONS_MAX, DNS_PORT, GATEWAY_ADDRESS, TCP_PORT};

/// Sockets inside a slot's namespace, whoever holds them. None blocks, and none survives an `exec`.
///
/// They keep the namespace alive: a slot is gone only once they are closed.
#[derive(Debug)]
pub struct SlotSockets {
    /// Takes every TCP connection; the kernel tells where it was meant to go.
    pub tcp: OwnedFd,
    pub dns_udp: OwnedFd,
    pub dns_tcp: OwnedFd,
}

/// Opens the sockets of a slot. May be repeated: until the earlier ones are closed, the kernel
/// shares what arrives among them, so close them soon.
///
/// # Errors
/// [`NetworkError`]; nothing is left open then.
pub fn open_slot_sockets(netns: &Path) -> Result<SlotSockets, NetworkError> {
    within(netns, || {
        Ok(SlotSockets {
            tcp: open(SocketType::STREAM, TCP_PORT)?,
            dns_udp: open(SocketType::DGRAM, DNS_PORT)?,
            dns_tcp: open(SocketType::STREAM, DNS_PORT)?,
        })
    })
}

fn open(kind: SocketType, port: u16) -> Result<OwnedFd, Failed> {
    let opened = || -> io::Result<OwnedFd> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::INET, kind, flags, None)?;
        // A daemon that lost track of its sockets must be able to open new ones, while another
        // process still holds the old and while connections of theirs end.
        set_socket_reuseaddr(&socket, true)?;
        set_socket_reuseport(&socket, true)?;
        bind(&socket, &SocketAddrV4::new(GATEWAY_ADDRESS, port))?;
        if kind == SocketType::STREAM {
            listen(&socket, i32::from(CONNECTIONS_MAX))?;
        }
        Ok(socket)
    };
    opened().map_err(Failed::at(format!("open a socket at port {port}")))
}

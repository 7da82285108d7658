//! TCP ports on which something in the guest listens.

use std::collections::BTreeSet;
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::time::Instant;

use dayfly_guest_proto::{GuestError, GuestErrorCode};
use dayfly_types::port::Listener;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};

use crate::poller::{Poller, Source};
use crate::port_waits::Look;
use crate::refusal::guest_error;

/// As many as are told of.
const PORTS_MAX: usize = 256;
/// The state of a listening socket in the kernel's table.
const LISTENING: &str = "0A";
/// Where a service may listen: most do on the loopback address or on all, a few on the interface.
const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::LOCALHOST, Ipv4Addr::new(10, 11, 0, 2)];

/// How long the agent, which has one thread, waits for a connection to itself.
const PATIENCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// What listens now, as much of it as is told.
pub(crate) fn listening() -> Vec<Listener> {
    all().into_iter().take(PORTS_MAX).collect()
}

/// Everything that listens now, with what that took.
pub(crate) fn look() -> Look {
    let began = Instant::now();
    let listening = all();
    let took = began.elapsed();
    Look { listening, took }
}

fn all() -> BTreeSet<Listener> {
    let mut found = BTreeSet::new();
    for (table, parse) in [
        ("/proc/net/tcp", parse_v4 as fn(&str) -> Option<String>),
        ("/proc/net/tcp6", parse_v6),
    ] {
        // A guest without IPv6 has no such table.
        let text = fs::read_to_string(table).unwrap_or_default();
        found.extend(text.lines().skip(1).filter_map(|line| entry(line, parse)));
    }
    found
}

/// `sl local_address rem_address st ...`
fn entry(line: &str, parse: fn(&str) -> Option<String>) -> Option<Listener> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let local = words.next()?;
    let state = words.nth(1)?;
    if state != LISTENING {
        return None;
    }
    let (address, port) = local.split_once(':')?;
    Some(Listener {
        port: u16::from_str_radix(port, 16).ok()?,
        address: parse(address)?,
    })
}

/// The kernel prints each group of four bytes as one number of this machine.
fn parse_v4(text: &str) -> Option<String> {
    let bits = u32::from_str_radix(text, 16).ok()?;
    Some(Ipv4Addr::from(bits.to_ne_bytes()).to_string())
}

fn parse_v6(text: &str) -> Option<String> {
    let mut bytes = [0; 16];
    for (index, group) in bytes.chunks_exact_mut(4).enumerate() {
        let word = text.get(index * 8..index * 8 + 8)?;
        group.copy_from_slice(&u32::from_str_radix(word, 16).ok()?.to_ne_bytes());
    }
    Some(Ipv6Addr::from(bytes).to_string())
}

/// Connects to a port of this guest.
pub(crate) fn open(port: u16, poller: &Poller) -> Result<Source, GuestError> {
    for address in ADDRESSES {
        match connect_here(address, port) {
            Ok(socket) => {
                // Small answers must not wait for larger ones; without it they are only slower.
                let _ = rustix::net::sockopt::set_tcp_nodelay(&socket, true);
                return poller
                    .watch(socket)
                    .map_err(|error| guest_error("cannot watch the connection", &error));
            }
            Err(Errno::CONNREFUSED | Errno::ADDRNOTAVAIL | Errno::NETUNREACH) => {}
            Err(Errno::TIMEDOUT) => {
                let text = format!("what listens on port {port} takes no more connections now");
                return Err(GuestError::new(GuestErrorCode::Busy, text));
            }
            Err(error) => return Err(guest_error("cannot connect", &error.into())),
        }
    }
    let text = format!("nothing listens on port {port}");
    Err(GuestError::new(GuestErrorCode::NotFound, text))
}

/// The other end is on this machine, so the kernel knows within microseconds whether somebody
/// listens. Only a listener whose queue is full lets it wait.
fn connect_here(address: Ipv4Addr, port: u16) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    // From the address to itself, so that nothing can leave this machine.
    bind(&socket, &SocketAddrV4::new(address, 0))?;
    match connect(&socket, &SocketAddrV4::new(address, port)) {
        Ok(()) => return Ok(socket),
        Err(Errno::INPROGRESS) => {}
        Err(error) => return Err(error),
    }
    let mut watched = [PollFd::new(&socket, PollFlags::OUT)];
    if poll(&mut watched, Some(&PATIENCE))? == 0 {
        return Err(Errno::TIMEDOUT);
    }
    rustix::net::sockopt::socket_error(&socket)??;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_the_kernel_are_read() {
        let listens = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000";
        let found = entry(listens, parse_v4).unwrap();
        assert_eq!((found.port, found.address.as_str()), (8080, "127.0.0.1"));
        assert_eq!(entry(&listens.replace(" 0A ", " 01 "), parse_v4), None);
        let six = "   1: 00000000000000000000000001000000:0016 0:0 0A";
        assert_eq!(entry(six, parse_v6).unwrap().address, "::1");
        for line in ["", "1:", "1: zz:1 0:0 0A", "1: 0100007F 0:0 0A"] {
            assert_eq!(entry(line, parse_v4), None, "{line}");
        }
    }

    #[test]
    fn a_listener_of_this_machine_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(listening().iter().any(|found| found.port == port));
    }
}

//! Asking the kernel how often the packet rules of a namespace have changed: one short message,
//! where listing the rules takes a program.

use std::io;

use rustix::net::netlink::{NETFILTER, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};

/// From `linux/netlink.h` and `linux/netfilter/nfnetlink.h`: a header of 16 bytes, then one of 4.
const HEADER_BYTES: usize = 16;
const HEADERS_BYTES: usize = HEADER_BYTES + 4;
const FLAG_REQUEST: u16 = 1;
const TABLES_SUBSYSTEM: u16 = 10 << 8;
const NEW_GENERATION: u16 = TABLES_SUBSYSTEM | 15;
const GET_GENERATION: u16 = TABLES_SUBSYSTEM | 16;
const GENERATION_ATTRIBUTE: u16 = 1;

/// The generation of the rules in the calling thread's namespace.
pub(super) fn read() -> io::Result<u32> {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        Some(NETFILTER),
    )?;
    let kernel = SocketAddrNetlink::new(0, 0);
    sendto(&socket, &request(), SendFlags::empty(), &kernel)?;
    let mut answer = [0; 4096];
    // The kernel has answered before the call above returned, so nothing is waited for.
    let (length, _) = recv(&socket, &mut answer[..], RecvFlags::DONTWAIT)?;
    parse(answer.get(..length).unwrap_or_default())
        .ok_or_else(|| io::Error::other("the kernel's answer has no generation"))
}

fn request() -> [u8; HEADERS_BYTES] {
    let mut message = [0; HEADERS_BYTES];
    let length = u32::try_from(HEADERS_BYTES).unwrap_or_default();
    message[..4].copy_from_slice(&length.to_ne_bytes());
    message[4..6].copy_from_slice(&GET_GENERATION.to_ne_bytes());
    message[6..8].copy_from_slice(&FLAG_REQUEST.to_ne_bytes());
    message
}

/// Attributes are a length and a kind of two bytes each, then the value, in steps of four bytes.
fn parse(message: &[u8]) -> Option<u32> {
    let word = |bytes: &[u8], at: usize| -> Option<u16> {
        Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
    };
    if word(message, 4)? != NEW_GENERATION {
        return None;
    }
    let mut rest = message.get(HEADERS_BYTES..)?;
    loop {
        let length = usize::from(word(rest, 0)?);
        if word(rest, 2)? == GENERATION_ATTRIBUTE {
            return Some(u32::from_be_bytes(rest.get(4..8)?.try_into().ok()?));
        }
        rest = rest.get(length.next_multiple_of(4).max(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generation_is_found_among_other_attributes() {
        let mut message = vec![0; HEADERS_BYTES];
        message[4..6].copy_from_slice(&NEW_GENERATION.to_ne_bytes());
        for (length, kind, value) in [(5_u16, 3_u16, 9_u32.to_be_bytes()), (8, 1, [0, 0, 1, 2])] {
            message.extend(length.to_ne_bytes());
            message.extend(kind.to_ne_bytes());
            message.extend(value);
        }
        assert_eq!(parse(&message), Some(258));
        assert_eq!(parse(&message[..message.len() - 1]), None);
        assert_eq!(parse(&[]), None);
    }
}

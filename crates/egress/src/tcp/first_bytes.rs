//! What a guest says first, which is all there is to know where it wants to go.

use std::time::Duration;

use dayfly_types::limits::EGRESS_PEEK_BYTES_MAX;
use tokio::time::timeout;

use super::hello::{HANDSHAKE, Hello, HelloReader};
use crate::connection::Socket;

/// The longest method of a request that is known: `BASELINE-CONTROL`, and room.
const METHOD_BYTES_MAX: usize = 24;
const READ_BYTES: usize = 4 << 10;

/// What came.
#[derive(Debug)]
pub(crate) enum FirstBytes {
    Tls(Hello),
    /// It began as TLS and no name can come of it.
    BrokenTls,
    /// The beginning of what looks like a request.
    Http(Vec<u8>),
    Other(Vec<u8>),
    /// Nothing from which that is clear came in time, or at all.
    Silent(Vec<u8>),
}

/// What the first bytes are, as soon as that is clear.
#[derive(Debug, PartialEq, Eq)]
enum Shape {
    Tls,
    Http,
    Other,
    Unclear,
}

fn shape(bytes: &[u8]) -> Shape {
    if bytes.first() == Some(&HANDSHAKE) {
        return Shape::Tls;
    }
    let is_letter = |byte: &u8| byte.is_ascii_uppercase() || *byte == b'-';
    let method = bytes.iter().take_while(|byte| is_letter(byte)).count();
    match bytes.get(method) {
        None if method <= METHOD_BYTES_MAX => Shape::Unclear,
        Some(b' ') if (1..=METHOD_BYTES_MAX).contains(&method) => Shape::Http,
        None | Some(_) => Shape::Other,
    }
}

/// Reads until it is clear what it is, and for TLS until the name is known. At most
/// [`EGRESS_PEEK_BYTES_MAX`] bytes are read, for at most `limit`.
pub(crate) async fn read(guest: &Socket, limit: Duration) -> FirstBytes {
    let mut bytes = Vec::new();
    let found = timeout(limit, read_all(guest, &mut bytes)).await;
    found.unwrap_or(FirstBytes::Silent(bytes))
}

async fn read_all(guest: &Socket, bytes: &mut Vec<u8>) -> FirstBytes {
    let mut hello = HelloReader::new();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let room = (EGRESS_PEEK_BYTES_MAX - bytes.len()).min(READ_BYTES);
        let count = guest.read(&mut buffer[..room]).await.unwrap_or_default();
        let is_over = count == 0;
        bytes.extend_from_slice(&buffer[..count]);
        match shape(bytes) {
            Shape::Http => return FirstBytes::Http(std::mem::take(bytes)),
            Shape::Other => return FirstBytes::Other(std::mem::take(bytes)),
            Shape::Unclear if !is_over => {}
            Shape::Unclear => return FirstBytes::Silent(std::mem::take(bytes)),
            Shape::Tls => match hello.look(bytes) {
                Ok(Some(hello)) => return FirstBytes::Tls(hello),
                Ok(None) if !is_over => {}
                Ok(None) | Err(_) => return FirstBytes::BrokenTls,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_told_apart_by_as_few_bytes_as_possible() {
        for (bytes, expected) in [
            (&b"\x16"[..], Shape::Tls),
            (b"\x16\x03\x01", Shape::Tls),
            (b"", Shape::Unclear),
            (b"GET", Shape::Unclear),
            (b"GET ", Shape::Http),
            (b"M-SEARCH * HTTP/1.1\r\n", Shape::Http),
            (b"PRI * HTTP/2.0\r\n", Shape::Http),
            (b"SSH-2.0-OpenSSH_9.2p1 Debian", Shape::Other),
            (b" GET / HTTP/1.1", Shape::Other),
            (b"get / HTTP/1.1", Shape::Other),
            (b"\0", Shape::Other),
            (b"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", Shape::Other),
        ] {
            assert_eq!(shape(bytes), expected, "{bytes:?}");
        }
    }
}

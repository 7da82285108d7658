//! Bytes that a guest sends above TCP and UDP: hellos, records, questions.

use std::net::Ipv4Addr;
use std::sync::Arc;

use hickory_proto::op::{Message, MessageType, OpCode, Query};
use hickory_proto::rr::{Name, RData, RecordType};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

/// Alerts that a refusal is told by.
pub const ACCESS_DENIED: u8 = 49;
pub const DECODE_ERROR: u8 = 50;
pub const UNRECOGNIZED_NAME: u8 = 112;

/// The bytes of a hello that asks for a name.
#[must_use]
pub fn hello(config: &Arc<ClientConfig>, name: &str) -> Vec<u8> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut connection = ClientConnection::new(Arc::clone(config), name).unwrap();
    let mut bytes = Vec::new();
    connection.write_tls(&mut bytes).unwrap();
    bytes
}

/// A hello made by hand: any entries in the list of names, and padding.
#[must_use]
pub fn raw_hello(names: &[&[u8]], padding: usize) -> Vec<u8> {
    let list: Vec<u8> = names
        .iter()
        .flat_map(|name| [&[0][..], &prefixed(name)].concat())
        .collect();
    let extension = |kind: u16, body: &[u8]| [&kind.to_be_bytes()[..], &prefixed(body)].concat();
    let mut extensions = Vec::new();
    if !names.is_empty() {
        extensions.extend(extension(0, &prefixed(&list)));
    }
    extensions.extend(extension(13, &prefixed(&[4, 3, 8, 4])));
    extensions.extend(extension(10, &prefixed(&[0, 29])));
    extensions.extend(extension(43, &[2, 3, 4]));
    if padding > 0 {
        extensions.extend(extension(21, &vec![0; padding]));
    }
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.push(0);
    body.extend(prefixed(&[0x13, 0x01]));
    body.extend([1, 0]);
    body.extend(prefixed(&extensions));
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    let handshake = [&[1][..], &length[1..], &body].concat();
    in_records(&handshake, 16 << 10)
}

fn prefixed(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).unwrap().to_be_bytes();
    [&length, bytes].concat()
}

/// A handshake message spread over records of at most so many bytes.
#[must_use]
pub fn in_records(handshake: &[u8], most: usize) -> Vec<u8> {
    let records = handshake.chunks(most);
    let record = |part: &[u8]| [&[22, 3, 1][..], &prefixed(part)].concat();
    records.flat_map(record).collect()
}

/// The alert that a refusal is told by, if that is what came.
#[must_use]
pub const fn alert(said: &[u8]) -> Option<u8> {
    match said {
        [21, 3, 3, 0, 2, 2, description] => Some(*description),
        _ => None,
    }
}

#[must_use]
pub fn question(name: &str, kind: RecordType) -> Message {
    let name = Name::from_ascii(format!("{name}.")).unwrap();
    let mut message = Message::new(4711, MessageType::Query, OpCode::Query);
    message.metadata.recursion_desired = true;
    message.add_query(Query::query(name, kind));
    message
}

/// A question for the address of a name, as it goes into a packet.
#[must_use]
pub fn question_packet(name: &str, kind: RecordType) -> Vec<u8> {
    question(name, kind).to_vec().unwrap()
}

/// A packet as it goes over TCP: behind its length.
#[must_use]
pub fn over_tcp(packet: &[u8]) -> Vec<u8> {
    prefixed(packet)
}

/// The packets of a conversation over TCP.
#[must_use]
pub fn from_tcp(mut bytes: &[u8]) -> Vec<Message> {
    let mut messages = Vec::new();
    while let [high, low, rest @ ..] = bytes {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let Some((packet, more)) = rest.split_at_checked(length) else {
            break;
        };
        messages.push(Message::from_vec(packet).unwrap());
        bytes = more;
    }
    messages
}

#[must_use]
pub fn addresses(message: &Message) -> Vec<Ipv4Addr> {
    let mut addresses = Vec::new();
    for record in &message.answers {
        if let RData::A(address) = &record.data {
            addresses.push(address.0);
        }
    }
    addresses
}

/// A plain request that ends its connection.
#[must_use]
pub fn get(host: &str, path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").into_bytes()
}

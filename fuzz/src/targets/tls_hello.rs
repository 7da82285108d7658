//! TLS greetings.
//!
//! What is promised for any bytes: no panic; the same name however they are cut; and everything
//! that came is there to be sent on.

use dayfly_egress::readers::{Hello, HelloReader};

use super::Inputs;

/// What is read of a connection before it is given up.
const PEEK_BYTES_MAX: usize = dayfly_types::limits::EGRESS_PEEK_BYTES_MAX;

pub(super) fn check(input: &[u8]) {
    let input = &input[..input.len().min(PEEK_BYTES_MAX)];
    let whole = look(input, input.len().max(1));
    let pieces = look(input, (input.len() / 64).max(1));
    let is_same = match (&whole, &pieces) {
        (Found::Hello(whole), Found::Hello(pieces)) => {
            assert!(input.starts_with(&pieces.bytes), "bytes were lost");
            assert_eq!(whole.bytes, input, "bytes were lost");
            whole.name == pieces.name
        }
        (Found::Broken, Found::Broken) | (Found::More, Found::More) => true,
        // A whole greeting with broken bytes behind it, which only one of the two looks at.
        (Found::Broken, Found::Hello(_)) => true,
        _ => false,
    };
    assert!(is_same, "in pieces it is {pieces:?} and not {whole:?}");
}

#[derive(Debug)]
enum Found {
    Hello(Hello),
    Broken,
    More,
}

fn look(input: &[u8], step: usize) -> Found {
    let mut reader = HelloReader::new();
    let mut end = 0;
    while end < input.len() {
        end = (end + step).min(input.len());
        match reader.look(&input[..end]) {
            Ok(Some(hello)) => return Found::Hello(hello),
            Ok(None) => {}
            Err(_) => return Found::Broken,
        }
    }
    Found::More
}

fn with_length(width: usize, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).unwrap_or(0).to_be_bytes();
    [&length[4 - width..], content].concat()
}

/// A greeting for TLS 1.2 and 1.3 with these names in it.
fn hello(names: &[&[u8]]) -> Vec<u8> {
    let entries: Vec<u8> = names
        .iter()
        .flat_map(|name| [&[0][..], &with_length(2, name)].concat())
        .collect();
    let mut extensions = Vec::new();
    if !names.is_empty() {
        let list = with_length(2, &with_length(2, &entries));
        extensions.extend([&[0, 0][..], &list].concat());
    }
    // Groups, signatures, versions, an empty share of keys.
    for (kind, content) in [
        (10u16, &b"\0\x04\0\x1d\0\x17"[..]),
        (13, b"\0\x04\x04\x03\x08\x04"),
        (43, b"\x04\x03\x04\x03\x03"),
        (51, b"\0\0"),
    ] {
        extensions.extend(kind.to_be_bytes());
        extensions.extend(with_length(2, content));
    }
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend(with_length(1, &[9; 32]));
    body.extend(with_length(2, b"\x13\x01\xc0\x2b"));
    body.extend(with_length(1, &[0]));
    body.extend(with_length(2, &extensions));
    [&[1][..], &with_length(3, &body)].concat()
}

/// The greeting in records of so many bytes.
fn records(handshake: &[u8], size: usize) -> Vec<u8> {
    let records = handshake.chunks(size);
    records
        .flat_map(|piece| [&[0x16, 3, 1][..], &with_length(2, piece)].concat())
        .collect()
}

pub(super) fn seeds() -> Inputs {
    let one = hello(&[b"allowed.test"]);
    let cases = [
        records(&one, 16_384),
        records(&one, 1),
        records(&one, 40),
        records(&hello(&[]), 16_384),
        records(&hello(&[b"10.0.0.1"]), 16_384),
        records(&hello(&[b"allowed.test", b"evil.test"]), 16_384),
        records(&hello(&[b"al\0lowed.test"]), 16_384),
        records(&hello(&[b""]), 16_384),
        b"\x16\x03\x01\xff\xff".to_vec(),
    ];
    let numbered = cases.into_iter().enumerate();
    numbered
        .map(|(number, bytes)| (format!("seed-{number:02}"), bytes))
        .collect()
}

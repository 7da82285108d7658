//! Records of exec streams and file transfers, as they come from a node.
//!
//! What is promised for any bytes: no panic; the same records however they are cut; no more memory
//! than one record and one piece; and what was read, written again, is read as the same.

use std::collections::VecDeque;

use bytes::Bytes;
use dayfly_node_api::record::{Decoder, RECORD_BYTES_MAX, Record, RecordError, RecordKind, encode};

use super::Inputs;

pub(super) fn check(input: &[u8]) {
    let (whole, end) = decode(input, input.len().max(1));
    let (pieces, cut_end) = decode(input, 1021);
    assert_eq!(whole, pieces, "cut into pieces they are others");
    assert_eq!(end, cut_end);
    let mut written = VecDeque::new();
    for record in &whole {
        assert!(record.payload.len() <= RECORD_BYTES_MAX, "too long");
        encode(record.kind, record.payload.clone(), &mut written);
    }
    let written: Vec<u8> = written.into_iter().flatten().collect();
    assert!(
        input.starts_with(&written),
        "what was read is not what came"
    );
    assert_eq!(decode(&written, 4096), (whole, Ok(())));
}

fn decode(input: &[u8], step: usize) -> (Vec<Record>, Result<(), RecordError>) {
    let mut decoder = Decoder::default();
    let mut records = Vec::new();
    for piece in input.chunks(step) {
        decoder.push(piece);
        loop {
            match decoder.take() {
                Ok(Some(record)) => records.push(record),
                Ok(None) => break,
                Err(error) => return (records, Err(error)),
            }
        }
    }
    (records, decoder.finish())
}

/// A record by its parts.
type Plain = (RecordKind, &'static [u8]);

pub(super) fn seeds() -> Inputs {
    let streams: [(&str, &[Plain]); 3] = [
        (
            "seed-exec",
            &[
                (RecordKind::Stdout, b"out"),
                (RecordKind::Alive, b""),
                (RecordKind::Stderr, b"err"),
                (RecordKind::Gap, b"{\"stream\":\"stdout\"}"),
                (RecordKind::Exit, b"{}"),
            ],
        ),
        (
            "seed-file",
            &[
                (RecordKind::Head, b"{}"),
                (RecordKind::Data, b"content"),
                (RecordKind::End, b""),
            ],
        ),
        ("seed-error", &[(RecordKind::Error, b"{\"code\":\"x\"}")]),
    ];
    let mut inputs = Vec::new();
    for (name, records) in streams {
        let mut written = VecDeque::new();
        for (kind, payload) in records {
            encode(*kind, Bytes::from_static(payload), &mut written);
        }
        let bytes = written.into_iter().flatten().collect();
        inputs.push((name.to_owned(), bytes));
    }
    inputs
}

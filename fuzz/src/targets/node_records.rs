//! Records of exec streams and file transfers, as they come from a node.
//!
//! What is promised for any bytes: no panic; the same records however they are cut; no more memory
//! than one record and one piece; and what was read, written again, is read as the same.

use std::collections::VecDeque;

use bytes::Bytes;
use dayfly_node_api::record::{
    RECORD_BYTES_MAX, RecordDecoder, RecordError, StreamRecord, StreamRecordKind, encode,
};

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

fn decode(input: &[u8], step: usize) -> (Vec<StreamRecord>, Result<(), RecordError>) {
    let mut decoder = RecordDecoder::default();
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
type Plain = (StreamRecordKind, &'static [u8]);

pub(super) fn seeds() -> Inputs {
    let streams: [(&str, &[Plain]); 3] = [
        (
            "seed-exec",
            &[
                (StreamRecordKind::Stdout, b"out"),
                (StreamRecordKind::Alive, b""),
                (StreamRecordKind::Stderr, b"err"),
                (StreamRecordKind::Gap, b"{\"stream\":\"stdout\"}"),
                (StreamRecordKind::Exit, b"{}"),
            ],
        ),
        (
            "seed-file",
            &[
                (StreamRecordKind::Head, b"{}"),
                (StreamRecordKind::Data, b"content"),
                (StreamRecordKind::End, b""),
            ],
        ),
        (
            "seed-error",
            &[(StreamRecordKind::Error, b"{\"code\":\"x\"}")],
        ),
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

//! The records that exec streams and file transfers are made of.
//!
//! A record is a kind (one byte), a length (four bytes, big endian) and that many bytes. A stream
//! is complete only when its last record says so (`Exit` or `End`); a failure in the middle is an
//! `Error` record, and a stream that just stops was broken off. No I/O here.

use std::collections::VecDeque;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use dayfly_types::limits::FRAME_PAYLOAD_BYTES_MAX;

/// What one record may carry. Larger data is cut into several records.
pub const RECORD_BYTES_MAX: usize = FRAME_PAYLOAD_BYTES_MAX;
const HEADER_BYTES: usize = 5;

/// What a record means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum StreamRecordKind {
    Stdout = 1,
    Stderr = 2,
    /// How an exec ended, as JSON. The last record of an exec.
    Exit = 3,
    /// A `NodeError` as JSON. The last record of anything.
    Error = 4,
    /// What a file transfer is about, as JSON. The first record of one.
    Head = 5,
    Data = 6,
    /// The content of a file is complete.
    End = 7,
    /// Nothing to say, still here.
    Alive = 8,
    /// Output that the guest no longer has, as JSON.
    Gap = 9,
    /// One thing of several, or the last piece of it.
    Item = 10,
    /// A piece of a thing that is too long for one record.
    Part = 11,
}

impl StreamRecordKind {
    fn parse(byte: u8) -> Result<Self, RecordError> {
        Ok(match byte {
            1 => Self::Stdout,
            2 => Self::Stderr,
            3 => Self::Exit,
            4 => Self::Error,
            5 => Self::Head,
            6 => Self::Data,
            7 => Self::End,
            8 => Self::Alive,
            9 => Self::Gap,
            10 => Self::Item,
            11 => Self::Part,
            _ => return Err(RecordError::UnknownKind { kind: byte }),
        })
    }
}

/// One decoded record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamRecord {
    pub kind: StreamRecordKind,
    pub payload: Bytes,
}

/// Why bytes are not records.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    #[error("record kind {kind} is not known")]
    UnknownKind { kind: u8 },
    #[error("record of {length} bytes is longer than {RECORD_BYTES_MAX}")]
    TooLong { length: u32 },
    #[error("stream ended inside a record")]
    Cut,
}

/// Appends `payload` to `out` as one or more records of `kind`, without copying it.
pub fn encode(kind: StreamRecordKind, mut payload: Bytes, out: &mut VecDeque<Bytes>) {
    loop {
        let piece = payload.split_to(payload.len().min(RECORD_BYTES_MAX));
        // The cut above keeps the length within four bytes.
        let length = u32::try_from(piece.len()).unwrap_or(u32::MAX);
        let mut header = BytesMut::with_capacity(HEADER_BYTES);
        header.put_u8(kind as u8);
        header.put_u32(length);
        out.push_back(header.freeze());
        if !piece.is_empty() {
            out.push_back(piece);
        }
        if payload.is_empty() {
            return;
        }
    }
}

/// Appends one thing to `out`, in as many records as it needs.
pub fn encode_item(mut payload: Bytes, out: &mut VecDeque<Bytes>) {
    let last = payload.split_off(payload.len().saturating_sub(RECORD_BYTES_MAX));
    if !payload.is_empty() {
        encode(StreamRecordKind::Part, payload, out);
    }
    encode(StreamRecordKind::Item, last, out);
}

/// Turns bytes in pieces of any size into records.
///
/// It holds what was pushed and not yet taken, so a reader that drains [`RecordDecoder::take`] before
/// each [`RecordDecoder::push`] keeps it under one record and one piece.
#[derive(Debug, Default)]
pub struct RecordDecoder {
    buffer: BytesMut,
}

impl RecordDecoder {
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole record, or `None` when more bytes are needed.
    ///
    /// # Errors
    /// [`RecordError`] when the bytes are not records; the stream is useless from there on.
    pub fn take(&mut self) -> Result<Option<StreamRecord>, RecordError> {
        let Some(header) = self.buffer.first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let [kind, length @ ..] = *header;
        let kind = StreamRecordKind::parse(kind)?;
        let length_wire = u32::from_be_bytes(length);
        let length = usize::try_from(length_wire).unwrap_or(usize::MAX);
        if length > RECORD_BYTES_MAX {
            return Err(RecordError::TooLong {
                length: length_wire,
            });
        }
        if self.buffer.len() < HEADER_BYTES + length {
            return Ok(None);
        }
        self.buffer.advance(HEADER_BYTES);
        let payload = self.buffer.split_to(length).freeze();
        Ok(Some(StreamRecord { kind, payload }))
    }

    /// Says whether the end of the stream is also the end of a record.
    ///
    /// # Errors
    /// [`RecordError::Cut`] when it is not.
    pub fn finish(&self) -> Result<(), RecordError> {
        if self.buffer.is_empty() {
            Ok(())
        } else {
            Err(RecordError::Cut)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn wire(records: &[(StreamRecordKind, Bytes)]) -> Vec<u8> {
        let mut out = VecDeque::new();
        for (kind, payload) in records {
            encode(*kind, payload.clone(), &mut out);
        }
        out.into_iter().flatten().collect()
    }

    #[test]
    fn records_survive_any_cut_of_the_bytes() {
        let bytes = wire(&[
            (StreamRecordKind::Stdout, Bytes::from_static(b"one")),
            (StreamRecordKind::Alive, Bytes::new()),
            (StreamRecordKind::Exit, Bytes::from_static(b"{}")),
        ]);
        for size in 1..=bytes.len() {
            let mut decoder = RecordDecoder::default();
            let mut kinds = Vec::new();
            for piece in bytes.chunks(size) {
                decoder.push(piece);
                while let Some(record) = decoder.take().unwrap() {
                    kinds.push((record.kind, record.payload.len()));
                }
            }
            assert_eq!(decoder.finish(), Ok(()));
            let expected = vec![
                (StreamRecordKind::Stdout, 3),
                (StreamRecordKind::Alive, 0),
                (StreamRecordKind::Exit, 2),
            ];
            assert_eq!(kinds, expected);
        }
    }

    #[test]
    fn large_data_becomes_several_records() {
        let bytes = wire(&[(
            StreamRecordKind::Data,
            Bytes::from(vec![7; RECORD_BYTES_MAX * 2 + 1]),
        )]);
        let mut decoder = RecordDecoder::default();
        decoder.push(&bytes);
        let mut lengths = Vec::new();
        while let Some(record) = decoder.take().unwrap() {
            lengths.push(record.payload.len());
        }
        assert_eq!(lengths, [RECORD_BYTES_MAX, RECORD_BYTES_MAX, 1]);
    }

    #[test]
    fn a_length_over_the_limit_is_refused_before_it_is_read() {
        let mut decoder = RecordDecoder::default();
        decoder.push(&[1, 0, 1, 0, 1]);
        assert_eq!(
            decoder.take(),
            Err(RecordError::TooLong { length: 0x1_0001 })
        );
    }

    #[test]
    fn a_stream_cut_inside_a_record_is_noticed() {
        let mut decoder = RecordDecoder::default();
        decoder.push(&[1, 0, 0, 0, 4, b'a']);
        assert_eq!(decoder.take(), Ok(None));
        assert_eq!(decoder.finish(), Err(RecordError::Cut));
    }

    proptest! {
        #[test]
        fn no_input_makes_the_decoder_panic(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
            let mut decoder = RecordDecoder::default();
            decoder.push(&bytes);
            while let Ok(Some(_)) = decoder.take() {}
        }
    }
}

//! Output shaped for a model: of a long stream the head, the tail and the lines around errors.
//!
//! ```text
//! |---- head ----|   ... | around errors | ...   |---- tail ----|
//! ```
//! The stream is read once, and no more is held than what may be given. What is left out is named
//! by offset, so that it can be read from the guest's log.

use std::collections::VecDeque;

/// A line this long is cut: a minified file must not push everything else out.
const LINE_BYTES_MAX: usize = 512;
/// How many lines before and after an error belong to it.
const LINES_BEFORE: usize = 1;
const LINES_AFTER: usize = 2;
/// What a line holds that tells of an error, in small letters.
const ERROR_WORDS: [&[u8]; 8] = [
    b"error",
    b"exception",
    b"traceback",
    b"failed",
    b"failure",
    b"fatal",
    b"panic",
    b"not found",
];

/// A part of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) offset: u64,
    pub(crate) bytes: Vec<u8>,
}

impl Part {
    fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }
}

/// Reads a stream and keeps its telling parts.
#[derive(Debug)]
pub(crate) struct Shape {
    room: usize,
    /// Where the next byte is in the stream.
    offset: u64,
    /// Everything, until it is too much; the head afterwards.
    head: Vec<u8>,
    is_over: bool,
    tail: VecDeque<u8>,
    errors: Errors,
}

impl Shape {
    pub(crate) fn new(room: usize) -> Self {
        Self {
            room,
            offset: 0,
            head: Vec::new(),
            is_over: false,
            tail: VecDeque::new(),
            errors: Errors::new(room / 4),
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.offset += bytes.len() as u64;
        if !self.is_over {
            self.head.extend_from_slice(bytes);
            if self.head.len() > self.room {
                self.overflow();
            }
            return;
        }
        let offset = self.offset - bytes.len() as u64;
        self.push_behind_head(offset, bytes);
    }

    /// The guest no longer has the next bytes.
    pub(crate) fn skip(&mut self, bytes: u64) {
        if !self.is_over {
            self.overflow();
        }
        self.tail.clear();
        self.errors.break_line();
        self.offset += bytes;
    }

    fn overflow(&mut self) {
        self.is_over = true;
        let head_room = self.room * 3 / 8;
        let rest = self.head.split_off(self.head.len().min(head_room));
        let offset = self.head.len() as u64;
        self.push_behind_head(offset, &rest);
    }

    fn push_behind_head(&mut self, offset: u64, bytes: &[u8]) {
        self.errors.push(offset, bytes);
        let tail_room = self.room * 3 / 8;
        self.tail.extend(bytes);
        let surplus = self.tail.len().saturating_sub(tail_room);
        self.tail.drain(..surplus);
    }

    /// How long the stream was.
    pub(crate) const fn total(&self) -> u64 {
        self.offset
    }

    /// The parts that are kept, in order, none touching another.
    pub(crate) fn finish(mut self) -> Vec<Part> {
        self.errors.break_line();
        let tail = Part {
            offset: self.offset - self.tail.len() as u64,
            bytes: self.tail.into(),
        };
        let head = Part {
            offset: 0,
            bytes: self.head,
        };
        let mut parts: Vec<Part> = Vec::new();
        for part in std::iter::once(head).chain(self.errors.found).chain([tail]) {
            join(&mut parts, part);
        }
        parts
    }
}

/// Adds a part behind the others, without what they hold already. The tail comes last and may
/// reach back over errors that it holds itself.
fn join(parts: &mut Vec<Part>, mut part: Part) {
    if part.bytes.is_empty() {
        return;
    }
    while parts.last().is_some_and(|last| last.offset >= part.offset) {
        parts.pop();
    }
    let Some(last) = parts.last_mut() else {
        parts.push(part);
        return;
    };
    if last.end() < part.offset {
        parts.push(part);
        return;
    }
    let known = usize::try_from(last.end() - part.offset).unwrap_or(usize::MAX);
    if known < part.bytes.len() {
        last.bytes.append(&mut part.bytes.split_off(known));
    }
}

/// Finds lines that tell of an error, with their neighbours.
#[derive(Debug)]
struct Errors {
    room: usize,
    found: Vec<Part>,
    line: Part,
    before: VecDeque<Part>,
    wanted_after: usize,
}

impl Errors {
    fn new(room: usize) -> Self {
        Self {
            room,
            found: Vec::new(),
            line: Part {
                offset: 0,
                bytes: Vec::new(),
            },
            before: VecDeque::new(),
            wanted_after: 0,
        }
    }

    fn push(&mut self, offset: u64, bytes: &[u8]) {
        let mut at = offset;
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.line.bytes.is_empty() {
                self.line.offset = at;
            }
            let free = LINE_BYTES_MAX.saturating_sub(self.line.bytes.len());
            self.line
                .bytes
                .extend_from_slice(&piece[..piece.len().min(free)]);
            at += piece.len() as u64;
            if piece.ends_with(b"\n") {
                self.break_line();
            }
        }
    }

    fn break_line(&mut self) {
        let next = Part {
            offset: 0,
            bytes: Vec::new(),
        };
        let line = std::mem::replace(&mut self.line, next);
        if line.bytes.is_empty() {
            return;
        }
        if tells_of_an_error(&line.bytes) {
            for earlier in std::mem::take(&mut self.before) {
                self.keep(earlier);
            }
            self.keep(line);
            self.wanted_after = LINES_AFTER;
        } else if self.wanted_after > 0 {
            self.wanted_after -= 1;
            self.keep(line);
        } else {
            self.before.push_back(line);
            while self.before.len() > LINES_BEFORE {
                self.before.pop_front();
            }
        }
    }

    fn keep(&mut self, line: Part) {
        if line.bytes.len() > self.room {
            self.room = 0;
            return;
        }
        self.room -= line.bytes.len();
        join(&mut self.found, line);
    }
}

fn tells_of_an_error(line: &[u8]) -> bool {
    let small = line.to_ascii_lowercase();
    ERROR_WORDS
        .iter()
        .any(|word| small.windows(word.len()).any(|window| window == *word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(room: usize, stream: &[u8], piece: usize) -> (u64, Vec<Part>) {
        let mut shape = Shape::new(room);
        for bytes in stream.chunks(piece) {
            shape.push(bytes);
        }
        (shape.total(), shape.finish())
    }

    #[test]
    fn a_stream_that_fits_is_given_whole() {
        let (total, parts) = shape(100, &[7; 100], 9);
        assert_eq!(total, 100);
        assert_eq!(parts.len(), 1);
        assert_eq!(parts[0].bytes, [7; 100]);
    }

    #[test]
    fn parts_are_true_in_order_and_within_their_room() {
        let mut stream = Vec::new();
        for line in 0..5000 {
            if line % 1700 == 1600 {
                stream.extend_from_slice(b"Traceback: something broke\n");
            }
            stream.extend_from_slice(format!("line {line}\n").as_bytes());
        }
        for piece in [1, 13, 4096, stream.len()] {
            let (total, parts) = shape(2000, &stream, piece);
            assert_eq!(total, stream.len() as u64);
            let mut end = 0;
            for (index, part) in parts.iter().enumerate() {
                assert!(index == 0 || part.offset > end, "parts do not touch");
                let from = usize::try_from(part.offset).unwrap();
                assert_eq!(part.bytes, stream[from..from + part.bytes.len()]);
                end = part.end();
            }
            assert_eq!((parts[0].offset, end), (0, total));
            let kept: usize = parts.iter().map(|part| part.bytes.len()).sum();
            assert!(kept <= 2000, "{kept}");
            let has_error = |part: &&Part| part.bytes.windows(9).any(|w| w == b"Traceback");
            assert_eq!(
                parts.iter().filter(has_error).count(),
                2,
                "in pieces of {piece}"
            );
        }
    }

    #[test]
    fn bytes_that_the_guest_dropped_are_a_hole() {
        let mut shape = Shape::new(100);
        shape.push(b"begin");
        shape.skip(1000);
        shape.push(b"end");
        assert_eq!(shape.total(), 1008);
        let parts = shape.finish();
        let seen: Vec<_> = parts
            .iter()
            .map(|p| (p.offset, p.bytes.as_slice()))
            .collect();
        assert_eq!(seen, [(0, b"begin".as_slice()), (1005, b"end".as_slice())]);
    }

    #[test]
    fn endless_lines_cost_no_more_than_their_limit() {
        let (_, parts) = shape(4096, &vec![b'e'; 1 << 20], 1000);
        let kept: usize = parts.iter().map(|part| part.bytes.len()).sum();
        assert!(kept <= 4096);
    }
}

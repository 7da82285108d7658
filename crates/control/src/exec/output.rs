//! What is kept of one stream of a plain exec.

use dayfly_api::Omission;
use dayfly_types::limits::EXEC_RESULT_BYTES_MAX;

use crate::admission::limit::{OUTPUT_UNIT_BYTES, OutputRoom, Permit};
use crate::exec::shape::{Part, Shape};

/// Bytes up to the limit of one stream, of its project, and of the server as a whole.
#[derive(Debug)]
pub struct Output {
    kept: KeptOutput,
    places: Vec<Permit>,
    /// Parts of the stream that the guest had dropped: offset and length.
    gaps: Vec<(u64, u64)>,
}

#[derive(Debug)]
enum KeptOutput {
    /// The beginning of the stream.
    Head {
        bytes: Vec<u8>,
        total: u64,
        is_cut: bool,
    },
    Shaped(Shape),
}

/// A stream as an answer gives it.
#[derive(Debug)]
pub struct StreamText {
    pub text: String,
    pub total: u64,
    pub omitted: Vec<Omission>,
}

impl Output {
    /// An output that keeps its beginning, or that is shaped into so many bytes.
    #[must_use]
    pub fn new(shaped_bytes: Option<usize>) -> Self {
        let kept = match shaped_bytes {
            Some(room) => KeptOutput::Shaped(Shape::new(room.min(EXEC_RESULT_BYTES_MAX))),
            None => KeptOutput::Head {
                bytes: Vec::new(),
                total: 0,
                is_cut: false,
            },
        };
        Self {
            kept,
            places: Vec::new(),
            gaps: Vec::new(),
        }
    }

    /// Keeps what fits.
    pub fn push(&mut self, new: &[u8], room: &OutputRoom) {
        match &mut self.kept {
            KeptOutput::Shaped(shape) => shape.push(new),
            KeptOutput::Head {
                bytes,
                total,
                is_cut,
            } => {
                *total += new.len() as u64;
                if *is_cut {
                    return;
                }
                let wanted = bytes
                    .len()
                    .saturating_add(new.len())
                    .min(EXEC_RESULT_BYTES_MAX);
                while self.places.len() * OUTPUT_UNIT_BYTES < wanted {
                    let Some(place) = room.unit() else {
                        break;
                    };
                    self.places.push(place);
                }
                let room = wanted.min(self.places.len() * OUTPUT_UNIT_BYTES);
                let kept = room.saturating_sub(bytes.len()).min(new.len());
                bytes.extend_from_slice(&new[..kept]);
                *is_cut = kept < new.len();
            }
        }
    }

    /// Notes that the guest no longer has the next bytes.
    pub fn skip(&mut self, gap: u64) {
        match &mut self.kept {
            KeptOutput::Shaped(shape) => {
                self.gaps.push((shape.total(), gap));
                shape.skip(gap);
            }
            KeptOutput::Head { total, is_cut, .. } => {
                self.gaps.push((*total, gap));
                *total += gap;
                // What comes behind a hole must not look as if it followed.
                *is_cut = true;
            }
        }
    }

    /// The stream as text, with a mark for each part that is left out.
    #[must_use]
    pub fn give(self, stream: &str) -> StreamText {
        let (total, parts, has_marks) = match self.kept {
            KeptOutput::Shaped(shape) => (shape.total(), shape.finish(), true),
            KeptOutput::Head { bytes, total, .. } => {
                (total, vec![Part { offset: 0, bytes }], false)
            }
        };
        let mut text = String::new();
        let mut omitted = Vec::new();
        let mut end = 0;
        for part in parts {
            leave_out(&mut omitted, stream, end, part.offset, &self.gaps);
            if has_marks && part.offset > end {
                push_mark(&mut text, part.offset - end, end);
            }
            end = part.offset + part.bytes.len() as u64;
            text.push_str(&decode(&part.bytes, end < total));
        }
        leave_out(&mut omitted, stream, end, total, &self.gaps);
        StreamText {
            text,
            total,
            omitted,
        }
    }
}

/// Names the bytes between two offsets, those that the guest dropped apart from the others.
fn leave_out(
    omitted: &mut Vec<Omission>,
    stream: &str,
    from: u64,
    until: u64,
    gaps: &[(u64, u64)],
) {
    let mut add = |offset: u64, end: u64, readable| {
        if end > offset {
            omitted.push(Omission {
                stream: stream.to_owned(),
                offset,
                bytes: end - offset,
                readable,
            });
        }
    };
    let mut at = from;
    for (offset, bytes) in gaps.iter().filter(|(o, b)| o + b > from && *o < until) {
        add(at, *offset, true);
        add((*offset).max(from), offset + bytes, false);
        at = offset + bytes;
    }
    add(at, until, true);
}

fn push_mark(text: &mut String, bytes: u64, offset: u64) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&format!(
        "[... {bytes} bytes left out, from offset {offset} ...]\n"
    ));
}

/// As text; what is not UTF-8 is replaced, and a character that the limit cut is dropped.
fn decode(mut bytes: &[u8], is_cut: bool) -> String {
    if is_cut
        && let Err(error) = std::str::from_utf8(bytes)
        && error.error_len().is_none()
    {
        bytes = &bytes[..error.valid_up_to()];
    }
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use dayfly_types::ProjectId;

    use super::*;
    use crate::admission::limit::Limits;

    fn room() -> OutputRoom {
        Limits::default().output_of(&ProjectId::default_project())
    }

    #[test]
    fn a_stream_is_cut_at_its_limit_between_characters() {
        let room = room();
        let mut output = Output::new(None);
        output.push(b"x", &room);
        for _ in 0..EXEC_RESULT_BYTES_MAX / 2 {
            output.push("é".as_bytes(), &room);
        }
        let given = output.give("stdout");
        assert_eq!(given.text.len(), EXEC_RESULT_BYTES_MAX - 1);
        assert_eq!(given.total, EXEC_RESULT_BYTES_MAX as u64 + 1);
        assert_eq!(
            (given.omitted[0].bytes, given.omitted[0].readable),
            (1, true)
        );
    }

    #[test]
    fn a_full_stream_that_just_fits_is_not_cut() {
        let room = room();
        let mut output = Output::new(None);
        output.push(&vec![b'a'; EXEC_RESULT_BYTES_MAX], &room);
        let given = output.give("stdout");
        assert!(given.omitted.is_empty());
        assert_eq!(given.text.len(), EXEC_RESULT_BYTES_MAX);
    }

    #[test]
    fn streams_share_what_their_project_may_have_of_the_server() {
        let room = room();
        let outputs: Vec<Output> = (0..64)
            .map(|_| {
                let mut output = Output::new(None);
                output.push(&vec![0; EXEC_RESULT_BYTES_MAX], &room);
                output
            })
            .collect();
        let given: Vec<StreamText> = outputs.into_iter().map(|o| o.give("stdout")).collect();
        let kept: usize = given.iter().map(|given| given.text.len()).sum();
        assert_eq!(kept, 128 << 20, "half of what there is");
        assert!(!given.last().unwrap().omitted.is_empty());
    }

    #[test]
    fn shaped_output_says_what_is_left_out_and_what_is_gone() {
        let room = room();
        let mut output = Output::new(Some(300));
        output.push(&[b'a'; 1000], &room);
        output.skip(50);
        output.push(&[b'b'; 1000], &room);
        let given = output.give("stderr");
        assert!(
            given.text.contains("bytes left out, from offset"),
            "{}",
            given.text
        );
        assert_eq!(given.total, 2050);
        let gone: Vec<_> = given.omitted.iter().filter(|o| !o.readable).collect();
        assert_eq!((gone.len(), gone[0].offset, gone[0].bytes), (1, 1000, 50));
        let left_out: u64 = given.omitted.iter().map(|o| o.bytes).sum();
        let kept = given.text.bytes().filter(|b| *b == b'a' || *b == b'b');
        // The marks hold letters too: "bytes" has a b.
        let marks = given.text.matches("bytes").count() as u64;
        assert_eq!(left_out + kept.count() as u64 - marks, 2050);
    }
}

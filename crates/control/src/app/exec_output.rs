//! What is kept of one stream of a plain exec.

use dayfly_types::limits::EXEC_RESULT_BYTES_MAX;

use crate::limit::{Limits, OUTPUT_UNIT_BYTES, Place};

/// Bytes up to the limit of one stream, and of the server as a whole.
#[derive(Debug, Default)]
pub struct Output {
    bytes: Vec<u8>,
    places: Vec<Place>,
    truncated: bool,
}

impl Output {
    /// Keeps what fits.
    pub fn push(&mut self, bytes: &[u8], limits: &Limits) {
        if self.truncated {
            return;
        }
        let wanted = self
            .bytes
            .len()
            .saturating_add(bytes.len())
            .min(EXEC_RESULT_BYTES_MAX);
        while self.room() < wanted {
            let Some(place) = limits.output_unit() else {
                break;
            };
            self.places.push(place);
        }
        let free = wanted.min(self.room()) - self.bytes.len();
        let kept = free.min(bytes.len());
        self.bytes.extend_from_slice(&bytes[..kept]);
        self.truncated = kept < bytes.len();
    }

    fn room(&self) -> usize {
        self.places.len() * OUTPUT_UNIT_BYTES
    }

    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.truncated
    }

    /// As text; what is not UTF-8 is replaced, and a character that the limit cut is dropped.
    #[must_use]
    pub fn into_text(mut self) -> String {
        if self.truncated
            && let Err(error) = std::str::from_utf8(&self.bytes)
            && error.error_len().is_none()
        {
            self.bytes.truncate(error.valid_up_to());
        }
        match String::from_utf8(self.bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_cut_at_its_limit_between_characters() {
        let limits = Limits::default();
        let mut output = Output::default();
        output.push(b"x", &limits);
        for _ in 0..EXEC_RESULT_BYTES_MAX / 2 {
            output.push("é".as_bytes(), &limits);
        }
        assert!(output.is_truncated());
        assert_eq!(output.into_text().len(), EXEC_RESULT_BYTES_MAX - 1);
    }

    #[test]
    fn a_full_stream_that_just_fits_is_not_cut() {
        let limits = Limits::default();
        let mut output = Output::default();
        output.push(&vec![b'a'; EXEC_RESULT_BYTES_MAX], &limits);
        assert!(!output.is_truncated());
        assert_eq!(output.into_text().len(), EXEC_RESULT_BYTES_MAX);
    }

    #[test]
    fn streams_share_the_room_of_the_server() {
        let limits = Limits::default();
        let outputs: Vec<Output> = (0..64)
            .map(|_| {
                let mut output = Output::default();
                output.push(&vec![0; EXEC_RESULT_BYTES_MAX], &limits);
                output
            })
            .collect();
        let kept: usize = outputs.iter().map(|output| output.bytes.len()).sum();
        assert_eq!(kept, 256 << 20);
        assert!(outputs.last().unwrap().is_truncated());
    }
}

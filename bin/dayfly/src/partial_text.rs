//! Text that comes in pieces of bytes.

/// The beginning of a character whose rest has not come yet.
#[derive(Debug, Default)]
pub(crate) struct PartialText {
    held: Vec<u8>,
}

impl PartialText {
    /// The text up to the last whole character. What is no UTF-8 is replaced.
    pub(crate) fn add(&mut self, piece: &[u8]) -> String {
        self.held.extend_from_slice(piece);
        let whole = self.held.len() - incomplete_end(&self.held);
        let rest = self.held.split_off(whole);
        let text = String::from_utf8_lossy(&self.held).into_owned();
        self.held = rest;
        text
    }

    /// What is left, which is half a character.
    pub(crate) fn end(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.held)).into_owned()
    }
}

/// How many of the last bytes are the beginning of one character.
fn incomplete_end(bytes: &[u8]) -> usize {
    let last = bytes.utf8_chunks().last();
    let invalid = last.map_or(&[][..], |chunk| chunk.invalid());
    let is_beginning = std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
    if is_beginning { invalid.len() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_in_two_pieces_is_one() {
        let bytes = "a€b".as_bytes();
        for cut in 0..=bytes.len() {
            let mut text = PartialText::default();
            let (first, second) = bytes.split_at(cut);
            let told = text.add(first) + &text.add(second);
            assert_eq!(told, "a€b", "cut at {cut}");
            assert_eq!(text.end(), "");
        }
    }

    #[test]
    fn what_is_no_text_is_replaced_and_not_held_back() {
        let mut text = PartialText::default();
        assert_eq!(text.add(b"a\xffb\xff"), "a\u{fffd}b\u{fffd}");
        assert_eq!(text.add(b"\xe2\x82"), "");
        assert_eq!(text.end(), "\u{fffd}");
    }
}

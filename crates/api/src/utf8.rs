//! UTF-8 that arrives in pieces.

/// Turns bytes into text without ever cutting a character. What is not UTF-8 is replaced, each
/// maximal wrong sequence by one U+FFFD.
#[derive(Debug, Default)]
pub struct Utf8Pieces {
    /// The beginning of a character whose rest is yet to come: at most three bytes.
    begun: Vec<u8>,
}

impl Utf8Pieces {
    /// The text of these bytes, as far as it is known.
    #[must_use]
    pub fn push(&mut self, bytes: &[u8]) -> String {
        let mut all = std::mem::take(&mut self.begun);
        all.extend_from_slice(bytes);
        let mut text = String::with_capacity(all.len());
        let mut rest = all.as_slice();
        loop {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    return text;
                }
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    text.push_str(std::str::from_utf8(valid).unwrap_or_default());
                    match error.error_len() {
                        None => {
                            self.begun = after.to_vec();
                            return text;
                        }
                        Some(length) => {
                            text.push(char::REPLACEMENT_CHARACTER);
                            rest = &after[length..];
                        }
                    }
                }
            }
        }
    }

    /// What stands for a character that never came to its end.
    #[must_use]
    pub fn finish(&mut self) -> Option<String> {
        let begun = std::mem::take(&mut self.begun);
        (!begun.is_empty()).then(|| char::REPLACEMENT_CHARACTER.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_cut_gives_the_same_text_as_no_cut() {
        let bytes = b"a\xc3\xa9\xe2\x80\xa8\xf0\x9f\xa6\x80\xff\xe2\x82z\xf0\x9f";
        let whole = String::from_utf8_lossy(bytes);
        for size in 1..=bytes.len() {
            let mut pieces = Utf8Pieces::default();
            let mut text: String = bytes.chunks(size).map(|piece| pieces.push(piece)).collect();
            text.extend(pieces.finish());
            assert_eq!(text, whole, "pieces of {size}");
        }
    }

    #[test]
    fn what_is_no_text_is_replaced_and_not_held_back() {
        let mut pieces = Utf8Pieces::default();
        assert_eq!(pieces.push(b"a\xffb\xff"), "a\u{fffd}b\u{fffd}");
        assert_eq!(pieces.push(b"\xe2\x82"), "");
        assert_eq!(pieces.finish().as_deref(), Some("\u{fffd}"));
    }
}

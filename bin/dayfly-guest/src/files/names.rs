//! Names of files as text, for a protocol that carries only text.
//!
//! To Linux a name is bytes. Bytes that are no UTF-8 become characters of a private range, one for
//! each (U+EF80 to U+EFFF, as others have done before). Characters of that range in a name are
//! taken for such bytes, too. So every name has one text, every text names one file, and two names
//! never look the same in a listing.

use std::borrow::Cow;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Stands for the byte 0x80.
const FIRST: u32 = 0xEF80;
const LAST: u32 = 0xEFFF;

/// The text of a name or a path. Most have it already: a large directory is read once for each of
/// its pages.
pub(crate) fn text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(is_private) => Cow::Borrowed(text),
        Ok(_) | Err(_) => Cow::Owned(escaped(bytes)),
    }
}

fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if is_private(character) {
                let mut encoded = [0; 4];
                let encoded = character.encode_utf8(&mut encoded);
                text.extend(encoded.bytes().map(private));
            } else {
                text.push(character);
            }
        }
        text.extend(chunk.invalid().iter().copied().map(private));
    }
    text
}

/// The text of a path.
pub(crate) fn path_text(path: &Path) -> String {
    text(path.as_os_str().as_bytes()).into_owned()
}

/// The path that a text names.
pub(crate) fn path(text: &str) -> PathBuf {
    OsString::from_vec(bytes(text)).into()
}

/// The name that a text stands for.
pub(crate) fn bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    for character in text.chars() {
        if is_private(character) {
            let offset = u32::from(character) - FIRST;
            // The range has 128 characters.
            bytes.push(0x80 | u8::try_from(offset).unwrap_or_default());
        } else {
            let mut encoded = [0; 4];
            bytes.extend_from_slice(character.encode_utf8(&mut encoded).as_bytes());
        }
    }
    bytes
}

fn is_private(character: char) -> bool {
    (FIRST..=LAST).contains(&u32::from(character))
}

/// The character for a byte of 0x80 or more; no other byte is ever outside of UTF-8.
fn private(byte: u8) -> char {
    char::from_u32(FIRST + u32::from(byte & 0x7F)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_comes_back_from_its_text() {
        let names: [&[u8]; 7] = [
            b"plain",
            "größe 大".as_bytes(),
            b"a\xFFb\xFE",
            b"\xC3",
            b"\xED\xA0\x80",
            "\u{EF80}\u{EFFF}".as_bytes(),
            b"new\nline \"quoted\" \\x",
        ];
        for name in names {
            assert_eq!(bytes(&text(name)), name, "{name:?}");
        }
        assert_eq!(text("größe 大".as_bytes()), "größe 大");
        assert_eq!(text(b"a\xFF"), "a\u{EFFF}");
    }

    #[test]
    fn two_names_never_share_a_text() {
        let mut texts: Vec<String> = (0x80..=0xFF_u8)
            .flat_map(|first| {
                (0x80..=0xFF_u8).map(move |second| text(&[first, second]).into_owned())
            })
            .collect();
        texts.push(text("\u{EF80}".as_bytes()).into_owned());
        let count = texts.len();
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), count);
    }
}

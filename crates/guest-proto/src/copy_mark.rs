//! How a guest learns that it is a copy of another one.
//!
//! A guest that was frozen for a capture thaws by itself when its host forgets it. A copy, which
//! has the same memory, must not: it has no identity of its own yet. The agent therefore keeps one
//! page of memory that only the host changes, and only in the image that it saves:
//!
//! ```text
//!  0  magic, 16 bytes
//! 16  nonce, 32 bytes, drawn by the host for each capture
//! 48  flag: 0 in the machine that was captured, 1 in its image
//! ```
//! The nonce goes to the guest as text, and stands as bytes in this page alone, so that the host
//! finds one page by the first 48 bytes of every page.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::identity::to_hex;

pub const MAGIC: [u8; 16] = *b"dayfly-copy-mark";
pub const NONCE_BYTES: usize = 32;
/// Where the byte is that tells a copy from its source.
pub const FLAG_OFFSET: usize = PREFIX_BYTES;
/// How many bytes of a page must match.
pub const PREFIX_BYTES: usize = MAGIC.len() + NONCE_BYTES;
/// The page starts at a multiple of this and is as long, in the guest's physical memory too.
pub const PAGE_BYTES: usize = 4096;
/// What the flag is in a copy.
pub const FLAG_COPY: u8 = 1;

/// The bytes that the marked page begins with.
#[must_use]
pub fn page_prefix(nonce: &[u8; NONCE_BYTES]) -> [u8; PREFIX_BYTES] {
    let mut prefix = [0; PREFIX_BYTES];
    prefix[..MAGIC.len()].copy_from_slice(&MAGIC);
    prefix[MAGIC.len()..].copy_from_slice(nonce);
    prefix
}

/// Whether a page is the one with this prefix.
#[must_use]
pub fn is_marked(page: &[u8], prefix: &[u8; PREFIX_BYTES]) -> bool {
    page.len() > FLAG_OFFSET && page.starts_with(prefix)
}

/// The nonce of one capture: 64 lower-case hexadecimal digits.
///
/// Kept as text, so that the agent never holds its bytes anywhere but in the marked page.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CopyMark(String);

impl CopyMark {
    /// Makes a mark of a nonce that the caller drew.
    #[must_use]
    pub fn from_nonce(nonce: &[u8; NONCE_BYTES]) -> Self {
        Self(to_hex(nonce))
    }

    /// The bytes of the nonce, one at a time.
    pub fn nonce(&self) -> impl Iterator<Item = u8> {
        self.0.as_bytes().chunks_exact(2).map(|pair| {
            let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or(0);
            u8::try_from(digit(pair[0]) * 16 + digit(pair[1])).unwrap_or(0)
        })
    }
}

impl fmt::Debug for CopyMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CopyMark(..)")
    }
}

/// A text that is not 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("copy mark is not 64 lower-case hexadecimal digits")]
pub struct InvalidCopyMark;

impl TryFrom<String> for CopyMark {
    type Error = InvalidCopyMark;
    fn try_from(text: String) -> Result<Self, InvalidCopyMark> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() == 2 * NONCE_BYTES && text.bytes().all(is_digit) {
            Ok(Self(text))
        } else {
            Err(InvalidCopyMark)
        }
    }
}

impl From<CopyMark> for String {
    fn from(mark: CopyMark) -> String {
        mark.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mark_carries_its_nonce_as_text_and_back() {
        let mut nonce = [0xA7; NONCE_BYTES];
        nonce[0] = 1;
        let mark = CopyMark::from_nonce(&nonce);
        let text = String::from(mark.clone());
        assert_eq!(CopyMark::try_from(text), Ok(mark.clone()));
        assert!(mark.nonce().eq(nonce));
        for bad in ["", "zz", &"Z".repeat(64), &"a".repeat(63), &"é".repeat(32)] {
            assert_eq!(CopyMark::try_from(bad.to_owned()), Err(InvalidCopyMark));
        }
    }

    #[test]
    fn page_is_found_by_its_prefix_and_by_nothing_less() {
        let prefix = page_prefix(&[7; NONCE_BYTES]);
        let mut page = [0; PAGE_BYTES];
        assert!(!is_marked(&page, &prefix));
        page[..PREFIX_BYTES].copy_from_slice(&prefix);
        assert!(is_marked(&page, &prefix));
        page[FLAG_OFFSET] = FLAG_COPY;
        assert!(is_marked(&page, &prefix));
        assert!(!is_marked(&page, &page_prefix(&[8; NONCE_BYTES])));
        assert!(!is_marked(&page[1..], &prefix));
        assert!(!is_marked(&prefix, &prefix), "a page has room for the flag");
    }
}

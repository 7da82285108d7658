//! The name that content has by its bytes, and a reader that checks it.

use std::fmt;
use std::io::{self, Read};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

const PREFIX: &str = "sha256:";
const HEX_LENGTH: usize = 64;

/// A text that is not a digest that we can check.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not sha256: and 64 hexadecimal digits")]
pub struct InvalidDigest {
    pub text: String,
}

/// The SHA-256 of some content. Registries know other kinds; images with them are refused.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

impl Digest {
    /// # Errors
    /// [`InvalidDigest`]
    pub fn parse(text: &str) -> Result<Self, InvalidDigest> {
        let bytes = text.strip_prefix(PREFIX).and_then(read_hex);
        bytes.map(Self).ok_or_else(|| InvalidDigest {
            text: text.chars().take(100).collect(),
        })
    }

    /// Of content that is at hand.
    #[must_use]
    pub fn of(content: &[u8]) -> Self {
        Self(Sha256::digest(content).into())
    }

    #[must_use]
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The digits without the kind; a name that any file system takes.
    #[must_use]
    pub fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

fn read_hex(text: &str) -> Option<[u8; 32]> {
    let is_lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() != HEX_LENGTH || !text.bytes().all(is_lower) {
        return None;
    }
    let mut bytes = [0; 32];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(index * 2..index * 2 + 2)?, 16).ok()?;
    }
    Some(bytes)
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl TryFrom<String> for Digest {
    type Error = InvalidDigest;

    fn try_from(text: String) -> Result<Self, InvalidDigest> {
        Self::parse(&text)
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

/// Counts and hashes what passes through it.
#[derive(Debug)]
pub struct HashingReader<R> {
    inner: R,
    hash: Sha256,
    bytes: u64,
}

impl<R: Read> HashingReader<R> {
    #[must_use]
    pub fn new(inner: R) -> Self {
        Self {
            inner,
            hash: Sha256::new(),
            bytes: 0,
        }
    }

    /// What has passed so far.
    #[must_use]
    pub fn passed(&self) -> u64 {
        self.bytes
    }

    #[must_use]
    pub fn finish(self) -> (Digest, u64) {
        (Digest(self.hash.finalize().into()), self.bytes)
    }
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.hash.update(buffer.get(..count).unwrap_or_default());
        self.bytes += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn a_digest_is_read_and_written_letter_by_letter() {
        assert_eq!(Digest::parse(EMPTY).unwrap(), Digest::of(b""));
        assert_eq!(Digest::of(b"").to_string(), EMPTY);
        let wrong = [
            "",
            "sha256:",
            "sha512:00",
            &EMPTY.to_uppercase(),
            &EMPTY[..70],
            &format!("{EMPTY}0"),
            &EMPTY.replace("sha256:e3", "sha256:+3"),
            &EMPTY.replace("sha256:e3", "sha256:../"),
        ];
        for text in wrong {
            assert!(Digest::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn what_passes_is_counted_and_hashed() {
        let mut reader = HashingReader::new(&b"some bytes"[..]);
        io::copy(&mut reader, &mut io::sink()).unwrap();
        assert_eq!(reader.finish(), (Digest::of(b"some bytes"), 10));
    }
}

//! API keys: how they look, and how they are compared.

use std::borrow::Cow;
use std::fmt;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use sha2::{Digest, Sha256};

/// What every generated key begins with.
pub(crate) const KEY_START: &str = "dfk_";
/// Bytes of randomness in a key: 160 bits.
const SECRET_BYTES: usize = 20;
/// Characters after `dfk_` that are not secret and name the key in lists.
const PREFIX_CHARACTERS: usize = 8;
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Longer texts are not keys, and are not worth hashing.
const KEY_BYTES_MAX: usize = 256;

/// A text of which, when it is a key, only the part is left that names it.
pub(crate) fn without_secret(text: &str) -> Cow<'_, str> {
    let named = KEY_START.len() + PREFIX_CHARACTERS;
    match text.get(..named) {
        Some(named) if text.starts_with(KEY_START) => Cow::Owned(named.to_owned()),
        Some(_) | None => Cow::Borrowed(text),
    }
}

/// The one key that came with a request.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next()?.to_str().ok()?;
    // Two headers are two callers; neither is believed.
    if values.next().is_some() {
        return None;
    }
    let (scheme, key) = value.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| key.trim_matches(' '))
}

/// The SHA-256 of a key. The only thing of it that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyHash([u8; 32]);

/// Why a text is not the hash of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a key hash is 64 hexadecimal digits")]
pub struct InvalidKeyHash;

impl KeyHash {
    /// The hash of what a caller presented; `None` when it cannot be a key.
    #[must_use]
    pub fn of(presented: &str) -> Option<Self> {
        let plausible = !presented.is_empty() && presented.len() <= KEY_BYTES_MAX;
        plausible.then(|| Self(Sha256::digest(presented.as_bytes()).into()))
    }

    /// Reads the hexadecimal form.
    ///
    /// # Errors
    /// [`InvalidKeyHash`] when it is not 64 hexadecimal digits.
    pub fn from_hex(text: &str) -> Result<Self, InvalidKeyHash> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| InvalidKeyHash)?;
        Ok(Self(bytes))
    }

    #[must_use]
    pub fn to_hex(self) -> String {
        hex::encode(self.0)
    }

    /// Compares in a time that does not depend on where the two differ.
    #[must_use]
    pub fn matches(self, other: Self) -> bool {
        let difference = self
            .0
            .iter()
            .zip(other.0)
            .fold(0, |all, (a, b)| all | (a ^ b));
        std::hint::black_box(difference) == 0
    }
}

/// A new key. Shown once, never stored.
#[derive(Clone, PartialEq, Eq)]
pub struct PresentedKey {
    text: String,
}

impl PresentedKey {
    /// Draws a key from the system's randomness.
    ///
    /// # Errors
    /// The system's, when it has none.
    pub fn generate() -> Result<Self, getrandom::Error> {
        let mut random = [0; PREFIX_CHARACTERS + SECRET_BYTES * 8 / 5];
        getrandom::fill(&mut random)?;
        let text = random
            .iter()
            .map(|byte| char::from(ALPHABET[usize::from(byte & 31)]));
        Ok(Self {
            text: KEY_START.chars().chain(text).collect(),
        })
    }

    /// The whole key, for the one time that it is shown.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// The part that names it.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.text[..4 + PREFIX_CHARACTERS]
    }

    /// What is stored.
    #[must_use]
    pub fn hash(&self) -> KeyHash {
        KeyHash(Sha256::digest(self.text.as_bytes()).into())
    }
}

impl fmt::Debug for PresentedKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("PresentedKey")
            .field("prefix", &self.prefix())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_key_matches_only_itself() {
        let (one, two) = (
            PresentedKey::generate().unwrap(),
            PresentedKey::generate().unwrap(),
        );
        assert!(one.reveal().starts_with("dfk_") && one.reveal().len() == 44);
        assert!(one.hash().matches(KeyHash::of(one.reveal()).unwrap()));
        assert!(!one.hash().matches(two.hash()));
        assert_eq!(KeyHash::from_hex(&one.hash().to_hex()), Ok(one.hash()));
    }

    #[test]
    fn the_secret_is_not_in_the_debug_text() {
        let key = PresentedKey::generate().unwrap();
        assert!(!format!("{key:?}").contains(&key.reveal()[12..]));
    }
}

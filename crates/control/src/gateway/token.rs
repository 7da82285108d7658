//! What lets a visitor in who has no key.

use std::fmt;

use crate::tenancy::key::KeyHash;

/// 52 characters of 5 bits: 260 bits.
const TOKEN_CHARACTERS: usize = 52;
const ID_CHARACTERS: usize = 26;
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// What every token begins with, so that it is known for one wherever it turns up.
pub(super) const TOKEN_START: &str = "dpt_";

/// The token of a new link. Shown once, never stored.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct LinkToken {
    text: String,
    hash: KeyHash,
}

impl LinkToken {
    /// # Errors
    /// The system's, when it has no randomness.
    pub(crate) fn generate() -> Result<Self, getrandom::Error> {
        let text = format!("{TOKEN_START}{}", random_text::<TOKEN_CHARACTERS>()?);
        // A link without a hash is public, so there must be one.
        let hash = KeyHash::of(&text).ok_or(getrandom::Error::UNEXPECTED)?;
        Ok(Self { text, hash })
    }

    /// The whole token, for the one time that it is shown.
    pub(crate) fn reveal(&self) -> &str {
        &self.text
    }

    /// What is stored.
    pub(crate) fn hash(&self) -> KeyHash {
        self.hash
    }
}

impl fmt::Debug for LinkToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("LinkToken")
    }
}

/// A new name for a link. It begins with the port, so that who holds it knows where it belongs.
///
/// # Errors
/// The system's, when it has no randomness.
pub(crate) fn new_link_id(port: u16) -> Result<String, getrandom::Error> {
    Ok(format!("{port}-{}", random_text::<ID_CHARACTERS>()?))
}

fn random_text<const CHARACTERS: usize>() -> Result<String, getrandom::Error> {
    let mut random = [0; CHARACTERS];
    getrandom::fill(&mut random)?;
    let characters = random.iter().map(|byte| ALPHABET[usize::from(byte & 31)]);
    Ok(characters.map(char::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_long_differs_and_is_in_no_debug_text() {
        let (one, two) = (
            LinkToken::generate().unwrap(),
            LinkToken::generate().unwrap(),
        );
        assert!(one.reveal().len() == 56 && one != two);
        assert!(!format!("{one:?}").contains(&one.reveal()[4..]));
        assert!(new_link_id(80).unwrap().starts_with("80-"));
    }
}

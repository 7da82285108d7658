//! Typed ids. All are lower-case DNS labels, because they become host names, paths and cgroup
//! names: nothing that passes a constructor here can escape any of those.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Why a text is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidId {
    #[error("{kind} id is empty")]
    Empty { kind: &'static str },
    #[error("{kind} id is longer than {limit} characters")]
    TooLong { kind: &'static str, limit: usize },
    #[error("{kind} id may hold only a-z, 0-9 and inner hyphens")]
    BadCharacter { kind: &'static str },
    #[error("{kind} id does not start with {prefix:?}")]
    BadPrefix {
        kind: &'static str,
        prefix: &'static str,
    },
}

/// Checks the common grammar: a DNS label without underscores.
fn check_label(kind: &'static str, text: &str, limit: usize) -> Result<(), InvalidId> {
    if text.is_empty() {
        return Err(InvalidId::Empty { kind });
    }
    if text.len() > limit {
        return Err(InvalidId::TooLong { kind, limit });
    }
    let ok_inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let bytes = text.as_bytes();
    let ends_ok = bytes[0] != b'-' && bytes[bytes.len() - 1] != b'-';
    if !ends_ok || !bytes.iter().copied().all(ok_inner) {
        return Err(InvalidId::BadCharacter { kind });
    }
    Ok(())
}

macro_rules! label_id {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $limit:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Parses a text that came from outside.
            ///
            /// # Errors
            /// [`InvalidId`] when it is not a DNS label within the length limit.
            pub fn parse(text: &str) -> Result<Self, InvalidId> {
                check_label($kind, text, $limit)?;
                Ok(Self(text.to_owned()))
            }

            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Self::parse(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;
            fn try_from(text: String) -> Result<Self, InvalidId> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }
    };
}

label_id!(
    /// The group of hosts that a sandbox belongs to. Part of every sandbox id.
    CellName, "cell", 8
);
label_id!(
    /// One exec of one sandbox, chosen by the caller.
    ExecId, "exec", 50
);
label_id!(
    /// One host.
    NodeId, "node", 50
);
label_id!(
    /// The tenant that owns sandboxes, templates, snapshots and volumes.
    ProjectId, "project", 50
);
label_id!(
    /// One request at the public API, for logs and support.
    RequestId, "request", 50
);
label_id!(
    /// A sandbox. Names its cell; the rest is at least 120 random bits.
    SandboxId, "sandbox", 50
);

label_id!(
    /// Memory and disk of one moment of one sandbox.
    SnapshotId, "snapshot", 50
);
label_id!(
    /// The name of a volume, unique in its project.
    VolumeName, "volume", 50
);

impl CellName {
    /// The cell of a single host.
    #[must_use]
    pub fn local() -> Self {
        Self("local".to_owned())
    }
}

impl ProjectId {
    /// The project of a fresh install.
    #[must_use]
    pub fn default_project() -> Self {
        Self("default".to_owned())
    }
}

/// How many random bytes an id takes: 17 bytes are 136 bits, of which 130 are used.
pub const ID_RANDOM_BYTES: usize = 17;
const ID_RANDOM_CHARACTERS: usize = 26;

impl SandboxId {
    /// Makes an id from randomness that the caller drew.
    #[must_use]
    pub fn from_random(cell: &CellName, random: [u8; ID_RANDOM_BYTES]) -> Self {
        Self(format!("sb-{cell}-{}", encode_random(random)))
    }
}

impl SnapshotId {
    /// Makes an id from randomness that the caller drew.
    #[must_use]
    pub fn from_random(cell: &CellName, random: [u8; ID_RANDOM_BYTES]) -> Self {
        Self(format!("snap-{cell}-{}", encode_random(random)))
    }
}

impl RequestId {
    /// Makes an id from randomness that the caller drew.
    #[must_use]
    pub fn from_random(random: [u8; ID_RANDOM_BYTES]) -> Self {
        Self(format!("req-{}", encode_random(random)))
    }
}

impl ExecId {
    /// Makes an id from randomness that the caller drew.
    #[must_use]
    pub fn from_random(random: [u8; ID_RANDOM_BYTES]) -> Self {
        Self(format!("ex-{}", encode_random(random)))
    }
}

/// Base 32 without the letters that people confuse (i, l, o, u).
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

fn encode_random(random: [u8; ID_RANDOM_BYTES]) -> String {
    let mut text = String::with_capacity(ID_RANDOM_CHARACTERS);
    for position in 0..ID_RANDOM_CHARACTERS {
        let bit = position * 5;
        let pair = u16::from(random[bit / 8]) << 8
            | u16::from(random.get(bit / 8 + 1).copied().unwrap_or(0));
        let index = (pair >> (11 - bit % 8)) & 31;
        text.push(char::from(ALPHABET[usize::from(index)]));
    }
    text
}

/// The name of a template: `[a-z0-9._-]`, starting with a letter or digit.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TemplateName(String);

impl TemplateName {
    /// Parses a text that came from outside.
    ///
    /// # Errors
    /// [`InvalidId`] when it does not fit the grammar.
    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        let kind = "template";
        let limit = crate::limits::TEMPLATE_NAME_CHARACTERS_MAX;
        if text.is_empty() {
            return Err(InvalidId::Empty { kind });
        }
        if text.len() > limit {
            return Err(InvalidId::TooLong { kind, limit });
        }
        let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b);
        let first = text.as_bytes()[0];
        let first_ok = first.is_ascii_lowercase() || first.is_ascii_digit();
        if !first_ok || text.contains("..") || !text.bytes().all(inner) {
            return Err(InvalidId::BadCharacter { kind });
        }
        Ok(Self(text.to_owned()))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TemplateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for TemplateName {
    type Err = InvalidId;
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        Self::parse(text)
    }
}

impl TryFrom<String> for TemplateName {
    type Error = InvalidId;
    fn try_from(text: String) -> Result<Self, InvalidId> {
        Self::parse(&text)
    }
}

impl From<TemplateName> for String {
    fn from(name: TemplateName) -> String {
        name.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sandbox_id_names_its_cell_and_is_a_label() {
        let id = SandboxId::from_random(&CellName::local(), [0xab; ID_RANDOM_BYTES]);
        assert!(id.as_str().starts_with("sb-local-"));
        assert_eq!(SandboxId::parse(id.as_str()).as_ref(), Ok(&id));
    }

    #[test]
    fn hostile_ids_are_refused() {
        for text in [
            "", "-a", "a-", "A", "a_b", "a.b", "../x", "a/b", "a b", "é", "a\0b",
        ] {
            assert!(SandboxId::parse(text).is_err(), "{text:?} was accepted");
        }
        assert!(SandboxId::parse(&"a".repeat(51)).is_err());
        for text in ["..", ".a", "a..b", "a/b", "A"] {
            assert!(TemplateName::parse(text).is_err(), "{text:?} was accepted");
        }
        assert!(TemplateName::parse("ubuntu-24.04").is_ok());
    }

    proptest! {
        #[test]
        fn every_used_bit_changes_the_id(random in any::<[u8; ID_RANDOM_BYTES]>(), bit in 0usize..130) {
            let mut other = random;
            other[bit / 8] ^= 0x80 >> (bit % 8);
            prop_assert_ne!(encode_random(random), encode_random(other));
        }
    }
}

//! Extended attributes as an image may have them, and as the disk keeps them.

use std::collections::BTreeMap;

use dayfly_types::limits::IMAGE_ATTRIBUTES_BYTES_MAX;

use crate::entry::shown;

/// What the disk writes for the beginning of a name.
const PREFIXES: [(&[u8], u8); 5] = [
    (b"user.", 1),
    (b"system.posix_acl_access", 2),
    (b"system.posix_acl_default", 3),
    (b"trusted.", 4),
    (b"security.", 6),
];
/// Marks of the file system that lays the writable disk over this one. An image that had them could
/// hide or redirect what lies below.
const OVERLAY: &[u8] = b"trusted.overlay.";
const HEADER_BYTES: usize = 12;
const VALUE_BYTES_MAX: usize = u16::MAX as usize;

/// Why an attribute is not kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAttribute {
    #[error("the attribute {name:?} is of no kind that Linux keeps")]
    Kind { name: String },
    #[error("the attribute {name:?} is a mark of overlay file systems")]
    Overlay { name: String },
    #[error("the attribute {name:?} is too long")]
    Long { name: String },
    #[error("a file has more than {IMAGE_ATTRIBUTES_BYTES_MAX} bytes of attributes")]
    TooMany,
}

/// The index of the name's beginning, and the rest of the name.
fn split(name: &[u8]) -> Option<(u8, &[u8])> {
    PREFIXES.iter().find_map(|(prefix, index)| {
        let rest = name.strip_prefix(*prefix)?;
        let is_whole = !prefix.ends_with(b".");
        (is_whole == rest.is_empty()).then_some((*index, rest))
    })
}

pub(crate) fn check(attributes: &BTreeMap<Vec<u8>, Vec<u8>>) -> Result<(), InvalidAttribute> {
    for (name, value) in attributes {
        let shown = || shown(name);
        if name.starts_with(OVERLAY) {
            return Err(InvalidAttribute::Overlay { name: shown() });
        }
        let Some((_, rest)) = split(name) else {
            return Err(InvalidAttribute::Kind { name: shown() });
        };
        if rest.len() > usize::from(u8::MAX) || value.len() > VALUE_BYTES_MAX || rest.contains(&0) {
            return Err(InvalidAttribute::Long { name: shown() });
        }
    }
    if encode(attributes).len() > IMAGE_ATTRIBUTES_BYTES_MAX {
        return Err(InvalidAttribute::TooMany);
    }
    Ok(())
}

/// What stands behind an inode: nothing without attributes, else a header and each attribute from a
/// multiple of four bytes.
pub(crate) fn encode(attributes: &BTreeMap<Vec<u8>, Vec<u8>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in attributes {
        let Some((index, rest)) = split(name) else {
            continue;
        };
        if bytes.is_empty() {
            bytes.resize(HEADER_BYTES, 0);
        }
        bytes.push(u8::try_from(rest.len()).unwrap_or(u8::MAX));
        bytes.push(index);
        let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(rest);
        bytes.extend_from_slice(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    bytes
}

/// What an inode says of the length of that.
pub(crate) fn count(encoded: usize) -> u16 {
    match encoded {
        0 => 0,
        bytes => u16::try_from((bytes - HEADER_BYTES) / 4 + 1).unwrap_or(u16::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, bytes: usize) -> BTreeMap<Vec<u8>, Vec<u8>> {
        BTreeMap::from([(name.as_bytes().to_vec(), vec![7; bytes])])
    }

    #[test]
    fn kinds_that_linux_keeps_are_taken() {
        for name in [
            "user.a",
            "security.capability",
            "system.posix_acl_access",
            "trusted.x",
        ] {
            assert_eq!(check(&of(name, 20)), Ok(()), "{name}");
        }
        assert_eq!(encode(&of("user.ab", 3)).len(), HEADER_BYTES + 4 + 8);
        assert_eq!(count(HEADER_BYTES + 12), 4);
        assert!(encode(&BTreeMap::new()).is_empty());
    }

    #[test]
    fn others_are_refused() {
        for name in [
            "trusted.overlay.opaque",
            "strange.a",
            "user.",
            "user",
            "system.posix_acl_accessory",
            "user.a\0b",
        ] {
            assert!(check(&of(name, 1)).is_err(), "{name}");
        }
        assert!(check(&of("user.a", VALUE_BYTES_MAX + 1)).is_err());
        assert!(check(&of(&format!("user.{}", "a".repeat(256)), 1)).is_err());
        let mut many = of("user.a", 40_000);
        many.extend(of("user.b", 40_000));
        assert_eq!(check(&many), Err(InvalidAttribute::TooMany));
    }
}

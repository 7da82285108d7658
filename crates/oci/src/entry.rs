//! What one entry of a layer says.

use std::collections::BTreeMap;
use std::fmt;

use dayfly_types::limits::{IMAGE_FILE_NAME_BYTES_MAX, IMAGE_PATH_BYTES_MAX, IMAGE_PATH_DEPTH_MAX};

/// Why bytes are not a path inside an image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPath {
    #[error("the path {path:?} leads upwards")]
    Upwards { path: String },
    #[error("the path {path:?} holds a zero byte")]
    ZeroByte { path: String },
    #[error("a path of {bytes} bytes is longer than {IMAGE_PATH_BYTES_MAX}")]
    TooLong { bytes: usize },
    #[error("a name of {bytes} bytes is longer than {IMAGE_FILE_NAME_BYTES_MAX}")]
    LongName { bytes: usize },
    #[error("the path {path:?} has more than {IMAGE_PATH_DEPTH_MAX} names")]
    TooDeep { path: String },
}

/// A place in the image, from its root: names without `.`, `..` or an empty one among them. An
/// absolute path means the same as one without its first slash.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EntryPath(Vec<Vec<u8>>);

impl EntryPath {
    /// # Errors
    /// [`InvalidPath`]
    pub fn parse(bytes: &[u8]) -> Result<Self, InvalidPath> {
        if bytes.len() > IMAGE_PATH_BYTES_MAX {
            return Err(InvalidPath::TooLong { bytes: bytes.len() });
        }
        if bytes.contains(&0) {
            return Err(InvalidPath::ZeroByte { path: shown(bytes) });
        }
        let mut names = Vec::new();
        for name in bytes.split(|byte| *byte == b'/') {
            match name {
                b"" | b"." => {}
                b".." => return Err(InvalidPath::Upwards { path: shown(bytes) }),
                name if name.len() > IMAGE_FILE_NAME_BYTES_MAX => {
                    return Err(InvalidPath::LongName { bytes: name.len() });
                }
                name => names.push(name.to_vec()),
            }
        }
        if names.len() > IMAGE_PATH_DEPTH_MAX {
            return Err(InvalidPath::TooDeep { path: shown(bytes) });
        }
        Ok(Self(names))
    }

    #[must_use]
    pub fn names(&self) -> &[Vec<u8>] {
        &self.0
    }

    /// The last name and the place that it is in; nothing for the root.
    #[must_use]
    pub fn split(&self) -> Option<(&[Vec<u8>], &[u8])> {
        let (name, parent) = self.0.split_last()?;
        Some((parent, name))
    }

    /// The same place with another last name.
    #[must_use]
    pub(crate) fn renamed(&self, name: &[u8]) -> Self {
        let mut names = self.0.clone();
        names.pop();
        names.push(name.to_vec());
        Self(names)
    }

    /// The place that this one is in.
    #[must_use]
    pub(crate) fn parent(&self) -> Self {
        let mut names = self.0.clone();
        names.pop();
        Self(names)
    }

    /// How much memory the names take.
    pub(crate) fn bytes(&self) -> usize {
        self.0.iter().map(Vec::len).sum()
    }
}

impl fmt::Display for EntryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("/")?;
        f.write_str(&shown(&self.0.join(&b'/')))
    }
}

impl fmt::Debug for EntryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Names of images are bytes. An error shows them without what a terminal would act on, and cut.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let plain = |letter: char| if letter.is_control() { '?' } else { letter };
    text.chars().take(200).map(plain).collect()
}

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryKind {
    Directory,
    File(Content),
    /// A further name of what the path says, in this layer or below.
    HardLink(EntryPath),
    /// Kept as it is written: it is followed in the guest, and here only within the image.
    Symlink(Vec<u8>),
    CharacterDevice(Device),
    BlockDevice(Device),
    Pipe,
    /// What the layers below have at this path is gone.
    Whiteout,
    /// What the layers below have in this directory is gone.
    Opaque,
}

/// Where the bytes of a file are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Content {
    /// In blocks, from the beginning of the disk.
    pub block: u32,
    pub length: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Device {
    pub major: u32,
    pub minor: u32,
}

/// Who owns it, who may use it, when it changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Metadata {
    /// Permissions with set-user-id, set-group-id and sticky: twelve bits.
    pub mode: u16,
    pub uid: u32,
    pub gid: u32,
    /// Seconds since 1970, and nanoseconds.
    pub modified: (i64, u32),
    /// By their whole names.
    pub attributes: BTreeMap<Vec<u8>, Vec<u8>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerEntry {
    pub path: EntryPath,
    pub kind: EntryKind,
    pub metadata: Metadata,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_what_they_mean() {
        let same = [&b"a/b"[..], b"/a/b", b"./a/b/", b"//a/./b"];
        let first = EntryPath::parse(same[0]).unwrap();
        for path in same {
            assert_eq!(EntryPath::parse(path).unwrap(), first);
        }
        assert_eq!(EntryPath::parse(b"./").unwrap(), EntryPath::default());
        assert_eq!(first.to_string(), "/a/b");
    }

    #[test]
    fn paths_that_lead_out_or_are_no_paths_are_refused() {
        let long = vec![b'a'; IMAGE_FILE_NAME_BYTES_MAX + 1];
        let deep = b"a/".repeat(IMAGE_PATH_DEPTH_MAX + 1);
        let refused = [
            &b".."[..],
            b"a/../b",
            b"/..",
            b"a\0b",
            &long,
            &deep,
            &b"abcdefg/".repeat(IMAGE_PATH_BYTES_MAX),
        ];
        for path in refused {
            assert!(EntryPath::parse(path).is_err(), "{}", shown(path));
        }
        let exact = vec![b'a'; IMAGE_FILE_NAME_BYTES_MAX];
        assert!(EntryPath::parse(&exact).is_ok());
    }

    #[test]
    fn an_error_shows_no_control_characters() {
        let error = EntryPath::parse(b"\x1b[2J/../x").unwrap_err();
        assert!(!error.to_string().contains('\x1b'));
    }
}

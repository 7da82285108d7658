//! What the one letter of a header says that an entry is.

use tar::Header;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TarKind {
    File,
    HardLink,
    Symlink,
    CharacterDevice,
    BlockDevice,
    Directory,
    Pipe,
    /// The name of the next entry, in GNU's way.
    LongPath,
    LongLink,
    /// Words about the next entry.
    Extended,
    /// Words about all further entries.
    Global,
    Sparse,
}

impl TarKind {
    /// Nothing for a letter that nobody defined, or that means nothing for images.
    pub(crate) fn of(header: &Header) -> Option<Self> {
        Some(match header.entry_type().as_byte() {
            // A contiguous file is one for every reader of today.
            0 | b'0' | b'7' => Self::File,
            b'1' => Self::HardLink,
            b'2' => Self::Symlink,
            b'3' => Self::CharacterDevice,
            b'4' => Self::BlockDevice,
            b'5' => Self::Directory,
            b'6' => Self::Pipe,
            b'L' => Self::LongPath,
            b'K' => Self::LongLink,
            b'x' => Self::Extended,
            b'g' => Self::Global,
            b'S' => Self::Sparse,
            _ => return None,
        })
    }
}

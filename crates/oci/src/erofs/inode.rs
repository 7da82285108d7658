//! One inode, in its long form.

use crate::entry::Device;
use crate::tree::TreeNodeKind;

const LENGTH: usize = 64;
pub(super) const INODE_BYTES: u64 = LENGTH as u64;
/// Inodes are counted in these.
pub(super) const SLOT_BYTES: u64 = 32;

/// Where the bytes are that an inode holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// All of them from this block on.
    Blocks(u32),
    /// Whole blocks from this one on, and the rest behind the inode.
    BlocksAndTail(u32),
    /// A device has a number instead.
    Device(u32),
}

#[derive(Debug, Clone)]
pub(super) struct Inode {
    pub(super) attributes: u16,
    pub(super) mode: u16,
    pub(super) size: u64,
    pub(super) place: Place,
    pub(super) number: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) modified: (i64, u32),
    pub(super) links: u32,
}

impl Inode {
    pub(super) fn encode(&self) -> [u8; LENGTH] {
        const LONG: u16 = 1;
        const INLINE: u16 = 2 << 1;
        let (format, place) = match self.place {
            Place::Blocks(block) => (LONG, block),
            Place::BlocksAndTail(block) => (LONG | INLINE, block),
            Place::Device(number) => (LONG, number),
        };
        let mut bytes = [0; LENGTH];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &format.to_le_bytes());
        put(2, &self.attributes.to_le_bytes());
        put(4, &self.mode.to_le_bytes());
        put(8, &self.size.to_le_bytes());
        put(16, &place.to_le_bytes());
        put(20, &self.number.to_le_bytes());
        put(24, &self.uid.to_le_bytes());
        put(28, &self.gid.to_le_bytes());
        put(32, &self.modified.0.to_le_bytes());
        put(40, &self.modified.1.to_le_bytes());
        put(44, &self.links.to_le_bytes());
        bytes
    }
}

/// The type of a file as modes have it.
pub(super) fn type_bits(kind: &TreeNodeKind) -> u16 {
    match kind {
        TreeNodeKind::Directory(_) => 0o040_000,
        TreeNodeKind::File(_) => 0o100_000,
        TreeNodeKind::Symlink(_) => 0o120_000,
        TreeNodeKind::CharacterDevice(_) => 0o020_000,
        TreeNodeKind::BlockDevice(_) => 0o060_000,
        TreeNodeKind::Pipe => 0o010_000,
    }
}

/// The type of a file as directories have it.
pub(super) fn entry_type(kind: &TreeNodeKind) -> u8 {
    match kind {
        TreeNodeKind::File(_) => 1,
        TreeNodeKind::Directory(_) => 2,
        TreeNodeKind::CharacterDevice(_) => 3,
        TreeNodeKind::BlockDevice(_) => 4,
        TreeNodeKind::Pipe => 5,
        TreeNodeKind::Symlink(_) => 7,
    }
}

/// The kernel's long form of a device number.
pub(super) fn device_number(device: Device) -> u32 {
    (device.minor & 0xff) | (device.major << 8) | ((device.minor & !0xff) << 12)
}

//! The first bytes of a layer.

use super::layer::LayerError;
use super::{CLUSTER_BITS, CLUSTER_BYTES, DISK_BYTES_MAX, TABLE_SPAN_BYTES};

const MAGIC: u32 = 0x5146_49fb;
/// The header of version 2, which ends before the feature bits.
const LENGTH_2: usize = 72;
/// The header of version 3 without optional fields.
const LENGTH_3: usize = 104;
/// What is read of a header: with the one optional field that changes how clusters are read.
pub(super) const HEADER_BYTES: usize = 112;

/// Where the header keeps what.
mod at {
    pub(super) const VERSION: usize = 4;
    pub(super) const CLUSTER_BITS: usize = 20;
    pub(super) const SIZE: usize = 24;
    pub(super) const ENCRYPTION: usize = 32;
    pub(super) const L1_ENTRIES: usize = 36;
    pub(super) const L1_OFFSET: usize = 40;
    pub(super) const REFERENCE_TABLE_OFFSET: usize = 48;
    pub(super) const REFERENCE_TABLE_CLUSTERS: usize = 56;
    pub(super) const SNAPSHOTS: usize = 60;
    pub(super) const INCOMPATIBLE: usize = 72;
    pub(super) const REFERENCE_ORDER: usize = 96;
    pub(super) const LENGTH: usize = 100;
    pub(super) const COMPRESSION: usize = 104;
}

/// What a layer says about itself, checked as far as one can without its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) version: u32,
    /// Bytes of the disk.
    pub(super) size: u64,
    pub(super) l1_offset: u64,
    /// As many as the size needs; the table may be longer.
    pub(super) l1_entries: u64,
}

impl Header {
    /// Reads a header. `bytes` is what the file begins with, up to [`HEADER_BYTES`].
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, LayerError> {
        if bytes.len() < LENGTH_2 || u32_at(bytes, 0) != MAGIC {
            return Err(LayerError::NotQcow2);
        }
        let version = u32_at(bytes, at::VERSION);
        match version {
            2 => {}
            3 => check_features(bytes)?,
            found => return Err(LayerError::Version { found }),
        }
        let cluster_bits = u32_at(bytes, at::CLUSTER_BITS);
        if cluster_bits != CLUSTER_BITS {
            return Err(LayerError::ClusterBits {
                found: cluster_bits,
            });
        }
        if u32_at(bytes, at::ENCRYPTION) != 0 {
            return Err(LayerError::Encrypted);
        }
        // Clusters of an internal snapshot are shared, and none of ours has one.
        if u32_at(bytes, at::SNAPSHOTS) != 0 {
            return Err(LayerError::InternalSnapshots);
        }
        let size = u64_at(bytes, at::SIZE);
        if size > DISK_BYTES_MAX {
            return Err(LayerError::TooLarge { bytes: size });
        }
        let l1_entries = size.div_ceil(TABLE_SPAN_BYTES);
        if u64::from(u32_at(bytes, at::L1_ENTRIES)) < l1_entries {
            return Err(LayerError::ShortTable);
        }
        Ok(Self {
            version,
            size,
            l1_offset: u64_at(bytes, at::L1_OFFSET),
            l1_entries,
        })
    }
}

fn check_features(bytes: &[u8]) -> Result<(), LayerError> {
    if bytes.len() < LENGTH_3 {
        return Err(LayerError::NotQcow2);
    }
    // Every bit here means that a reader who does not know it must not read: a dirty or corrupt
    // file, data in another file, another compression, longer table entries, and what comes later.
    let features = u64_at(bytes, at::INCOMPATIBLE);
    if features != 0 {
        return Err(LayerError::Incompatible { features });
    }
    let length = u32_at(bytes, at::LENGTH);
    let in_range = LENGTH_3 as u64..=CLUSTER_BYTES;
    if !in_range.contains(&u64::from(length)) || !length.is_multiple_of(8) {
        return Err(LayerError::HeaderLength { found: length });
    }
    let compression = bytes.get(at::COMPRESSION).copied().unwrap_or(0);
    if u64::from(length) > LENGTH_3 as u64 && compression != 0 {
        return Err(LayerError::Compression { found: compression });
    }
    Ok(())
}

/// The header of a layer that we write. `reference_table` is the place of the one cluster that
/// finds the reference counts.
pub(super) fn encode(
    size: u64,
    l1_entries: u32,
    l1_offset: u64,
    reference_table: u64,
) -> [u8; HEADER_BYTES] {
    // 16 bits for each count, which is what QEMU makes by default.
    const REFERENCE_ORDER: u32 = 4;
    const LENGTH_WRITTEN: u32 = 112;
    const _: () = assert!(LENGTH_WRITTEN as usize == HEADER_BYTES);
    let mut bytes = [0; HEADER_BYTES];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, &MAGIC.to_be_bytes());
    put(at::VERSION, &3u32.to_be_bytes());
    put(at::CLUSTER_BITS, &CLUSTER_BITS.to_be_bytes());
    put(at::SIZE, &size.to_be_bytes());
    put(at::L1_ENTRIES, &l1_entries.to_be_bytes());
    put(at::L1_OFFSET, &l1_offset.to_be_bytes());
    put(at::REFERENCE_TABLE_OFFSET, &reference_table.to_be_bytes());
    put(at::REFERENCE_TABLE_CLUSTERS, &1u32.to_be_bytes());
    put(at::REFERENCE_ORDER, &REFERENCE_ORDER.to_be_bytes());
    // What follows is the list of extensions, which a zero ends.
    put(at::LENGTH, &LENGTH_WRITTEN.to_be_bytes());
    bytes
}

/// Writes into a header what a reader must know to read the file.
pub(super) fn require(header: &mut [u8; HEADER_BYTES], features: u64) {
    header[at::INCOMPATIBLE..at::INCOMPATIBLE + 8].copy_from_slice(&features.to_be_bytes());
}

/// The number at a place that the caller has bounded; beyond the end it is zero.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let field = bytes
        .get(at..)
        .and_then(<[u8]>::first_chunk)
        .copied()
        .unwrap_or_default();
    u32::from_be_bytes(field)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let field = bytes
        .get(at..)
        .and_then(<[u8]>::first_chunk)
        .copied()
        .unwrap_or_default();
    u64::from_be_bytes(field)
}

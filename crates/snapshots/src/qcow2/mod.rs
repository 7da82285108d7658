//! Layers in QEMU's copy-on-write format: reading their cluster map, and merging a stack of them.
//!
//! A sealed layer was written by an engine that a hostile guest may have taken over, and it is read
//! here by root. So nothing in it is believed: every offset is checked against the length of the
//! file, every table is bounded before it is read, no cluster is used twice (one stored cluster
//! could otherwise unfold into a terabyte), and a feature that is not understood is refused. The
//! name of a backing file in a header is never looked at: the caller says what lies below.
//!
//! ```text
//! cluster 0    header
//! cluster 1    L1 table: where the L2 tables are; one entry for 512 MiB of disk
//! clusters     data, and behind the data of each 512 MiB its L2 table: one entry for 64 KiB
//! at the end   reference counts (all are one), and the table that finds them
//! ```
//! That is how we write; a layer that we read has its tables anywhere. This module must not know
//! captures, and it opens no files. Start reading at [`merge`].

mod header;
mod layer;
mod map;
pub mod merge;

pub use layer::LayerError;
pub(crate) use map::write_map;
pub use merge::{MergeError, Merged, merge_layers};

/// The only cluster size that we make, and the only one that is read.
const CLUSTER_BITS: u32 = 16;
const CLUSTER_BYTES: u64 = 1 << CLUSTER_BITS;
/// Entries of one table that fills a cluster.
const TABLE_ENTRIES: u64 = CLUSTER_BYTES / 8;
/// Bytes of disk that one L2 table describes.
const TABLE_SPAN_BYTES: u64 = TABLE_ENTRIES * CLUSTER_BYTES;
/// The largest disk, and so the bound of every table.
const DISK_BYTES_MAX: u64 = dayfly_types::limits::DISK_MIB_MAX << 20;
/// The L1 table of the largest disk fits into one cluster, which makes the writer simple.
const _: () = assert!(DISK_BYTES_MAX / TABLE_SPAN_BYTES <= TABLE_ENTRIES);

/// The cluster belongs to this table alone.
const COPIED: u64 = 1 << 63;
const COMPRESSED: u64 = 1 << 62;
/// The cluster reads as zeros, whatever lies below and whether or not it is stored.
const ZERO: u64 = 1;
/// Where an entry keeps the place of its cluster.
const OFFSET_MASK: u64 = 0x00ff_ffff_ffff_fe00;

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
pub(crate) mod merge_tests;
#[cfg(test)]
pub(crate) mod sketch;

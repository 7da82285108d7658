//! Merging a stack of layers into one.
//!
//! The result says about each cluster what the topmost layer says that says anything: its content,
//! or zeros. What no layer speaks of stays open, and shows what the result is laid on.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::header;
use super::layer::{Cluster, Layer, LayerError};
use super::{CLUSTER_BYTES, COPIED, TABLE_ENTRIES, TABLE_SPAN_BYTES, ZERO};

/// Clusters that one cluster of reference counts speaks of.
pub(super) const COUNTS: u64 = CLUSTER_BYTES / 2;
/// A file of ours is shorter than the largest disk and its tables, so one cluster finds all counts.
const _: () = assert!(
    super::DISK_BYTES_MAX / CLUSTER_BYTES / COUNTS + super::DISK_BYTES_MAX / TABLE_SPAN_BYTES
        < TABLE_ENTRIES
);

/// Why layers were not merged. The target then holds some of the result.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    #[error("there is no layer to merge")]
    Nothing,
    #[error("cannot use layer {index}, counted from the lowest")]
    Layer {
        index: usize,
        #[source]
        source: LayerError,
    },
    #[error("cannot write the merged layer")]
    Write(#[source] io::Error),
}

/// What a merge has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Merged {
    /// Bytes of the disk: those of the topmost layer.
    pub disk_bytes: u64,
    /// How many clusters have content.
    pub data_clusters: u64,
    /// How many clusters are zeros that hide what lies below.
    pub zero_clusters: u64,
}

/// Merges layers, lowest first, into an empty file. A cluster of zeros becomes one that is not
/// stored, so the result holds nothing but what differs from zero. It is not synced.
///
/// # Errors
/// [`MergeError`].
pub fn merge_layers(files: &[File], target: &File) -> Result<Merged, MergeError> {
    let mut layers = Vec::with_capacity(files.len());
    for (index, file) in files.iter().enumerate() {
        layers.push(Layer::open(file).map_err(|source| MergeError::Layer { index, source })?);
    }
    let disk_bytes = layers.last().ok_or(MergeError::Nothing)?.size();
    let mut writer = Writer::new(target, disk_bytes);
    for index in 0..disk_bytes.div_ceil(TABLE_SPAN_BYTES) {
        writer.merge_table(&mut layers, index)?;
    }
    writer.finish().map_err(MergeError::Write)
}

struct Writer<'a> {
    target: &'a File,
    merged: Merged,
    /// The cluster that is written next.
    next: u64,
    l1: Vec<u64>,
    buffer: Vec<u8>,
}

impl<'a> Writer<'a> {
    fn new(target: &'a File, disk_bytes: u64) -> Self {
        Self {
            target,
            merged: Merged {
                disk_bytes,
                data_clusters: 0,
                zero_clusters: 0,
            },
            // The header and the L1 table come first, and are written last.
            next: 2,
            l1: Vec::new(),
            buffer: vec![0; crate::sparse::BLOCK_BYTES],
        }
    }

    /// Merges what all layers say about the clusters of one L2 table.
    fn merge_table(&mut self, layers: &mut [Layer<'_>], index: u64) -> Result<(), MergeError> {
        let mut tables = Vec::with_capacity(layers.len());
        for (number, layer) in layers.iter_mut().enumerate() {
            let table = layer.table(index).map_err(|source| MergeError::Layer {
                index: number,
                source,
            })?;
            tables.push(table);
        }
        let mut entries = Vec::new();
        if tables.iter().any(Option::is_some) {
            let first = index * TABLE_SPAN_BYTES;
            let inside = (self.merged.disk_bytes - first).div_ceil(CLUSTER_BYTES);
            for position in 0..inside.min(TABLE_ENTRIES) {
                let disk_offset = first + position * CLUSTER_BYTES;
                entries.push(match topmost(&tables, position) {
                    Some((number, Cluster::Data(offset))) => {
                        self.copy(&layers[number], number, disk_offset, offset)?
                    }
                    Some((_, Cluster::Zero)) => self.zero(),
                    Some((_, Cluster::Unallocated)) | None => 0,
                });
            }
        }
        let place = if entries.iter().any(|entry| *entry != 0) {
            self.append_table(&entries).map_err(MergeError::Write)?
        } else {
            0
        };
        self.l1.push(place);
        Ok(())
    }

    fn zero(&mut self) -> u64 {
        self.merged.zero_clusters += 1;
        ZERO
    }

    /// Copies a cluster of a layer, which has this number in the stack, and answers with the entry
    /// that finds it.
    fn copy(
        &mut self,
        layer: &Layer<'_>,
        number: usize,
        disk_offset: u64,
        offset: u64,
    ) -> Result<u64, MergeError> {
        let read = layer.read_cluster(disk_offset, offset, &mut self.buffer);
        let has_content = read.map_err(|source| MergeError::Layer {
            index: number,
            source: LayerError::Read(source),
        })?;
        if !has_content {
            return Ok(self.zero());
        }
        self.merged.data_clusters += 1;
        let place = self.next * CLUSTER_BYTES;
        self.next += 1;
        self.target
            .write_all_at(&self.buffer, place)
            .map_err(MergeError::Write)?;
        Ok(place | COPIED)
    }

    /// Writes a table into the next cluster and answers with the entry that finds it.
    fn append_table(&mut self, entries: &[u64]) -> io::Result<u64> {
        let place = self.next * CLUSTER_BYTES;
        self.next += 1;
        write_table(self.target, entries, place)?;
        Ok(place | COPIED)
    }

    /// Writes what can only be known at the end. The header is last: until then the file is not a
    /// layer for anybody.
    fn finish(self) -> io::Result<Merged> {
        let disk_bytes = self.merged.disk_bytes;
        finish_file(self.target, self.next, disk_bytes, &self.l1, 0)?;
        Ok(self.merged)
    }
}

/// Writes L1 table, reference counts and header of a file of which the first `used` clusters are
/// taken. `features` are those that a reader must know.
pub(super) fn finish_file(
    target: &File,
    used: u64,
    disk_bytes: u64,
    l1: &[u64],
    features: u64,
) -> io::Result<()> {
    write_table(target, l1, CLUSTER_BYTES)?;
    let blocks = count_blocks(used);
    let total = used + blocks + 1;
    for block in 0..blocks {
        let counted = (total - block * COUNTS).min(COUNTS);
        let counted = usize::try_from(counted).map_err(io::Error::other)?;
        let counts = 1u16.to_be_bytes().repeat(counted);
        target.write_all_at(&counts, (used + block) * CLUSTER_BYTES)?;
    }
    let places: Vec<u64> = (0..blocks)
        .map(|block| (used + block) * CLUSTER_BYTES)
        .collect();
    let reference_table = (used + blocks) * CLUSTER_BYTES;
    write_table(target, &places, reference_table)?;
    target.set_len(total * CLUSTER_BYTES)?;
    let entries = u32::try_from(l1.len()).map_err(io::Error::other)?;
    let mut header = header::encode(disk_bytes, entries, CLUSTER_BYTES, reference_table);
    header::require(&mut header, features);
    target.write_all_at(&header, 0)
}

/// What is seen of a cluster, and in which layer; nothing when no layer speaks of it.
fn topmost(tables: &[Option<Vec<Cluster>>], position: u64) -> Option<(usize, Cluster)> {
    let position = usize::try_from(position).ok()?;
    tables.iter().enumerate().rev().find_map(|(number, table)| {
        let cluster = *table.as_ref()?.get(position)?;
        (cluster != Cluster::Unallocated).then_some((number, cluster))
    })
}

/// How many clusters of counts speak of `used` clusters, of themselves, and of the table of them.
pub(super) fn count_blocks(used: u64) -> u64 {
    let mut blocks = 1;
    while blocks * COUNTS < used + blocks + 1 {
        blocks += 1;
    }
    blocks
}

fn write_table(target: &File, entries: &[u64], place: u64) -> io::Result<()> {
    let bytes: Vec<u8> = entries
        .iter()
        .flat_map(|entry| entry.to_be_bytes())
        .collect();
    target.write_all_at(&bytes, place)
}

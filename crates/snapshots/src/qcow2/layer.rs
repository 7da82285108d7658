//! One layer that is read: which of its clusters say something, and where they are stored.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::header::{HEADER_BYTES, Header};
use super::{
    CLUSTER_BYTES, COMPRESSED, COPIED, OFFSET_MASK, TABLE_ENTRIES, TABLE_SPAN_BYTES, ZERO,
};
use crate::sparse;

/// Why a file is not a layer that can be read.
#[derive(Debug, thiserror::Error)]
pub enum LayerError {
    #[error("cannot read the layer")]
    Read(#[source] io::Error),
    #[error("the file is not in the format qcow2")]
    NotQcow2,
    #[error("version {found} of the format is not known")]
    Version { found: u32 },
    #[error("a header of {found} bytes is not possible")]
    HeaderLength { found: u32 },
    #[error("the layer has features that are not understood: {features:#x}")]
    Incompatible { features: u64 },
    #[error("the compression {found} is not known")]
    Compression { found: u8 },
    #[error("clusters of 2^{found} bytes are not read")]
    ClusterBits { found: u32 },
    #[error("the layer is encrypted")]
    Encrypted,
    #[error("the layer has internal snapshots")]
    InternalSnapshots,
    #[error("a disk of {bytes} bytes is too large")]
    TooLarge { bytes: u64 },
    #[error("the table of tables is too short for the disk")]
    ShortTable,
    #[error("the table entry {entry:#x} has bits that are not understood")]
    Reserved { entry: u64 },
    #[error("a cluster is compressed")]
    Compressed,
    #[error("the place {offset:#x} is not the start of a cluster of the file")]
    Outside { offset: u64 },
    #[error("the cluster at {offset:#x} is used twice")]
    Shared { offset: u64 },
}

/// What a layer says about one cluster of the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cluster {
    /// What lies below is seen.
    Unallocated,
    /// Zeros are seen, whatever lies below.
    Zero,
    /// The place of its content in the file.
    Data(u64),
}

/// A layer whose header and first table have been read.
#[derive(Debug)]
pub(super) struct Layer<'a> {
    file: &'a File,
    length: u64,
    header: Header,
    l1: Vec<u64>,
    used: Used,
}

impl<'a> Layer<'a> {
    pub(super) fn open(file: &'a File) -> Result<Self, LayerError> {
        let length = file.metadata().map_err(LayerError::Read)?.len();
        let mut start = [0; HEADER_BYTES];
        let present = read_up_to(file, &mut start, 0).map_err(LayerError::Read)?;
        let header = Header::parse(&start[..present])?;
        let mut layer = Self {
            file,
            length,
            header,
            l1: Vec::new(),
            used: Used::new(length),
        };
        layer.used.mark(0)?;
        let table = layer.read_table(header.l1_offset, header.l1_entries)?;
        layer.l1 = table;
        Ok(layer)
    }

    /// Bytes of the disk.
    pub(super) fn size(&self) -> u64 {
        self.header.size
    }

    /// What the layer says about the clusters that L2 table `index` describes, or nothing when it
    /// says nothing about all of them. Each table can be asked for once: a second use of its
    /// clusters is what [`LayerError::Shared`] is about.
    pub(super) fn table(&mut self, index: u64) -> Result<Option<Vec<Cluster>>, LayerError> {
        let entry = usize::try_from(index)
            .ok()
            .and_then(|index| self.l1.get(index));
        // A layer whose disk ends before says nothing.
        let entry = entry.copied().unwrap_or(0);
        if entry & !(OFFSET_MASK | COPIED) != 0 {
            return Err(LayerError::Reserved { entry });
        }
        let offset = entry & OFFSET_MASK;
        if offset == 0 {
            return Ok(None);
        }
        let raw = self.read_table(offset, TABLE_ENTRIES)?;
        let first = index * TABLE_SPAN_BYTES;
        let inside = self.size().saturating_sub(first).div_ceil(CLUSTER_BYTES);
        let mut clusters = Vec::with_capacity(raw.len());
        for (position, entry) in (0..).zip(raw) {
            clusters.push(if position < inside {
                self.judge(entry)?
            } else {
                Cluster::Unallocated
            });
        }
        Ok(Some(clusters))
    }

    fn judge(&mut self, entry: u64) -> Result<Cluster, LayerError> {
        if entry & COMPRESSED != 0 {
            return Err(LayerError::Compressed);
        }
        let flags = if self.header.version == 2 { 0 } else { ZERO };
        if entry & !(OFFSET_MASK | COPIED | flags) != 0 {
            return Err(LayerError::Reserved { entry });
        }
        let offset = entry & OFFSET_MASK;
        if offset != 0 {
            self.check_start(offset)?;
            self.used.mark(offset)?;
        }
        Ok(match (entry & ZERO != 0, offset) {
            (true, _) => Cluster::Zero,
            (false, 0) => Cluster::Unallocated,
            (false, offset) => Cluster::Data(offset),
        })
    }

    /// Whether a cluster can begin here. It may end behind the file, which then reads as zeros.
    fn check_start(&self, offset: u64) -> Result<(), LayerError> {
        if !offset.is_multiple_of(CLUSTER_BYTES) || offset >= self.length {
            return Err(LayerError::Outside { offset });
        }
        Ok(())
    }

    /// Reads a table that lies in the file as a whole, and takes its clusters.
    fn read_table(&mut self, offset: u64, entries: u64) -> Result<Vec<u64>, LayerError> {
        if entries == 0 {
            return Ok(Vec::new());
        }
        self.check_start(offset)?;
        let bytes = entries * 8;
        if bytes > self.length - offset {
            return Err(LayerError::Outside { offset });
        }
        // One cluster is the most that the caller asks for, which the constants of the module see
        // to, so the table takes the cluster that it begins in.
        self.used.mark(offset)?;
        let mut raw = vec![0; usize::try_from(bytes).map_err(|_| LayerError::ShortTable)?];
        self.file
            .read_exact_at(&mut raw, offset)
            .map_err(LayerError::Read)?;
        let numbers = raw.as_chunks::<8>().0.iter();
        Ok(numbers.map(|bytes| u64::from_be_bytes(*bytes)).collect())
    }

    /// Reads the cluster of the disk that begins at `disk_offset` and is stored at `offset`.
    /// Answers whether it holds anything but zeros; `buffer` is then filled.
    pub(super) fn read_cluster(
        &self,
        disk_offset: u64,
        offset: u64,
        buffer: &mut [u8],
    ) -> io::Result<bool> {
        // A hole is the same as zeros and costs nothing to pass by, however large it is.
        match sparse::next_data(self.file, offset)? {
            Some(data) if data < offset + CLUSTER_BYTES => {}
            Some(_) | None => return Ok(false),
        }
        // Nobody sees what is stored behind the end of this layer's disk, also not where the disk
        // of a layer above is longer.
        let seen = CLUSTER_BYTES.min(self.size().saturating_sub(disk_offset));
        let seen = usize::try_from(seen).unwrap_or(buffer.len());
        let (content, rest) = buffer.split_at_mut(seen.min(buffer.len()));
        let present = read_up_to(self.file, content, offset)?;
        content[present..].fill(0);
        rest.fill(0);
        Ok(!sparse::is_zero(buffer))
    }
}

/// Reads until the buffer is full or the file ends.
fn read_up_to(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut present = 0;
    while present < buffer.len() {
        match file.read_at(&mut buffer[present..], offset + present as u64) {
            Ok(0) => break,
            Ok(count) => present += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(present)
}

/// Which clusters of a file have been used, one bit each.
#[derive(Debug)]
struct Used(Vec<u64>);

impl Used {
    fn new(length: u64) -> Self {
        // Two megabytes for the largest disk. No layer has more clusters than the largest disk and
        // its tables; what lies beyond counts as used, and so is refused.
        let clusters = length
            .div_ceil(CLUSTER_BYTES)
            .min(dayfly_types::limits::ENGINE_FILE_BYTES_MAX / CLUSTER_BYTES);
        let words = usize::try_from(clusters.div_ceil(64)).unwrap_or(0);
        Self(vec![0; words])
    }

    fn mark(&mut self, offset: u64) -> Result<(), LayerError> {
        let cluster = offset / CLUSTER_BYTES;
        let bit = 1 << (cluster % 64);
        let word = usize::try_from(cluster / 64)
            .ok()
            .and_then(|index| self.0.get_mut(index));
        match word {
            Some(word) if *word & bit == 0 => {
                *word |= bit;
                Ok(())
            }
            Some(_) | None => Err(LayerError::Shared { offset }),
        }
    }
}

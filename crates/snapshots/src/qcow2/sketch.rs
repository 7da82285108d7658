//! Small layers for tests, made and read without QEMU.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::layer::{Cluster, Layer};
use super::{CLUSTER_BYTES, COPIED, TABLE_SPAN_BYTES, ZERO, header};

/// Bytes of the disks that are made here: one table is enough for them.
pub(crate) const SKETCH_BYTES: u64 = 4 << 20;
pub(crate) const SKETCH_CLUSTERS: u64 = SKETCH_BYTES / CLUSTER_BYTES;

/// A layer that has a byte all over each of some clusters. The byte zero is a cluster of zeros by
/// flag. Reference counts are missing, which no reader of ours looks at.
pub(crate) fn layer_of(clusters: &[(u64, u8)]) -> Vec<u8> {
    let cluster = usize::try_from(CLUSTER_BYTES).unwrap();
    let mut bytes = vec![0; 3 * cluster];
    let start = header::encode(SKETCH_BYTES, 1, CLUSTER_BYTES, 0);
    bytes[..start.len()].copy_from_slice(&start);
    put(&mut bytes, cluster, (2 * CLUSTER_BYTES) | COPIED);
    for (index, byte) in clusters {
        let entry = 2 * cluster + usize::try_from(*index).unwrap() * 8;
        if *byte == 0 {
            put(&mut bytes, entry, ZERO);
            continue;
        }
        let place = bytes.len() as u64;
        put(&mut bytes, entry, place | COPIED);
        bytes.resize(bytes.len() + cluster, *byte);
    }
    bytes
}

fn put(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_be_bytes());
}

/// What is seen through a stack of layers, lowest first: for each cluster its byte, or nothing
/// where all of them are open.
pub(crate) fn seen_through(files: &[File]) -> Vec<Option<u8>> {
    let clusters = usize::try_from(SKETCH_CLUSTERS).unwrap();
    let mut seen = vec![None; clusters];
    for file in files {
        let mut layer = Layer::open(file).unwrap();
        assert!(layer.size() <= TABLE_SPAN_BYTES);
        let table = layer.table(0).unwrap().unwrap_or_default();
        for (seen, cluster) in seen.iter_mut().zip(table) {
            match cluster {
                Cluster::Unallocated => {}
                Cluster::Zero => *seen = Some(0),
                Cluster::Data(offset) => {
                    let mut byte = [0];
                    file.read_exact_at(&mut byte, offset + CLUSTER_BYTES / 2)
                        .unwrap();
                    *seen = Some(byte[0]);
                }
            }
        }
    }
    seen
}

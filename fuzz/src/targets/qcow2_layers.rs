//! Disk layers that an engine wrote, merged by root.
//!
//! What is promised for any file: no panic; a result that is not larger than what went in and the
//! tables that find it; and a result that is a layer itself, which says the same when it is merged
//! again.
//!
//! A layer is mostly holes, so an input is a sketch of one or two: the length in clusters, the
//! header, and numbers with the place where each is written. What stands behind the last number is
//! the content of a cluster.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use dayfly_snapshots::qcow2::{Merged, merge_layers};
use rustix::fs::{MemfdFlags, memfd_create};

use super::Inputs;

const CLUSTER: u64 = 65_536;
const HEADER_BYTES: usize = 112;
/// A place and a number.
const PUT_BYTES: usize = 12;
/// Clusters of one sketched layer.
const CLUSTERS_MAX: u64 = 64;

pub(super) fn check(input: &[u8]) {
    let (split, rest) = input.split_first().unwrap_or((&0, &[]));
    let at = (usize::from(*split) * 8).min(rest.len());
    let (lower, upper) = rest.split_at(at);
    let mut layers = Vec::new();
    for sketch in [lower, upper] {
        if !sketch.is_empty() {
            layers.extend(file_of(sketch));
        }
    }
    let Some((target, merged)) = merge(&layers) else {
        return;
    };
    let stored: u64 = layers.iter().map(clusters_of).sum();
    assert!(merged.data_clusters <= stored, "content out of nothing");
    // Each table of ours finds 8192 clusters, and there is the header, the table of tables, and
    // what counts.
    let tables = merged.disk_bytes.div_ceil(CLUSTER * 8192);
    assert!(
        clusters_of(&target) <= merged.data_clusters + tables + 5,
        "the result is larger than what is in it"
    );
    let again = merge(&[target]).map(|(_, again)| again);
    // Less of it is content when that stood behind the end of the disk, where nobody sees it.
    let says_the_same = again.is_some_and(|again| {
        let clusters = |merged: Merged| merged.data_clusters + merged.zero_clusters;
        again.disk_bytes == merged.disk_bytes
            && again.data_clusters <= merged.data_clusters
            && clusters(again) == clusters(merged)
    });
    assert!(
        says_the_same,
        "the result is not a layer that says the same: {merged:?}, then {again:?}"
    );
}

fn merge(layers: &[File]) -> Option<(File, Merged)> {
    let target = memory_file()?;
    let merged = merge_layers(layers, &target).ok()?;
    Some((target, merged))
}

fn clusters_of(file: &File) -> u64 {
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    length.div_ceil(CLUSTER)
}

fn memory_file() -> Option<File> {
    let file: Option<OwnedFd> = memfd_create("layer", MemfdFlags::CLOEXEC).ok();
    file.map(File::from)
}

fn file_of(sketch: &[u8]) -> Option<File> {
    let (clusters, rest) = sketch.split_first()?;
    let file = memory_file()?;
    file.set_len((u64::from(*clusters) % CLUSTERS_MAX) * CLUSTER)
        .ok()?;
    let (header, rest) = rest.split_at(rest.len().min(HEADER_BYTES));
    file.write_all_at(header, 0).ok()?;
    let mut puts = rest.chunks_exact(PUT_BYTES);
    for put in &mut puts {
        let (place, number) = put.split_first_chunk::<4>()?;
        // In steps of one entry, anywhere in the file and a little behind it.
        let place = u64::from(u32::from_be_bytes(*place)) * 8 % (CLUSTERS_MAX * CLUSTER);
        file.write_all_at(number, place).ok()?;
    }
    Some(file)
}

fn sketch(clusters: u8, version: u32, size: u64, puts: &[(u64, u64)]) -> Vec<u8> {
    let mut bytes = vec![clusters];
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(b"QFI\xfb");
    header[4..8].copy_from_slice(&version.to_be_bytes());
    header[20..24].copy_from_slice(&16u32.to_be_bytes());
    header[24..32].copy_from_slice(&size.to_be_bytes());
    header[36..40].copy_from_slice(&1u32.to_be_bytes());
    header[40..48].copy_from_slice(&CLUSTER.to_be_bytes());
    header[96..100].copy_from_slice(&4u32.to_be_bytes());
    header[100..104].copy_from_slice(&112u32.to_be_bytes());
    bytes.extend(header);
    for (place, number) in puts {
        bytes.extend(u32::try_from(place / 8).unwrap_or(0).to_be_bytes());
        bytes.extend(number.to_be_bytes());
    }
    bytes
}

pub(super) fn seeds() -> Inputs {
    const COPIED: u64 = 1 << 63;
    let table = (CLUSTER, (2 * CLUSTER) | COPIED);
    let plain = sketch(
        5,
        3,
        1 << 20,
        &[
            table,
            (2 * CLUSTER, (3 * CLUSTER) | COPIED),
            (2 * CLUSTER + 8, 1),
            (3 * CLUSTER, 0x0707_0707),
        ],
    );
    let other = sketch(
        6,
        2,
        2 << 20,
        &[
            table,
            (2 * CLUSTER + 16, (4 * CLUSTER) | COPIED),
            (4 * CLUSTER + 24, 5),
        ],
    );
    let large = sketch(3, 3, 1 << 40, &[table, (2 * CLUSTER, 1 << 62)]);
    let mut inputs = Vec::new();
    for (name, lower, upper) in [
        ("seed-one", &[][..], &plain[..]),
        ("seed-two", &plain, &other),
        ("seed-large", &[], &large),
    ] {
        // The split is counted in eights, so the lower one is padded with a part of a number.
        let mut lower = lower.to_vec();
        lower.resize(lower.len().next_multiple_of(8), 0);
        let mut bytes = vec![u8::try_from(lower.len() / 8).unwrap_or(0)];
        bytes.extend(lower);
        bytes.extend(upper);
        inputs.push((name.to_owned(), bytes));
    }
    inputs
}

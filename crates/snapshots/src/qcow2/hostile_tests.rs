//! Layers that a hostile engine could leave. None may panic, run long, or become more than it was.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

const CLUSTER: usize = 1 << CLUSTER_BITS;
const L1: usize = CLUSTER;
const L2: usize = 2 * CLUSTER;
const DATA: u64 = 3 * CLUSTER_BYTES;
const MIB: u64 = 1 << 20;

/// A layer of one megabyte with one cluster of content, as we write them but for the counts, which
/// no reader of ours looks at.
fn example() -> Vec<u8> {
    let mut bytes = vec![0; 4 * CLUSTER];
    bytes[..header::HEADER_BYTES].copy_from_slice(&header::encode(MIB, 1, CLUSTER_BYTES, 0));
    put(&mut bytes, L1, (2 * CLUSTER_BYTES) | COPIED);
    put(&mut bytes, L2, DATA | COPIED);
    bytes[3 * CLUSTER..].fill(7);
    bytes
}

fn put(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_be_bytes());
}

fn put_short(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
}

fn file_of(bytes: &[u8]) -> File {
    let file = tempfile::tempfile().unwrap();
    file.write_all_at(bytes, 0).unwrap();
    file
}

fn merge(bytes: &[u8]) -> Result<Merged, MergeError> {
    merge_layers(&[file_of(bytes)], &tempfile::tempfile().unwrap())
}

/// What was wrong with a layer.
fn refusal(bytes: &[u8]) -> LayerError {
    match merge(bytes) {
        Err(MergeError::Layer { index: 0, source }) => source,
        other => panic!("{other:?}"),
    }
}

type Change = fn(&mut Vec<u8>);
type Wanted = fn(&LayerError) -> bool;

macro_rules! refused_with {
    ($pattern:pat) => {
        |error| matches!(error, $pattern)
    };
}

fn assert_refused(cases: &[(&str, Change, Wanted)]) {
    for (name, change, wanted) in cases {
        let mut bytes = example();
        change(&mut bytes);
        let error = refusal(&bytes);
        assert!(wanted(&error), "{name}: {error}");
    }
}

#[test]
fn the_layer_that_the_cases_change_is_good() {
    let merged = merge(&example()).unwrap();
    assert_eq!((merged.disk_bytes, merged.data_clusters), (MIB, 1));
    // Version 2 has no features and no zero flag.
    let mut old = example();
    put_short(&mut old, 4, 2);
    assert_eq!(merge(&old).unwrap(), merged);
    // The name of a backing file is never looked at, wherever it is said to be.
    let mut named = example();
    put(&mut named, 8, u64::MAX);
    put_short(&mut named, 16, u32::MAX);
    assert_eq!(merge(&named).unwrap(), merged);
    // Features that a reader may leave alone.
    put(&mut named, 80, u64::MAX);
    put(&mut named, 88, u64::MAX);
    assert_eq!(merge(&named).unwrap(), merged);
}

const HEADERS: &[(&str, Change, Wanted)] = &[
    ("empty", |b| b.clear(), refused_with!(LayerError::NotQcow2)),
    (
        "cut",
        |b| b.truncate(71),
        refused_with!(LayerError::NotQcow2),
    ),
    (
        "cut 3",
        |b| b.truncate(103),
        refused_with!(LayerError::NotQcow2),
    ),
    ("magic", |b| b[3] = 0, refused_with!(LayerError::NotQcow2)),
    (
        "version",
        |b| put_short(b, 4, 4),
        refused_with!(LayerError::Version { found: 4 }),
    ),
    (
        "small clusters",
        |b| put_short(b, 20, 9),
        refused_with!(LayerError::ClusterBits { found: 9 }),
    ),
    (
        "huge clusters",
        |b| put_short(b, 20, u32::MAX),
        refused_with!(LayerError::ClusterBits { .. }),
    ),
    (
        "huge disk",
        |b| put(b, 24, u64::MAX),
        refused_with!(LayerError::TooLarge { bytes: u64::MAX }),
    ),
    (
        "encrypted",
        |b| put_short(b, 32, 2),
        refused_with!(LayerError::Encrypted),
    ),
    (
        "short table",
        |b| put_short(b, 36, 0),
        refused_with!(LayerError::ShortTable),
    ),
    (
        "table of a longer disk",
        |b| put(b, 24, 1 << 40),
        refused_with!(LayerError::ShortTable),
    ),
    (
        "snapshots",
        |b| put_short(b, 60, 1),
        refused_with!(LayerError::InternalSnapshots),
    ),
    (
        "no header length",
        |b| put_short(b, 100, 0),
        refused_with!(LayerError::HeaderLength { found: 0 }),
    ),
    (
        "odd header length",
        |b| put_short(b, 100, 105),
        refused_with!(LayerError::HeaderLength { .. }),
    ),
    (
        "compression type",
        |b| b[104] = 1,
        refused_with!(LayerError::Compression { found: 1 }),
    ),
];

#[test]
fn hostile_headers_are_refused() {
    assert_refused(HEADERS);
}

#[test]
fn every_feature_that_a_reader_must_know_is_refused() {
    for bit in 0..64 {
        let mut bytes = example();
        put(&mut bytes, 72, 1 << bit);
        let error = refusal(&bytes);
        let is_it =
            matches!(error, LayerError::Incompatible { features } if features == 1u64 << bit);
        assert!(is_it, "bit {bit}: {error}");
    }
}

const TABLES: &[(&str, Change, Wanted)] = &[
    (
        "L1 misaligned",
        |b| put(b, 40, CLUSTER_BYTES + 512),
        refused_with!(LayerError::Outside { .. }),
    ),
    (
        "L1 behind the end",
        |b| put(b, 40, 1 << 50),
        refused_with!(LayerError::Outside { .. }),
    ),
    (
        "L1 at the top of all numbers",
        |b| put(b, 40, u64::MAX << 16),
        refused_with!(LayerError::Outside { .. }),
    ),
    (
        "L1 in the header",
        |b| put(b, 40, 0),
        refused_with!(LayerError::Shared { offset: 0 }),
    ),
    (
        "L2 misaligned",
        |b| put(b, L1, 2 * CLUSTER_BYTES + 512),
        refused_with!(LayerError::Outside { .. }),
    ),
    (
        "L2 behind the end",
        |b| put(b, L1, OFFSET_MASK & !0xffff),
        refused_with!(LayerError::Outside { .. }),
    ),
    (
        "L2 cut",
        |b| b.truncate(3 * CLUSTER - 1),
        refused_with!(LayerError::Outside { .. }),
    ),
    (
        "L2 is the L1",
        |b| put(b, L1, CLUSTER_BYTES),
        refused_with!(LayerError::Shared { .. }),
    ),
    (
        "reserved bit in the L1",
        |b| put(b, L1, (2 * CLUSTER_BYTES) | (1 << 60)),
        refused_with!(LayerError::Reserved { .. }),
    ),
    (
        "compressed",
        |b| put(b, L2, DATA | COMPRESSED),
        refused_with!(LayerError::Compressed),
    ),
    (
        "reserved bit in the L2",
        |b| put(b, L2, DATA | 2),
        refused_with!(LayerError::Reserved { .. }),
    ),
    (
        "zero flag in version 2",
        |b| {
            put_short(b, 4, 2);
            put(b, L2, ZERO);
        },
        refused_with!(LayerError::Reserved { entry: ZERO }),
    ),
    (
        "data misaligned",
        |b| put(b, L2, DATA + 512),
        refused_with!(LayerError::Outside { .. }),
    ),
    (
        "data behind the end",
        |b| put(b, L2, DATA + CLUSTER_BYTES),
        refused_with!(LayerError::Outside { .. }),
    ),
    (
        "stored zeros behind the end",
        |b| put(b, L2, (DATA + CLUSTER_BYTES) | ZERO),
        refused_with!(LayerError::Outside { .. }),
    ),
    (
        "data is a table",
        |b| put(b, L2, 2 * CLUSTER_BYTES),
        refused_with!(LayerError::Shared { .. }),
    ),
    (
        "data is used twice",
        |b| put(b, L2 + 8, DATA),
        refused_with!(LayerError::Shared { offset: DATA }),
    ),
];

#[test]
fn hostile_tables_are_refused() {
    assert_refused(TABLES);
}

/// The file claims a terabyte of stored clusters, and all of them are holes.
#[test]
fn holes_cost_neither_space_nor_long_time() {
    let tables = 64;
    let file = tempfile::tempfile().unwrap();
    let size = tables * TABLE_SPAN_BYTES;
    let header = header::encode(size, u32::try_from(tables).unwrap(), CLUSTER_BYTES, 0);
    file.write_all_at(&header, 0).unwrap();
    let mut next = 2 + tables;
    for table in 0..tables {
        let place = (2 + table) * CLUSTER_BYTES;
        file.write_all_at(&place.to_be_bytes(), CLUSTER_BYTES + table * 8)
            .unwrap();
        let entries: Vec<u8> = (next..next + TABLE_ENTRIES)
            .flat_map(|cluster| (cluster * CLUSTER_BYTES).to_be_bytes())
            .collect();
        file.write_all_at(&entries, place).unwrap();
        next += TABLE_ENTRIES;
    }
    file.set_len(next * CLUSTER_BYTES).unwrap();
    let target = tempfile::tempfile().unwrap();
    let started = Instant::now();
    let merged = merge_layers(&[file], &target).unwrap();
    assert!(started.elapsed() < Duration::from_secs(30));
    assert_eq!(merged.data_clusters, 0);
    assert_eq!(merged.zero_clusters, tables * TABLE_ENTRIES);
    assert!(target.metadata().unwrap().blocks() * 512 < (tables + 8) * CLUSTER_BYTES);
}

#[test]
fn counts_speak_of_themselves() {
    for used in (2..70_000).chain([10_000_000, 17_000_000]) {
        let blocks = merge::count_blocks(used);
        let total = used + blocks + 1;
        assert!(blocks * merge::COUNTS >= total, "{used}");
        assert!((blocks - 1) * merge::COUNTS < total, "{used}");
    }
}

fn interesting() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        (0u64..64).prop_map(|cluster| cluster * CLUSTER_BYTES),
        (0u64..64, 0u64..4).prop_map(|(cluster, flags)| (cluster * CLUSTER_BYTES) | flags),
        (0u32..64).prop_map(|bit| 1 << bit),
        Just(u64::MAX),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn random_bytes_never_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..600), keep in any::<bool>()) {
        if keep && bytes.len() >= 8 {
            bytes[..8].copy_from_slice(&example()[..8]);
        }
        let _ = merge(&bytes);
    }

    #[test]
    fn changed_layers_never_panic_and_never_unfold(
        changes in proptest::collection::vec(
            (prop_oneof![0usize..14, 8192usize..8200, 16384usize..16420], interesting()), 1..6),
        length in prop_oneof![Just(4 * CLUSTER), 0..8 * CLUSTER],
    ) {
        let mut bytes = example();
        for (word, value) in changes {
            put(&mut bytes, word * 8, value);
        }
        bytes.resize(length, 0);
        let source = file_of(&bytes);
        let target = tempfile::tempfile().unwrap();
        if let Ok(merged) = merge_layers(&[source], &target) {
            prop_assert!(merged.data_clusters <= 8);
            // What we write can be read, and says the same.
            let again = merge_layers(&[target], &tempfile::tempfile().unwrap()).unwrap();
            prop_assert_eq!(again, merged);
        }
    }
}

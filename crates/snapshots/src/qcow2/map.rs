//! A file in QEMU's format that has no content, and says which places of a disk another file has.
//!
//! With it an engine lays files over each other in which bytes are at the place that they have on
//! the disk. Everything in it comes from lengths that this process has read; what the other file
//! holds is never understood by anybody but a guest.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use super::merge::finish_file;
use super::{CLUSTER_BYTES, COPIED, DISK_BYTES_MAX, TABLE_ENTRIES, TABLE_SPAN_BYTES};

/// The bit of a header that says that content is in another file.
const CONTENT_ELSEWHERE: u64 = 1 << 2;
/// What is written of a table at once, so that most of it is a hole where most of it is empty.
const CHUNK_ENTRIES: u64 = 512;
const _: () = assert!(TABLE_ENTRIES.is_multiple_of(CHUNK_ENTRIES));

/// Writes the map of a disk of `disk_bytes` into an empty file: what `own` has of it is in the other
/// file, at the same place, and the rest is what lies below. Only an end at the end of the disk may
/// be within a unit of [`CLUSTER_BYTES`]. It is not synced.
///
/// # Errors
/// Of the file; `InvalidInput` for places that cannot be mapped.
pub(crate) fn write_map(target: &File, disk_bytes: u64, own: &[Range<u64>]) -> io::Result<()> {
    let is_whole = |place: u64| place.is_multiple_of(CLUSTER_BYTES);
    let fits = |range: &Range<u64>| {
        let ends = is_whole(range.end) || range.end == disk_bytes;
        is_whole(range.start) && ends && range.end <= disk_bytes
    };
    if disk_bytes > DISK_BYTES_MAX || !own.iter().all(fits) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // The header and the L1 table come first, and are written last.
    let mut next = 2;
    let mut l1 = Vec::new();
    for first in (0..disk_bytes.div_ceil(TABLE_SPAN_BYTES)).map(|index| index * TABLE_SPAN_BYTES) {
        let end = disk_bytes.min(first + TABLE_SPAN_BYTES);
        if !own.iter().any(|own| own.start < end && first < own.end) {
            l1.push(0);
            continue;
        }
        let place = next * CLUSTER_BYTES;
        next += 1;
        l1.push(place | COPIED);
        write_places(target, place, first..end, own)?;
    }
    finish_file(target, next, disk_bytes, &l1, CONTENT_ELSEWHERE)
}

/// Writes the L2 table of some of the disk at a place of the file.
fn write_places(target: &File, place: u64, span: Range<u64>, own: &[Range<u64>]) -> io::Result<()> {
    let entry = |at: u64| {
        let is_own = at < span.end && own.iter().any(|own| own.contains(&at));
        if is_own { at | COPIED } else { 0 }
    };
    for chunk in (0..TABLE_ENTRIES / CHUNK_ENTRIES).map(|index| index * CHUNK_ENTRIES) {
        let entries = chunk..chunk + CHUNK_ENTRIES;
        let entries = entries.map(|index| entry(span.start + index * CLUSTER_BYTES));
        let entries: Vec<u64> = entries.collect();
        if entries.iter().any(|entry| *entry != 0) {
            let bytes: Vec<u8> = entries.into_iter().flat_map(u64::to_be_bytes).collect();
            target.write_all_at(&bytes, place + chunk * 8)?;
        }
    }
    Ok(())
}

//! A digest of a file's content for which holes cost nothing.
//!
//! `blake3-extents-1` is defined on content alone, so a sparse file and its full copy agree:
//!
//! * The file is cut into aligned blocks of 64 KiB; the last may be shorter. A block of zeros is
//!   absent, whether it is stored or a hole.
//! * 256 blocks make a segment of 16 MiB. The digest of a segment is BLAKE3 over, for each present
//!   block in order, its offset in the file, its length (both 64 bit, little endian) and its bytes.
//! * The digest of the file is BLAKE3 over the text `blake3-extents-1`, the file's length and, for
//!   each segment with a present block in order, its index and its digest.
//!
//! Segments are independent, so one large file keeps every processor busy.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};

use crate::sparse::{self, BLOCK_BYTES};

/// The name of this definition, in manifests.
pub const DIGEST_KIND: &str = "blake3-extents-1";
const SEGMENT_BYTES: u64 = 16 << 20;
const _: () = assert!(SEGMENT_BYTES.is_multiple_of(BLOCK_BYTES as u64));
/// More threads than this only fight for the disk.
const THREADS_MAX: usize = 8;

/// The digest of one file's content, in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContentDigest(String);

impl ContentDigest {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ContentDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A plain BLAKE3 over a value's JSON text, in hexadecimal: for keys, not for file content.
pub(crate) fn hash_json(value: &impl Serialize) -> String {
    // A value without maps of odd keys always has a JSON form; an empty text would only make keys
    // collide with other such values, which the kinds of value hashed here rule out.
    let text = serde_json::to_vec(value).unwrap_or_default();
    blake3::hash(&text).to_hex().to_string()
}

/// A plain BLAKE3 over texts, each with its length: for values derived from others.
#[must_use]
pub fn hash_text(parts: &[&str]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    *hasher.finalize().as_bytes()
}

/// Digests one file.
///
/// # Errors
/// When the file cannot be read to the length that it had at the start.
pub fn digest_file(file: &File) -> io::Result<ContentDigest> {
    let mut all = digest_files(std::slice::from_ref(file));
    all.pop()
        .unwrap_or_else(|| Err(io::ErrorKind::InvalidInput.into()))
}

/// Digests the file at a path.
///
/// # Errors
/// When it is no regular file or cannot be read.
pub fn digest_path(path: &Path) -> io::Result<ContentDigest> {
    digest_file(&crate::files::open_regular(path)?)
}

/// Digests many files on all processors. The answers are in the order of the files.
pub fn digest_files(files: &[File]) -> Vec<io::Result<ContentDigest>> {
    let lengths: Vec<io::Result<u64>> = files
        .iter()
        .map(|file| file.metadata().map(|metadata| metadata.len()))
        .collect();
    let jobs = plan(files, &lengths);
    let results = run(&jobs);
    let mut results = results.into_iter();
    lengths
        .into_iter()
        .map(|length| {
            let length = length?;
            let count = usize::try_from(segments_of(length)).unwrap_or(usize::MAX);
            combine(length, results.by_ref().take(count).collect())
        })
        .collect()
}

/// One segment of one file.
#[derive(Debug)]
struct Job<'a> {
    file: &'a File,
    from: u64,
    to: u64,
}

type SegmentDigest = io::Result<Option<blake3::Hash>>;

fn segments_of(length: u64) -> u64 {
    length.div_ceil(SEGMENT_BYTES)
}

fn plan<'a>(files: &'a [File], lengths: &[io::Result<u64>]) -> Vec<Job<'a>> {
    let mut jobs = Vec::new();
    for (file, length) in files.iter().zip(lengths) {
        let length = *length.as_ref().unwrap_or(&0);
        for index in 0..segments_of(length) {
            let from = index * SEGMENT_BYTES;
            jobs.push(Job {
                file,
                from,
                to: length.min(from + SEGMENT_BYTES),
            });
        }
    }
    jobs
}

/// Works the jobs off on a few threads; the answers are in the order of the jobs.
fn run(jobs: &[Job<'_>]) -> Vec<SegmentDigest> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = processors.min(THREADS_MAX).min(jobs.len());
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(jobs.len()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((index, job)) = take(jobs, &next) {
                    let digest = digest_segment(job);
                    let mut done = done.lock().unwrap_or_else(|poison| poison.into_inner());
                    done.push((index, digest));
                }
            });
        }
    });
    let mut done = done
        .into_inner()
        .unwrap_or_else(|poison| poison.into_inner());
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, digest)| digest).collect()
}

fn take<'a, 'b>(jobs: &'b [Job<'a>], next: &AtomicUsize) -> Option<(usize, &'b Job<'a>)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    jobs.get(index).map(|job| (index, job))
}

fn digest_segment(job: &Job<'_>) -> SegmentDigest {
    let mut hasher = blake3::Hasher::new();
    let mut any = false;
    sparse::visit_blocks(job.file, job.from, job.to, |offset, block| {
        if !sparse::is_zero(block) {
            any = true;
            hasher.update(&offset.to_le_bytes());
            hasher.update(&(block.len() as u64).to_le_bytes());
            hasher.update(block);
        }
        Ok(())
    })?;
    Ok(any.then(|| hasher.finalize()))
}

fn combine(length: u64, segments: Vec<SegmentDigest>) -> io::Result<ContentDigest> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(DIGEST_KIND.as_bytes());
    hasher.update(&length.to_le_bytes());
    for (index, segment) in segments.into_iter().enumerate() {
        if let Some(digest) = segment? {
            hasher.update(&(index as u64).to_le_bytes());
            hasher.update(digest.as_bytes());
        }
    }
    Ok(ContentDigest(hasher.finalize().to_hex().to_string()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use proptest::prelude::*;

    use super::*;

    fn file_of(content: &[u8]) -> File {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(content, 0).unwrap();
        file
    }

    #[test]
    fn definition_is_frozen() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(40 << 20).unwrap();
        file.write_all_at(b"dayfly", (17 << 20) + 5).unwrap();
        assert_eq!(
            digest_file(&file).unwrap().as_str(),
            "3e8d49b69d269c3a2d1a8206984f6feca2006757ad3b7e07fa73440ab517fe12"
        );
    }

    #[test]
    fn length_counts_even_where_all_is_hole() {
        let short = tempfile::tempfile().unwrap();
        short.set_len(100).unwrap();
        let long = tempfile::tempfile().unwrap();
        long.set_len(101).unwrap();
        assert_ne!(digest_file(&short).unwrap(), digest_file(&long).unwrap());
    }

    #[test]
    fn answers_are_in_the_order_of_the_files() {
        let files = [file_of(b"a"), file_of(b""), file_of(&[7; 3 * BLOCK_BYTES])];
        let together = digest_files(&files);
        for (file, digest) in files.iter().zip(together) {
            assert_eq!(digest.unwrap(), digest_file(file).unwrap());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn sparse_and_full_copies_agree(
            length in 1u64..(3 * SEGMENT_BYTES),
            writes in proptest::collection::vec((any::<u64>(), any::<u8>(), 1usize..200_000), 0..6),
        ) {
            let sparse = tempfile::tempfile().unwrap();
            sparse.set_len(length).unwrap();
            for (offset, byte, count) in writes {
                let offset = offset % length;
                let count = count.min(usize::try_from(length - offset).unwrap());
                sparse.write_all_at(&vec![byte; count], offset).unwrap();
            }
            let mut content = vec![0; usize::try_from(length).unwrap()];
            sparse.read_exact_at(&mut content, 0).unwrap();
            let full = file_of(&content);
            let before = digest_file(&sparse).unwrap();
            prop_assert_eq!(&digest_file(&full).unwrap(), &before);
            sparse::dig_holes(&full).unwrap();
            prop_assert_eq!(&digest_file(&full).unwrap(), &before);
        }

        #[test]
        fn every_flipped_byte_is_seen(length in 1usize..300_000, at in any::<usize>()) {
            let mut content = vec![0; length];
            let before = digest_file(&file_of(&content)).unwrap();
            content[at % length] ^= 0x10;
            prop_assert_ne!(digest_file(&file_of(&content)).unwrap(), before);
        }
    }
}

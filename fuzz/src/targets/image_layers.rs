//! Layers of an image, laid over each other and written as a disk.
//!
//! What is promised for any two archives: no panic; a tree whose names are names; and a disk that is
//! not larger than its contents, its names and the inodes of them. The sums of headers are put right
//! first, or nearly every mutation would end there.

use std::fs::File;
use std::io::Write as _;

use dayfly_oci::document::LayerCompression;
use dayfly_oci::tree::Tree;
use dayfly_oci::{BLOCK_BYTES, Budget, DataWriter, Digest, erofs, read_layer};
use rustix::fs::{MemfdFlags, memfd_create};

use super::Inputs;

const BLOCK: usize = 512;
/// Where contents begin on the disk.
const FIRST: u32 = 16;

pub(super) fn check(input: &[u8]) {
    let (split, rest) = input.split_first().unwrap_or((&0, &[]));
    let at = (usize::from(*split) * BLOCK).min(rest.len());
    let (lower, upper) = rest.split_at(at);
    let Some(disk) = memory_file() else { return };
    let (mut tree, mut budget, mut next) = (Tree::default(), Budget::default(), FIRST);
    for bytes in [lower, upper] {
        let mut bytes = bytes.to_vec();
        put_sums_right(&mut bytes);
        let Some(packed) = file_of(&bytes) else {
            return;
        };
        let mut data = DataWriter::new(&disk, next);
        let digest = Digest::of(&bytes);
        let read = read_layer(
            &packed,
            LayerCompression::None,
            &digest,
            &mut data,
            &mut budget,
        );
        next = data.next();
        let Ok(entries) = read else { return };
        if tree.apply(entries).is_err() {
            return;
        }
    }
    // Each file takes at most its bytes and the rest of one block, and has a header of its own.
    let contents = u64::from(next - FIRST) * BLOCK_BYTES;
    assert!(
        contents <= 9 * input.len() as u64,
        "contents out of nothing"
    );
    let mut names = 0;
    for reached in tree.reached() {
        for name in tree
            .children(reached.node)
            .into_iter()
            .flat_map(|all| all.keys())
        {
            let is_plain = !name.is_empty() && !name.contains(&b'/') && !name.contains(&0);
            assert!(is_plain && name != b"." && name != b"..", "{name:?}");
            names += name.len() as u64 + 12;
        }
    }
    let written = erofs::write(&tree, &disk, next, [0; 16]);
    assert!(written.is_ok(), "a tree is not written");
    let Ok(written) = written else { return };
    let room = contents + names + 4 * input.len() as u64 + written.inodes * BLOCK_BYTES;
    let bound = room + u64::from(FIRST + 2) * BLOCK_BYTES;
    assert!(written.bytes <= bound, "{} of {bound}", written.bytes);
}

/// Goes from header to header as a reader would.
fn put_sums_right(bytes: &mut [u8]) {
    let mut place = 0;
    while let Some(header) = bytes.get_mut(place..place + BLOCK) {
        if header.iter().all(|byte| *byte == 0) {
            return;
        }
        let plain = |(at, byte): (usize, &u8)| match at {
            148..156 => u32::from(b' '),
            _ => u32::from(*byte),
        };
        let sum: u32 = header.iter().enumerate().map(plain).sum();
        let text = format!("{sum:06o}\0 ");
        header[148..156].copy_from_slice(text.as_bytes());
        let mut read = tar::Header::new_old();
        read.as_mut_bytes().copy_from_slice(header);
        let size = read.entry_size().unwrap_or(0);
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let step = size.checked_next_multiple_of(BLOCK).unwrap_or(usize::MAX);
        place = place.saturating_add(step).saturating_add(BLOCK);
    }
}

fn memory_file() -> Option<File> {
    memfd_create("disk", MemfdFlags::CLOEXEC)
        .ok()
        .map(File::from)
}

fn file_of(bytes: &[u8]) -> Option<File> {
    let mut file = memory_file()?;
    file.write_all(bytes).ok()?;
    rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0)).ok()?;
    Some(file)
}

fn header(name: &str, kind: u8, size: u64, link: &str) -> tar::Header {
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(tar::EntryType::new(kind));
    header.set_size(size);
    header.set_mode(0o755);
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.as_old_mut().linkname[..link.len()].copy_from_slice(link.as_bytes());
    header.set_cksum();
    header
}

fn archive(entries: &[(&str, u8, &[u8], &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, kind, content, link) in entries {
        let header = header(name, *kind, content.len() as u64, link);
        let _ = builder.append(&header, *content);
    }
    builder.into_inner().unwrap_or_default()
}

pub(super) fn seeds() -> Inputs {
    let lower = archive(&[
        ("a/", b'5', b"", ""),
        ("a/f", b'0', b"content", ""),
        ("a/l", b'1', b"", "a/f"),
        ("usr/lib/", b'5', b"", ""),
        ("lib", b'2', b"", "usr/lib"),
        ("dev", b'3', b"", ""),
        ("pipe", b'6', b"", ""),
    ]);
    let upper = archive(&[
        ("a/.wh.f", b'0', b"", ""),
        ("lib/x", b'0', b"through a link", ""),
        ("b/.wh..wh..opq", b'0', b"", ""),
    ]);
    let extended = archive(&[
        ("x", b'x', b"15 path=long/f\n25 SCHILY.xattr.user.a=b\n", ""),
        ("short", b'0', b"hi", ""),
        ("l", b'L', b"a-long-name\0", ""),
        ("s", b'0', b"", ""),
        ("c", b'2', b"", "c"),
    ]);
    let both = |name: &str, lower: &[u8], upper: &[u8]| {
        let split = u8::try_from(lower.len() / BLOCK).unwrap_or(u8::MAX);
        (name.to_owned(), [&[split], lower, upper].concat())
    };
    vec![
        both("seed-two", &lower, &upper),
        both("seed-extended", &lower, &extended),
        both("seed-one", &[], &extended),
    ]
}

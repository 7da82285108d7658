//! Archives of a guest, as the command line unpacks them on its user's machine.
//!
//! What is promised for any archive: no panic; nothing is made, changed or removed outside of the
//! target; and nothing inside is a device, a pipe or has special bits.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::Inputs;
use super::archive_members::archives;

// The command line is a program without a library, and this file needs nothing else of it.
#[path = "../../../bin/dayfly/src/files/local_tree.rs"]
#[cfg_attr(not(test), expect(dead_code, reason = "only what unpacks is attacked"))]
mod local_tree;

const CANARY: &str = "canary";

pub(super) fn check(input: &[u8]) {
    // In memory where that is possible: what is asked for here is no disk's.
    let parent = PathBuf::from("/dev/shm");
    let Ok(directory) = tempfile::tempdir_in(parent).or_else(|_| tempfile::tempdir()) else {
        return;
    };
    let (outside, target) = (directory.path(), directory.path().join("target"));
    if fs::write(outside.join(CANARY), CANARY).is_err() {
        return;
    }
    let mut sealed = input.to_vec();
    seal(&mut sealed);
    for archive in [input, &sealed] {
        let _ = local_tree::unpack(archive, &target);
    }
    let canary = fs::read_to_string(outside.join(CANARY)).unwrap_or_default();
    assert_eq!(canary, CANARY, "a file outside was changed");
    let names = fs::read_dir(outside).map_or(0, Iterator::count);
    assert!(names <= 2, "something was made outside");
    check_tree(&target);
}

/// The sums of headers stop nearly every mutation at the door; with new ones it gets inside.
fn seal(archive: &mut [u8]) {
    for block in archive.as_chunks_mut::<512>().0 {
        if &block[257..262] != b"ustar" {
            continue;
        }
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        let text = format!("{sum:06o}\0 ");
        block[148..156].copy_from_slice(&text.as_bytes()[..8]);
    }
}

fn check_tree(top: &Path) {
    let mut waiting = vec![top.to_owned()];
    while let Some(directory) = waiting.pop() {
        let Ok(entries) = fs::read_dir(&directory) else {
            continue;
        };
        for entry in entries.flatten() {
            let Ok(metadata) = entry.path().symlink_metadata() else {
                continue;
            };
            let kind = metadata.file_type();
            assert!(
                kind.is_file() || kind.is_dir() || kind.is_symlink(),
                "{kind:?} was made"
            );
            let is_special = !kind.is_symlink() && metadata.permissions().mode() & 0o7000 != 0;
            assert!(!is_special, "special bits were taken over");
            if kind.is_dir() {
                waiting.push(entry.path());
            }
        }
    }
}

pub(super) fn seeds() -> Inputs {
    archives()
}

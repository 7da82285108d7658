//! Storing equal files of different entries of the image cache once.
//!
//! A file that another entry has too becomes a further name of that entry's file. File systems count
//! names: the bytes are there as long as one is, of an entry or of a template that was baked from it,
//! and go with the last. Nothing else is kept of it, so a crash has nothing to leave behind but what
//! lies in a staging directory, which the next start removes.
//!
//! Files are found by length and digest, both of bytes that this process has read: whoever made an
//! image decides about no other's. All of them are sealed.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::digest::digest_path;
use crate::image_cache::{Contents, read_contents};
use crate::manifest::SealedFile;

/// Smaller files are not worth a look at those of others.
const BYTES_MIN: u64 = 1 << 20;
/// The name of a file that is looked at. No file of an entry begins with a dot.
const ASIDE: &str = ".shared";

/// Gives the files of `staging`, which are those of `contents`, the bytes that entries in `root`
/// already have. What cannot be shared stays as it is.
pub(crate) fn share(root: &Path, staging: &Path, contents: &Contents) {
    let mut wanted: Vec<&SealedFile> = contents.files.iter().collect();
    wanted.retain(|file| file.bytes >= BYTES_MIN);
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    for entry in entries {
        if wanted.is_empty() {
            return;
        }
        // What is no entry, as the directory of staging directories, has no contents.
        let path = entry.path();
        let Ok(other) = read_contents(&path) else {
            continue;
        };
        wanted.retain(|file| {
            let is_equal =
                |has: &&SealedFile| (has.bytes, &has.digest) == (file.bytes, &file.digest);
            let Some(has) = other.files.iter().find(is_equal) else {
                return true;
            };
            match replace(&path.join(&has.name), staging, file) {
                Ok(is_shared) => !is_shared,
                Err(error) => {
                    tracing::debug!(file = file.name, %error, "cannot share a file of an image");
                    true
                }
            }
        });
    }
}

/// Replaces a staged file by another name of `from`, if that has the content that it should.
fn replace(from: &Path, staging: &Path, file: &SealedFile) -> io::Result<bool> {
    let aside = staging.join(ASIDE);
    std::fs::hard_link(from, &aside)?;
    let proved = prove(&aside, staging, file);
    match proved {
        Ok(true) => std::fs::rename(&aside, staging.join(&file.name)).map(|()| true),
        other => {
            std::fs::remove_file(&aside)?;
            other
        }
    }
}

/// A file that was damaged since must not spread.
fn prove(aside: &Path, staging: &Path, file: &SealedFile) -> io::Result<bool> {
    let (found, own) = (
        std::fs::symlink_metadata(aside)?,
        std::fs::symlink_metadata(staging.join(&file.name))?,
    );
    let is_sealed = |about: &std::fs::Metadata| (about.mode() & 0o7777, about.uid(), about.gid());
    // Of one that is the same already, a rename would do nothing and leave the second name.
    let may_be =
        found.is_file() && found.ino() != own.ino() && is_sealed(&found) == is_sealed(&own);
    Ok(may_be && digest_path(aside)? == file.digest)
}

#[cfg(test)]
#[path = "sharing_tests.rs"]
mod tests;

//! A base disk that is cut into several files, of which other images may have some too.
//!
//! ```text
//! base-0.img      contents of the first layers, each byte at its place on the disk
//! base-0.map      says that the disk up to the end of base-0.img is there
//! base-1.img      contents of the next layers; zeros, as a hole, where base-0.img has content
//! base-1.map      says that what is behind the end of base-0.img is there
//! base.img        the superblock, the tree, and contents that are in no other
//! base.map
//! ```
//! Equal files of different images are one file under several names, so a part is there for as long
//! as an image or a template has it, and nothing counts. The maps are a template's own: they are made
//! from the lengths of the parts when it is baked, and never taken from anywhere.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use dayfly_host::files::sync;
use dayfly_types::container_image::file_names as made;
use dayfly_types::limits::{IMAGE_PART_UNIT_BYTES, IMAGE_PARTS_MAX};
use dayfly_vmm::BasePart;
use serde::{Deserialize, Serialize};

use crate::files;
use crate::qcow2::write_map;
use crate::template::file_names::BASE_IMAGE;

const MAP_ENDING: &str = "map";

/// The names of a part of the base disk in a template's directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BasePartNames {
    pub content: String,
    pub map: String,
}

impl BasePartNames {
    /// Of a base in this many files, lowest first; none for one file, which needs no map.
    #[must_use]
    pub fn of(files: usize) -> Vec<Self> {
        if files < 2 {
            return Vec::new();
        }
        let lower = (0..files - 1).map(lower_part);
        let contents = lower.chain([BASE_IMAGE.to_owned()]);
        contents.map(Self::of_content).collect()
    }

    fn of_content(content: String) -> Self {
        let map = Path::new(&content).with_extension(MAP_ENDING);
        let map = map.to_string_lossy().into_owned();
        Self { content, map }
    }

    pub(crate) fn within(&self, directory: &Path) -> BasePart {
        BasePart {
            content: directory.join(&self.content),
            map: directory.join(&self.map),
        }
    }
}

/// The name of a part below the last.
pub(crate) fn lower_part(index: usize) -> String {
    format!("base-{index}.img")
}

/// Whether these are the names of a disk alone, in their order: the last part, then those below it.
pub(crate) fn are_names_of_disk(names: &[&str]) -> bool {
    let Some((first, lower)) = names.split_first() else {
        return false;
    };
    let mut lower = lower.iter().enumerate();
    *first == BASE_IMAGE
        && names.len() <= IMAGE_PARTS_MAX
        && lower.all(|(index, name)| *name == lower_part(index))
}

/// Takes the disk that a program without privilege has left in `work`, and gives the names of its
/// files in `directory`: the last part first. Nothing of the program may run any more.
pub(crate) fn take(work: &Path, directory: &Path, bytes_max: u64) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for index in 0..IMAGE_PARTS_MAX {
        let path = work.join(made::disk_part(index));
        if index > 0 && std::fs::symlink_metadata(&path).is_err() {
            break;
        }
        found.push(path);
    }
    let mut names = Vec::new();
    let mut lengths = Vec::new();
    let last = found.len().saturating_sub(1);
    for (index, from) in found.into_iter().enumerate() {
        let name = if index == last {
            BASE_IMAGE.to_owned()
        } else {
            lower_part(index)
        };
        let to = directory.join(&name);
        files::move_regular(&from, &to)?;
        let disk = files::open_regular(&to)?;
        lengths.push(disk.metadata()?.size());
        // Before anything else opens it: it is this process's own from now on.
        sync(files::close_to_writers(&to)?)?;
        names.push(name);
    }
    check_lengths(&lengths, bytes_max)?;
    names.rotate_right(1);
    Ok(names)
}

/// Each part ends behind the one below it, and all but the last where a map can say so.
fn check_lengths(lengths: &[u64], bytes_max: u64) -> io::Result<()> {
    let wrong = |text: &str| Err(io::Error::new(io::ErrorKind::InvalidData, text));
    let mut below = 0;
    for (index, length) in lengths.iter().enumerate() {
        if *length <= below {
            return wrong("a part of the disk that is no longer than the one below it");
        }
        if index + 1 < lengths.len() && !length.is_multiple_of(IMAGE_PART_UNIT_BYTES) {
            return wrong("a part of the disk that ends within a unit");
        }
        below = *length;
    }
    if below > bytes_max {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(())
}

/// Writes the maps of the parts in a directory. `files` is how many there are.
pub(crate) fn write_maps(directory: &Path, files: usize) -> io::Result<Vec<BasePart>> {
    let parts: Vec<BasePart> = BasePartNames::of(files)
        .iter()
        .map(|names| names.within(directory))
        .collect();
    let mut lengths = Vec::new();
    for part in &parts {
        lengths.push(files::open_regular(&part.content)?.metadata()?.len());
    }
    check_lengths(&lengths, u64::MAX)?;
    let mut below = IMAGE_PART_UNIT_BYTES;
    for (index, (part, length)) in parts.iter().zip(lengths).enumerate() {
        let map = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&part.map)?;
        // The superblock, which tells every image from every other.
        let is_last = index + 1 == parts.len();
        let start = 0..if is_last { IMAGE_PART_UNIT_BYTES } else { 0 };
        write_map(&map, length, &[start, below..length])?;
        // Whatever the mask of this process is: an engine, which is another user, reads it.
        files::close_to_writers(&part.map)?;
        below = length;
    }
    Ok(parts)
}

/// The files of an image's disk, wherever they are: the last part, then those below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseFiles {
    pub last: PathBuf,
    /// Lowest first.
    pub lower: Vec<PathBuf>,
}

impl BaseFiles {
    /// One file.
    #[must_use]
    pub fn whole(file: PathBuf) -> Self {
        Self {
            last: file,
            lower: Vec::new(),
        }
    }

    /// How many files there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.lower.len() + 1
    }

    /// Finds them among the files of an entry of the cache.
    pub(crate) fn among(paths: &[PathBuf]) -> Option<Self> {
        let find = |name: &str| {
            let mut paths = paths.iter();
            let found = paths.find(|path| path.file_name().is_some_and(|found| found == name));
            found.cloned()
        };
        let lower = (0..IMAGE_PARTS_MAX).map_while(|index| find(&lower_part(index)));
        Some(Self {
            last: find(BASE_IMAGE)?,
            lower: lower.collect(),
        })
    }
}

#[cfg(test)]
#[path = "base_disk_tests.rs"]
mod tests;

//! From an image to a disk: each layer is fetched, read into the disk and removed again; then the
//! tree of all of them is written around their contents.
//!
//! The disk is cut into several files, each with zeros where the others have content. Where a cut
//! is depends on the layers below it alone, and so does what a file holds: images that begin with
//! the same layers begin with the same files, and a host stores these once. The last file has the
//! superblock, the tree, and what is in no other.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use dayfly_types::container_image::file_names;
use dayfly_types::limits::{IMAGE_PART_UNIT_BYTES, IMAGE_PARTS_MAX};
use rustix::fs::{FallocateFlags, fallocate};

use crate::blob::FetchBlobError;
use crate::data::{BLOCK_BYTES, DataWriter};
use crate::document::{Image, LayerBlob};
use crate::entry::{Content, EntryKind, LayerEntry};
use crate::erofs::{self, WriteError, Written};
use crate::layer::{Budget, ReadLayerError, read_layer};
use crate::source::ImageOrigin;
use crate::tree::{ApplyError, Tree, TreeNodeKind};

/// The first block with contents. The superblock is before it, and room to the unit in which disks
/// are laid over each other.
const FIRST_BLOCK: u32 = PART_UNIT_BLOCKS;
const PART_UNIT_BLOCKS: u32 = 16;
const _: () = assert!(PART_UNIT_BLOCKS as u64 * BLOCK_BYTES == IMAGE_PART_UNIT_BYTES);
/// Layers with less, and those with less than this share of what is below them, are in one file
/// with the next.
const PART_BYTES_MIN: u64 = 1 << 20;
const PART_SHARE: u64 = 16;

/// Why there is no disk.
#[derive(Debug, thiserror::Error)]
pub enum MakeDiskError {
    #[error("cannot fetch the layer {digest}")]
    Fetch {
        digest: String,
        #[source]
        source: FetchBlobError,
    },
    #[error("cannot read the layer {digest}")]
    Read {
        digest: String,
        #[source]
        source: ReadLayerError,
    },
    #[error("cannot lay the layer {digest} over those below")]
    Apply {
        digest: String,
        #[source]
        source: ApplyError,
    },
    #[error("cannot write the disk")]
    Write(#[source] WriteError),
    #[error("cannot use the work file")]
    File(#[source] io::Error),
    #[error("the work was stopped")]
    Stopped,
}

/// What is told while it goes on: in words, and how much of the layers' bytes is done.
pub type Tell<'a> = dyn Fn(&str, u64) + Send + Sync + 'a;

/// Makes the disk of an image in new files of a directory, which have the names of
/// [`file_names::disk_part`]. `aside` is where a layer lies while it is read.
///
/// # Errors
/// [`MakeDiskError`]. Then the files hold nothing that can be used.
pub async fn assemble(
    source: &ImageOrigin,
    image: &Image,
    aside: &Path,
    directory: &Path,
    budget: Budget,
    tell: &Tell<'_>,
) -> Result<Written, MakeDiskError> {
    let disk = directory.join(file_names::disk_part(0));
    let mut work = Work {
        directory: directory.to_owned(),
        disk: new_file(&disk).map_err(MakeDiskError::File)?,
        parts: 1,
        first: FIRST_BLOCK,
        next: FIRST_BLOCK,
        tree: Tree::default(),
        budget,
        contents: Vec::new(),
    };
    let mut done = 0;
    for (index, layer) in image.layers.iter().enumerate() {
        let step = format!("layer {} of {}", index + 1, image.layers.len());
        tell(&step, done);
        let part = |bytes: u64| tell(&step, done + bytes.min(layer.size));
        let fetched = source.fetch(layer, aside, &part).await;
        fetched.map_err(|source| MakeDiskError::Fetch {
            digest: layer.digest.to_string(),
            source,
        })?;
        let (layer, path) = (layer.clone(), aside.to_owned());
        done += layer.size;
        work = blocking(move || work.add(&layer, &path)).await?;
    }
    tell("writing the disk", done);
    let identity = image.manifest.bytes().first_chunk().copied();
    blocking(move || work.finish(identity.unwrap_or_default())).await
}

#[derive(Debug)]
struct Work {
    directory: PathBuf,
    /// The file that is written now, how many there are with it, and its first block.
    disk: File,
    parts: usize,
    first: u32,
    next: u32,
    tree: Tree,
    budget: Budget,
    /// Of all layers, also what a later one hides.
    contents: Vec<Content>,
}

impl Work {
    fn add(mut self, layer: &LayerBlob, path: &Path) -> Result<Self, MakeDiskError> {
        let digest = || layer.digest.to_string();
        let packed = File::open(path).map_err(MakeDiskError::File)?;
        let mut data = DataWriter::new(&self.disk, self.next);
        let (packing, unpacked) = (layer.compression, &layer.diff_id);
        let read = read_layer(&packed, packing, unpacked, &mut data, &mut self.budget);
        self.next = data.next();
        let entries = read.map_err(|source| MakeDiskError::Read {
            digest: digest(),
            source,
        })?;
        std::fs::remove_file(path).map_err(MakeDiskError::File)?;
        self.contents.extend(entries.iter().filter_map(content));
        let applied = self.tree.apply(entries);
        applied.map_err(|source| MakeDiskError::Apply {
            digest: digest(),
            source,
        })?;
        self.cut().map_err(MakeDiskError::File)?;
        Ok(self)
    }

    /// Begins another file, if there is enough in this one.
    fn cut(&mut self) -> io::Result<()> {
        let bytes = |blocks: u32| u64::from(blocks) * BLOCK_BYTES;
        let below = bytes(self.first - FIRST_BLOCK);
        let enough = PART_BYTES_MIN.max(below / PART_SHARE);
        if self.parts >= IMAGE_PARTS_MAX || bytes(self.next - self.first) < enough {
            return Ok(());
        }
        let end = self.next.checked_next_multiple_of(PART_UNIT_BLOCKS);
        let end = end.ok_or_else(|| io::Error::from(io::ErrorKind::FileTooLarge))?;
        self.disk.set_len(bytes(end))?;
        self.disk.sync_all()?;
        let next = self.directory.join(file_names::disk_part(self.parts));
        self.disk = new_file(&next)?;
        self.parts += 1;
        (self.first, self.next) = (end, end);
        Ok(())
    }

    fn finish(self, identity: [u8; 16]) -> Result<Written, MakeDiskError> {
        self.drop_hidden().map_err(MakeDiskError::File)?;
        let written = erofs::write(&self.tree, &self.disk, self.next, identity);
        let written = written.map_err(MakeDiskError::Write)?;
        self.disk.sync_all().map_err(MakeDiskError::File)?;
        Ok(written)
    }

    /// What no name leads to any more takes no room, but for what other images may have too.
    fn drop_hidden(&self) -> io::Result<()> {
        let mut seen: Vec<u32> = self
            .tree
            .reached()
            .into_iter()
            .filter_map(|one| match &self.tree.node(one.node).kind {
                TreeNodeKind::File(content) if content.length > 0 => Some(content.block),
                TreeNodeKind::File(_)
                | TreeNodeKind::Directory(_)
                | TreeNodeKind::Symlink(_)
                | TreeNodeKind::CharacterDevice(_)
                | TreeNodeKind::BlockDevice(_)
                | TreeNodeKind::Pipe => None,
            })
            .collect();
        seen.sort_unstable();
        let own = self.contents.iter();
        for content in own.filter(|content| content.block >= self.first) {
            if seen.binary_search(&content.block).is_err() {
                let place = u64::from(content.block) * BLOCK_BYTES;
                let length = content.length.next_multiple_of(BLOCK_BYTES);
                let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                match fallocate(&self.disk, flags, place, length) {
                    // A file system that cannot make holes keeps the bytes.
                    Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }
}

fn content(entry: &LayerEntry) -> Option<Content> {
    match entry.kind {
        EntryKind::File(content) if content.length > 0 => Some(content),
        EntryKind::File(_)
        | EntryKind::Directory
        | EntryKind::HardLink(_)
        | EntryKind::Symlink(_)
        | EntryKind::CharacterDevice(_)
        | EntryKind::BlockDevice(_)
        | EntryKind::Pipe
        | EntryKind::Whiteout
        | EntryKind::Opaque => None,
    }
}

fn new_file(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create_new(true).mode(0o600);
    options.open(path)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, MakeDiskError> + Send + 'static,
) -> Result<T, MakeDiskError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or(Err(MakeDiskError::Stopped))
}

#[cfg(test)]
#[path = "assemble_tests.rs"]
mod tests;

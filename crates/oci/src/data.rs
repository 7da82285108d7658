//! The bytes of files, one after the other on the disk, each from the beginning of a block.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use crate::entry::Content;

/// The unit of addresses on the disk.
pub const BLOCK_BYTES: u64 = BLOCK as u64;
pub(crate) const BLOCK: usize = 4096;
const BUFFER_BYTES: usize = 256 << 10;
const _: () = assert!(BUFFER_BYTES.is_multiple_of(BLOCK));

/// Writes contents to a new file that is all zeros as far as they go.
#[derive(Debug)]
pub struct DataWriter<'a> {
    file: &'a File,
    next: u32,
    buffer: Vec<u8>,
}

impl<'a> DataWriter<'a> {
    /// Begins at a block.
    #[must_use]
    pub fn new(file: &'a File, first: u32) -> Self {
        Self {
            file,
            next: first,
            buffer: vec![0; BUFFER_BYTES],
        }
    }

    /// The first block that is free.
    #[must_use]
    pub fn next(&self) -> u32 {
        self.next
    }

    /// Copies exactly `length` bytes. Blocks of zeros become holes.
    ///
    /// # Errors
    /// Of the reader, which may end too early, and of the file.
    pub(crate) fn copy(&mut self, reader: &mut impl Read, length: u64) -> io::Result<Content> {
        let block = self.next;
        let blocks = u32::try_from(length.div_ceil(BLOCK_BYTES)).map_err(io::Error::other)?;
        let end = block.checked_add(blocks);
        let end = end.ok_or_else(|| io::Error::from(io::ErrorKind::FileTooLarge))?;
        let mut place = u64::from(block) * BLOCK_BYTES;
        let mut left = length;
        while left > 0 {
            let count = usize::try_from(left).unwrap_or(BUFFER_BYTES);
            let count = count.min(BUFFER_BYTES);
            let part = self.buffer.get_mut(..count).unwrap_or_default();
            reader.read_exact(part)?;
            write_without_zeros(self.file, part, place)?;
            place += count as u64;
            left -= count as u64;
        }
        self.next = end;
        Ok(Content { block, length })
    }
}

fn write_without_zeros(file: &File, bytes: &[u8], place: u64) -> io::Result<()> {
    let mut place = place;
    for block in bytes.chunks(BLOCK) {
        if block.iter().any(|byte| *byte != 0) {
            file.write_all_at(block, place)?;
        }
        place += block.len() as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn contents_begin_at_blocks_and_zeros_are_holes() {
        let file = tempfile::tempfile().unwrap();
        let mut writer = DataWriter::new(&file, 16);
        let first = writer.copy(&mut &b"abc"[..], 3).unwrap();
        let zeros = writer.copy(&mut io::repeat(0), 1 << 20).unwrap();
        let last = writer.copy(&mut &b"xyz"[..], 3).unwrap();
        assert_eq!((first.block, zeros.block, last.block), (16, 17, 17 + 256));
        let mut read = [0; 3];
        file.read_exact_at(&mut read, 273 * BLOCK_BYTES).unwrap();
        assert_eq!(&read, b"xyz");
        assert!(file.metadata().unwrap().blocks() < 64);
    }

    #[test]
    fn a_reader_that_ends_early_is_an_error() {
        let file = tempfile::tempfile().unwrap();
        let mut writer = DataWriter::new(&file, 0);
        assert!(writer.copy(&mut &b"abc"[..], 4).is_err());
        assert_eq!(writer.next(), 0);
    }
}

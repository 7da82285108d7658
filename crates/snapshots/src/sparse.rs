//! Files with holes: where data lies, and how to give zero blocks back.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use dayfly_host::files::punch_hole;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

/// The unit in which files are looked at. Large enough for few calls, small enough that a block of
/// zeros is common in guest memory: 84 in 100 of its zero pages lie in such blocks.
pub(crate) const BLOCK_BYTES: usize = 64 << 10;
static ZEROS: [u8; BLOCK_BYTES] = [0; BLOCK_BYTES];

/// Whether a block (of at most [`BLOCK_BYTES`]) holds nothing but zeros.
pub(crate) fn is_zero(block: &[u8]) -> bool {
    ZEROS.get(..block.len()) == Some(block)
}

/// Calls `visit(offset, bytes)` for every aligned block in `from..to` that has data. Blocks that lie in
/// holes are skipped without being read; blocks of zeros that are stored may be visited.
pub(crate) fn visit_blocks(
    file: &File,
    from: u64,
    to: u64,
    mut visit: impl FnMut(u64, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    const BLOCK: u64 = BLOCK_BYTES as u64;
    let mut buffer = vec![0; BLOCK_BYTES];
    let mut position = from;
    while position < to {
        let Some(data) = next_data(file, position)? else {
            return Ok(());
        };
        if data >= to {
            return Ok(());
        }
        let start = (data / BLOCK * BLOCK).max(position);
        let length = usize::try_from(BLOCK.min(to - start)).unwrap_or(BLOCK_BYTES);
        let block = &mut buffer[..length];
        file.read_exact_at(block, start)?;
        visit(start, block)?;
        position = start + BLOCK;
    }
    Ok(())
}

/// Where the next data begins, or nothing when the rest of the file is a hole.
pub(crate) fn next_data(file: &File, position: u64) -> io::Result<Option<u64>> {
    match seek(file, SeekFrom::Data(position)) {
        Ok(offset) => Ok(Some(offset)),
        Err(Errno::NXIO) => Ok(None),
        // A file system that cannot tell has no holes as far as we are concerned.
        Err(Errno::INVAL) => Ok(Some(position)),
        Err(error) => Err(error.into()),
    }
}

/// Gives stored blocks of zeros back to the file system. Returns how many bytes these were.
///
/// The content stays the same. On a file system without holes nothing happens.
pub(crate) fn dig_holes(file: &File) -> io::Result<u64> {
    let mut dug = 0;
    let bytes = file.metadata()?.len();
    let result = visit_blocks(file, 0, bytes, |offset, block| {
        if is_zero(block) {
            let length = block.len() as u64;
            punch_hole(file, offset, length)?;
            dug += length;
        }
        Ok(())
    });
    match result {
        Err(error) if error.raw_os_error() == Some(Errno::OPNOTSUPP.raw_os_error()) => Ok(0),
        Err(error) => Err(error),
        Ok(()) => Ok(dug),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn digging_frees_zero_blocks_and_keeps_the_content() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let mut content = vec![0; BLOCK_BYTES * 40 + 100];
        content[BLOCK_BYTES * 3 + 7] = 1;
        let last = content.len() - 1;
        content[last] = 2;
        std::fs::write(&path, &content).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        file.sync_all().unwrap();
        let before = path.metadata().unwrap().blocks();
        assert_eq!(dig_holes(&file).unwrap(), 39 * BLOCK_BYTES as u64);
        assert!(path.metadata().unwrap().blocks() < before / 4);
        assert_eq!(std::fs::read(&path).unwrap(), content);
    }
}

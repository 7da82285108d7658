//! Bytes of files: their digests, with holes read as what they are.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use crate::BytesWatch;

pub(crate) const BUFFER_BYTES: usize = 256 << 10;
/// What is looked at for whether it is empty, so that it need not be written.
const BLOCK_BYTES: usize = 4096;

/// The work was ended by whoever watched it.
pub(crate) fn stopped() -> io::Error {
    io::Error::new(io::ErrorKind::Interrupted, "the work was stopped")
}

/// The length of a file and the digest of its bytes. Holes are not read from the disk.
pub(crate) fn digest(file: &File, watch: &mut BytesWatch<'_>) -> io::Result<(u64, blake3::Hash)> {
    let length = file.metadata()?.len();
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut position = 0;
    while position < length {
        let start = match seek(file, SeekFrom::Data(position)) {
            // There is only a hole from here to the end.
            Err(Errno::NXIO) => length,
            other => other?.min(length),
        };
        hash_zeroes(&mut hasher, start - position, watch)?;
        position = start;
        if position == length {
            break;
        }
        let end = seek(file, SeekFrom::Hole(position))?.min(length);
        while position < end {
            let wanted = step(end - position);
            file.read_exact_at(&mut buffer[..wanted], position)?;
            hasher.update(&buffer[..wanted]);
            position += wanted as u64;
            tell(watch, wanted)?;
        }
    }
    Ok((length, hasher.finalize()))
}

fn hash_zeroes(
    hasher: &mut blake3::Hasher,
    count: u64,
    watch: &mut BytesWatch<'_>,
) -> io::Result<()> {
    let zeroes = vec![0; BUFFER_BYTES];
    let mut left = count;
    while left > 0 {
        let wanted = step(left);
        hasher.update(&zeroes[..wanted]);
        left -= wanted as u64;
        tell(watch, wanted)?;
    }
    Ok(())
}

fn step(left: u64) -> usize {
    usize::try_from(left).map_or(BUFFER_BYTES, |left| left.min(BUFFER_BYTES))
}

fn tell(watch: &mut BytesWatch<'_>, bytes: usize) -> io::Result<()> {
    if watch(bytes as u64) {
        Ok(())
    } else {
        Err(stopped())
    }
}

/// Takes everything from a stream into a file, leaving holes where there is nothing, or nowhere.
/// Gives the length and the digest.
pub(crate) fn take(
    from: &mut dyn Read,
    to: Option<&File>,
    most: u64,
    watch: &mut BytesWatch<'_>,
) -> io::Result<(u64, blake3::Hash)> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut position = 0;
    loop {
        let read = fill(from, &mut buffer)?;
        let bytes = &buffer[..read];
        if read == 0 {
            break;
        }
        hasher.update(bytes);
        if let Some(to) = to {
            write_data(to, bytes, position)?;
        }
        position += read as u64;
        if position > most {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                "the file is too large",
            ));
        }
        tell(watch, read)?;
    }
    if let Some(to) = to {
        to.set_len(position)?;
    }
    Ok((position, hasher.finalize()))
}

/// As much as fits, or as there is.
fn fill(from: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn write_data(to: &File, bytes: &[u8], position: u64) -> io::Result<()> {
    let mut at = position;
    for block in bytes.chunks(BLOCK_BYTES) {
        if block.iter().any(|byte| *byte != 0) {
            to.write_all_at(block, at)?;
        }
        at += block.len() as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_count_as_zeroes_and_stay_holes() {
        let directory = tempfile::tempdir().unwrap();
        let open = |name: &str| {
            let mut options = File::options();
            let options = options.create_new(true).read(true).write(true);
            options.open(directory.path().join(name)).unwrap()
        };
        let sparse = open("sparse");
        sparse.set_len(3 << 20).unwrap();
        sparse.write_all_at(&[7; 5000], (1 << 20) + 3).unwrap();
        let mut whole = vec![0; 3 << 20];
        whole[(1 << 20) + 3..][..5000].fill(7);
        let expected = (3 << 20, blake3::hash(&whole));
        assert_eq!(digest(&sparse, &mut |_| true).unwrap(), expected);

        let copy = open("copy");
        let taken = take(&mut &whole[..], Some(&copy), 4 << 20, &mut |_| true).unwrap();
        assert_eq!(taken, expected);
        assert_eq!(digest(&copy, &mut |_| true).unwrap(), expected);
        let path = directory.path().join("copy");
        let taken = dayfly_host::files::allocated_bytes(&path).unwrap();
        assert!(taken < 100_000, "{taken} bytes for 5000");
    }

    #[test]
    fn what_is_too_large_or_stopped_is_not_taken_to_the_end() {
        let bytes = vec![1; 2 * BUFFER_BYTES];
        let most = BUFFER_BYTES as u64;
        let error = take(&mut &bytes[..], None, most, &mut |_| true).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        let error = take(&mut &bytes[..], None, u64::MAX, &mut |_| false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
    }
}

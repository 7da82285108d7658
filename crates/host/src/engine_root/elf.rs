//! As much of the ELF format as tells what loads a program.

use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const HEADER_BYTES: usize = 64;
const CLASS_64: u8 = 2;
const LITTLE_ENDIAN: u8 = 1;
const SEGMENT_INTERPRETER: u32 = 3;
const SEGMENT_DYNAMIC: u32 = 2;
const SEGMENTS_MAX: u16 = 256;
const INTERPRETER_BYTES_MAX: u64 = 4096;

/// How a file is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Linkage {
    /// Not an ELF file of this machine's kind.
    NotElf,
    Static,
    /// A library: whoever loads it brings the interpreter.
    Library,
    Dynamic {
        interpreter: PathBuf,
    },
}

/// Reads the headers of a file.
pub(super) fn linkage(path: &Path) -> io::Result<Linkage> {
    let file = File::open(path)?;
    let mut header = [0; HEADER_BYTES];
    match file.read_exact_at(&mut header, 0) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Linkage::NotElf),
        other => other?,
    }
    let is_elf =
        header.starts_with(b"\x7fELF") && header[4] == CLASS_64 && header[5] == LITTLE_ENDIAN;
    if !is_elf {
        return Ok(Linkage::NotElf);
    }
    let table = u64_at(&header, 32)?;
    let (entry_bytes, count) = (u16_at(&header, 54)?, u16_at(&header, 56)?);
    let mut is_dynamic = false;
    for index in 0..count.min(SEGMENTS_MAX) {
        let mut entry = [0; 56];
        file.read_exact_at(
            &mut entry,
            table + u64::from(index) * u64::from(entry_bytes),
        )?;
        match u32_at(&entry, 0)? {
            SEGMENT_INTERPRETER => {
                let (offset, length) = (u64_at(&entry, 8)?, u64_at(&entry, 32)?);
                let interpreter = read_interpreter(&file, offset, length)?;
                return Ok(Linkage::Dynamic { interpreter });
            }
            SEGMENT_DYNAMIC => is_dynamic = true,
            _ => {}
        }
    }
    Ok(if is_dynamic {
        Linkage::Library
    } else {
        Linkage::Static
    })
}

fn read_interpreter(file: &File, offset: u64, length: u64) -> io::Result<PathBuf> {
    let length = usize::try_from(length.min(INTERPRETER_BYTES_MAX)).map_err(io::Error::other)?;
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, offset)?;
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    Ok(PathBuf::from(std::ffi::OsString::from_vec(bytes)))
}

fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> io::Result<[u8; N]> {
    let slice = bytes.get(at..at + N).ok_or(io::ErrorKind::InvalidData)?;
    slice.try_into().map_err(io::Error::other)
}

fn u16_at(bytes: &[u8], at: usize) -> io::Result<u16> {
    bytes_at(bytes, at).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> io::Result<u32> {
    bytes_at(bytes, at).map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> io::Result<u64> {
    bytes_at(bytes, at).map(u64::from_le_bytes)
}

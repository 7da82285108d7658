//! Memory of the host, and of one mapping of one process.
//!
//! The second is how a caller makes sure that guest memory is mapped privately: a shared mapping
//! of an image would let one guest write into all that use it.

use std::io;

use serde::{Deserialize, Serialize};

use crate::process::{ProcessError, malformed, read_process_file};

/// Memory of the whole host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostMemory {
    pub total_bytes: u64,
    pub available_bytes: u64,
    pub swap_total_bytes: u64,
}

/// Reads the host's memory.
///
/// # Errors
/// When the kernel's table cannot be read or lacks a line.
pub fn host_memory() -> io::Result<HostMemory> {
    parse_meminfo(&std::fs::read_to_string("/proc/meminfo")?)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "meminfo lacks a line"))
}

/// Which mappings of a process are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MappingSelector {
    PathSuffix(String),
    Inode(u64),
}

/// What all chosen mappings hold together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MappingUsage {
    pub mappings: u32,
    /// How many of them write through to the file and to everybody else who maps it.
    pub shared_mappings: u32,
    pub size_bytes: u64,
    pub resident_bytes: u64,
    pub proportional_bytes: u64,
    pub shared_clean_bytes: u64,
    pub shared_dirty_bytes: u64,
    pub private_clean_bytes: u64,
    pub private_dirty_bytes: u64,
    pub anonymous_bytes: u64,
    pub swap_bytes: u64,
}

impl MappingUsage {
    /// True when there is at least one mapping and none of them is shared.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.mappings > 0 && self.shared_mappings == 0
    }
}

/// Adds up the mappings of a process that the selector chooses.
///
/// # Errors
/// When the process is gone or its table cannot be read.
pub fn mapping_usage(pid: i32, selector: &MappingSelector) -> Result<MappingUsage, ProcessError> {
    let text = read_process_file(pid, "smaps")?;
    parse_smaps(&text, selector).ok_or_else(|| malformed(pid, "smaps"))
}

/// How much of a file a process maps. Cheaper than [`mapping_usage`], which walks every page.
///
/// # Errors
/// When the process is gone or its table cannot be read.
pub fn mapped_size(pid: i32, inode: u64) -> Result<u64, ProcessError> {
    let text = read_process_file(pid, "maps")?;
    let headers = text.lines().filter_map(parse_mapping_header);
    Ok(headers
        .filter(|header| header.inode == inode)
        .map(|header| header.end - header.start)
        .sum())
}

/// The header line of one mapping in `maps` and `smaps`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MappingHeader {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Where in the file the mapping begins.
    pub(crate) offset: u64,
    pub(crate) permissions: String,
    pub(crate) inode: u64,
    pub(crate) path: String,
}

/// `None` when the line is not a header, which is how the lines below one are told apart.
pub(crate) fn parse_mapping_header(line: &str) -> Option<MappingHeader> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let start = u64::from_str_radix(start, 16).ok()?;
    let end = u64::from_str_radix(end, 16).ok()?;
    let permissions = fields.next()?.to_owned();
    let offset = u64::from_str_radix(fields.next()?, 16).ok()?;
    let _device = fields.next()?;
    let inode = fields.next()?.parse().ok()?;
    let path = fields.next().unwrap_or_default().trim().to_owned();
    Some(MappingHeader {
        start,
        end,
        offset,
        permissions,
        inode,
        path,
    })
}

fn parse_smaps(text: &str, selector: &MappingSelector) -> Option<MappingUsage> {
    let mut usage = MappingUsage::default();
    let mut chosen = false;
    for line in text.lines() {
        if let Some(header) = parse_mapping_header(line) {
            chosen = match selector {
                MappingSelector::PathSuffix(suffix) => header.path.ends_with(suffix.as_str()),
                MappingSelector::Inode(inode) => header.inode == *inode,
            };
            if chosen {
                usage.mappings += 1;
                usage.shared_mappings += u32::from(header.permissions.ends_with('s'));
            }
        } else if chosen {
            add_line(&mut usage, line)?;
        }
    }
    Some(usage)
}

fn add_line(usage: &mut MappingUsage, line: &str) -> Option<()> {
    let (name, value) = line.split_once(':')?;
    let sum = match name {
        "Size" => &mut usage.size_bytes,
        "Rss" => &mut usage.resident_bytes,
        "Pss" => &mut usage.proportional_bytes,
        "Shared_Clean" => &mut usage.shared_clean_bytes,
        "Shared_Dirty" => &mut usage.shared_dirty_bytes,
        "Private_Clean" => &mut usage.private_clean_bytes,
        "Private_Dirty" => &mut usage.private_dirty_bytes,
        "Anonymous" => &mut usage.anonymous_bytes,
        "Swap" => &mut usage.swap_bytes,
        _ => return Some(()),
    };
    *sum += parse_kilobytes(value)?;
    Some(())
}

fn parse_meminfo(text: &str) -> Option<HostMemory> {
    let line = |name: &str| {
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        parse_kilobytes(value?)
    };
    Some(HostMemory {
        total_bytes: line("MemTotal")?,
        available_bytes: line("MemAvailable")?,
        swap_total_bytes: line("SwapTotal")?,
    })
}

fn parse_kilobytes(value: &str) -> Option<u64> {
    value
        .trim()
        .strip_suffix("kB")?
        .trim()
        .parse::<u64>()
        .ok()?
        .checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
7f0000000000-7f0000100000 rw-p 00000000 fe:00 1234       /template/ram.img
Size:               1024 kB
Rss:                 100 kB
Private_Dirty:        12 kB
THPeligible:           0
VmFlags: rd wr mr mw me
7f0000200000-7f0000300000 rw-s 00000000 fe:00 99         /run/other file
Size:                 64 kB
Rss:                   4 kB
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0          [stack]
Rss:                   8 kB
";

    #[test]
    fn only_the_chosen_mapping_is_added_up() {
        let selector = MappingSelector::PathSuffix("/ram.img".to_owned());
        let usage = parse_smaps(SMAPS, &selector).unwrap();
        assert_eq!(usage.resident_bytes, 100 * 1024);
        assert_eq!(usage.private_dirty_bytes, 12 * 1024);
        assert!(usage.is_private());
    }

    #[test]
    fn a_shared_mapping_and_an_absent_one_are_not_private() {
        let shared = parse_smaps(SMAPS, &MappingSelector::Inode(99)).unwrap();
        assert_eq!((shared.mappings, shared.shared_mappings), (1, 1));
        assert!(!shared.is_private());
        assert!(
            !parse_smaps(SMAPS, &MappingSelector::Inode(5))
                .unwrap()
                .is_private()
        );
    }

    #[test]
    fn own_stack_and_host_memory_are_read() {
        let own = i32::try_from(std::process::id()).unwrap();
        let stack = MappingSelector::PathSuffix("[stack]".to_owned());
        assert!(mapping_usage(own, &stack).unwrap().resident_bytes > 0);
        let memory = host_memory().unwrap();
        assert!(memory.total_bytes >= memory.available_bytes);
    }
}

//! The mount table of a process, parsed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::process::{ProcessError, malformed, read_process_file};

/// One line of a `mountinfo` file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountEntry {
    pub mount_point: PathBuf,
    /// What of the file system is mounted: `/` for all of it.
    pub root: PathBuf,
    pub file_system: String,
    pub source: String,
    /// Options of this mount, such as `ro` and `nosuid`.
    pub options: BTreeSet<String>,
    /// Options of the file system behind it.
    pub super_options: BTreeSet<String>,
}

/// The mounts that a process sees.
///
/// # Errors
/// When the process is gone or its table cannot be read.
pub fn mounts_of(pid: i32) -> Result<Vec<MountEntry>, ProcessError> {
    let text = read_process_file(pid, "mountinfo")?;
    parse_mountinfo(&text).ok_or_else(|| malformed(pid, "mountinfo"))
}

/// The mounts that this process sees.
///
/// # Errors
/// When the table cannot be read.
pub fn own_mounts() -> Result<Vec<MountEntry>, ProcessError> {
    mounts_of(rustix::process::getpid().as_raw_nonzero().get())
}

/// A place in a file system, whatever it is mounted as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileSystemPlace {
    pub(crate) source: String,
    pub(crate) root: PathBuf,
}

/// Where in its file system a path is, which is how a mount of it is listed.
pub(crate) fn in_file_system(path: &Path, mounts: &[MountEntry]) -> Option<FileSystemPlace> {
    let holder = mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.mount_point))
        // Of two at one place, the later one is on top.
        .max_by_key(|mount| mount.mount_point.components().count())?;
    let inside = path.strip_prefix(&holder.mount_point).ok()?;
    let is_top = inside.as_os_str().is_empty();
    let root = if is_top {
        holder.root.clone()
    } else {
        holder.root.join(inside)
    };
    Some(FileSystemPlace {
        source: holder.source.clone(),
        root,
    })
}

fn parse_mountinfo(text: &str) -> Option<Vec<MountEntry>> {
    text.lines().map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<MountEntry> {
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ').skip(3);
    let root = unescape(left.next()?);
    let mount_point = unescape(left.next()?);
    let options = split_options(left.next()?);
    let mut right = right.split(' ');
    let file_system = right.next()?.to_owned();
    let source = right.next()?.to_owned();
    let super_options = split_options(right.next().unwrap_or_default());
    Some(MountEntry {
        mount_point: PathBuf::from(mount_point),
        root: PathBuf::from(root),
        file_system,
        source,
        options,
        super_options,
    })
}

fn split_options(text: &str) -> BTreeSet<String> {
    text.split(',')
        .filter(|option| !option.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Undoes the kernel's `\ooo` for blanks, tabs, newlines and backslashes.
fn unescape(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        result.push_str(before);
        match after
            .get(..3)
            .and_then(|digits| u8::from_str_radix(digits, 8).ok())
        {
            Some(code) => {
                result.push(char::from(code));
                rest = &after[3..];
            }
            None => {
                result.push('\\');
                rest = after;
            }
        }
    }
    result.push_str(rest);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_parsed_with_optional_fields_and_escapes() {
        let line = "36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 shared:2 - ext3 /dev/root rw";
        let entry = parse_line(line).unwrap();
        assert_eq!(entry.mount_point, PathBuf::from("/mnt 2"));
        assert_eq!(entry.root, PathBuf::from("/mnt1"));
        assert_eq!(entry.file_system, "ext3");
        assert!(entry.options.contains("noatime"));
    }

    #[test]
    fn own_table_has_a_root() {
        let mounts = own_mounts().unwrap();
        assert!(
            mounts
                .iter()
                .any(|mount| mount.mount_point.parent().is_none())
        );
    }
}

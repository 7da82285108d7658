//! Directory listings in bounded memory, whatever the size of the directory.
//!
//! A listing with depth is in pre-order: a directory, then what is in it, then its next sibling.
//! Where a page ends, the relative name of its last entry says where the next one begins.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use dayfly_guest_proto::{GuestError, Response};
use dayfly_types::file::{DirectoryPage, FileStat};
use dayfly_types::limits::{
    CONTROL_MESSAGE_BYTES_MAX, DIRECTORY_DEPTH_MAX, DIRECTORY_PAGE_ENTRIES_MAX,
};
use rustix::fs::{AtFlags, Dir, Mode, OFlags, statat};

use super::operate::{entry, failed};
use super::{guest_error, names};

/// What one page may take of a control message; the rest is for its envelope.
const PAGE_BYTES_MAX: usize = CONTROL_MESSAGE_BYTES_MAX - (64 << 10);
/// What an entry takes beside its name and path, at most.
const ENTRY_BYTES: usize = 192;

/// Which part of a directory is wanted.
#[derive(Debug, Clone)]
pub(crate) struct ListOptions {
    /// Only what comes behind this relative name.
    pub(crate) after: Option<String>,
    pub(crate) limit: usize,
    /// 1 is the directory alone.
    pub(crate) depth: u32,
}

/// Lists what is behind `after`, as much as fits into one answer.
pub(super) fn list(path: &Path, options: &ListOptions) -> Result<Response, GuestError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(path, flags, Mode::empty()).map_err(failed(path))?;
    let after: Vec<&str> = options
        .after
        .iter()
        .flat_map(|name| name.split('/'))
        .collect();
    let mut page = Page::new(path, options.limit);
    let depth = options.depth.clamp(1, DIRECTORY_DEPTH_MAX);
    page.fill(directory.as_fd(), "", &after, depth)
        .map_err(|error| guest_error(&names::path_text(path), &error))?;
    Ok(Response::Directory(DirectoryPage {
        entries: page.entries,
        has_more: page.is_full,
    }))
}

struct Page {
    /// Stands before every relative name.
    prefix: String,
    limit: usize,
    entries: Vec<FileStat>,
    bytes: usize,
    /// Something was left out for the next page.
    is_full: bool,
}

impl Page {
    fn new(path: &Path, limit: usize) -> Self {
        let mut prefix = names::path_text(path);
        if !prefix.ends_with('/') {
            prefix.push('/');
        }
        Self {
            prefix,
            limit: limit.clamp(1, DIRECTORY_PAGE_ENTRIES_MAX),
            entries: Vec::new(),
            bytes: 0,
            is_full: false,
        }
    }

    /// Adds what is in a directory, behind `after`, and `depth - 1` levels below it.
    fn fill(
        &mut self,
        directory: BorrowedFd<'_>,
        inside: &str,
        after: &[&str],
        depth: u32,
    ) -> io::Result<()> {
        let mut passed = None;
        if let Some((first, rest)) = after.split_first() {
            // The entry itself was told before; some of what is in it may not have been.
            if !matches!(*first, "" | "." | "..") {
                let name = CString::new(names::bytes(first))?;
                self.descend(directory, &name, &format!("{inside}{first}/"), rest, depth);
            }
            passed = Some((*first).to_owned());
        }
        while !self.is_full {
            let room = self.limit - self.entries.len() + 1;
            let (found, has_more) = smallest_names(directory, passed.as_deref(), room)?;
            for (text, name) in &found {
                if self.add(directory, name, format!("{inside}{text}")) {
                    self.descend(directory, name, &format!("{inside}{text}/"), &[], depth);
                }
                if self.is_full {
                    return Ok(());
                }
            }
            if !has_more {
                return Ok(());
            }
            // Some vanished before they could be looked at, so there is room for others.
            passed = found.into_keys().last();
        }
        Ok(())
    }

    /// What cannot be opened, such as a directory of somebody else, is an entry and no more.
    fn descend(
        &mut self,
        parent: BorrowedFd<'_>,
        name: &CString,
        inside: &str,
        after: &[&str],
        depth: u32,
    ) {
        if depth > 1
            && let Ok(directory) = open_below(parent, name)
        {
            let _ = self.fill(directory.as_fd(), inside, after, depth - 1);
        }
    }

    /// Adds one entry. Gives whether it is a directory that there is room to look into.
    fn add(&mut self, directory: BorrowedFd<'_>, name: &CString, relative: String) -> bool {
        // A file may vanish between its listing and this look at it.
        let Ok(stat) = statat(directory, name.as_c_str(), AtFlags::SYMLINK_NOFOLLOW) else {
            return false;
        };
        let path = format!("{}{relative}", self.prefix);
        // JSON may write one byte of a name as six.
        let bytes = ENTRY_BYTES + 6 * (relative.len() + path.len());
        let has_room = self.entries.len() < self.limit && self.bytes + bytes <= PAGE_BYTES_MAX;
        if !has_room && !self.entries.is_empty() {
            self.is_full = true;
            return false;
        }
        self.bytes += bytes;
        let entry = entry(relative, path, &stat);
        let is_dir = entry.is_dir;
        self.entries.push(entry);
        is_dir
    }
}

fn open_below(parent: BorrowedFd<'_>, name: &CString) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(
        parent,
        name.as_c_str(),
        flags,
        Mode::empty(),
    )?)
}

/// The first names behind `after`, and whether there are more.
fn smallest_names(
    directory: BorrowedFd<'_>,
    after: Option<&str>,
    limit: usize,
) -> io::Result<(BTreeMap<String, CString>, bool)> {
    let mut found: BTreeMap<String, CString> = BTreeMap::new();
    let mut has_more = false;
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let text = names::text(name.to_bytes());
        if after.is_some_and(|after| *text <= *after) {
            continue;
        }
        // Most of a large directory is not on this page.
        let is_beyond = found.len() >= limit
            && found
                .last_key_value()
                .is_some_and(|(last, _)| **last < *text);
        if is_beyond {
            has_more = true;
            continue;
        }
        found.insert(text.into_owned(), name.to_owned());
        if found.len() > limit {
            found.pop_last();
            has_more = true;
        }
    }
    Ok((found, has_more))
}

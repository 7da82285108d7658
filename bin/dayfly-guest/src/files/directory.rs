//! Directory listings in bounded memory, whatever the size of the directory.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;

use dayfly_guest_proto::{DirectoryPage, FileEntry, GuestError, Response};
use dayfly_types::limits::{CONTROL_MESSAGE_BYTES_MAX, DIRECTORY_ENTRIES_MAX};

use super::guest_error;
use super::operate::entry;

/// What one page may take of a control message; the rest is for its envelope.
const PAGE_BYTES_MAX: usize = CONTROL_MESSAGE_BYTES_MAX - (64 << 10);
/// What an entry takes beside its name and path, at most.
const ENTRY_BYTES: usize = 192;

/// Lists names behind `after` in their order, as many as fit.
pub(super) fn list(path: &str, after: Option<&str>, limit: usize) -> Result<Response, GuestError> {
    let page = page(
        Path::new(path),
        after,
        limit.clamp(1, DIRECTORY_ENTRIES_MAX),
    );
    page.map(Response::Directory)
        .map_err(|error| guest_error(path, &error))
}

fn page(path: &Path, after: Option<&str>, limit: usize) -> io::Result<DirectoryPage> {
    let (names, mut has_more) = smallest_names(path, after, limit)?;
    let mut entries: Vec<FileEntry> = Vec::with_capacity(names.len());
    let mut bytes = 0;
    for name in names.into_values() {
        // A file may vanish between its listing and this look at it.
        let Ok(entry) = entry(&path.join(name)) else {
            continue;
        };
        // JSON may write one byte of a name as six.
        bytes += ENTRY_BYTES + 6 * (entry.name.len() + entry.path.len());
        if bytes > PAGE_BYTES_MAX && !entries.is_empty() {
            has_more = true;
            break;
        }
        entries.push(entry);
    }
    Ok(DirectoryPage { entries, has_more })
}

/// The first names behind `after`, and whether there are more.
fn smallest_names(
    path: &Path,
    after: Option<&str>,
    limit: usize,
) -> io::Result<(BTreeMap<String, OsString>, bool)> {
    let mut names = BTreeMap::new();
    let mut has_more = false;
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        let text = name.to_string_lossy().into_owned();
        if after.is_some_and(|after| text.as_str() <= after) {
            continue;
        }
        names.insert(text, name);
        if names.len() > limit {
            names.pop_last();
            has_more = true;
        }
    }
    Ok((names, has_more))
}

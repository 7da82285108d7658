//! Files as text.

use dayfly_api::FileEntry;
use dayfly_client::{FileBody, ListOptions};
use dayfly_types::limits::{MCP_FILE_BYTES_MAX, MCP_FILE_TEXT_BYTES_MAX, MCP_LINE_BYTES_MAX};
use serde::Deserialize;
use serde_json::json;

use super::{Site, unless_cancelled};
use crate::error::ToolError;
use crate::names::path_in_line;
use crate::output::ToolOutput;
use crate::resources;

/// What a relative path is below.
const WORKSPACE: &str = "/workspace";

#[derive(Debug, Deserialize)]
pub(super) struct ReadArguments {
    path: String,
    first_line: usize,
    max_lines: usize,
}

#[derive(Debug, Deserialize)]
pub(super) struct WriteArguments {
    path: String,
    content: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct ListArguments {
    path: String,
    depth: u32,
    max_entries: u32,
}

pub(super) async fn read_file(
    site: Site<'_>,
    arguments: ReadArguments,
) -> Result<ToolOutput, ToolError> {
    let path = arguments.path.as_str();
    let file = content(site, path).await?;
    let Some(text) = as_text(&file.bytes) else {
        return Ok(not_text(site, path, file.size));
    };
    let part = lines_of(text, arguments.first_line, arguments.max_lines);
    let (first, last, total) = (arguments.first_line, part.last, part.total);
    if first > total.max(1) {
        let what = format!(
            "{} has {total} lines, and none at {first}",
            path_in_line(path)
        );
        return Err(ToolError::refused(what));
    }
    let said = match (total, file.is_whole) {
        (0, true) => return Ok(ToolOutput::text("the file is empty")),
        (total, true) if last == total => format!("lines {first}-{last} of {total}"),
        (total, true) => format!(
            "lines {first}-{last} of {total}; first_line={} reads on",
            last + 1
        ),
        (_, false) => format!(
            "lines {first}-{last}; the file has {} bytes, of which this tool reads the first {}",
            file.size, MCP_FILE_BYTES_MAX
        ),
    };
    let numbered = part.numbered.trim_end_matches('\n');
    let mut output = ToolOutput::text(format!("{said}\ncontent:\n{numbered}"));
    if !file.is_whole {
        output.add_link(resources::file_link(site.sandbox, path, Some(file.size)));
    }
    Ok(output)
}

/// Lines of a text with their numbers.
struct Lines {
    numbered: String,
    /// The last that is there, counted from 1.
    last: usize,
    total: usize,
}

/// A file of nothing but line ends has millions of lines: they are counted, and never held.
fn lines_of(text: &str, first: usize, count_max: usize) -> Lines {
    let mut lines = Lines {
        numbered: String::new(),
        last: first - 1,
        total: 0,
    };
    let mut has_room = true;
    for line in text.lines() {
        lines.total += 1;
        has_room &= lines.total < first.saturating_add(count_max);
        if !has_room || lines.total < first {
            continue;
        }
        let line = format!("{}\t{}\n", lines.total, shortened(line));
        has_room = lines.numbered.len() + line.len() <= MCP_FILE_TEXT_BYTES_MAX;
        if has_room {
            lines.numbered.push_str(&line);
            lines.last = lines.total;
        }
    }
    lines
}

/// A line as far as a model gets it.
pub(super) fn shortened(line: &str) -> String {
    if line.len() <= MCP_LINE_BYTES_MAX {
        return line.to_owned();
    }
    let cut = line.floor_char_boundary(MCP_LINE_BYTES_MAX);
    format!(
        "{} [... {} bytes left out ...]",
        &line[..cut],
        line.len() - cut
    )
}

/// A file, or the beginning of a long one.
pub(super) struct Content {
    pub(super) bytes: Vec<u8>,
    pub(super) size: u64,
    pub(super) is_whole: bool,
}

pub(super) async fn content(site: Site<'_>, path: &str) -> Result<Content, ToolError> {
    unless_cancelled(site.cancel, async {
        let mut file = site.client.read_file(site.sandbox, path).await?;
        let mut bytes = Vec::new();
        while let Some(piece) = file.next().await? {
            bytes.extend_from_slice(&piece);
            if bytes.len() > MCP_FILE_BYTES_MAX {
                bytes.truncate(MCP_FILE_BYTES_MAX);
                let size = file.length().unwrap_or(MCP_FILE_BYTES_MAX as u64);
                let is_whole = false;
                return Ok(Content {
                    bytes,
                    size,
                    is_whole,
                });
            }
        }
        let size = bytes.len() as u64;
        Ok(Content {
            bytes,
            size,
            is_whole: true,
        })
    })
    .await?
}

/// A text, if it is one: a cut may have gone through its last character.
fn as_text(bytes: &[u8]) -> Option<&str> {
    if bytes.contains(&0) {
        return None;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()
        }
        Err(_) => None,
    }
}

pub(super) fn not_text(site: Site<'_>, path: &str, size: u64) -> ToolOutput {
    let error = ToolError::hinted(
        format!(
            "{} is not a text file; it has {size} bytes",
            path_in_line(path)
        ),
        "look at it with run_shell or run_code, or read the linked resource",
    );
    let mut output = ToolOutput::error(&error);
    output.add_link(resources::file_link(site.sandbox, path, Some(size)));
    output
}

pub(super) async fn write_file(
    site: Site<'_>,
    arguments: WriteArguments,
) -> Result<ToolOutput, ToolError> {
    let body = FileBody::from_bytes(arguments.content);
    let writing = site.client.write_file(site.sandbox, &arguments.path, body);
    let written = unless_cancelled(site.cancel, writing).await??;
    let path = path_in_line(&arguments.path);
    let text = format!("wrote {} bytes to {path}", written.bytes);
    Ok(ToolOutput::text(text))
}

pub(super) async fn list_files(
    site: Site<'_>,
    arguments: ListArguments,
) -> Result<ToolOutput, ToolError> {
    let options = ListOptions {
        depth: Some(arguments.depth),
        limit: Some(arguments.max_entries),
        ..ListOptions::default()
    };
    let path = directory(&arguments.path);
    let listing = site
        .client
        .list_directory_with(site.sandbox, &path, &options);
    let listing = unless_cancelled(site.cancel, listing).await??;
    let mut lines = String::new();
    let mut shown = 0;
    for entry in &listing.entries {
        let line = format!("{}\n", line_of(entry));
        if lines.len() + line.len() > MCP_FILE_TEXT_BYTES_MAX {
            break;
        }
        lines.push_str(&line);
        shown += 1;
    }
    let is_cut = listing.has_more || shown < listing.entries.len();
    let said = match (shown, is_cut) {
        (0, _) => return Ok(ToolOutput::text("the directory is empty")),
        (shown, false) => format!("{shown} entries"),
        (shown, true) => format!("the first {shown} entries; there are more"),
    };
    let lines = lines.trim_end_matches('\n');
    let output = ToolOutput::text(format!("{said}\nfiles:\n{lines}"));
    let entries = listing.entries.iter().take(shown);
    let entries: Vec<_> = entries
        .map(|entry| json!({"path": entry.path, "is_dir": entry.is_dir, "size": entry.size}))
        .collect();
    Ok(output.structured(json!({"entries": entries, "has_more": is_cut})))
}

/// A directory as its listing names it: without a dot that means the workspace.
fn directory(path: &str) -> String {
    let path = path.strip_prefix("./").unwrap_or(path);
    match path.trim_end_matches('/') {
        "" if path.starts_with('/') => "/".to_owned(),
        "" | "." => WORKSPACE.to_owned(),
        path => path.to_owned(),
    }
}

/// One entry. A name may hold a line end, which would look like another entry.
fn line_of(entry: &FileEntry) -> String {
    let name = path_in_line(&entry.name);
    if entry.is_symlink {
        format!("{name} (link)")
    } else if entry.is_dir {
        format!("{name}/")
    } else {
        format!("{name} ({} bytes)", entry.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_character_at_the_end_is_no_reason_to_call_a_file_binary() {
        assert_eq!(as_text("aé".as_bytes()), Some("aé"));
        assert_eq!(as_text(&"aé".as_bytes()[..2]), Some("a"));
        assert_eq!(as_text(b"a\xffb"), None);
        assert_eq!(as_text(b"a\0b"), None);
    }

    #[test]
    fn a_dot_is_the_workspace() {
        for (path, meant) in [
            (".", "/workspace"),
            ("./", "/workspace"),
            ("./a/", "a"),
            ("/", "/"),
            ("/etc/", "/etc"),
        ] {
            assert_eq!(directory(path), meant, "{path}");
        }
    }

    #[test]
    fn a_long_line_says_what_is_left_out() {
        let line = "é".repeat(MCP_LINE_BYTES_MAX);
        assert!(shortened(&line).contains("2000 bytes left out"));
        assert_eq!(shortened("short"), "short");
    }

    #[test]
    fn lines_are_counted_and_not_held() {
        let text = "a\n".repeat(4_000_000);
        let lines = lines_of(&text, 3, 2);
        assert_eq!(
            (lines.numbered.as_str(), lines.last, lines.total),
            ("3\ta\n4\ta\n", 4, 4_000_000)
        );
        let all = lines_of(&text, 1, usize::MAX);
        assert!(all.numbered.len() <= MCP_FILE_TEXT_BYTES_MAX && all.last < all.total);
        assert_eq!(lines_of("", 1, 5).total, 0);
    }
}

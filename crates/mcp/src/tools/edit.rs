//! Replacing a text in a file.

use dayfly_client::{FileBody, WriteOptions};
use dayfly_types::limits::MCP_FILE_BYTES_MAX;
use serde::Deserialize;

use super::files::{content, not_text};
use super::{Site, unless_cancelled};
use crate::error::ToolError;
use crate::names::path_in_line;
use crate::output::ToolOutput;

const EDIT_HINT: &str = "use sed with run_shell";

#[derive(Debug, Deserialize)]
pub(super) struct EditArguments {
    path: String,
    old_text: String,
    new_text: String,
    replace_all: bool,
}

pub(super) async fn edit_file(
    site: Site<'_>,
    arguments: EditArguments,
) -> Result<ToolOutput, ToolError> {
    let path = arguments.path.as_str();
    let file = content(site, path).await?;
    if !file.is_whole {
        let path = path_in_line(path);
        let what = format!("{path} has {} bytes, which is too much to edit", file.size);
        return Err(ToolError::hinted(what, EDIT_HINT));
    }
    let Ok(text) = String::from_utf8(file.bytes) else {
        return Ok(not_text(site, path, file.size));
    };
    let wish = with_line_ends_of(&text, arguments);
    let (count, path) = (count_of(&text, &wish)?, wish.path.as_str());
    check_room(&text, &wish, count)?;
    let changed = text.replace(&wish.old_text, &wish.new_text);
    let options = WriteOptions {
        mode: unless_cancelled(site.cancel, mode_of(site, path)).await??,
        ..WriteOptions::default()
    };
    let body = FileBody::from_bytes(changed);
    let client = site.client;
    let writing = client.write_file_with(site.sandbox, path, body, &options);
    unless_cancelled(site.cancel, writing).await??;
    let places = if count == 1 { "place" } else { "places" };
    let path = path_in_line(path);
    Ok(ToolOutput::text(format!(
        "replaced {count} {places} in {path}"
    )))
}

/// A model writes plain line ends; a file that has CRLF throughout keeps its own.
fn with_line_ends_of(text: &str, mut wish: EditArguments) -> EditArguments {
    let has_crlf = text.contains("\r\n") && !text.replace("\r\n", "").contains('\n');
    if has_crlf && !wish.old_text.contains('\r') {
        wish.old_text = wish.old_text.replace('\n', "\r\n");
        let plain = wish.new_text.replace("\r\n", "\n");
        wish.new_text = plain.replace('\n', "\r\n");
    }
    wish
}

/// Refuses an edit whose result would be too long, before it is made: a short text that is there
/// often and a long one in its place are more than there is memory for.
fn check_room(text: &str, wish: &EditArguments, count: usize) -> Result<(), ToolError> {
    let added = count.saturating_mul(wish.new_text.len());
    let kept = text.len() - count * wish.old_text.len();
    let size = kept.saturating_add(added);
    if size <= MCP_FILE_BYTES_MAX {
        return Ok(());
    }
    let path = path_in_line(&wish.path);
    let what = format!(
        "{path} would have {size} bytes, which is more than {MCP_FILE_BYTES_MAX}; nothing was \
         changed"
    );
    Err(ToolError::hinted(what, EDIT_HINT))
}

/// In how many places the old text is, if it may be replaced there.
fn count_of(text: &str, arguments: &EditArguments) -> Result<usize, ToolError> {
    let path = path_in_line(&arguments.path);
    match text.matches(&arguments.old_text).count() {
        0 => {
            let what = format!("the old text is not in {path}; nothing was changed");
            let hint = "read the file again: spaces and line ends must be the same, and line \
                        numbers are not part of it";
            Err(ToolError::hinted(what, hint))
        }
        count if count > 1 && !arguments.replace_all => {
            let what = format!("the old text is {count} times in {path}; nothing was changed");
            let hint = "give more of the text around it, or set replace_all";
            Err(ToolError::hinted(what, hint))
        }
        count => Ok(count),
    }
}

/// The permission bits that a file is to keep. A link has none of its own.
async fn mode_of(site: Site<'_>, path: &str) -> Result<Option<String>, ToolError> {
    let entry = site.client.stat(site.sandbox, path).await?;
    Ok((!entry.is_symlink).then_some(entry.mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_of_a_file_stay_as_they_are() {
        let wish = || EditArguments {
            path: "f".to_owned(),
            old_text: "a\nb".to_owned(),
            new_text: "c\nd".to_owned(),
            replace_all: false,
        };
        let crlf = with_line_ends_of("a\r\nb\r\n", wish());
        assert_eq!(crlf.old_text, "a\r\nb");
        assert_eq!(crlf.new_text, "c\r\nd");
        assert_eq!(with_line_ends_of("a\nb\r\n", wish()).old_text, "a\nb");
    }

    #[test]
    fn an_edit_that_would_fill_the_memory_is_refused_before_it_is_made() {
        let wish = |new_text: String| EditArguments {
            path: "f".to_owned(),
            old_text: "a".to_owned(),
            new_text,
            replace_all: true,
        };
        let text = "a".repeat(1 << 20);
        let refused = check_room(&text, &wish("b".repeat(1 << 20)), text.len());
        assert!(refused.unwrap_err().text().contains("nothing was changed"));
        assert!(check_room(&text, &wish("b".repeat(8)), text.len()).is_ok());
        assert!(check_room(&text, &wish("b".repeat(9)), text.len()).is_err());
    }

    #[test]
    fn an_edit_that_is_not_certain_changes_nothing() {
        let edit = |replace_all| EditArguments {
            path: "f".to_owned(),
            old_text: "a".to_owned(),
            new_text: "b".to_owned(),
            replace_all,
        };
        assert!(count_of("xyz", &edit(true)).is_err());
        assert!(count_of("a a", &edit(false)).is_err());
        assert_eq!(count_of("a a", &edit(true)).ok(), Some(2));
        assert_eq!(count_of("a", &edit(false)).ok(), Some(1));
    }
}

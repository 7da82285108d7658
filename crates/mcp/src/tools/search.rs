//! Searching in files, with the sandbox's own grep.

use dayfly_api::{Command, ExecRequest, ExecResult};
use dayfly_types::limits::{MCP_FILE_TEXT_BYTES_MAX, MCP_SEARCH_SECONDS_MAX};
use serde::Deserialize;
use serde_json::json;

use super::files::shortened;
use super::{Site, exec};
use crate::error::ToolError;
use crate::names::path_in_line;
use crate::output::ToolOutput;

/// Everything that a caller chose is an argument of grep, and none of it is text of the script.
const SCRIPT: &str = r#"count=$1; shift; grep "$@" | head -n "$count""#;
/// What grep may say of itself in an error.
const COMPLAINT_BYTES_MAX: usize = 500;
const LATE_HINT: &str = "search a part of the files: give path or name";

#[derive(Debug, Deserialize)]
pub(super) struct SearchArguments {
    pattern: String,
    path: String,
    name: Option<String>,
    ignore_case: bool,
    max_matches: usize,
}

/// One line that was found.
#[derive(Debug, PartialEq, Eq)]
struct Match<'a> {
    path: &'a str,
    line: u64,
    text: &'a str,
}

pub(super) async fn search_files(
    site: Site<'_>,
    arguments: SearchArguments,
) -> Result<ToolOutput, ToolError> {
    let mut request = ExecRequest::new(Command::Argv(command(&arguments)));
    request.timeout_seconds = Some(MCP_SEARCH_SECONDS_MAX as f64);
    request.max_output_bytes = Some(2 * MCP_FILE_TEXT_BYTES_MAX as u64);
    let result = exec::run(site, request).await?;
    let found: Vec<Match<'_>> = result.stdout.lines().filter_map(parse).collect();
    if found.is_empty() && !result.stderr.is_empty() {
        return Err(ToolError::refused(format!(
            "the search failed: {}",
            complaint(&result)
        )));
    }
    if found.is_empty() && is_late(&result) {
        return Err(ToolError::hinted(
            format!("the search took longer than {MCP_SEARCH_SECONDS_MAX} s"),
            LATE_HINT,
        ));
    }
    Ok(present(&arguments, &found, &result))
}

fn command(arguments: &SearchArguments) -> Vec<String> {
    // One more than wanted shows whether there are more.
    let count = (arguments.max_matches + 1).to_string();
    let mut words = vec!["sh", "-c", SCRIPT, "sh", &count, "-rIHnZE"];
    if arguments.ignore_case {
        words.push("-i");
    }
    let name = arguments.name.as_ref();
    let include = name.map(|name| format!("--include={name}"));
    words.extend(include.as_deref());
    words.extend(["-e", &arguments.pattern, "--", &arguments.path]);
    words.into_iter().map(str::to_owned).collect()
}

/// A line of grep: path, NUL, number, colon, text.
fn parse(line: &str) -> Option<Match<'_>> {
    let (path, rest) = line.split_once('\0')?;
    let (number, text) = rest.split_once(':')?;
    Some(Match {
        path: path.strip_prefix("./").unwrap_or(path),
        line: number.parse().ok()?,
        text,
    })
}

fn is_late(result: &ExecResult) -> bool {
    result.reason == exec::TIMED_OUT
}

fn complaint(result: &ExecResult) -> &str {
    let text = result.stderr.trim();
    &text[..text.floor_char_boundary(COMPLAINT_BYTES_MAX)]
}

fn present(arguments: &SearchArguments, found: &[Match<'_>], result: &ExecResult) -> ToolOutput {
    if found.is_empty() {
        return ToolOutput::text("no matches")
            .structured(json!({"matches": [], "has_more": false}));
    }
    let mut lines = String::new();
    let mut shown = Vec::new();
    for one in found.iter().take(arguments.max_matches) {
        let path = path_in_line(one.path);
        let line = format!("{path}:{}:{}\n", one.line, shortened(one.text));
        if lines.len() + line.len() > MCP_FILE_TEXT_BYTES_MAX {
            break;
        }
        lines.push_str(&line);
        shown.push(json!({"path": one.path, "line": one.line, "text": shortened(one.text)}));
    }
    let has_more = shown.len() < found.len();
    let mut said = match has_more {
        true => format!("the first {} matches; there are more", shown.len()),
        false => format!("{} matches", shown.len()),
    };
    if !result.stderr.is_empty() {
        said.push_str("\nhint: some files could not be read");
    }
    if is_late(result) {
        said.push_str(&format!(
            "\nhint: the search was ended after {MCP_SEARCH_SECONDS_MAX} s; {LATE_HINT}"
        ));
    }
    let text = format!("{said}\nmatches:\n{}", lines.trim_end_matches('\n'));
    ToolOutput::text(text).structured(json!({"matches": shown, "has_more": has_more}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_caller_chose_is_never_a_part_of_the_script() {
        let words = command(&SearchArguments {
            pattern: "-r; rm -rf /".to_owned(),
            path: "--help".to_owned(),
            name: Some("*.py".to_owned()),
            ignore_case: true,
            max_matches: 5,
        });
        assert_eq!(words[2], SCRIPT);
        assert_eq!(words[4], "6");
        let rest: Vec<&str> = words[5..].iter().map(String::as_str).collect();
        let expected = [
            "-rIHnZE",
            "-i",
            "--include=*.py",
            "-e",
            "-r; rm -rf /",
            "--",
            "--help",
        ];
        assert_eq!(rest, expected);
    }

    #[test]
    fn paths_with_colons_are_read_right() {
        let found = parse("a:b.txt\u{0}12:x:y").unwrap();
        assert_eq!((found.path, found.line, found.text), ("a:b.txt", 12, "x:y"));
        assert_eq!(parse("no mark"), None);
    }
}

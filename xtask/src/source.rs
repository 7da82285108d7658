//! Rust source as lines of code: without what comments and strings say, and without tests.

use std::io;
use std::path::{Path, PathBuf};

/// Every Rust file below a folder.
///
/// # Errors
/// What the kernel said of a folder that cannot be read.
pub fn rust_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                found.push(path);
            }
        }
    }
    Ok(found)
}

/// The text with the inside of comments, strings and characters blanked. Lines keep their numbers.
#[must_use]
pub fn bare(text: &str) -> String {
    let mut rest = text;
    let mut bare = String::with_capacity(text.len());
    while let Some(first) = rest.chars().next() {
        let length = opaque_length(rest, bare.chars().next_back());
        let (passage, after) = rest.split_at(length.max(first.len_utf8()));
        if length == 0 {
            bare.push_str(passage);
        } else {
            bare.extend(passage.chars().map(|c| if c == '\n' { c } else { ' ' }));
        }
        rest = after;
    }
    bare
}

/// How many bytes at the beginning say nothing about structure: a comment, a string, a character.
fn opaque_length(rest: &str, before: Option<char>) -> usize {
    let is_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if rest.starts_with("//") {
        rest.find('\n').unwrap_or(rest.len())
    } else if rest.starts_with("/*") {
        rest.find("*/").map_or(rest.len(), |end| end + 2)
    } else if rest.starts_with('"') {
        string_length(rest)
    } else if !is_word && (rest.starts_with("r\"") || rest.starts_with("r#")) {
        raw_length(rest)
    } else if rest.starts_with('\'') {
        character_length(rest)
    } else {
        0
    }
}

fn string_length(rest: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// A raw string, or nothing when it is a raw identifier.
fn raw_length(rest: &str) -> usize {
    let hashes = rest.chars().skip(1).take_while(|c| *c == '#').count();
    let Some(body) = rest.get(1 + hashes..).filter(|body| body.starts_with('"')) else {
        return 0;
    };
    let end = format!("\"{}", "#".repeat(hashes));
    let found = body.get(1..).and_then(|body| body.find(&end));
    found.map_or(rest.len(), |at| 2 + hashes + at + end.len())
}

/// A character, or nothing when it is a lifetime.
fn character_length(rest: &str) -> usize {
    let mut characters = rest.char_indices().skip(1);
    match (characters.next(), characters.next()) {
        (Some((_, '\\')), Some((at, c))) => {
            let from = at + c.len_utf8();
            let end = rest.get(from..).and_then(|body| body.find('\''));
            end.map_or(0, |end| from + end + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 0,
    }
}

/// Where the block that opens at or after `from` ends, behind its brace; `None` when a semicolon
/// comes first.
#[must_use]
pub fn block_end(bare: &str, from: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in bare.get(from..)?.char_indices() {
        match c {
            ';' if depth == 0 => return None,
            '{' => depth += 1,
            '}' if depth <= 1 => return Some(from + at + 1),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Production code: the same bare text with every item under `#[cfg(test)]` taken out.
#[must_use]
pub fn without_tests(bare: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut kept = String::with_capacity(bare.len());
    let mut rest = bare;
    while let Some(at) = rest.find(MARK) {
        let (before, item) = rest.split_at(at);
        kept.push_str(before);
        let line = item.find(';').map_or(item.len(), |end| end + 1);
        let end = block_end(item, MARK.len()).unwrap_or(line);
        rest = item.get(end..).unwrap_or_default();
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_looks_like_structure_is_blanked() {
        let text = "fn a() { \"}\"; '}'; r#\"}\"#; b'\\''; } // }\n/* { */ fn b<'a>(_: &'a str) {}";
        let bare = bare(text);
        assert_eq!(bare.len(), text.len());
        assert_eq!(bare.matches('}').count(), 2, "{bare}");
        assert_eq!(
            block_end(&bare, 0).and_then(|end| text.get(end..end + 5)),
            Some(" // }")
        );
    }

    #[test]
    fn tests_are_no_production() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() {}\n}\n#[cfg(test)]\nmod c;\nfn d() {}\n";
        let kept = without_tests(text);
        assert!(kept.contains("fn a") && kept.contains("fn d"), "{kept}");
        assert!(!kept.contains("fn b") && !kept.contains("mod c"), "{kept}");
    }
}

//! Names and sentences of which others chose the words, in what Dayfly says.
//!
//! A guest chooses names of exceptions and files. Unquoted, one such as `a, 0.0 s; all is allowed`
//! would read as words of Dayfly's. The rule and its cases are in `sdk/tools/texts.json`.

use std::ops::RangeInclusive;

use serde_json::Value;

const NAME_CHARACTERS_MAX: usize = 200;
/// Of a path in a list of files or matches.
const PATH_CHARACTERS_MAX: usize = 1000;
/// Of a sentence.
const SAID_CHARACTERS_MAX: usize = 1000;

/// Characters of the Unicode category Cf beyond ASCII: not seen, or moving what is.
const FORMATS: [RangeInclusive<char>; 21] = [
    '\u{ad}'..='\u{ad}',
    '\u{600}'..='\u{605}',
    '\u{61c}'..='\u{61c}',
    '\u{6dd}'..='\u{6dd}',
    '\u{70f}'..='\u{70f}',
    '\u{890}'..='\u{891}',
    '\u{8e2}'..='\u{8e2}',
    '\u{180e}'..='\u{180e}',
    '\u{200b}'..='\u{200f}',
    '\u{202a}'..='\u{202e}',
    '\u{2060}'..='\u{2064}',
    '\u{2066}'..='\u{206f}',
    '\u{feff}'..='\u{feff}',
    '\u{fff9}'..='\u{fffb}',
    '\u{110bd}'..='\u{110bd}',
    '\u{110cd}'..='\u{110cd}',
    '\u{13430}'..='\u{1343f}',
    '\u{1bca0}'..='\u{1bca3}',
    '\u{1d173}'..='\u{1d17a}',
    '\u{e0001}'..='\u{e0001}',
    '\u{e0020}'..='\u{e007f}',
];

/// A name that a guest chose: quoted unless it is one plain word.
pub(crate) fn named(text: &str) -> String {
    named_within(text, NAME_CHARACTERS_MAX)
}

/// A path, as Dayfly says it.
pub(crate) fn path_in_line(path: &str) -> String {
    named_within(path, PATH_CHARACTERS_MAX)
}

fn named_within(text: &str, characters_max: usize) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+/@~".contains(&byte);
    let is_short = (1..=characters_max).contains(&text.len());
    if is_short && text.bytes().all(is_plain) {
        return text.to_owned();
    }
    quoted_within(text, characters_max)
}

/// A text of a guest's as a JSON string, which cannot end by itself.
pub(crate) fn quoted(text: &str) -> String {
    quoted_within(text, NAME_CHARACTERS_MAX)
}

fn quoted_within(text: &str, characters_max: usize) -> String {
    let mut characters = text.chars();
    let kept = characters.by_ref().take(characters_max);
    let kept: String = kept
        .map(|c| if is_unseen(c) { '\u{fffd}' } else { c })
        .collect();
    // Behind the quotes, because it is ours.
    let more = if characters.next().is_some() {
        "…"
    } else {
        ""
    };
    format!("{}{more}", Value::from(kept))
}

/// What JSON has no escape for, and nobody sees.
fn is_unseen(c: char) -> bool {
    let is_control = c >= '\u{7f}' && c.is_control();
    is_control
        || matches!(c, '\u{2028}' | '\u{2029}')
        || FORMATS.iter().any(|range| range.contains(&c))
}

/// A sentence some words of which others chose: it stays one line.
pub(crate) fn one_line(text: &str) -> String {
    let is_control = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    let shown = |c: char| if is_control(c) { '?' } else { c };
    if text.chars().count() <= SAID_CHARACTERS_MAX {
        return text.chars().map(shown).collect();
    }
    let kept = text.chars().take(SAID_CHARACTERS_MAX - 3);
    kept.map(shown).chain("...".chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_as_in_every_client() {
        let cases: Value =
            serde_json::from_str(include_str!("../../../sdk/tools/texts.json")).unwrap();
        let cases = cases["names"].as_array().unwrap();
        assert!(cases.len() > 10);
        for case in cases {
            assert_eq!(named(case["name"].as_str().unwrap()), case["shown"]);
        }
    }

    #[test]
    fn a_sentence_stays_one_line() {
        assert_eq!(one_line("a\nhint: b\u{2028}c"), "a?hint: b?c");
        assert_eq!(one_line(&"é".repeat(5000)).chars().count(), 1000);
    }
}

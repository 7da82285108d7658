//! Texts that others chose, made safe to show.

/// One line without anything that steers a terminal: control characters, and the characters that
/// turn the direction of writing around.
pub(crate) fn visible(text: &str) -> String {
    text.chars()
        .filter_map(|character| match character {
            '\n' | '\t' | '\u{2028}' | '\u{2029}' => Some(' '),
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => None,
            other if other.is_control() => None,
            other => Some(other),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_steers_a_terminal_is_left() {
        assert_eq!(visible("a\x1b[31mb\x07\r\u{9b}2J"), "a[31mb2J");
        assert_eq!(visible("a\nb\tc"), "a b c");
        assert_eq!(visible("gpj\u{202e}exe"), "gpjexe");
        assert_eq!(visible("größe 大"), "größe 大");
    }
}

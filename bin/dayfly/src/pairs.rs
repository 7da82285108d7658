//! `KEY=VALUE` on the command line.

use std::collections::BTreeMap;

/// Why a text is not a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("give KEY=VALUE")]
pub(crate) struct InvalidPair;

/// Cuts at the first equals sign; the value may be empty and may hold more of them.
pub(crate) fn parse(text: &str) -> Result<(String, String), InvalidPair> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        Some(_) | None => Err(InvalidPair),
    }
}

/// Labels as the API has them; none when none were given.
pub(crate) fn labels(pairs: &[(String, String)]) -> Option<BTreeMap<String, String>> {
    (!pairs.is_empty()).then(|| pairs.iter().cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_equals_sign_separates() {
        assert_eq!(parse("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(parse("a="), Ok(("a".to_owned(), String::new())));
        assert_eq!(parse("a"), Err(InvalidPair));
        assert_eq!(parse("=b"), Err(InvalidPair));
    }
}

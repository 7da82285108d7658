//! `KEY=VALUE` on the command line.

use std::collections::BTreeMap;

use crate::env_vars::{self, NoValue};

/// Why a text is not a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("give KEY=VALUE")]
pub(crate) struct InvalidPair;

/// Why a text is not an environment variable.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidVariable {
    #[error("give KEY=VALUE, or KEY for the value that it has here")]
    NoName,
    #[error(transparent)]
    NoValue(#[from] NoValue),
}

/// An environment variable, with its value or with the one that it has here.
pub(crate) fn variable(text: &str) -> Result<(String, String), InvalidVariable> {
    match parse(text) {
        Ok(pair) => Ok(pair),
        Err(InvalidPair) if text.is_empty() || text.contains('=') => Err(InvalidVariable::NoName),
        Err(InvalidPair) => Ok((text.to_owned(), env_vars::value_of(text)?)),
    }
}

/// Cuts at the first equals sign; the value may be empty and may hold more of them.
pub(crate) fn parse(text: &str) -> Result<(String, String), InvalidPair> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        Some(_) | None => Err(InvalidPair),
    }
}

/// Pairs as the API has them; none when none were given.
pub(crate) fn given(pairs: &[(String, String)]) -> Option<BTreeMap<String, String>> {
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

    #[test]
    fn a_variable_without_a_value_has_the_one_that_it_has_here() {
        let home = std::env::var("PATH").unwrap();
        assert_eq!(variable("PATH"), Ok(("PATH".to_owned(), home)));
        assert_eq!(variable("PATH="), Ok(("PATH".to_owned(), String::new())));
        for text in ["", "=", "=b"] {
            assert_eq!(variable(text), Err(InvalidVariable::NoName));
        }
        let unset = variable("DAYFLY_TEST_OF_A_VARIABLE_THAT_IS_NOT_SET").unwrap_err();
        assert!(unset.to_string().contains("is not set"), "{unset}");
    }
}

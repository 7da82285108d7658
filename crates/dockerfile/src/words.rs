//! The words of ENV, ARG and LABEL, with their quotes.

use crate::error::{LineProblem, excerpt};

/// Words between spaces; quotes and escapes hold words together and stay where they are.
pub(crate) fn split(rest: &str, escape: char) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    let mut characters = rest.chars();
    while let Some(one) = characters.next() {
        if quote.is_none() && one.is_whitespace() {
            words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
            continue;
        }
        if one == escape && quote != Some('\'') {
            // One at the end escapes nothing and is left out.
            if let Some(next) = characters.next() {
                word.extend([one, next]);
            }
            continue;
        }
        match (quote, one) {
            (Some(open), close) if open == close => quote = None,
            (None, '"' | '\'') => quote = Some(one),
            (Some(_) | None, _) => {}
        }
        word.push(one);
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

/// `name=value name=value`, or `name value` in the old form.
pub(crate) fn pairs(
    instruction: &'static str,
    rest: &str,
    escape: char,
) -> Result<Vec<(String, String)>, LineProblem> {
    let words = split(rest, escape);
    let is_old = words.first().is_some_and(|word| !word.contains('='));
    if is_old {
        let parts = rest.split_once(char::is_whitespace);
        let (name, value) = parts.ok_or_else(|| {
            let what = format!("{instruction} {} has no value", excerpt(rest));
            LineProblem::invalid(what, "write NAME=VALUE")
        })?;
        return Ok(vec![(name.to_owned(), value.trim_start().to_owned())]);
    }
    let pair = |word: &String| {
        let parts = word.split_once('=').filter(|(name, _)| !name.is_empty());
        let (name, value) = parts.ok_or_else(|| {
            let what = format!("{instruction} has {:?} without a name", excerpt(word));
            LineProblem::invalid(what, "write NAME=VALUE, and quote values that have spaces")
        })?;
        Ok((name.to_owned(), value.to_owned()))
    };
    words.iter().map(pair).collect()
}

/// `name` or `name=default`, any number of them.
pub(crate) fn declarations(
    rest: &str,
    escape: char,
) -> Result<Vec<(String, Option<String>)>, LineProblem> {
    let declaration = |word: &String| {
        let (name, default) = match word.split_once('=') {
            Some((name, default)) => (name, Some(default.to_owned())),
            None => (word.as_str(), None),
        };
        let is_name = |one: char| one.is_alphanumeric() || "_-.".contains(one);
        if name.is_empty() || !name.chars().all(is_name) {
            let instead = "write ARG NAME or ARG NAME=DEFAULT";
            return Err(LineProblem::value("the name of an ARG", name, instead));
        }
        Ok((name.to_owned(), default))
    };
    split(rest, escape).iter().map(declaration).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_pairs_are_read() {
        let cases: [(&str, &[(&str, &str)]); 9] = [
            ("a=b", &[("a", "b")]),
            ("a=b c=d", &[("a", "b"), ("c", "d")]),
            ("a=\"b c\" d='e f'", &[("a", "\"b c\""), ("d", "'e f'")]),
            ("a=b\\ c d=", &[("a", "b\\ c"), ("d", "")]),
            ("a=b=c", &[("a", "b=c")]),
            ("a b", &[("a", "b")]),
            ("a  b   c=d", &[("a", "b   c=d")]),
            ("ONE TWO= THREE=world", &[("ONE", "TWO= THREE=world")]),
            ("a='\\' b=c", &[("a", "'\\'"), ("b", "c")]),
        ];
        for (rest, expected) in cases {
            let found = pairs("ENV", rest, '\\').unwrap();
            let found: Vec<(&str, &str)> = found
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect();
            assert_eq!(found, expected, "{rest}");
        }
        for rest in ["a", "a=b c", "a=b =c", "=b"] {
            assert!(pairs("ENV", rest, '\\').is_err(), "{rest}");
        }
    }

    #[test]
    fn declarations_may_have_defaults() {
        let found = declarations("a b= c=\"d e\"", '\\').unwrap();
        let expected = [("a", None), ("b", Some("")), ("c", Some("\"d e\""))];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.map(str::to_owned)));
        assert_eq!(found, expected);
        assert!(declarations("=a", '\\').is_err());
        assert!(declarations("$a=b", '\\').is_err());
    }
}

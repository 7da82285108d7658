//! An error with its causes, on one line.

use std::error::Error;
use std::iter::successors;

/// An error and everything under it, each after a colon, for a log.
#[must_use]
pub fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    for cause in causes(error) {
        text.push_str(": ");
        text.push_str(&cause.to_string());
    }
    text
}

/// The same for people: what the text ends with already is not said again.
#[must_use]
pub fn error_chain_once(error: &dyn Error) -> String {
    let mut text = error.to_string();
    for cause in causes(error) {
        let link = cause.to_string();
        if !text.ends_with(&link) {
            text.push_str(": ");
            text.push_str(&link);
        }
    }
    text
}

fn causes<'a>(error: &'a dyn Error) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    successors(error.source(), |cause| (*cause).source())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Link {
        text: &'static str,
        source: Option<Box<Link>>,
    }

    fn chained(texts: &[&'static str]) -> Link {
        let (text, below) = texts.split_first().unwrap();
        let source = (!below.is_empty()).then(|| Box::new(chained(below)));
        Link { text, source }
    }

    #[test]
    fn every_cause_is_told_and_for_people_once() {
        assert_eq!(error_chain(&chained(&["a"])), "a");
        let error = chained(&["cannot read it: gone", "gone", "no such file"]);
        assert_eq!(
            error_chain(&error),
            "cannot read it: gone: gone: no such file"
        );
        assert_eq!(
            error_chain_once(&error),
            "cannot read it: gone: no such file"
        );
    }
}

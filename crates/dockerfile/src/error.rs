//! What is wrong with a Dockerfile: where, what, and what to do.

use dayfly_types::limits::{
    DOCKERFILE_BYTES_MAX, DOCKERFILE_ENVIRONMENT_BYTES_MAX, DOCKERFILE_EXCERPT_CHARACTERS_MAX,
};
use thiserror::Error;

/// Why a Dockerfile cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DockerfileError {
    /// The text is too long.
    #[error(
        "the Dockerfile has {found} bytes and may have {DOCKERFILE_BYTES_MAX}; move the files that it writes into the build context and COPY them"
    )]
    TooLong {
        /// Its length in bytes.
        found: usize,
    },
    /// There is nothing to build.
    #[error("the Dockerfile has no FROM; begin with one, as in `FROM debian:12`")]
    NoStage,
    /// Something is wrong with an instruction.
    #[error("line {line}: {problem}")]
    Line {
        /// Where it begins, counted from 1.
        line: usize,
        /// What is wrong with it.
        problem: LineProblem,
    },
    /// No stage has the name or number of the target.
    #[error("the Dockerfile has no stage {name:?}; {there}")]
    UnknownTarget {
        /// The target.
        name: String,
        /// What could be named instead.
        there: String,
    },
    /// A caller asked for a stage that is not there.
    #[error("the Dockerfile has no stage {stage}; count from 0")]
    NoSuchStage {
        /// The number.
        stage: usize,
    },
    /// An argument was given that nothing uses.
    #[error("no ARG of the Dockerfile has the name {name:?}; add one, or leave the argument out")]
    UnknownArgument {
        /// Of the argument.
        name: String,
    },
    /// A base is larger than any step could carry along.
    #[error(
        "the environment variables of the base have more than {DOCKERFILE_ENVIRONMENT_BYTES_MAX} bytes; use another base"
    )]
    BaseEnvironment,
}

/// What is wrong with one instruction.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LineProblem {
    /// No such instruction.
    #[error("unknown instruction {word:?}; {instead}")]
    UnknownInstruction {
        /// As it is written.
        word: String,
        /// What to do.
        instead: &'static str,
    },
    /// No such flag.
    #[error("{instruction} knows no flag {flag:?} here; remove it")]
    UnknownFlag {
        /// Whose flag it would be.
        instruction: &'static str,
        /// As it is written.
        flag: String,
    },
    /// Docker would do it, and this server does not.
    #[error("{what} is not supported; {instead}")]
    Refused {
        /// What it is.
        what: String,
        /// What to do.
        instead: &'static str,
    },
    /// Docker would refuse it too.
    #[error("{what}; {instead}")]
    Invalid {
        /// What it is.
        what: String,
        /// What to do.
        instead: &'static str,
    },
    /// A value means nothing.
    #[error("{what} {value:?} is not valid; {instead}")]
    Value {
        /// Whose value it is.
        what: &'static str,
        /// As it is written.
        value: String,
        /// What to do.
        instead: &'static str,
    },
    /// A limit is passed.
    #[error("{what} may not be more than {limit}; {instead}")]
    TooMuch {
        /// Of what there is too much.
        what: &'static str,
        /// The most that may be there.
        limit: usize,
        /// What to do.
        instead: &'static str,
    },
}

impl DockerfileError {
    /// The line of the Dockerfile that the error is about, counted from 1.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        match self {
            Self::Line { line, .. } => Some(*line),
            Self::TooLong { .. }
            | Self::NoStage
            | Self::UnknownTarget { .. }
            | Self::NoSuchStage { .. }
            | Self::UnknownArgument { .. }
            | Self::BaseEnvironment => None,
        }
    }
}

impl LineProblem {
    pub(crate) fn at(self, line: usize) -> DockerfileError {
        DockerfileError::Line {
            line,
            problem: self,
        }
    }

    pub(crate) fn refused(what: impl Into<String>, instead: &'static str) -> Self {
        let what = what.into();
        Self::Refused { what, instead }
    }

    pub(crate) fn invalid(what: impl Into<String>, instead: &'static str) -> Self {
        let what = what.into();
        Self::Invalid { what, instead }
    }

    pub(crate) fn value(what: &'static str, value: &str, instead: &'static str) -> Self {
        let value = excerpt(value);
        Self::Value {
            what,
            value,
            instead,
        }
    }
}

/// The beginning of a stranger's text, short enough for an error.
pub(crate) fn excerpt(text: &str) -> String {
    shortened(text, DOCKERFILE_EXCERPT_CHARACTERS_MAX)
}

/// At most so many characters; the last of them says that more was there. Control characters are
/// replaced: people read the text on terminals.
pub(crate) fn shortened(text: &str, characters: usize) -> String {
    let visible = |one: char| if one.is_control() { '\u{fffd}' } else { one };
    let all = text.chars().map(visible);
    if text.chars().count() <= characters {
        return all.collect();
    }
    let kept = all.take(characters.saturating_sub(1));
    kept.chain(['…']).collect()
}

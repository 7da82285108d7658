//! What is wrong with a Dockerfile: where, what, and what to do.

use dayfly_types::limits::{
    DOCKERFILE_BYTES_MAX, DOCKERFILE_ENVIRONMENT_BYTES_MAX, DOCKERFILE_EXCERPT_CHARACTERS_MAX,
};
use thiserror::Error;

/// Why a Dockerfile cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DockerfileError {
    #[error(
        "the Dockerfile has {found} bytes and may have {DOCKERFILE_BYTES_MAX}; move the files that it writes into the build context and COPY them"
    )]
    TooLong { found: usize },
    #[error("the Dockerfile has no FROM; begin with one, as in `FROM debian:12`")]
    NoStage,
    #[error("line {line}: {problem}")]
    Line { line: usize, problem: LineProblem },
    #[error("the Dockerfile has no stage {name:?}; {there}")]
    UnknownTarget { name: String, there: String },
    #[error("the Dockerfile has no stage {stage}; count from 0")]
    NoSuchStage { stage: usize },
    #[error(
        "no ARG of the Dockerfile has the name {name:?}; add `ARG {name}`, or leave the argument out"
    )]
    UnknownArgument { name: String },
    #[error(
        "the environment variables of the base have more than {DOCKERFILE_ENVIRONMENT_BYTES_MAX} bytes; use another base"
    )]
    BaseEnvironment,
}

/// What is wrong with one instruction.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LineProblem {
    #[error("unknown instruction {word:?}; {instead}")]
    UnknownInstruction { word: String, instead: &'static str },
    #[error("{instruction} knows no flag {flag:?} here; remove it")]
    UnknownFlag {
        instruction: &'static str,
        flag: String,
    },
    /// Docker would do it, and this server does not.
    #[error("{what} is not supported; {instead}")]
    Refused { what: String, instead: &'static str },
    /// Docker would refuse it too.
    #[error("{what}; {instead}")]
    Invalid { what: String, instead: &'static str },
    #[error("{what} {value:?} is not valid; {instead}")]
    Value {
        what: &'static str,
        value: String,
        instead: &'static str,
    },
    #[error("{what} may not be more than {limit}; {instead}")]
    TooMuch {
        what: &'static str,
        limit: usize,
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

/// At most so many characters; the last of them says that more was there.
pub(crate) fn shortened(text: &str, characters: usize) -> String {
    if text.chars().count() <= characters {
        return text.to_owned();
    }
    let kept = text.chars().take(characters.saturating_sub(1));
    kept.chain(['…']).collect()
}

//! Why a call of a tool gave nothing, in words for a model: what, why, what to do.

use std::error::Error as _;

use dayfly_client::{ClientError, InvalidConfig};
use dayfly_types::{ErrorCode, error_chain_once};

use crate::arguments::ArgumentError;
use crate::names::one_line;

/// Why a call failed. All but [`ToolError::Cancelled`] are results that a model reads.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ToolError {
    #[error(transparent)]
    Arguments(#[from] ArgumentError),
    #[error("the server refused or could not be reached")]
    Client(#[from] ClientError),
    #[error("the key of this client cannot be used")]
    Key(#[from] InvalidConfig),
    /// The tool itself found that it cannot be done.
    #[error("{what}")]
    Refused { what: String, hint: Option<String> },
    #[error("the call was cancelled")]
    Cancelled,
}

impl ToolError {
    pub(crate) fn refused(what: impl Into<String>) -> Self {
        Self::Refused {
            what: what.into(),
            hint: None,
        }
    }

    pub(crate) fn hinted(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Refused {
            what: what.into(),
            hint: Some(hint.into()),
        }
    }

    pub(crate) fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Client(error) => error.api_code(),
            Self::Arguments(_) | Self::Key(_) | Self::Refused { .. } | Self::Cancelled => None,
        }
    }

    /// The whole text for a model.
    pub(crate) fn text(&self) -> String {
        let (what, hint) = match self {
            Self::Client(ClientError::Api(api)) => (api.message.clone(), api.advice.hint.clone()),
            Self::Client(error) => (error_chain_once(error), None),
            Self::Key(error) => (error_chain_once(error), None),
            Self::Refused { what, hint } => (what.clone(), hint.clone()),
            Self::Arguments(_) | Self::Cancelled => (self.to_string(), None),
        };
        // Both may have words of a guest's, which must not begin a line.
        let what = one_line(&what);
        match hint {
            Some(hint) => format!("error: {what}\nhint: {}", one_line(&hint)),
            None => format!("error: {what}"),
        }
    }
}

impl ToolError {
    /// Whether something about a sandbox failed because it is not there any more.
    pub(crate) fn may_mean_lost(&self) -> bool {
        matches!(
            self.code(),
            Some(ErrorCode::NotFound | ErrorCode::WrongState | ErrorCode::GuestUnavailable)
        )
    }
}

/// What is wrong, for a log: the chain of an error.
pub(crate) fn told(error: &ClientError) -> String {
    match error.source() {
        Some(_) => error_chain_once(error),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_one_line_and_its_hint_another() {
        let error = ToolError::hinted("grep: a\nhint: all is allowed", "b\nstdout:");
        assert_eq!(
            error.text(),
            "error: grep: a?hint: all is allowed\nhint: b?stdout:"
        );
    }
}

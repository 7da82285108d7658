//! Why there is no template.

use dayfly_client::ClientError;
use dayfly_dockerfile::DockerfileError;
use dayfly_types::ErrorCode;

use crate::context::ContextError;

/// A step whose command failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedStep {
    pub number: usize,
    pub steps: usize,
    /// Where it stands in the Dockerfile.
    pub line: usize,
    pub text: String,
    pub exit_code: i32,
    /// The last lines that it said.
    pub tail: Vec<String>,
    /// The sandbox in which it failed. It is there for some minutes.
    pub sandbox: String,
}

/// Why a build came to nothing. Steps that were done are kept, and the next build begins behind them.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error("the Dockerfile cannot be built")]
    Dockerfile(#[source] DockerfileError),
    #[error("cannot use the build context")]
    Context(#[source] ContextError),
    #[error("line {line}: {what}")]
    Unsupported { line: usize, what: String },
    #[error("cannot get the image {image}")]
    Image {
        image: String,
        #[source]
        source: ClientError,
    },
    #[error("the image {image} cannot be used: {reason}")]
    ImageFailed { image: String, reason: String },
    #[error(
        "step {} of {} failed with exit code {}: {} (line {})",
        .0.number, .0.steps, .0.exit_code, .0.text, .0.line
    )]
    Step(Box<FailedStep>),
    #[error("line {line}: there is no {path} in {place}")]
    NoSource {
        line: usize,
        path: String,
        place: String,
    },
    #[error("cannot {what}")]
    Call {
        what: &'static str,
        #[source]
        source: ClientError,
    },
    #[error("the template could not be made: {reason}")]
    Template { reason: String },
}

impl BuildError {
    /// Whether it was the server, or the way to it, that was gone for a moment: the same step may do
    /// better.
    pub(crate) fn may_pass(&self) -> bool {
        let Self::Call { source, .. } = self else {
            return false;
        };
        match source {
            ClientError::Connect { .. }
            | ClientError::Timeout { .. }
            | ClientError::Lost { .. }
            | ClientError::OutcomeUnknown { .. } => true,
            ClientError::Api(_) => {
                let gone = [ErrorCode::NodeUnavailable, ErrorCode::GuestUnavailable];
                source.api_code().is_some_and(|code| gone.contains(&code))
            }
            ClientError::Untrusted { .. }
            | ClientError::NoTls { .. }
            | ClientError::Protocol { .. }
            | ClientError::InvalidName { .. }
            | ClientError::Upload { .. } => false,
        }
    }

    /// A call of the API that failed.
    pub(crate) fn call(what: &'static str) -> impl FnOnce(ClientError) -> Self {
        move |source| Self::Call { what, source }
    }
}

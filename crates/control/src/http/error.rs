//! Errors on their way out.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use dayfly_api::{Health, Hint};
use dayfly_node_api::NodeError;
use dayfly_types::ErrorCode;
use http::StatusCode;

use crate::admission::limit::TooMany;
use crate::admission::turns::TurnTimeout;
use crate::audit::Unrecorded;
use crate::exec::collect::ExecError;
use crate::input::Invalid;
use crate::sandbox::create::CreateError;
use crate::sandbox::delete::DeleteError;
use crate::sandbox::read::FindError;
use crate::store::{InsertRefusal, StoreError, Unavailable};
use crate::template::read::TemplateError;

/// The published clients wait at most this long for one refusal.
const RETRY_AFTER_SECONDS_MAX: u64 = 60;
const BAKING_RETRY_AFTER: Duration = Duration::from_secs(5);
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Words in an error's text from which the published clients conclude things: that a command ran
/// into its limit, or that the guest is not ready and the call should be sent again.
const TELLING_WORDS: [&str; 5] = [
    "timeout",
    "deadline exceeded",
    "connection refused",
    "no route to host",
    "timed out",
];

/// An error as a caller sees it. [`super::envelope`] writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
    pub(crate) hint: Option<Box<Hint>>,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) percent: Option<u8>,
    /// With the answer about health: all that is wrong.
    pub(crate) health: Option<Box<Health>>,
}

impl ApiError {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: None,
            retry_after: None,
            percent: None,
            health: None,
        }
    }

    /// With the delay after which this kind of refusal is worth asking again.
    pub(crate) fn soon(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            retry_after: usual_delay(code),
            ..Self::new(code, message)
        }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidRequest, message)
    }

    pub(crate) fn hint(mut self, hint: Hint) -> Self {
        self.hint = Some(Box::new(hint));
        self
    }

    fn retry_after(mut self, delay: Duration) -> Self {
        self.retry_after = Some(delay);
        self
    }

    /// A fault of ours: logged with its causes, told without them. When all that is wrong is a
    /// database that is locked or full, the caller is told to ask again.
    pub(crate) fn internal(error: &(dyn std::error::Error + 'static)) -> Self {
        if let Some(fault) = Unavailable::find(error) {
            tracing::warn!(error, "the database is not available");
            let text = format!("the database is not available: {}", fault.why());
            return Self::new(ErrorCode::StoreUnavailable, text)
                .hint(Hint::ServerHealth)
                .retry_after(RETRY_AFTER);
        }
        tracing::error!(error, "internal error");
        Self::new(
            ErrorCode::Internal,
            "the server failed at this; its log says why",
        )
    }

    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.code.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Whole seconds, at least one and at most what clients accept.
    pub(crate) fn retry_after_seconds(&self) -> Option<u64> {
        let delay = self.retry_after?;
        let seconds = delay.as_secs() + u64::from(delay.subsec_nanos() > 0);
        Some(seconds.clamp(1, RETRY_AFTER_SECONDS_MAX))
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<NodeError> for ApiError {
    fn from(error: NodeError) -> Self {
        let mut answer = Self::new(error.code, safe_text(error.code, error.message));
        answer.percent = error.percent.map(|percent| percent.min(100));
        let given = error.retry_after_ms.map(Duration::from_millis);
        answer.retry_after = given.or_else(|| usual_delay(error.code));
        answer.hint = usual_hint(error.code).map(Box::new);
        answer
    }
}

/// What to do about the refusals that only a caller can end.
fn usual_hint(code: ErrorCode) -> Option<Hint> {
    let hints = [
        (ErrorCode::StorageFull, Hint::MakeRoom),
        (ErrorCode::SnapshotCorrupt, Hint::SnapshotCorrupt),
        (ErrorCode::SnapshotUnfit, Hint::SnapshotUnfit),
        (ErrorCode::WrongState, Hint::SandboxStatus),
        (ErrorCode::VolumeBusy, Hint::VolumeUsers),
    ];
    let found = hints.into_iter().find(|(known, _)| *known == code);
    found.map(|(_, hint)| hint)
}

/// When asking again is worth it, for the refusals that pass by themselves.
pub(crate) fn usual_delay(code: ErrorCode) -> Option<Duration> {
    if code == ErrorCode::TemplateBaking {
        return Some(BAKING_RETRY_AFTER);
    }
    let soon = matches!(
        code,
        ErrorCode::NoCapacity
            | ErrorCode::NodeUnavailable
            | ErrorCode::TooMany
            | ErrorCode::StoreUnavailable
            | ErrorCode::AuditUnavailable
            | ErrorCode::ProviderUnavailable
            | ErrorCode::RateLimited
    );
    soon.then_some(RETRY_AFTER)
}

/// Keeps the words that clients act upon to the errors that mean them.
fn safe_text(code: ErrorCode, text: String) -> String {
    if code == ErrorCode::Timeout {
        let already = text.contains("timeout") && !text.contains("i/o timeout");
        return if already {
            text
        } else {
            "timeout: the node did not finish in time".to_owned()
        };
    }
    let lower = text.to_lowercase();
    if TELLING_WORDS.iter().any(|word| lower.contains(word)) || text.is_empty() {
        tracing::warn!(
            code = code.as_str(),
            text,
            "the text of a node's error was replaced"
        );
        return format!("the node answered {}", code.as_str().replace('_', " "));
    }
    text
}

impl From<Invalid> for ApiError {
    fn from(error: Invalid) -> Self {
        let code = match error {
            Invalid::Field { .. } => ErrorCode::InvalidRequest,
            Invalid::TooLarge { .. } => ErrorCode::TooLarge,
        };
        Self::new(code, error.to_string())
    }
}

impl From<TooMany> for ApiError {
    fn from(error: TooMany) -> Self {
        Self::new(ErrorCode::TooMany, error.to_string()).retry_after(RETRY_AFTER)
    }
}

impl From<TurnTimeout> for ApiError {
    fn from(error: TurnTimeout) -> Self {
        Self::new(ErrorCode::TooMany, error.to_string()).retry_after(RETRY_AFTER)
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        Self::internal(&error)
    }
}

impl From<Unrecorded> for ApiError {
    fn from(error: Unrecorded) -> Self {
        Self::new(ErrorCode::AuditUnavailable, error.to_string())
            .hint(Hint::ServerHealth)
            .retry_after(RETRY_AFTER)
    }
}

impl From<FindError> for ApiError {
    fn from(error: FindError) -> Self {
        match error {
            FindError::NotFound { .. } | FindError::Gone { .. } => {
                Self::new(ErrorCode::NotFound, error.to_string())
            }
            FindError::Store { .. } => Self::internal(&error),
        }
    }
}

impl From<TemplateError> for ApiError {
    fn from(error: TemplateError) -> Self {
        let text = error.to_string();
        match error {
            TemplateError::Unknown { .. } => Self::new(ErrorCode::NotFound, text),
            TemplateError::Baking { percent, .. }
            | TemplateError::BakingVariant { percent, .. } => {
                let mut answer =
                    Self::new(ErrorCode::TemplateBaking, text).retry_after(BAKING_RETRY_AFTER);
                answer.percent = Some(percent);
                answer.hint(Hint::TemplateBaking)
            }
            TemplateError::Failed { name } | TemplateError::FailedVariant { name, .. } => {
                let template = name;
                Self::new(ErrorCode::TemplateFailed, text).hint(Hint::TemplateFailed { template })
            }
            TemplateError::Node(error) => error.into(),
        }
    }
}

impl From<InsertRefusal> for ApiError {
    fn from(error: InsertRefusal) -> Self {
        let text = error.to_string();
        match error {
            InsertRefusal::OverQuota(error) => error.into(),
            InsertRefusal::ProjectClosed => Self::new(ErrorCode::ProjectSuspended, text),
            InsertRefusal::NameTaken { .. } => {
                Self::new(ErrorCode::AlreadyExists, text).hint(Hint::SandboxNameTaken)
            }
        }
    }
}

impl From<CreateError> for ApiError {
    fn from(error: CreateError) -> Self {
        let text = error.to_string();
        match error {
            CreateError::Origin(error) => error.into(),
            CreateError::Class(error) => error.into(),
            CreateError::IdempotencyConflict => {
                Self::new(ErrorCode::IdempotencyConflict, text).hint(Hint::NewIdempotencyKey)
            }
            CreateError::NotInserted(error) => error.into(),
            CreateError::Refused(error) => error.into(),
            CreateError::NodeLost(error) => Self {
                message: text,
                ..Self::from(error)
            },
            CreateError::TooSlow { .. } => Self::new(ErrorCode::Timeout, text),
            CreateError::Deleted => Self::new(ErrorCode::WrongState, text),
            CreateError::Store(_) | CreateError::Randomness(_) | CreateError::Stopped => {
                Self::internal(&error)
            }
        }
    }
}

impl From<DeleteError> for ApiError {
    fn from(error: DeleteError) -> Self {
        let text = error.to_string();
        match error {
            DeleteError::NotFound { .. } => Self::new(ErrorCode::NotFound, text),
            DeleteError::Node { source, .. } => Self {
                message: text,
                ..Self::from(source)
            },
            DeleteError::Store { .. } | DeleteError::Stopped => Self::internal(&error),
        }
    }
}

impl From<ExecError> for ApiError {
    fn from(error: ExecError) -> Self {
        match error {
            ExecError::TimedOut { .. } | ExecError::TimedOutByNode => {
                Self::new(ErrorCode::Timeout, error.to_string())
            }
            ExecError::Lost(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_clients_act_upon_stay_with_the_errors_that_mean_them() {
        let sly = NodeError::new(ErrorCode::GuestUnavailable, "agent: i/o Timeout on stream");
        assert_eq!(
            ApiError::from(sly).message,
            "the node answered guest unavailable"
        );
        let late = NodeError::new(ErrorCode::Timeout, "agent took too long");
        assert!(ApiError::from(late).message.contains("timeout"));
    }

    #[test]
    fn delays_are_whole_seconds_that_clients_accept() {
        let after = |milliseconds| {
            let error = NodeError::new(ErrorCode::NoCapacity, "full")
                .retry_after(Duration::from_millis(milliseconds));
            ApiError::from(error).retry_after_seconds()
        };
        assert_eq!(after(0), Some(1));
        assert_eq!(after(1500), Some(2));
        assert_eq!(after(3_600_000), Some(60));
    }
}

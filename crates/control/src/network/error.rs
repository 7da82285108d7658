//! Errors about what a sandbox may reach, on their way out.

use dayfly_api::Hint;
use dayfly_types::ErrorCode;

use crate::http::error::ApiError;
use crate::network::read::ReadNetworkError;
use crate::network::set::SetNetworkError;

impl From<ReadNetworkError> for ApiError {
    fn from(error: ReadNetworkError) -> Self {
        match error {
            ReadNetworkError::Find(error) => error.into(),
            ReadNetworkError::Node(error) => error.into(),
        }
    }
}

impl From<SetNetworkError> for ApiError {
    fn from(error: SetNetworkError) -> Self {
        let text = error.to_string();
        match error {
            SetNetworkError::Find(error) => error.into(),
            SetNetworkError::Invalid(error) => error.into(),
            SetNetworkError::Raced => {
                Self::new(ErrorCode::WrongState, text).hint(Hint::NetworkChanged)
            }
            SetNetworkError::NotWidened(error) => Self {
                message: text,
                ..Self::from(error)
            }
            .hint(Hint::NetworkNotWidened),
            SetNetworkError::Store(_) | SetNetworkError::Stopped => Self::internal(&error),
        }
    }
}

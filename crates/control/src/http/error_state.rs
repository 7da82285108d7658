//! Errors about what a sandbox's state can become, on their way out.

use dayfly_api::Hint;
use dayfly_types::ErrorCode;

use super::error::ApiError;
use crate::sandbox::fork::ForkError;
use crate::sandbox::origin::OriginError;
use crate::sandbox::promote::PromoteError;
use crate::sandbox::state::StateError;
use crate::snapshot::read::FindSnapshotError;
use crate::snapshot::take::SnapshotError;
use crate::template::order::OrderTemplateError;
use crate::volume::change::VolumeRefusal;

impl From<FindSnapshotError> for ApiError {
    fn from(error: FindSnapshotError) -> Self {
        let text = error.to_string();
        match error {
            FindSnapshotError::NotFound { .. } => Self::new(ErrorCode::NotFound, text),
            FindSnapshotError::Node(error) => error.into(),
        }
    }
}

impl From<OriginError> for ApiError {
    fn from(error: OriginError) -> Self {
        match error {
            OriginError::Template(error) => error.into(),
            OriginError::Order(error) => error.into(),
            OriginError::Snapshot(error) => error.into(),
            OriginError::Size(error) => error.into(),
        }
    }
}

impl From<OrderTemplateError> for ApiError {
    fn from(error: OrderTemplateError) -> Self {
        let text = error.to_string();
        match error {
            OrderTemplateError::Invalid(error) => error.into(),
            OrderTemplateError::Snapshot(error) => error.into(),
            OrderTemplateError::Node(error) => error.into(),
            OrderTemplateError::NotFound { .. } => Self::new(ErrorCode::NotFound, text),
            OrderTemplateError::NameTaken { .. } => Self::new(ErrorCode::AlreadyExists, text),
            OrderTemplateError::Full { .. } => Self::new(ErrorCode::QuotaExceeded, text),
            OrderTemplateError::Over(error) => error.into(),
            OrderTemplateError::Turn(error) => error.into(),
            OrderTemplateError::Going => Self::soon(ErrorCode::TooMany, text),
            OrderTemplateError::Busy => Self::soon(ErrorCode::TooMany, text),
            OrderTemplateError::Tagged { .. } => Self::new(ErrorCode::WrongState, text),
            OrderTemplateError::Store(_) | OrderTemplateError::Randomness(_) => {
                Self::internal(&error)
            }
        }
    }
}

impl From<StateError> for ApiError {
    fn from(error: StateError) -> Self {
        match error {
            StateError::Find(error) => error.into(),
            StateError::Snapshot(error) => error.into(),
            StateError::Node(error) => error.into(),
            StateError::Environment(_) | StateError::Stopped => Self::internal(&error),
        }
    }
}

impl From<SnapshotError> for ApiError {
    fn from(error: SnapshotError) -> Self {
        let text = error.to_string();
        match error {
            SnapshotError::Find(error) => error.into(),
            SnapshotError::Quota(error) => error.into(),
            SnapshotError::Node(error) => error.into(),
            SnapshotError::IdempotencyConflict => {
                Self::new(ErrorCode::IdempotencyConflict, text).hint(Hint::NewIdempotencyKey)
            }
            SnapshotError::NameTaken { .. } => {
                Self::new(ErrorCode::AlreadyExists, text).hint(Hint::SnapshotNameTaken)
            }
            SnapshotError::Deleted => {
                Self::new(ErrorCode::WrongState, text).hint(Hint::NewIdempotencyKey)
            }
            SnapshotError::Store(_) | SnapshotError::Randomness(_) | SnapshotError::Stopped => {
                Self::internal(&error)
            }
        }
    }
}

impl From<ForkError> for ApiError {
    fn from(error: ForkError) -> Self {
        let text = error.to_string();
        match error {
            ForkError::Find(error) => error.into(),
            ForkError::Labels(error) => error.into(),
            ForkError::Refused(error) => error.into(),
            ForkError::NodeLost(error) => Self {
                message: text,
                ..Self::from(error)
            },
            ForkError::NotInserted(error) => error.into(),
            ForkError::IdempotencyConflict => {
                Self::new(ErrorCode::IdempotencyConflict, text).hint(Hint::NewIdempotencyKey)
            }
            ForkError::Wider => Self::new(ErrorCode::Forbidden, text).hint(Hint::ForkWider),
            ForkError::Deleted => {
                Self::new(ErrorCode::WrongState, text).hint(Hint::NewIdempotencyKey)
            }
            ForkError::Store(_) | ForkError::Randomness(_) | ForkError::Stopped => {
                Self::internal(&error)
            }
        }
    }
}

impl From<PromoteError> for ApiError {
    fn from(error: PromoteError) -> Self {
        let text = error.to_string();
        match error {
            PromoteError::Find(error) => error.into(),
            PromoteError::Lifecycle(error) => error.into(),
            PromoteError::NoChild { .. } => {
                Self::new(ErrorCode::WrongState, text).hint(Hint::PromoteChild)
            }
            PromoteError::OtherTree { .. } => {
                Self::new(ErrorCode::WrongState, text).hint(Hint::TreeOfChild)
            }
            PromoteError::Store(_) => Self::internal(&error),
        }
    }
}

impl From<VolumeRefusal> for ApiError {
    fn from(error: VolumeRefusal) -> Self {
        let text = error.to_string();
        match error {
            VolumeRefusal::NotFound { .. } => Self::new(ErrorCode::NotFound, text),
            VolumeRefusal::OtherSize { name, .. } => {
                let volume = name.to_string();
                Self::new(ErrorCode::AlreadyExists, text).hint(Hint::GrowVolume { volume })
            }
            VolumeRefusal::Shrinks { .. } => Self::invalid(text).hint(Hint::SmallerVolume),
            VolumeRefusal::Node(error) => error.into(),
        }
    }
}

//! Visitors of services in sandboxes, who use the same listener as the API.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use dayfly_api::Hint;
use dayfly_types::ErrorCode;

use crate::control::Control;
use crate::gateway::{self, GatewayError, PortAddress};
use crate::http::envelope::FromService;
use crate::http::error::ApiError;

/// Middleware: takes what is for a service out of what is for the API. It stands before the key is
/// asked for, because a visitor may have a link instead.
pub(crate) async fn divert(
    State(control): State<Arc<Control>>,
    request: Request,
    next: Next,
) -> Response {
    let (head, body) = request.into_parts();
    let address = PortAddress::of(&control.gateway.settings.preview, &head);
    let request = Request::from_parts(head, body);
    let address = match address {
        Ok(Some(address)) => address,
        Ok(None) => return next.run(request).await,
        Err(error) => return ApiError::from(error).into_response(),
    };
    match gateway::pass(&control, &address, request).await {
        Ok(mut response) => {
            response.extensions_mut().insert(FromService);
            response
        }
        Err(error) => ApiError::from(error).into_response(),
    }
}

impl From<GatewayError> for ApiError {
    fn from(error: GatewayError) -> Self {
        let text = error.to_string();
        match error {
            GatewayError::Malformed { .. } => Self::invalid(text),
            GatewayError::Closed => Self::new(ErrorCode::NotFound, text).hint(Hint::PortClosed),
            GatewayError::Connect => Self::new(ErrorCode::MethodNotAllowed, text),
            GatewayError::TooMany(error) => error.into(),
            GatewayError::NothingListens { .. } => {
                Self::new(ErrorCode::NothingListens, text).hint(Hint::NothingListens)
            }
            GatewayError::ConnectTimedOut { .. } | GatewayError::Idle { .. } => {
                Self::new(ErrorCode::Timeout, text)
            }
            GatewayError::NoAnswer => Self::new(ErrorCode::GuestUnavailable, text),
            GatewayError::Stopping => Self::new(ErrorCode::NodeUnavailable, text),
            GatewayError::Node(error) => error.into(),
            GatewayError::Store(error) => error.into(),
        }
    }
}

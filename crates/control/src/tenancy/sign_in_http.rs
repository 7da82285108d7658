//! Where people sign in. The one thing beside health that is done without a key.

use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequest as _, Request, State};
use dayfly_api::{NewToken, SignInOffer, SignInRequest};
use dayfly_oidc::{FetchError, TokenRefusal};
use dayfly_types::ErrorCode;
use http::{Method, StatusCode};
use serde_json::json;

use crate::control::Control;
use crate::http::answer::SignInRefusals;
use crate::http::audit::{AuditedRequest, asked};
use crate::http::body::JsonObject;
use crate::http::error::ApiError;
use crate::store::AuditEvent;
use crate::tenancy::sign_in::{self, SignInError, SignedIn};

pub(crate) const PATH: &str = "/v1/sign-in";

/// Whether somebody asks who has no key yet.
pub(crate) fn is_for_it(request: &Request) -> bool {
    let method = request.method();
    request.uri().path() == PATH && (*method == Method::GET || *method == Method::POST)
}

/// Which OpenID provider people of this server sign in with. Needs no key.
#[utoipa::path(get, path = "/v1/sign-in", operation_id = "get_sign_in", tag = "projects", security(()),
    responses((status = 200, body = SignInOffer), SignInRefusals))]
pub(crate) async fn describe(
    State(control): State<Arc<Control>>,
) -> Result<Json<SignInOffer>, ApiError> {
    let sign_in = control.sign_in.as_ref().ok_or(SignInError::Off)?;
    let provider = &sign_in.provider;
    let endpoints = provider.endpoints().await;
    let endpoints = endpoints.map_err(|error| SignInError::from(TokenRefusal::from(error)))?;
    Ok(Json(SignInOffer {
        issuer: provider.issuer().to_string(),
        client_id: provider.client_id().to_owned(),
        device_authorization_endpoint: endpoints.device_authorization,
        token_endpoint: endpoints.token,
    }))
}

/// Gives a person a key of a project for an ID token of the provider. Needs no key. The key ends with
/// the token at the latest, and when the operator changes who may sign in.
#[utoipa::path(post, path = "/v1/sign-in", operation_id = "sign_in", tag = "projects", security(()),
    request_body = SignInRequest,
    responses((status = 201, body = NewToken), SignInRefusals))]
pub(crate) async fn sign_in(
    State(control): State<Arc<Control>>,
    request: Request,
) -> Result<(StatusCode, Json<NewToken>), ApiError> {
    let asked = asked(&request);
    let JsonObject(body) = JsonObject::<SignInRequest>::from_request(request, &()).await?;
    let signed_in = sign_in::sign_in(&control, &body.id_token, body.project.as_deref()).await;
    let signed_in = signed_in.inspect_err(note_refusal)?;
    record(&control, &asked, &signed_in).await;
    Ok((StatusCode::CREATED, Json(signed_in.made)))
}

/// For the operator: nobody's record is the right one for somebody who is not known.
fn note_refusal(error: &SignInError) {
    let error: &(dyn std::error::Error + 'static) = error;
    tracing::warn!(error, "somebody could not sign in");
}

async fn record(control: &Control, asked: &AuditedRequest, signed_in: &SignedIn) {
    let prefix = &signed_in.made.token_info.prefix;
    let status = StatusCode::CREATED.as_u16();
    let detail = json!({
        "person": signed_in.person.subject,
        "name": signed_in.made.token_info.label,
        "roles": signed_in.roles,
        "expires_at": signed_in.made.token_info.expires_at,
    });
    let entry = AuditEvent {
        subject: Some(prefix.clone()),
        detail: detail.to_string(),
        ..asked.entry(&signed_in.project, prefix, status)
    };
    control.audit.record(entry).await;
}

impl From<SignInError> for ApiError {
    fn from(error: SignInError) -> Self {
        let text = error.to_string();
        match error {
            SignInError::Off => Self::new(ErrorCode::NotFound, text),
            SignInError::TooMany => Self::new(ErrorCode::TooMany, text),
            SignInError::Verify(TokenRefusal::Provider(source)) => unreachable(&source),
            SignInError::Verify(why) => {
                Self::new(ErrorCode::Unauthorized, format!("{text}: {why}"))
            }
            SignInError::NoRole { .. } | SignInError::NoRoleThere { .. } => {
                Self::new(ErrorCode::Forbidden, text)
            }
            SignInError::WhichProject { .. } => Self::invalid(text),
            SignInError::Suspended { .. } => Self::new(ErrorCode::ProjectSuspended, text),
            SignInError::Full => Self::new(ErrorCode::QuotaExceeded, text),
            SignInError::Project(error) => error.into(),
            SignInError::Token(error) => error.into(),
            SignInError::Unrecorded(error) => error.into(),
            SignInError::Store(_) => Self::internal(&error),
        }
    }
}

fn unreachable(source: &FetchError) -> ApiError {
    let text = format!("the OpenID provider cannot be asked: {source}");
    ApiError::new(ErrorCode::ProviderUnavailable, text)
}

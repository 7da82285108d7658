//! Where people sign in. The one thing beside health that is done without a key.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequest as _, Request, State};
use dayfly_api::{NewToken, SignInOffer, SignInRequest};
use dayfly_oidc::{FetchError, TokenRefusal};
use dayfly_types::limits::SIGN_IN_BODY_DEADLINE;
use dayfly_types::{ErrorCode, ProjectId};
use http::{Method, StatusCode};
use serde_json::json;

use crate::control::Control;
use crate::http::answer::SignInRefusals;
use crate::http::audit::{AuditedRequest, asked};
use crate::http::body::JsonObject;
use crate::http::error::ApiError;
use crate::input::Invalid;
use crate::store::AuditEvent;
use crate::tenancy::sign_in::{self, Admitted, SignInError};
use crate::tenancy::tokens::TokenError;

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
        scopes: sign_in.settings.scopes.clone(),
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
    let body = JsonObject::<SignInRequest>::from_request(request, &());
    let body = tokio::time::timeout(SIGN_IN_BODY_DEADLINE, body).await;
    let JsonObject(body) = body.map_err(|_| SignInError::Slow)??;
    let project = body.project.as_deref().map(ProjectId::parse).transpose();
    let project = project.map_err(|_| Invalid::field("project", "is not the name of a project"))?;
    let admitted = sign_in::admit(&control, &body.id_token, project.as_ref()).await;
    let admitted = admitted.inspect_err(note_refusal)?;
    // To its end, whoever waits for it: there is no key without an entry in the record.
    let work = give(Arc::clone(&control), asked, admitted);
    let given = control.tasks.spawn(work).await;
    let made = given.map_err(|_| TokenError::Stopped)??;
    Ok((StatusCode::CREATED, Json(made)))
}

/// For the operator: nobody's record is the right one for somebody who is not known.
fn note_refusal(error: &SignInError) {
    let error: &(dyn std::error::Error + 'static) = error;
    tracing::warn!(error, "somebody could not sign in");
}

async fn give(
    control: Arc<Control>,
    asked: AuditedRequest,
    admitted: Admitted,
) -> Result<NewToken, SignInError> {
    let made = sign_in::insert(&control, &admitted).await?;
    let prefix = &made.token_info.prefix;
    let roles: BTreeSet<&str> = admitted.roles.iter().map(|role| role.as_str()).collect();
    let detail = json!({
        "person": admitted.person.subject,
        "name": made.token_info.label,
        "roles": roles,
        "expires_at": made.token_info.expires_at,
    });
    let entry = AuditEvent {
        subject: Some(prefix.clone()),
        detail: detail.to_string(),
        ..asked.entry(&admitted.project, prefix, StatusCode::CREATED.as_u16())
    };
    control.audit.record(entry).await;
    sign_in::end_surplus(&control, &admitted).await?;
    Ok(made)
}

impl From<SignInError> for ApiError {
    fn from(error: SignInError) -> Self {
        let text = error.to_string();
        match error {
            SignInError::Off => Self::new(ErrorCode::NotFound, text),
            SignInError::TooMany => Self::soon(ErrorCode::TooMany, text),
            SignInError::Slow | SignInError::WhichProject { .. } => Self::invalid(text),
            SignInError::TooOften { .. } => Self::soon(ErrorCode::RateLimited, text),
            SignInError::TooOld => Self::new(ErrorCode::Unauthorized, text),
            SignInError::Verify(TokenRefusal::Provider(source)) => unreachable(&source),
            SignInError::Verify(why) => {
                Self::new(ErrorCode::Unauthorized, format!("{text}: {why}"))
            }
            SignInError::NoRole { .. } | SignInError::NoRoleThere { .. } => {
                Self::new(ErrorCode::Forbidden, text)
            }
            SignInError::Suspended { .. } => Self::new(ErrorCode::ProjectSuspended, text),
            SignInError::Project(error) => error.into(),
            SignInError::Token(error) => error.into(),
            SignInError::Unrecorded(error) => error.into(),
            SignInError::Store(_) => Self::internal(&error),
        }
    }
}

fn unreachable(source: &FetchError) -> ApiError {
    let text = format!("the OpenID provider cannot be asked: {source}");
    ApiError::soon(ErrorCode::ProviderUnavailable, text)
}

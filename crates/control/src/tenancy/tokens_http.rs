//! The keys of a project.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use dayfly_api::{CreateToken, Hint, NewToken, TokenList};
use dayfly_types::ErrorCode;
use http::StatusCode;

use crate::control::Control;
use crate::http::answer::{RevokeRefusals, SearchRefusals, TokenRefusals};
use crate::http::auth::{Caller, key_ended};
use crate::http::body::JsonObject;
use crate::http::error::ApiError;
use crate::http::parameter::{
    KeyPrefix, LooseFlag, Number, ProjectParameter, TokenCursor, parameters,
};
use crate::store::ProjectState;
use crate::tenancy::projects::{self, ProjectError};
use crate::tenancy::tokens::{self, Extent, Maker, TokenError};
use crate::tenancy::whose::{OtherProjectParameter, Whose, WhoseParameter};

const PAGE_MAX: u64 = 1000;

parameters! {
    Path PrefixParameter {
        /// What the key begins with.
        prefix: KeyPrefix,
    }

    /// Which part of a list of keys is wanted.
    Query TokenPageParameter {
        /// At most this many, and `next_cursor` if there are more. Default: all of a project; 1000 of
        /// all projects.
        limit: Option<Number<1, PAGE_MAX>>,
        /// `next_cursor` of the page before.
        cursor: Option<TokenCursor>,
    }

    /// How much ends.
    Query RevokeParameter {
        /// Also end what the key made: keys and links, and what those made. Of a key that was revoked
        /// before, too. `true`, `1`, `false` or `0`. Default false.
        descendants: LooseFlag,
    }
}

/// The keys of this project that work now. An operator may see those of others.
#[utoipa::path(get, path = "/v1/me/tokens", operation_id = "list_tokens", tag = "projects",
    params(TokenPageParameter, WhoseParameter),
    responses((status = 200, body = TokenList), SearchRefusals))]
pub(crate) async fn list(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    whose: WhoseParameter,
    page: TokenPageParameter,
) -> Result<Json<TokenList>, ApiError> {
    let whose = whose.of(&control, &caller).await?;
    let limit = page.limit.unwrap_or(match whose {
        // As many as a project can have.
        Whose::One(_) => u64::MAX,
        Whose::Everybody => PAGE_MAX,
    });
    let list = tokens::list(&control, &whose, page.cursor.as_ref(), limit).await?;
    Ok(Json(list))
}

/// Makes a key of this project, for no more than the key that asks. The secret is shown once.
#[utoipa::path(post, path = "/v1/me/tokens", operation_id = "create_token", tag = "projects",
    request_body(content = Option<CreateToken>),
    responses((status = 201, body = NewToken), TokenRefusals))]
pub(crate) async fn create(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    JsonObject(body): JsonObject<CreateToken>,
) -> Result<(StatusCode, Json<NewToken>), ApiError> {
    let made = tokens::create(&control, &caller.project, &maker(&caller), body).await?;
    note(&caller, &made);
    Ok((StatusCode::CREATED, Json(made)))
}

/// Ends a key, at once, and with `descendants` the keys and links that it made, and that those made.
/// An operator may end a key of any project.
#[utoipa::path(delete, path = "/v1/me/tokens/{prefix}", operation_id = "revoke_token", tag = "projects",
    params(PrefixParameter, RevokeParameter, OtherProjectParameter),
    responses((status = 204, description = "It is refused from now on."), RevokeRefusals))]
pub(crate) async fn revoke(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    PrefixParameter { prefix }: PrefixParameter,
    RevokeParameter { descendants }: RevokeParameter,
    whose: OtherProjectParameter,
) -> Result<StatusCode, ApiError> {
    let project = whose.of(&control, &caller).await?;
    caller.notebook.is_also_of(&project);
    let extent = if descendants {
        Extent::Descendants
    } else {
        Extent::Key
    };
    let maker = maker(&caller);
    tokens::revoke(&control, &project, &maker, &prefix, extent).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Makes a key of any project, for an operator.
#[utoipa::path(post, path = "/v1/projects/{project}/tokens", operation_id = "create_project_token", tag = "projects",
    params(ProjectParameter), request_body(content = Option<CreateToken>),
    responses((status = 201, body = NewToken), TokenRefusals))]
pub(crate) async fn create_for_project(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    ProjectParameter { project }: ProjectParameter,
    JsonObject(body): JsonObject<CreateToken>,
) -> Result<(StatusCode, Json<NewToken>), ApiError> {
    let project = projects::find(&control, &project).await?;
    if project.state == ProjectState::Deleting {
        return Err(ProjectError::Changed { id: project.id }.into());
    }
    caller.notebook.is_also_of(&project.id);
    let made = tokens::create(&control, &project.id, &maker(&caller), body).await?;
    note(&caller, &made);
    Ok((StatusCode::CREATED, Json(made)))
}

pub(crate) fn maker(caller: &Caller) -> Maker {
    Maker {
        prefix: caller.key_prefix.clone(),
        scopes: caller.reach.scopes,
        expires_at_ms: caller.expires_at_ms,
    }
}

/// A key in the audit record: everything but the secret.
fn note(caller: &Caller, made: &NewToken) {
    caller.notebook.names_subject(&made.token_info.prefix);
    let detail = serde_json::to_value(&made.token_info).unwrap_or_default();
    caller.notebook.adds_detail(detail);
}

impl From<TokenError> for ApiError {
    fn from(error: TokenError) -> Self {
        let text = error.to_string();
        match error {
            TokenError::Invalid(error) => error.into(),
            TokenError::Find(error) => error.into(),
            TokenError::Unrecorded(error) => error.into(),
            TokenError::Wider | TokenError::EndsWider => {
                Self::new(ErrorCode::Forbidden, text).hint(Hint::KeyScopes)
            }
            TokenError::MakerEnded => key_ended(),
            TokenError::NotFound { .. } | TokenError::NoLink => {
                Self::new(ErrorCode::NotFound, text)
            }
            TokenError::TooManyLinks => {
                Self::new(ErrorCode::QuotaExceeded, text).hint(Hint::RevokeFileLinks)
            }
            TokenError::TooMany => Self::new(ErrorCode::QuotaExceeded, text).hint(Hint::RevokeKeys),
            TokenError::Store(_) | TokenError::Randomness(_) | TokenError::Stopped => {
                Self::internal(&error)
            }
        }
    }
}

//! Links to one file, for those who have no key.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use dayfly_api::{CreateFileLink, FileLink, FileLinkOperation};
use dayfly_types::limits::{FILE_LINK_TTL_SECONDS_DEFAULT, FILE_LINK_TTL_SECONDS_MAX};
use dayfly_types::{SandboxId, percent_encode};
use http::StatusCode;

use crate::control::Control;
use crate::files::path::AbsolutePath;
use crate::http::access::FILE_QUERY;
use crate::http::answer::{FindRefusals, TokenRefusals};
use crate::http::auth::Caller;
use crate::http::body::JsonObject;
use crate::http::error::ApiError;
use crate::http::parameter::{KeyPrefix, SandboxParameter, parameters};
use crate::input::Invalid;
use crate::tenancy::scope::{FileOperation, FileReach};
use crate::tenancy::tokens::{self, FileLinkOf};
use crate::tenancy::tokens_http::maker;

parameters! {
    /// A link to a file in the path.
    Path FileLinkParameter {
        /// The sandbox.
        id: SandboxId,
        /// The link, by its `id`.
        link: KeyPrefix,
    }
}

/// Makes an address by which one file can be downloaded or uploaded without a key, for a while. It
/// is a key of its own, for that file alone: it is among the keys of the project, and ends when it is
/// revoked.
#[utoipa::path(post, path = "/v1/sandboxes/{id}/fs/links", operation_id = "create_file_link", tag = "files",
    params(SandboxParameter), request_body = CreateFileLink,
    responses((status = 201, body = FileLink), TokenRefusals))]
pub(crate) async fn create(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
    JsonObject(body): JsonObject<CreateFileLink>,
) -> Result<(StatusCode, Json<FileLink>), ApiError> {
    let path = AbsolutePath::parse(&body.path)?.into_string();
    caller.notebook.names_file(&path);
    let seconds = body.ttl_seconds.unwrap_or(FILE_LINK_TTL_SECONDS_DEFAULT);
    if !(1..=FILE_LINK_TTL_SECONDS_MAX).contains(&seconds) {
        let rule = format!("must be from 1 to {FILE_LINK_TTL_SECONDS_MAX}");
        return Err(Invalid::field("ttl_seconds", rule).into());
    }
    let operation = match body.operation.unwrap_or_default() {
        FileLinkOperation::Download => FileOperation::Download,
        FileLinkOperation::Upload => FileOperation::Upload,
    };
    let address = format!(
        "/v1/sandboxes/{id}/fs?{FILE_QUERY}{}",
        percent_encode(&path)
    );
    let file = FileReach { path, operation };
    let (project, maker) = (&caller.project, maker(&caller));
    let made = tokens::create_for_file(&control, project, &maker, (id, file), seconds).await?;
    caller
        .notebook
        .adds_to_detail("link", made.token_info.prefix.as_str());
    caller
        .notebook
        .adds_to_detail("operation", operation.as_str());
    let link = FileLink {
        id: made.token_info.prefix,
        method: operation.method().to_string(),
        address: format!("{address}&dayfly_token={}", made.token),
        expires_at: made.token_info.expires_at.unwrap_or_default(),
    };
    Ok((StatusCode::CREATED, Json(link)))
}

/// Ends a link to a file, at once. For the key that made it: any other link might as well not be there.
/// With the scope `admin` every link is ended among the keys.
#[utoipa::path(delete, path = "/v1/sandboxes/{id}/fs/links/{link}", operation_id = "revoke_file_link", tag = "files",
    params(FileLinkParameter),
    responses((status = 204, description = "It is refused from now on."), FindRefusals))]
pub(crate) async fn revoke(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    FileLinkParameter { id, link }: FileLinkParameter,
) -> Result<StatusCode, ApiError> {
    caller.notebook.adds_to_detail("link", &link);
    let of = FileLinkOf {
        project: caller.project,
        sandbox: id,
        made_by: caller.key_prefix,
    };
    tokens::revoke_for_file(&control, &of, &link).await?;
    Ok(StatusCode::NO_CONTENT)
}

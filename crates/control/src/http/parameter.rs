//! Parameters in the path and the query, checked.

use axum::extract::{FromRequestParts, RawPathParams};
use dayfly_types::limits::IDEMPOTENCY_KEY_BYTES_MAX;
use dayfly_types::{ErrorCode, SandboxId, TemplateName};
use http::HeaderMap;
use http::request::Parts;
use utoipa::IntoParams;

use super::error::ApiError;
use crate::app::path::GuestPath;

/// The sandbox in the path. A text that cannot be an id is the id of nothing.
#[derive(Debug)]
pub(super) struct SandboxParameter(pub(super) SandboxId);

/// The template in the path.
#[derive(Debug)]
pub(super) struct TemplateParameter(pub(super) TemplateName);

/// The file or directory in the query.
#[derive(Debug)]
pub(super) struct PathParameter(pub(super) GuestPath);

#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "only describes the parameter")]
pub(super) struct SandboxParameters {
    /// The sandbox.
    #[param(pattern = "^[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?$")]
    id: String,
}

#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "only describes the parameter")]
pub(super) struct TemplateParameters {
    /// The template.
    #[param(pattern = "^[a-z0-9](\\.?[a-z0-9_-])*\\.?$", max_length = 64)]
    name: String,
}

#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only describes the parameter")]
pub(super) struct PathParameters {
    /// A path in the guest. A relative one starts at `/workspace`.
    #[param(min_length = 1, max_length = 4096, pattern = "^[^\\u0000]+$")]
    path: String,
}

#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "only describes the parameter")]
pub(super) struct IdempotencyParameters {
    /// Makes the create repeatable: the same key and body answer with the same sandbox.
    #[param(rename = "Idempotency-Key", pattern = "^[!-~]{1,128}$")]
    idempotency_key: Option<String>,
}

async fn path_segment<S: Send + Sync>(parts: &mut Parts, state: &S, name: &str) -> Option<String> {
    let parameters = RawPathParams::from_request_parts(parts, state).await.ok()?;
    parameters
        .iter()
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value.to_owned())
}

impl<S: Send + Sync> FromRequestParts<S> for SandboxParameter {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let text = path_segment(parts, state, "id").await.unwrap_or_default();
        SandboxId::parse(&text).map(Self).map_err(|error| {
            ApiError::new(
                ErrorCode::NotFound,
                format!("there is no such sandbox: {error}"),
            )
        })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for TemplateParameter {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let text = path_segment(parts, state, "name").await.unwrap_or_default();
        TemplateName::parse(&text).map(Self).map_err(|error| {
            ApiError::new(
                ErrorCode::NotFound,
                format!("there is no such template: {error}"),
            )
        })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PathParameter {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let query = parts.uri.query().unwrap_or_default();
        let mut values = query.split('&').filter_map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (name == "path").then_some(value)
        });
        let value = values
            .next()
            .ok_or_else(|| ApiError::invalid("the query lacks `path`"))?;
        if values.next().is_some() {
            return Err(ApiError::invalid("the query has `path` more than once"));
        }
        let text = decode(value)
            .ok_or_else(|| ApiError::invalid("`path` is not percent-encoded UTF-8"))?;
        Ok(Self(GuestPath::parse(&text)?))
    }
}

/// Undoes form encoding. Strict, because a replaced character would name another file.
fn decode(value: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        match first {
            b'+' => bytes.push(b' '),
            b'%' => {
                let (digits, after) = rest.split_at_checked(2)?;
                let mut byte = [0];
                hex::decode_to_slice(digits, &mut byte).ok()?;
                bytes.push(byte[0]);
                rest = after;
            }
            byte => bytes.push(*byte),
        }
    }
    String::from_utf8(bytes).ok()
}

/// The caller's key for a repeatable create.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(value) = headers.get("idempotency-key") else {
        return Ok(None);
    };
    let usable = |text: &&str| {
        (1..=IDEMPOTENCY_KEY_BYTES_MAX).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_graphic())
    };
    let text = value.to_str().ok().filter(usable).ok_or_else(|| {
        let limit = IDEMPOTENCY_KEY_BYTES_MAX;
        ApiError::invalid(format!(
            "Idempotency-Key must be 1 to {limit} visible ASCII characters"
        ))
    })?;
    Ok(Some(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn form_encoding_is_undone_strictly() {
        assert_eq!(decode("%2Fa+b%C3%A9").as_deref(), Some("/a bé"));
        for bad in ["%", "%2", "%zz", "%ff"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}

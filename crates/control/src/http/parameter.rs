//! Parameters in the path and the query, checked.

use axum::extract::{FromRequestParts, RawPathParams};
use dayfly_types::limits::IDEMPOTENCY_KEY_BYTES_MAX;
use dayfly_types::{ErrorCode, InvalidId, SandboxId, SnapshotId, TemplateName, VolumeName};
use http::HeaderMap;
use http::request::Parts;
use utoipa::IntoParams;

use super::error::ApiError;
use crate::app::path::AbsolutePath;

/// The sandbox in the path. A text that cannot be an id is the id of nothing.
#[derive(Debug)]
pub(super) struct SandboxParameter(pub(super) SandboxId);

/// The template in the path.
#[derive(Debug)]
pub(super) struct TemplateParameter(pub(super) TemplateName);

/// The snapshot in the path.
#[derive(Debug)]
pub(super) struct SnapshotParameter(pub(super) SnapshotId);

/// The volume in the path.
#[derive(Debug)]
pub(super) struct VolumeParameter(pub(super) VolumeName);

/// The sandbox in the query, when there is one.
#[derive(Debug)]
pub(super) struct OfSandboxParameter(pub(super) Option<SandboxId>);

/// The file or directory in the query.
#[derive(Debug)]
pub(super) struct PathParameter(pub(super) AbsolutePath);

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
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "only describes the parameter")]
pub(super) struct SnapshotParameters {
    /// The snapshot.
    #[param(pattern = "^[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?$")]
    id: String,
}

#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "only describes the parameter")]
pub(super) struct VolumeParameters {
    /// The volume.
    #[param(pattern = "^[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?$")]
    name: String,
}

#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only describes the parameter")]
pub(super) struct OfSandboxParameters {
    /// Only what was taken of this sandbox.
    #[param(pattern = "^[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?$")]
    sandbox_id: Option<String>,
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
    /// Makes the request repeatable: the same key and body answer with what the first one made.
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

/// A text in the path that names a thing. One that cannot be a name is the name of nothing.
pub(super) async fn named<S: Send + Sync, T>(
    parts: &mut Parts,
    state: &S,
    segment: &str,
    kind: &str,
    parse: impl FnOnce(&str) -> Result<T, InvalidId>,
) -> Result<T, ApiError> {
    let text = path_segment(parts, state, segment)
        .await
        .unwrap_or_default();
    parse(&text).map_err(|error| {
        let message = format!("there is no such {kind}: {error}");
        ApiError::new(ErrorCode::NotFound, message)
    })
}

impl<S: Send + Sync> FromRequestParts<S> for SandboxParameter {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let id = named(parts, state, "id", "sandbox", SandboxId::parse).await?;
        Ok(Self(id))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for SnapshotParameter {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let id = named(parts, state, "id", "snapshot", SnapshotId::parse).await?;
        Ok(Self(id))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for TemplateParameter {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let name = named(parts, state, "name", "template", TemplateName::parse).await?;
        Ok(Self(name))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for VolumeParameter {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let name = named(parts, state, "name", "volume", VolumeName::parse).await?;
        Ok(Self(name))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for OfSandboxParameter {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let Some(text) = query_value(parts, "sandbox_id")? else {
            return Ok(Self(None));
        };
        let id = SandboxId::parse(&text)
            .map_err(|error| ApiError::invalid(format!("`sandbox_id` is not an id: {error}")))?;
        Ok(Self(Some(id)))
    }
}

/// The one value of a name in the query, when it is there.
pub(super) fn query_value(parts: &Parts, name: &str) -> Result<Option<String>, ApiError> {
    let query = parts.uri.query().unwrap_or_default();
    let mut values = query.split('&').filter_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (key == name).then_some(value)
    });
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        let message = format!("the query has `{name}` more than once");
        return Err(ApiError::invalid(message));
    }
    let text = decode(value)
        .ok_or_else(|| ApiError::invalid(format!("`{name}` is not percent-encoded UTF-8")))?;
    Ok(Some(text))
}

impl<S: Send + Sync> FromRequestParts<S> for PathParameter {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let text = query_value(parts, "path")?
            .ok_or_else(|| ApiError::invalid("the query lacks `path`"))?;
        Ok(Self(AbsolutePath::parse(&text)?))
    }
}

/// Undoes form encoding. Strict, because a replaced character would name another file.
pub(super) fn decode(value: &str) -> Option<String> {
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

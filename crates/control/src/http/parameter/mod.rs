//! Parameters in the path and the query, checked.

mod declare;
mod name;
mod scalar;
mod span;

use axum::extract::{FromRequestParts, RawPathParams};
use dayfly_types::limits::IDEMPOTENCY_KEY_BYTES_MAX;
use dayfly_types::{SandboxId, SnapshotId, TemplateName, VolumeName, percent_decode};
use http::HeaderMap;
use http::request::Parts;
use utoipa::IntoParams;

use super::error::ApiError;

pub(crate) use declare::{Parameter, Place, parameters};
pub(crate) use name::{
    AuditCursor, BuildName, ContextName, EntryName, EventCursor, HourCursor, KeyPrefix, Labels,
    LinkName, ModeBits, Moment, OfSandbox, Output, OutputName, OutputNames, Outputs, PageCursor,
    PathText, Port, ProjectName, Since, TagName, TokenCursor, UserName, VersionName,
};
pub(crate) use scalar::{Flag, LooseFlag, Number, SmallNumber, Text};
pub(crate) use span::span_ms;

/// The longest wait of one request. Clients give up after 30 seconds without an answer.
pub(crate) const WAIT_SECONDS_MAX: u64 = 25;
/// Numbers of records and entries are kept in 63 bits.
pub(crate) const SEQUENCE_MAX: u64 = i64::MAX.unsigned_abs();

parameters! {
    /// A sandbox in the path.
    Path SandboxParameter {
        /// The sandbox.
        id: SandboxId,
    }

    Path TemplateParameter {
        /// The template.
        name: TemplateName,
    }

    Path SnapshotParameter {
        /// The snapshot.
        id: SnapshotId,
    }

    Path VolumeParameter {
        /// The volume.
        name: VolumeName,
    }

    Path ProjectParameter {
        /// The project.
        project: ProjectName,
    }

    /// A file or directory in the query.
    Query PathParameter {
        /// A path in the guest. A relative one starts at `/workspace`.
        path: PathText,
    }
}

#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "only describes the parameter")]
pub(crate) struct IdempotencyParameters {
    /// Makes the request repeatable: the same key and body return what the first one made.
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

/// The one value of a name in the query, when it is there.
pub(crate) fn query_value(parts: &Parts, name: &str) -> Result<Option<String>, ApiError> {
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

/// Undoes form encoding. Strict, because a replaced character would name another file.
pub(crate) fn decode(value: &str) -> Option<String> {
    percent_decode(&value.replace('+', " "))
}

/// The caller's key for a repeatable create.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
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

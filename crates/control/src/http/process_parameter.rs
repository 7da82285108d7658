//! Parameters of requests about execs, and the part of a stream that one asks for.

use std::str::FromStr;
use std::time::Duration;

use axum::extract::FromRequestParts;
use bytes::Bytes;
use dayfly_node_api::{ExecEvents, NodeError};
use dayfly_types::exec::ExecEvent;
use dayfly_types::{ErrorCode, ExecId, SandboxId};
use futures::StreamExt;
use futures::stream::BoxStream;
use http::request::Parts;
use utoipa::IntoParams;

use super::error::ApiError;
use super::parameter::{named, query_value};
use crate::limit::Place;

/// The longest wait for an exit. Clients give up after 30 seconds without an answer.
const WAIT_SECONDS_MAX: u64 = 25;
/// What one read of output gives when it does not say.
const OUTPUT_BYTES_DEFAULT: u64 = 1 << 20;
/// What one question may ask for; the document says it too.
const OUTPUT_BYTES_MAX: u64 = 1 << 30;

/// An exec in the path.
#[derive(Debug)]
pub(super) struct ProcessParameter {
    pub(super) sandbox: SandboxId,
    pub(super) exec: ExecId,
}

#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "only describes the parameter")]
pub(super) struct ProcessParameters {
    /// The sandbox.
    #[param(pattern = "^[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?$")]
    id: String,
    /// The exec.
    #[param(pattern = "^[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?$")]
    exec_id: String,
}

#[derive(Debug)]
pub(super) struct WaitParameter(pub(super) Option<Duration>);

#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only describes the parameter")]
pub(super) struct WaitParameters {
    /// Wait this long for the end of the exec.
    #[param(minimum = 0, maximum = 25)]
    wait_seconds: Option<u64>,
}

#[derive(Debug)]
pub(super) struct AttachParameter {
    pub(super) stdout: u64,
    pub(super) stderr: u64,
}

#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only describes the parameter")]
pub(super) struct AttachParameters {
    /// Where to begin. Default 0.
    stdout_offset: Option<u64>,
    /// Where to begin. Default 0.
    stderr_offset: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputStreamName {
    Stdout,
    Stderr,
}

#[derive(Debug)]
pub(super) struct OutputParameter {
    pub(super) stream: OutputStreamName,
    pub(super) offset: u64,
    pub(super) limit: u64,
}

#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only describes the parameter")]
pub(super) struct OutputParameters {
    /// Default stdout.
    #[param(pattern = "^(stdout|stderr)$")]
    stream: Option<String>,
    /// Default 0.
    offset: Option<u64>,
    /// At most this many bytes. Default 1 MiB.
    #[param(minimum = 1, maximum = 1_073_741_824)]
    limit: Option<u64>,
}

#[derive(Debug)]
pub(super) struct StdinParameter {
    pub(super) offset: Option<u64>,
    pub(super) is_last: bool,
}

#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only describes the parameter")]
pub(super) struct StdinParameters {
    /// Where the first byte of the body is in the input as a whole. Default: behind all that the
    /// guest has taken.
    offset: Option<u64>,
    /// Closes the input behind the body.
    close: Option<bool>,
}

fn value<T: FromStr>(parts: &Parts, name: &str) -> Result<Option<T>, ApiError> {
    let Some(text) = query_value(parts, name)? else {
        return Ok(None);
    };
    let parsed = text.parse().map_err(|_| {
        ApiError::invalid(format!(
            "`{name}` in the query is not of the documented kind"
        ))
    })?;
    Ok(Some(parsed))
}

impl<S: Send + Sync> FromRequestParts<S> for ProcessParameter {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let sandbox = named(parts, state, "id", "sandbox", SandboxId::parse).await?;
        let exec = named(parts, state, "exec_id", "exec", ExecId::parse).await?;
        Ok(Self { sandbox, exec })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for WaitParameter {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let seconds: Option<u64> = value(parts, "wait_seconds")?;
        if seconds.is_some_and(|seconds| seconds > WAIT_SECONDS_MAX) {
            let text = format!("wait_seconds must be at most {WAIT_SECONDS_MAX}");
            return Err(ApiError::invalid(text));
        }
        Ok(Self(seconds.map(Duration::from_secs)))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for AttachParameter {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Ok(Self {
            stdout: value(parts, "stdout_offset")?.unwrap_or(0),
            stderr: value(parts, "stderr_offset")?.unwrap_or(0),
        })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for OutputParameter {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let stream = match query_value(parts, "stream")?.as_deref() {
            None | Some("stdout") => OutputStreamName::Stdout,
            Some("stderr") => OutputStreamName::Stderr,
            Some(_) => return Err(ApiError::invalid("stream must be stdout or stderr")),
        };
        let limit = value(parts, "limit")?.unwrap_or(OUTPUT_BYTES_DEFAULT);
        if !(1..=OUTPUT_BYTES_MAX).contains(&limit) {
            let text = format!("limit must be from 1 to {OUTPUT_BYTES_MAX}");
            return Err(ApiError::invalid(text));
        }
        Ok(Self {
            stream,
            offset: value(parts, "offset")?.unwrap_or(0),
            limit,
        })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for StdinParameter {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Ok(Self {
            offset: value(parts, "offset")?,
            is_last: value(parts, "close")?.unwrap_or(false),
        })
    }
}

/// The first `bytes` bytes of a stream. An error when the guest drops some of them meanwhile: their
/// place in the answer is already announced.
pub(super) fn part_of(
    events: ExecEvents,
    bytes: u64,
    place: Place,
) -> BoxStream<'static, Result<Bytes, NodeError>> {
    futures::stream::unfold(Some((events, bytes, place)), async |state| {
        let (mut events, left, place) = state?;
        if left == 0 {
            return None;
        }
        match events.next().await {
            Some(Ok(ExecEvent::Stdout(mut bytes) | ExecEvent::Stderr(mut bytes))) => {
                bytes.truncate(usize::try_from(left).unwrap_or(usize::MAX));
                let left = left - bytes.len() as u64;
                Some((Ok(bytes), Some((events, left, place))))
            }
            Some(Err(error)) => Some((Err(error), None)),
            Some(Ok(ExecEvent::Gap(_) | ExecEvent::Exited(_))) | None => {
                let text = "the guest dropped this part of the output meanwhile";
                let error = NodeError::new(ErrorCode::GuestUnavailable, text);
                Some((Err(error), None))
            }
        }
    })
    .boxed()
}

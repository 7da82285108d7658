//! Parameters of requests about files.

use axum::extract::FromRequestParts;
use dayfly_node_api::{ChangesSince, WritePlace};
use dayfly_types::limits::{DIRECTORY_DEPTH_MAX, DIRECTORY_ENTRIES_MAX, FILE_BYTES_MAX};
use http::request::Parts;
use utoipa::IntoParams;

use super::error::ApiError;
use super::parameter::query_value;
use crate::app::file_wish;
use crate::app::path::PATH_CHARACTERS_MAX;

/// The user in the query.
#[derive(Debug)]
pub(super) struct UserParameter(pub(super) Option<String>);

#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only describes the parameter")]
pub(super) struct UserParameters {
    /// Whose permissions count. Default: `agent`.
    #[param(pattern = "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}$")]
    user: Option<String>,
}

#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "only describes the parameter")]
pub(super) struct RangeParameters {
    /// One range of bytes, such as `bytes=0-499`, `bytes=500-` or `bytes=-500`. Anything else is
    /// as none.
    #[param(rename = "Range")]
    range: Option<String>,
}

/// How a file is written.
#[derive(Debug)]
pub(super) struct WriteParameter {
    pub(super) user: Option<String>,
    pub(super) mode: Option<u32>,
    pub(super) place: WritePlace,
}

#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only describes the parameter")]
pub(super) struct WriteParameters {
    /// Adds to the file in place. Not together with `offset`.
    append: Option<bool>,
    /// Writes into the file in place from this byte on, and leaves the rest of it.
    #[param(minimum = 0, maximum = 5_368_709_120_u64)]
    offset: Option<u64>,
    /// Permission bits in octal. An existing file keeps its own when absent; a new one has `0644`.
    #[param(pattern = "^[0-7]{3,4}$")]
    mode: Option<String>,
    /// Whose permissions count. Default: `agent`.
    #[param(pattern = "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}$")]
    user: Option<String>,
}

const _: () = assert!(FILE_BYTES_MAX == 5_368_709_120);

/// Which part of a directory is wanted.
#[derive(Debug)]
pub(super) struct ListParameter {
    pub(super) user: Option<String>,
    pub(super) after: Option<String>,
    pub(super) limit: usize,
    pub(super) depth: u32,
}

#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only describes the parameter")]
pub(super) struct ListParameters {
    /// How many levels; 1 is the directory alone. Links are never followed.
    #[param(minimum = 1, maximum = 64)]
    depth: Option<u32>,
    /// At most this many entries. Default: as many as an answer holds.
    #[param(minimum = 1, maximum = 10_000)]
    limit: Option<u32>,
    /// Only what comes behind this name: the `next_after` of the page before.
    #[param(min_length = 1, max_length = 4096, pattern = "^[^\\u0000]+$")]
    after: Option<String>,
    /// Whose permissions count. Default: `agent`.
    #[param(pattern = "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}$")]
    user: Option<String>,
}

const _: () = assert!(DIRECTORY_DEPTH_MAX == 64 && DIRECTORY_ENTRIES_MAX == 10_000);

/// Whether what is below counts, too.
#[derive(Debug)]
pub(super) struct RecursiveParameter {
    pub(super) user: Option<String>,
    pub(super) recursive: bool,
}

#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only describes the parameter")]
pub(super) struct RecursiveParameters {
    /// Also everything below. Default: false.
    recursive: Option<bool>,
    /// Whose permissions count. Default: `agent`.
    #[param(pattern = "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}$")]
    user: Option<String>,
}

/// From when on changes count.
#[derive(Debug)]
pub(super) struct SinceParameter(pub(super) ChangesSince);

#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only describes the parameter")]
pub(super) struct SinceParameters {
    /// `create`, or the id of a snapshot of this sandbox. Default: `create`.
    #[param(pattern = "^[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?$")]
    since: Option<String>,
}

impl<S: Send + Sync> FromRequestParts<S> for UserParameter {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Ok(Self(user(parts)?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for WriteParameter {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let append = flag(parts, "append")?;
        let place = match (append, number(parts, "offset", 0, FILE_BYTES_MAX)?) {
            (false, None) => WritePlace::Whole,
            (true, None) => WritePlace::End,
            (false, Some(offset)) => WritePlace::At(offset),
            (true, Some(_)) => {
                let message = "`append` and `offset` exclude each other";
                return Err(ApiError::invalid(message));
            }
        };
        let mode = query_value(parts, "mode")?;
        Ok(Self {
            user: user(parts)?,
            mode: mode.as_deref().map(file_wish::mode_bits).transpose()?,
            place,
        })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for ListParameter {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let limit_max = DIRECTORY_ENTRIES_MAX as u64;
        let limit = number(parts, "limit", 1, limit_max)?.unwrap_or(limit_max);
        let depth = number(parts, "depth", 1, u64::from(DIRECTORY_DEPTH_MAX))?;
        let after = query_value(parts, "after")?;
        let is_name = |name: &String| {
            let length = name.chars().count();
            (1..=PATH_CHARACTERS_MAX).contains(&length) && !name.contains('\0')
        };
        if after.as_ref().is_some_and(|name| !is_name(name)) {
            return Err(ApiError::invalid("`after` is no name that a listing has"));
        }
        Ok(Self {
            user: user(parts)?,
            after,
            limit: usize::try_from(limit).unwrap_or(DIRECTORY_ENTRIES_MAX),
            depth: u32::try_from(depth.unwrap_or(1)).unwrap_or(DIRECTORY_DEPTH_MAX),
        })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for RecursiveParameter {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Ok(Self {
            user: user(parts)?,
            recursive: flag(parts, "recursive")?,
        })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for SinceParameter {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let text = query_value(parts, "since")?;
        Ok(Self(file_wish::since(text.as_deref())?))
    }
}

fn user(parts: &Parts) -> Result<Option<String>, ApiError> {
    Ok(file_wish::user(query_value(parts, "user")?)?)
}

fn flag(parts: &Parts, name: &str) -> Result<bool, ApiError> {
    match query_value(parts, name)?.as_deref() {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(ApiError::invalid(format!("`{name}` must be true or false"))),
    }
}

pub(super) fn number(
    parts: &Parts,
    name: &str,
    min: u64,
    max: u64,
) -> Result<Option<u64>, ApiError> {
    let Some(text) = query_value(parts, name)? else {
        return Ok(None);
    };
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| is_plain);
    let number = number.filter(|number| (min..=max).contains(number));
    number
        .map(Some)
        .ok_or_else(|| ApiError::invalid(format!("`{name}` must be a number from {min} to {max}")))
}

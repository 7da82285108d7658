//! Which sandboxes a list is to have.

use std::collections::BTreeMap;

use axum::extract::FromRequestParts;
use http::request::Parts;
use utoipa::IntoParams;

use super::error::ApiError;
use super::files_query::number;
use super::parameter::query_value;
use crate::app::metadata;
use crate::app::sandbox_list::Wanted;
use crate::store::Cursor;

const LIMIT_MAX: u64 = 1000;
const TEXT_BYTES_MAX: usize = 128;

#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only describes the parameter")]
pub(super) struct ListParameters {
    /// Only those in this state, such as `running` or `hibernated`.
    #[param(min_length = 1, max_length = 128)]
    status: Option<String>,
    /// Only those of this template.
    #[param(min_length = 1, max_length = 128)]
    template: Option<String>,
    /// Only those with all of these labels: a JSON object with text values, such as `{"task":"7"}`.
    metadata: Option<String>,
    /// At most this many, and `next_cursor` if there are more. Default: all.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u64>,
    /// `next_cursor` of the page before.
    #[param(max_length = 128)]
    cursor: Option<String>,
}

/// The query of a list.
#[derive(Debug)]
pub(super) struct ListParameter(pub(super) Wanted);

impl<S: Send + Sync> FromRequestParts<S> for ListParameter {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let limit = number(parts, "limit", 1, LIMIT_MAX)?;
        Ok(Self(Wanted {
            status: text(parts, "status")?,
            template: text(parts, "template")?,
            metadata: labels(parts)?,
            after: cursor(parts)?,
            limit: limit.and_then(|limit| usize::try_from(limit).ok()),
        }))
    }
}

/// An empty text is refused: whoever sends one did not mean all.
fn text(parts: &Parts, name: &str) -> Result<Option<String>, ApiError> {
    let value = query_value(parts, name)?;
    if value.as_ref().is_some_and(String::is_empty) {
        return Err(ApiError::invalid(format!("`{name}` is empty")));
    }
    if value
        .as_ref()
        .is_some_and(|text| text.len() > TEXT_BYTES_MAX)
    {
        return Err(ApiError::invalid(format!("`{name}` is too long")));
    }
    Ok(value)
}

fn labels(parts: &Parts) -> Result<BTreeMap<String, String>, ApiError> {
    let Some(value) = query_value(parts, "metadata")? else {
        return Ok(BTreeMap::new());
    };
    let labels = serde_json::from_str(&value).map_err(|_| {
        ApiError::invalid("`metadata` must be a JSON object with text values")
            .hint(r#"such as metadata={"task":"7"}, percent-encoded"#)
    })?;
    metadata::check(&labels)?;
    Ok(labels)
}

fn cursor(parts: &Parts) -> Result<Option<Cursor>, ApiError> {
    let value = query_value(parts, "cursor")?.filter(|text| !text.is_empty());
    let cursor = value.map(|text| {
        Cursor::parse(&text)
            .ok_or_else(|| ApiError::invalid("`cursor` must be the `next_cursor` of a list"))
    });
    cursor.transpose()
}

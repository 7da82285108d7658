//! JSON bodies, as lenient as the published clients need: in how nothing is said, not in names.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use dayfly_types::ErrorCode;
use dayfly_types::limits::JSON_BODY_BYTES_MAX;
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use utoipa::ToSchema;

use super::auth::key_ended;
use super::error::ApiError;
use super::key_bound::is_key_end;
use super::known_names;

/// A body must arrive within this time, however slowly it is sent.
const BODY_DEADLINE: Duration = Duration::from_secs(30);

/// A JSON object. No body at all, under any media type, reads as an empty object, and so does null.
#[derive(Debug)]
pub(crate) struct JsonObject<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + ToSchema> FromRequest<S> for JsonObject<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let is_json = is_json(&request);
        let bytes = read(request.into_body()).await?;
        if bytes.is_empty() || (is_json && bytes.trim_ascii() == b"null") {
            return parse(b"{}").map(Self);
        }
        if !is_json {
            let message = "the body must be application/json";
            return Err(ApiError::new(ErrorCode::UnsupportedMediaType, message));
        }
        parse(&bytes).map(Self)
    }
}

fn is_json(request: &Request) -> bool {
    let value = request
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let media_type = value
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .trim();
    media_type.eq_ignore_ascii_case("application/json")
}

async fn read(body: Body) -> Result<Bytes, ApiError> {
    let read = Limited::new(body, JSON_BODY_BYTES_MAX).collect();
    let collected = tokio::time::timeout(BODY_DEADLINE, read)
        .await
        .map_err(|_| ApiError::invalid("the body took too long to arrive"))?;
    match collected {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            let message = format!("a JSON body may have at most {JSON_BODY_BYTES_MAX} bytes");
            Err(ApiError::new(ErrorCode::TooLarge, message))
        }
        // The body may notice before whoever waits for the answer.
        Err(error) if is_key_end(error.as_ref()) => Err(key_ended()),
        Err(_) => Err(ApiError::invalid("the body broke off")),
    }
}

fn parse<T: DeserializeOwned + ToSchema>(bytes: &[u8]) -> Result<T, ApiError> {
    // A list would also fill a struct, by position.
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Err(ApiError::invalid("the body must be a JSON object"));
    }
    known_names::read(bytes, Some(&T::name()))
}

#[cfg(test)]
mod tests {
    use super::super::key_bound::bound_body;
    use super::*;
    use crate::tenancy::key_ends::KeyEnds;

    #[tokio::test]
    async fn a_body_that_ended_with_its_key_did_not_break_off() {
        let end = KeyEnds::default().of("key", Some(0));
        let silence = futures::stream::pending::<Result<Bytes, std::io::Error>>();
        let refused = read(bound_body(Body::from_stream(silence), end)).await;
        assert_eq!(refused.unwrap_err().code, ErrorCode::Unauthorized);
    }
}

//! The bytes of files on their way through.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use dayfly_node_api::{FileBytes, NodeError};
use dayfly_types::ErrorCode;
use dayfly_types::limits::FILE_BYTES_MAX;
use futures::StreamExt;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http_body_util::BodyExt;

use crate::admission::limit::Permit;
use crate::http::error::ApiError;
use crate::http::key_bound::is_key_end;

/// A sender may pause this long between two pieces of a file.
const UPLOAD_PAUSE_MAX: Duration = Duration::from_secs(30);

/// Refuses a body that says beforehand that it is too long.
pub(crate) fn check_announced_length(request: &Request) -> Result<(), ApiError> {
    let value = request
        .headers()
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok());
    let length: u64 = value.and_then(|text| text.parse().ok()).unwrap_or(0);
    if length > FILE_BYTES_MAX {
        return Err(too_large().into());
    }
    Ok(())
}

fn too_large() -> NodeError {
    let message = format!("a file may have at most {FILE_BYTES_MAX} bytes");
    NodeError::new(ErrorCode::TooLarge, message)
}

/// The request's body as the content of a file. Asks for more only when the node does.
pub(crate) fn upload(body: Body) -> FileBytes {
    let state = Some((body, FILE_BYTES_MAX));
    futures::stream::unfold(state, async |state| {
        let (mut body, left) = state?;
        let piece = match tokio::time::timeout(UPLOAD_PAUSE_MAX, body.frame()).await {
            Err(_) => Err(NodeError::new(
                ErrorCode::InvalidRequest,
                "the upload stood still",
            )),
            Ok(None) => return None,
            Ok(Some(Err(error))) if is_key_end(&error) => {
                Err(NodeError::new(ErrorCode::Unauthorized, error.to_string()))
            }
            Ok(Some(Err(_))) => Err(NodeError::new(
                ErrorCode::InvalidRequest,
                "the upload broke off",
            )),
            Ok(Some(Ok(frame))) => Ok(frame.into_data().unwrap_or_default()),
        };
        let piece = piece.and_then(|bytes| {
            let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            Ok((left.checked_sub(length).ok_or_else(too_large)?, bytes))
        });
        match piece {
            Ok((left, bytes)) => Some((Ok(bytes), Some((body, left)))),
            Err(error) => Some((Err(error), None)),
        }
    })
    .boxed()
}

/// The answer with content of a guest. One whose length is known has it in its head, so that a cut
/// one is noticed; anything else is sent to its end.
pub(crate) async fn download(
    media_type: &'static str,
    length: Option<u64>,
    mut content: FileBytes,
    place: Permit,
) -> Result<Response, ApiError> {
    let kind = [
        (CONTENT_TYPE, media_type),
        // A guest's file is nothing that a browser may run here.
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    // The first piece decides between a status and a broken connection for an early failure.
    let first = match content.next().await.transpose()? {
        Some(first) => first,
        None if length.is_some() => return Err(cut_short().into()),
        None => return Ok((kind, [(CONTENT_LENGTH, "0")], Body::empty()).into_response()),
    };
    let content = futures::stream::once(async { Ok(first) }).chain(content);
    let Some(length) = length else {
        let body = content.map(move |piece| {
            let _held = &place;
            piece
        });
        return Ok((kind, Body::from_stream(body)).into_response());
    };
    let head = [(CONTENT_LENGTH, length.to_string())];
    let body = Body::from_stream(exactly(length, content.boxed(), place));
    Ok((kind, head, body).into_response())
}

/// The first `size` bytes; an error when there are fewer. A file that grows is cut, because its
/// length is already announced.
fn exactly(size: u64, content: FileBytes, place: Permit) -> FileBytes {
    futures::stream::unfold(Some((content, size, place)), async |state| {
        let (mut content, left, place) = state?;
        if left == 0 {
            return None;
        }
        match content.next().await.unwrap_or_else(|| Err(cut_short())) {
            Err(error) => Some((Err(error), None)),
            Ok(mut bytes) => {
                bytes.truncate(usize::try_from(left).unwrap_or(usize::MAX));
                let left = left - u64::try_from(bytes.len()).unwrap_or(left);
                Some((Ok(bytes), Some((content, left, place))))
            }
        }
    })
    .boxed()
}

fn cut_short() -> NodeError {
    NodeError::new(
        ErrorCode::GuestUnavailable,
        "the file ended before its length",
    )
}

//! Writing a request anew, and its answer.

use http::header::{CONNECTION, HOST};
use http::uri::{PathAndQuery, Uri};
use http::{HeaderValue, Request, Response, Version};
use http_body_util::Either;
use hyper::body::Incoming;

use super::authority::Authority;
use super::headers;
use super::service::Answer;
use crate::connection::Session;

/// The request as it goes on: to a path, with the host that was decided about, and without what
/// concerned the guest's connection.
pub(super) fn outgoing(
    request: Request<Incoming>,
    authority: &Authority,
    session: &Session,
) -> Option<Request<Incoming>> {
    let (mut head, body) = request.into_parts();
    let is_websocket = headers::is_websocket(&head.headers);
    headers::strip(&mut head.headers);
    if is_websocket {
        headers::ask_for_websocket(&mut head.headers);
    }
    let host = authority.host_field(session.destination());
    head.headers.insert(HOST, HeaderValue::try_from(host).ok()?);
    let root = || PathAndQuery::from_static("/");
    let path = head.uri.path_and_query().cloned().unwrap_or_else(root);
    head.uri = Uri::from(path);
    head.version = Version::HTTP_11;
    Some(Request::from_parts(head, body))
}

/// The answer as the guest gets it.
pub(super) fn incoming(response: Response<Incoming>, is_last: bool) -> Answer {
    let (mut head, body) = response.into_parts();
    headers::strip(&mut head.headers);
    head.version = Version::HTTP_11;
    if is_last {
        head.headers
            .insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Response::from_parts(head, Either::Left(body))
}

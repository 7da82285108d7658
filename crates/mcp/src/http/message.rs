//! The message of a request: read within limits, and looked at as far as is needed.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use dayfly_types::limits::{
    MCP_MESSAGE_BYTES_MAX, MCP_MESSAGE_DEADLINE, MCP_SHORT_MESSAGE_BYTES_MAX,
};
use http_body_util::BodyExt as _;
use serde::Deserialize;
use serde_json::Value;

use super::HttpRefusal;
use super::sessions::{CallerPlaces, HeldPlace};

const INITIALIZE: &str = "initialize";

/// A message, and its place among long ones if it is one.
#[derive(Clone)]
pub(super) struct Message {
    pub(super) bytes: Bytes,
    pub(super) place: Option<Arc<HeldPlace>>,
}

/// As much of a message as is needed to know what it is.
#[derive(Debug, Deserialize)]
pub(super) struct Peek {
    method: Option<String>,
    id: Option<Value>,
}

impl Peek {
    pub(super) fn of(message: &[u8]) -> Result<Self, HttpRefusal> {
        serde_json::from_slice(message).map_err(|_| HttpRefusal::NotAMessage)
    }

    pub(super) fn is_initialize(&self) -> bool {
        self.method.as_deref() == Some(INITIALIZE)
    }

    /// The id of a request. Responses have ids too, of requests of the server's.
    pub(super) fn request_id(&self) -> Option<String> {
        self.method.as_ref()?;
        self.id.as_ref().map(ToString::to_string)
    }
}

/// Reads a body. It has to come within a time, and one that is long needs a place: what slow and
/// what large senders hold in memory is limited for each project.
pub(super) async fn read<B>(body: B, places: &dyn CallerPlaces) -> Result<Message, HttpRefusal>
where
    B: http_body::Body,
{
    read_within(body, places, MCP_MESSAGE_DEADLINE).await
}

async fn read_within<B>(
    body: B,
    places: &dyn CallerPlaces,
    deadline: Duration,
) -> Result<Message, HttpRefusal>
where
    B: http_body::Body,
{
    let reading = collect(body, places);
    let read = tokio::time::timeout(deadline, reading).await;
    read.unwrap_or(Err(HttpRefusal::TooSlow))
}

async fn collect<B>(body: B, places: &dyn CallerPlaces) -> Result<Message, HttpRefusal>
where
    B: http_body::Body,
{
    let mut body = std::pin::pin!(body);
    let mut bytes = BytesMut::new();
    let mut place = None;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| HttpRefusal::Unreadable)?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let length = bytes.len().saturating_add(data.remaining());
        if length > MCP_MESSAGE_BYTES_MAX {
            return Err(HttpRefusal::TooLong);
        }
        if length > MCP_SHORT_MESSAGE_BYTES_MAX && place.is_none() {
            let taken = places.long_message();
            place = Some(Arc::new(taken.ok_or(HttpRefusal::TooManyLong)?));
        }
        bytes.put(data);
    }
    Ok(Message {
        bytes: bytes.freeze(),
        place,
    })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::stream;
    use http_body::Frame;
    use http_body_util::{Full, StreamBody};

    use super::super::sessions::tests::caller;
    use super::*;

    fn long() -> Full<Bytes> {
        Full::new(Bytes::from(vec![b' '; MCP_SHORT_MESSAGE_BYTES_MAX + 1]))
    }

    #[tokio::test]
    async fn a_long_message_holds_a_place_and_a_short_one_none() {
        let caller = caller("a", 1);
        let places = caller.places.as_ref();
        let held = read(long(), places).await.ok().unwrap();
        assert!(held.place.is_some());
        let refused = read(long(), places).await.err();
        assert!(matches!(refused, Some(HttpRefusal::TooManyLong)));
        let short = read(Full::new(Bytes::from("{}")), places).await;
        assert!(short.ok().unwrap().place.is_none());
        drop(held);
        assert!(read(long(), places).await.is_ok());
    }

    #[tokio::test]
    async fn a_message_that_does_not_come_is_not_waited_for() {
        let first = Frame::data(Bytes::from("{"));
        let first = stream::iter([Ok::<_, Infallible>(first)]);
        let body = StreamBody::new(futures::StreamExt::chain(first, stream::pending()));
        let caller = caller("a", 1);
        let deadline = Duration::from_millis(20);
        let read = read_within(body, caller.places.as_ref(), deadline).await;
        assert!(matches!(read.err(), Some(HttpRefusal::TooSlow)));
    }

    #[tokio::test]
    async fn a_message_over_its_limit_is_refused_while_it_comes() {
        let piece = Bytes::from(vec![b' '; 1 << 20]);
        let endless = stream::repeat_with(move || Ok::<_, Infallible>(Frame::data(piece.clone())));
        let caller = caller("a", 1);
        let read = read(StreamBody::new(endless), caller.places.as_ref()).await;
        assert!(matches!(read.err(), Some(HttpRefusal::TooLong)));
    }

    #[test]
    fn only_requests_have_an_id_of_their_own() {
        let id = |text: &str| Peek::of(text.as_bytes()).ok().unwrap().request_id();
        assert_eq!(id(r#"{"method":"ping","id":1}"#).as_deref(), Some("1"));
        assert_eq!(
            id(r#"{"method":"ping","id":"1"}"#).as_deref(),
            Some("\"1\"")
        );
        assert_eq!(id(r#"{"method":"notifications/initialized"}"#), None);
        assert_eq!(id(r#"{"id":1,"result":{}}"#), None);
        for text in ["[]", "", r#"{"id":1,"id":2,"method":"ping"}"#] {
            assert!(Peek::of(text.as_bytes()).is_err(), "{text}");
        }
    }
}

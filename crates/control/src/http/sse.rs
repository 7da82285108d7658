//! Server-sent events in the one form that both published clients read right.
//!
//! The event's name first, one data line, line feeds only, an empty line after every event, JSON
//! in pure ASCII, and no event over 64 KiB: one client splits lines at U+2028 and slows with the
//! square of the line's length, the other sees nothing but LF LF.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use dayfly_api::Advice;
use futures::{Stream, StreamExt};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName};

use super::error::ApiError;
use super::parameter::{EventCursor, Parameter as _};

/// One event, all of it.
pub(crate) const EVENT_BYTES_MAX: usize = 64 << 10;
/// A line that every client skips.
pub(crate) const COMMENT: &[u8] = b": alive\n\n";
/// After this much silence it shows that the connection lives.
pub(crate) const COMMENT_INTERVAL: Duration = Duration::from_secs(10);
static LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Data of the `error` event.
#[derive(Debug, serde::Serialize)]
pub(crate) struct ErrorEvent {
    error: String,
    code: &'static str,
    #[serde(flatten)]
    advice: Advice,
}

impl From<ApiError> for ErrorEvent {
    fn from(error: ApiError) -> Self {
        Self {
            error: error.message,
            code: error.code.as_str(),
            advice: error.hint.map(|hint| *hint).into(),
        }
    }
}

/// Behind which event a stream begins, by the parameter `after` or, without it, by the header that
/// browsers send.
pub(crate) fn beginning(after: Option<i64>, headers: &HeaderMap) -> Result<Option<i64>, ApiError> {
    let header = headers.get(&LAST_EVENT_ID);
    let header = header.and_then(|value| value.to_str().ok());
    match (after, header) {
        (None, Some(cursor)) => EventCursor::parse("after", cursor).map(Some),
        (after, _) => Ok(after),
    }
}

/// An answer of events that go out as they come.
pub(crate) fn response(events: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    let headers = [
        (CONTENT_TYPE, "text/event-stream; charset=utf-8"),
        // A proxy that stores or rewrites the stream would hold it back.
        (CACHE_CONTROL, "no-cache, no-transform"),
    ];
    let body = Body::from_stream(events.map(Ok::<_, Infallible>));
    (headers, body).into_response()
}

/// Cuts `text` into events of `name`, each with a part of it under `chunk`.
pub(crate) fn output_events(name: &str, text: &str, out: &mut impl Extend<Bytes>) {
    let (before, after) = (format!("event: {name}\ndata: {{\"chunk\":\""), "\"}\n\n");
    let room = EVENT_BYTES_MAX - before.len() - after.len();
    let mut escaped = String::new();
    let mut finish = |escaped: &mut String| {
        out.extend([Bytes::from(format!("{before}{escaped}{after}"))]);
        escaped.clear();
    };
    for character in text.chars() {
        let length = escaped.len();
        escape(character, &mut escaped);
        if escaped.len() > room {
            let last = escaped.split_off(length);
            finish(&mut escaped);
            escaped = last;
        }
    }
    if !escaped.is_empty() {
        finish(&mut escaped);
    }
}

/// One event with a JSON object.
pub(crate) fn event<T: serde::Serialize>(name: &str, data: &T) -> Bytes {
    format!("event: {name}\ndata: {}\n\n", ascii_json(data)).into()
}

/// "The outcome is not known", so that each client says so: an event of a name that nobody uses,
/// then an error whose data stands before its name.
pub(crate) fn lost_events<T: serde::Serialize>(error: &T) -> [Bytes; 2] {
    let data = ascii_json(error);
    [
        Bytes::from_static(b"event: lost\ndata: {}\n\n"),
        format!("data: {data}\nevent: error\n\n").into(),
    ]
}

/// JSON in which everything beyond ASCII is escaped.
pub(crate) fn ascii_json<T: serde::Serialize>(data: &T) -> String {
    // Plain data with string keys always serialises.
    let json = serde_json::to_string(data).unwrap_or_else(|_| "{}".to_owned());
    let mut ascii = String::with_capacity(json.len());
    for character in json.chars() {
        // Quotes and control characters are escaped already.
        if character.is_ascii() {
            ascii.push(character)
        } else {
            escape(character, &mut ascii)
        }
    }
    ascii
}

/// Appends a character as it stands inside a JSON string of pure ASCII.
fn escape(character: char, out: &mut String) {
    match character {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        ' '..='~' => out.push(character),
        _ => {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                out.push_str("\\u");
                for shift in [12, 8, 4, 0] {
                    let digit = u32::from(*unit >> shift) & 15;
                    out.extend(char::from_digit(digit, 16));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(text: &str) -> Vec<Bytes> {
        let mut out = Vec::new();
        output_events("stdout", text, &mut out);
        out
    }

    #[test]
    fn everything_beyond_ascii_is_escaped() {
        let text = "é\u{2028}\u{85}🦀\"\\\n\0";
        let expected: &[u8] = b"event: stdout\ndata: {\"chunk\":\"\\u00e9\\u2028\\u0085\\ud83e\\udd80\\\"\\\\\\n\\u0000\"}\n\n";
        assert_eq!(events(text), [Bytes::from_static(expected)]);
    }

    #[test]
    fn no_event_is_over_its_limit_and_no_pair_is_split() {
        for text in [
            "a".repeat(1 << 20),
            "\0".repeat(1 << 17),
            "🦀".repeat(1 << 16),
        ] {
            let mut together = String::new();
            for event in events(&text) {
                assert!(event.len() <= EVENT_BYTES_MAX);
                let line = std::str::from_utf8(&event).unwrap().lines().nth(1).unwrap();
                let data: serde_json::Value =
                    serde_json::from_str(line.strip_prefix("data: ").unwrap()).unwrap();
                together.push_str(data["chunk"].as_str().unwrap());
            }
            assert!(together == text);
        }
    }

    #[test]
    fn no_text_gives_no_event() {
        assert!(events("").is_empty());
    }

    #[test]
    fn a_loss_is_two_blocks_with_the_error_name_last() {
        let error = serde_json::json!({"error": "gone é"});
        let [first, second] = lost_events(&error);
        assert_eq!(first, "event: lost\ndata: {}\n\n");
        assert_eq!(
            second,
            "data: {\"error\":\"gone \\u00e9\"}\nevent: error\n\n"
        );
    }
}

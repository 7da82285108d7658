//! Server-sent events, without input or output: bytes go in, events come out.
//!
//! Follows the WHATWG grammar: lines end with LF, CR or CRLF; fields come in any order; several
//! `data` lines are joined with LF; a comment starts with a colon; an event that has no blank
//! line after it when the body ends is not an event.

use std::mem;

use crate::limits::EVENT_BYTES_MAX;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent {
    /// `message` when the server gave none.
    pub name: String,
    pub data: String,
    /// That of this event, if it has one.
    pub id: Option<String>,
}

/// An event is longer than any that the server sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than {EVENT_BYTES_MAX} bytes")]
pub struct SseTooLong;

/// Cuts a body into events, however its bytes arrive.
#[derive(Debug, Default)]
pub struct SseParser {
    line: Vec<u8>,
    /// The last byte ended a line as CR; an LF that follows belongs to it.
    is_after_carriage_return: bool,
    is_past_first_line: bool,
    name: String,
    data: Option<String>,
    id: Option<String>,
}

impl SseParser {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes of the body and gives the events that they complete.
    ///
    /// # Errors
    /// [`SseTooLong`] when an event does not end; the parser is of no further use then.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<SseEvent>, SseTooLong> {
        let mut events = Vec::new();
        let mut rest = bytes;
        if mem::take(&mut self.is_after_carriage_return) {
            // An empty push tells nothing about what follows.
            self.is_after_carriage_return = rest.is_empty();
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.extend_line(&rest[..end])?;
            let is_carriage_return = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if is_carriage_return {
                self.is_after_carriage_return = rest.is_empty();
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
            events.extend(self.end_line());
        }
        self.extend_line(rest)?;
        Ok(events)
    }

    fn extend_line(&mut self, bytes: &[u8]) -> Result<(), SseTooLong> {
        let held = self.line.len() + self.data.as_ref().map_or(0, String::len);
        if held + bytes.len() > EVENT_BYTES_MAX {
            return Err(SseTooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self) -> Option<SseEvent> {
        let bytes = mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&bytes);
        let mut line = text.as_ref();
        if !mem::replace(&mut self.is_past_first_line, true) {
            line = line.strip_prefix('\u{feff}').unwrap_or(line);
        }
        if line.is_empty() {
            return self.end_event();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            "id" => self.id = Some(value.to_owned()),
            // Comments, `retry` and what later versions may add.
            _ => {}
        }
        None
    }

    fn end_event(&mut self) -> Option<SseEvent> {
        let name = mem::take(&mut self.name);
        let id = self.id.take();
        let data = self.data.take()?;
        let name = if name.is_empty() {
            "message".to_owned()
        } else {
            name
        };
        Some(SseEvent { name, data, id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn event(name: &str, data: &str) -> SseEvent {
        SseEvent {
            name: name.to_owned(),
            data: data.to_owned(),
            id: None,
        }
    }

    fn parse(body: &str) -> Vec<SseEvent> {
        SseParser::new().push(body.as_bytes()).unwrap()
    }

    #[test]
    fn events_are_read_with_every_line_ending() {
        let expected = vec![event("stdout", "a"), event("exit", "b")];
        for end in ["\n", "\r\n", "\r"] {
            let body = "event: stdout\ndata: a\n\nevent: exit\ndata: b\n\n".replace('\n', end);
            assert_eq!(parse(&body), expected, "line ending {end:?}");
        }
    }

    #[test]
    fn fields_come_in_any_order_and_comments_do_not_count() {
        assert_eq!(parse("data: {}\nevent: error\n\n"), [event("error", "{}")]);
        let numbered = SseEvent {
            id: Some("1".to_owned()),
            ..event("message", "x")
        };
        assert_eq!(
            parse(": alive\n\n: alive\n\nid: 1\ndata:x\n\ndata:y\n\n"),
            [numbered, event("message", "y")]
        );
        assert_eq!(parse("data: a\ndata:  b\n\n"), [event("message", "a\n b")]);
        assert_eq!(parse("\u{feff}data: a\n\n"), [event("message", "a")]);
        assert_eq!(
            parse("event: nothing\n\ndata: a\n\n"),
            [event("message", "a")]
        );
    }

    #[test]
    fn an_event_without_its_blank_line_is_not_an_event() {
        assert_eq!(parse("event: exit\ndata: {\"exit_code\":0}\n"), []);
    }

    #[test]
    fn an_event_without_an_end_is_refused() {
        let mut parser = SseParser::new();
        let piece = vec![b'a'; EVENT_BYTES_MAX / 2 + 1];
        assert_eq!(parser.push(&piece), Ok(vec![]));
        assert_eq!(parser.push(&piece), Err(SseTooLong));

        let mut parser = SseParser::new();
        let line = [b"data:".as_slice(), &piece, b"\n"].concat();
        assert_eq!(parser.push(&line), Ok(vec![]));
        assert_eq!(parser.push(&line), Err(SseTooLong));
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_same_events(
            body in proptest::collection::vec(
                prop_oneof![
                    Just("\n"), Just("\r"), Just("\r\n"), Just("data: "), Just("event:"),
                    Just(":"), Just("é"), Just("x"), Just("\n\n"),
                ],
                0..40,
            ),
            cuts in proptest::collection::vec(0usize..200, 0..8),
        ) {
            let body = body.concat().into_bytes();
            let whole = SseParser::new().push(&body).unwrap();
            let mut cuts: Vec<_> = cuts.into_iter().filter(|cut| *cut <= body.len()).collect();
            cuts.sort_unstable();
            let mut parser = SseParser::new();
            let mut events = Vec::new();
            let mut start = 0;
            for cut in cuts.into_iter().chain([body.len()]) {
                events.extend(parser.push(&body[start..cut]).unwrap());
                start = cut;
            }
            prop_assert_eq!(events, whole);
        }

        #[test]
        fn no_bytes_make_it_panic(body in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = SseParser::new().push(&body);
        }
    }
}

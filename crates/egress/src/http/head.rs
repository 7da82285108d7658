//! A strict look at the head of a request before the HTTP library parses it.
//!
//! It only refuses. What the library makes of the rest is what is acted on.

/// A whole head that a strict client may have sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub length: usize,
    pub body: Framing,
}

/// Where the next head begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// So many bytes behind this one.
    Length(u64),
    /// Nowhere: only the library knows where such a body ends, so this request is the last one.
    Last,
}

/// No strict client sends this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the request is not well-formed")]
pub struct BadHead;

/// Finds the end of a head, looking at each byte once however it comes in.
#[derive(Debug, Default)]
pub struct HeadReader {
    looked_at: usize,
}

impl HeadReader {
    /// Looks at all bytes from the first of the head on.
    ///
    /// # Errors
    /// [`BadHead`].
    pub fn look(&mut self, bytes: &[u8]) -> Result<Option<Head>, BadHead> {
        for index in self.looked_at..bytes.len() {
            match bytes[index] {
                0 => return Err(BadHead),
                b'\n' if index == 0 || bytes[index - 1] != b'\r' => return Err(BadHead),
                b'\n' if bytes[..=index].ends_with(b"\r\n\r\n") => {
                    self.looked_at = 0;
                    let body = check(&bytes[..index - 3])?;
                    return Ok(Some(Head {
                        length: index + 1,
                        body,
                    }));
                }
                _ => {}
            }
        }
        self.looked_at = bytes.len();
        Ok(None)
    }
}

/// Checks the lines of a head, which end in CRLF by now.
fn check(head: &[u8]) -> Result<Framing, BadHead> {
    let text: Vec<&[u8]> = split_lines(head).collect();
    let (request, fields) = text.split_first().ok_or(BadHead)?;
    check_request_line(request)?;
    let mut hosts = 0;
    let mut length = None;
    let mut is_chunked = false;
    let mut is_upgrade = false;
    for line in fields {
        let (name, value) = split_field(line)?;
        if name.eq_ignore_ascii_case(b"host") {
            hosts += 1;
        } else if name.eq_ignore_ascii_case(b"content-length") {
            let before = length.replace(parse_length(value)?);
            if before.is_some() {
                return Err(BadHead);
            }
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if is_chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(BadHead);
            }
            is_chunked = true;
        } else if name.eq_ignore_ascii_case(b"upgrade") {
            is_upgrade = true;
        }
    }
    // Two lengths are one too many: the next parser may believe the other one.
    if hosts != 1 || is_chunked && length.is_some() {
        return Err(BadHead);
    }
    if is_chunked || is_upgrade {
        return Ok(Framing::Last);
    }
    Ok(Framing::Length(length.unwrap_or_default()))
}

fn split_lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    // Every LF stands behind a CR, so a CR that is left over in a line stands alone.
    head.split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

fn check_request_line(line: &[u8]) -> Result<(), BadHead> {
    let mut parts = line.split(|byte| *byte == b' ');
    let parts = (parts.next(), parts.next(), parts.next(), parts.next());
    let (Some(method), Some(target), Some(b"HTTP/1.1"), None) = parts else {
        return Err(BadHead);
    };
    let is_target = !target.is_empty() && target.iter().all(u8::is_ascii_graphic);
    if is_token(method) && is_target {
        Ok(())
    } else {
        Err(BadHead)
    }
}

fn split_field(line: &[u8]) -> Result<(&[u8], &[u8]), BadHead> {
    let colon = line.iter().position(|byte| *byte == b':').ok_or(BadHead)?;
    let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
    let is_plain = |byte: &u8| matches!(byte, b'\t' | 0x20..=0x7e | 0x80..);
    // A line that goes on with the one before begins with a blank, which is in no name.
    if is_token(name) && value.iter().all(is_plain) {
        Ok((name, value))
    } else {
        Err(BadHead)
    }
}

fn is_token(bytes: &[u8]) -> bool {
    let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !bytes.is_empty() && bytes.iter().all(is_allowed)
}

fn parse_length(value: &[u8]) -> Result<u64, BadHead> {
    let is_number = (1..=18).contains(&value.len()) && value.iter().all(u8::is_ascii_digit);
    if !is_number {
        return Err(BadHead);
    }
    let text = str::from_utf8(value).map_err(|_| BadHead)?;
    text.parse().map_err(|_| BadHead)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn look(text: &str) -> Result<Option<Head>, BadHead> {
        HeadReader::default().look(text.as_bytes())
    }

    fn with(fields: &str) -> Result<Option<Framing>, BadHead> {
        let text = format!("POST / HTTP/1.1\r\nHost: allowed.test\r\n{fields}\r\n");
        look(&text).map(|head| head.map(|head| head.body))
    }

    #[test]
    fn plain_heads_pass() {
        assert_eq!(with(""), Ok(Some(Framing::Length(0))));
        assert_eq!(with("Content-Length: 5\r\n"), Ok(Some(Framing::Length(5))));
        assert_eq!(
            with("Transfer-Encoding: chunked\r\n"),
            Ok(Some(Framing::Last))
        );
        assert_eq!(with("Upgrade: websocket\r\n"), Ok(Some(Framing::Last)));
        assert_eq!(look("GET / HTTP/1.1\r\nHost: a\r\n"), Ok(None));
        let two = "GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\n";
        assert_eq!(look(two).unwrap().unwrap().length, 28);
    }

    #[test]
    fn d7_what_two_parsers_may_read_in_two_ways_is_refused() {
        for fields in [
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: identity\r\n",
            "Transfer-Encoding: xchunked\r\n",
            "Transfer-Encoding: gzip, chunked\r\n",
            "Transfer-Encoding : chunked\r\n",
            " Transfer-Encoding: chunked\r\n",
            "X: a\r\n folded\r\n",
            "Content-Length: 5\r\nContent-Length: 5\r\n",
            "Content-Length: 5, 5\r\n",
            "Content-Length: +5\r\n",
            "Content-Length: 0x5\r\n",
            "Content-Length: 99999999999999999999\r\n",
            "Content-Length:\r\n",
            "Host: evil.test\r\n",
            "X: a\rb\r\n",
            "X: a\nY: b\r\n",
            "X: a\0b\r\n",
            "X: a\x7fb\r\n",
            "no colon\r\n",
            ": no name\r\n",
        ] {
            assert_eq!(with(fields), Err(BadHead), "{fields:?}");
        }
        for text in [
            "GET / HTTP/1.0\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n",
            "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1 \r\nHost: a\r\n\r\n",
            "GET /\tx HTTP/1.1\r\nHost: a\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\n",
            "EHLO there\r\n\r\n",
            "GET / HTTP/1.1\nHost: a\n\n",
        ] {
            assert_eq!(look(text), Err(BadHead), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn it_does_not_matter_how_a_head_comes_in(cut in 1usize..60, text in "[ -~\r\n]{0,80}") {
            let whole = format!("GET / HTTP/1.1\r\nHost: a\r\n{text}\r\n\r\n");
            let mut reader = HeadReader::default();
            let first = reader.look(&whole.as_bytes()[..cut.min(whole.len())]);
            let second = match first {
                Ok(None) => reader.look(whole.as_bytes()),
                other => other,
            };
            prop_assert_eq!(second, look(&whole));
        }
    }
}

//! The heads of plain requests.
//!
//! What is promised for any bytes: no panic; the same verdict however they are cut; and whatever is
//! let through means the same to the HTTP library behind: one head of that length, for one host,
//! with that framing and no other.

use dayfly_egress::readers::{BadHead, Framing, Head, HeadReader};

use super::{Inputs, texts};

const HEADERS_MAX: usize = 128;

pub(super) fn check(input: &[u8]) {
    let whole = HeadReader::default().look(input);
    for step in [1, 7, 512] {
        let found = look_in_steps(input, step);
        assert_eq!(found, whole, "cut into pieces of {step} it is another head");
    }
    if let Ok(Some(head)) = whole {
        compare(&input[..head.length], head);
    }
}

fn look_in_steps(input: &[u8], step: usize) -> Result<Option<Head>, BadHead> {
    let mut reader = HeadReader::default();
    // Long inputs are cut less finely, so that no input takes long.
    let step = step.max(input.len() / 256);
    let mut end = 0;
    while end < input.len() {
        end = (end + step).min(input.len());
        let found = reader.look(&input[..end])?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

fn compare(bytes: &[u8], head: Head) {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    // What the library refuses is not let through by it.
    let Ok(status) = request.parse(bytes) else {
        return;
    };
    assert_eq!(
        status,
        httparse::Status::Complete(bytes.len()),
        "the library sees another end of the head"
    );
    assert_eq!(request.version, Some(1));
    let values = |name: &str| {
        let headers = request.headers.iter();
        let named = headers.filter(|header| header.name.eq_ignore_ascii_case(name));
        named
            .map(|header| header.value.trim_ascii())
            .collect::<Vec<_>>()
    };
    assert_eq!(values("host").len(), 1, "not one host");
    let (lengths, encodings) = (values("content-length"), values("transfer-encoding"));
    match head.body {
        Framing::Length(length) => {
            assert!(encodings.is_empty(), "a body of unknown length");
            let told = match lengths.as_slice() {
                [] => Some(0),
                [one] => std::str::from_utf8(one)
                    .ok()
                    .and_then(|text| text.parse().ok()),
                _ => None,
            };
            assert_eq!(told, Some(length), "another length");
        }
        Framing::Last => assert!(encodings.is_empty() || lengths.is_empty(), "two lengths"),
    }
}

pub(super) fn seeds() -> Inputs {
    texts(&[
        "GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
        "POST /a?b HTTP/1.1\r\nhost: allowed.test:80\r\nContent-Length: 5\r\n\r\nhello",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
        "GET / HTTP/1.1\nHost: a\n\n",
        "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nx: a\rb\r\n\r\n",
        "GET / HTTP/1.0\r\nHost: a\r\n\r\n",
        "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n",
    ])
}

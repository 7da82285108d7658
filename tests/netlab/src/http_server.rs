//! A plain and simple HTTP server that keeps every byte that it was sent.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// What came to one server.
#[derive(Debug, Default)]
pub struct Seen(Mutex<Arrived>);

#[derive(Debug, Default)]
struct Arrived {
    /// Of all connections, in the order in which it came.
    bytes: Vec<u8>,
    streams: Vec<Vec<u8>>,
    open: usize,
}

/// One connection, or one datagram, at its server. It is over when this is dropped.
#[derive(Debug)]
pub struct Visit {
    seen: Arc<Seen>,
    number: usize,
}

impl Seen {
    /// Notes that somebody came.
    #[must_use]
    pub fn begin(self: &Arc<Self>) -> Visit {
        let mut arrived = self.0.lock().unwrap();
        arrived.streams.push(Vec::new());
        arrived.open += 1;
        Visit {
            seen: Arc::clone(self),
            number: arrived.streams.len() - 1,
        }
    }

    #[must_use]
    pub fn connections(&self) -> usize {
        self.0.lock().unwrap().streams.len()
    }

    /// How many of them are not over.
    #[must_use]
    pub fn open(&self) -> usize {
        self.0.lock().unwrap().open
    }

    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().bytes.clone()
    }

    /// What came by each connection.
    #[must_use]
    pub fn streams(&self) -> Vec<Vec<u8>> {
        self.0.lock().unwrap().streams.clone()
    }

    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }

    /// How many requests, as a naive reader counts them.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.text().matches(" HTTP/1.1\r\n").count()
    }

    /// # Panics
    /// When somebody came, with what was said.
    pub fn assert_nothing_came(&self) {
        assert_eq!((self.connections(), self.text()), (0, String::new()));
    }
}

impl Visit {
    pub fn add(&self, bytes: &[u8]) {
        let mut arrived = self.seen.0.lock().unwrap();
        arrived.bytes.extend_from_slice(bytes);
        arrived.streams[self.number].extend_from_slice(bytes);
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.seen.0.lock().unwrap().open -= 1;
    }
}

/// Reads up to the end of a head; what came behind it stays in the buffer.
pub(crate) async fn read_head(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
    visit: &Visit,
) -> Option<String> {
    loop {
        if let Some(end) = buffer.windows(4).position(|part| part == b"\r\n\r\n") {
            let head = buffer.drain(..end + 4).collect::<Vec<u8>>();
            return Some(String::from_utf8_lossy(&head).to_ascii_lowercase());
        }
        read_more(stream, buffer, visit).await?;
    }
}

async fn read_more(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
    visit: &Visit,
) -> Option<()> {
    let mut part = [0; 4096];
    let count = stream
        .read(&mut part)
        .await
        .ok()
        .filter(|count| *count > 0)?;
    visit.add(&part[..count]);
    buffer.extend_from_slice(&part[..count]);
    Some(())
}

pub(crate) fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = head.lines();
    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// Serves one connection: requests one after the other, a redirect, an endless body, a WebSocket.
pub async fn converse(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    name: &'static str,
    visit: Visit,
) -> Option<()> {
    let mut buffer = Vec::new();
    loop {
        let head = read_head(&mut stream, &mut buffer, &visit).await?;
        let length = field(&head, "content-length").map_or(0, |text| text.parse().unwrap());
        while buffer.len() < length {
            read_more(&mut stream, &mut buffer, &visit).await?;
        }
        buffer.drain(..length);
        if field(&head, "transfer-encoding").is_some() {
            while !buffer.windows(5).any(|part| part == b"0\r\n\r\n") {
                read_more(&mut stream, &mut buffer, &visit).await?;
            }
            buffer.clear();
        }
        if field(&head, "upgrade") == Some("websocket") {
            let reply = b"HTTP/1.1 101 Switching Protocols\r\n\
                          connection: upgrade\r\nupgrade: websocket\r\n\r\n";
            stream.write_all(reply).await.ok()?;
            return echo(&mut stream, &visit).await;
        }
        let path = head.split(' ').nth(1)?.to_owned();
        respond(&mut stream, &path, name).await?;
    }
}

async fn respond(stream: &mut (impl AsyncWrite + Unpin), path: &str, name: &str) -> Option<()> {
    if path == "/endless" {
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000000\r\n\r\n";
        stream.write_all(head).await.ok()?;
        loop {
            stream.write_all(&[b'x'; 16 << 10]).await.ok()?;
        }
    }
    let body = format!("hello from {name} at {path}\n");
    let status = if path == "/redirect" {
        "302 Found\r\nlocation: http://169.254.169.254/latest/"
    } else {
        "200 OK"
    };
    let length = body.len();
    let reply = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}");
    stream.write_all(reply.as_bytes()).await.ok()
}

async fn echo(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), visit: &Visit) -> Option<()> {
    let mut part = [0; 4096];
    loop {
        let count = stream
            .read(&mut part)
            .await
            .ok()
            .filter(|count| *count > 0)?;
        visit.add(&part[..count]);
        stream.write_all(&part[..count]).await.ok()?;
    }
}

//! Files behind HTTP, as a mirror of packages has them.

use std::collections::HashMap;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use crate::http_server::{Visit, read_head};

/// Files by path, each with its type. Paths that differ only in case are one.
#[derive(Debug, Clone, Default)]
pub struct Site(HashMap<String, (&'static str, Vec<u8>)>);

impl Site {
    pub fn add(&mut self, path: impl Into<String>, kind: &'static str, bytes: impl Into<Vec<u8>>) {
        let path = path.into().to_ascii_lowercase();
        self.0.insert(path, (kind, bytes.into()));
    }
}

/// Answers requests of one connection, one after the other. What is not there is not found.
pub(crate) async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    site: &Site,
    visit: &Visit,
) -> Option<()> {
    let mut buffer = Vec::new();
    loop {
        let head = read_head(&mut stream, &mut buffer, visit).await?;
        let mut words = head.split(' ');
        let is_head = words.next()? == "head";
        let path = words.next()?;
        let path = path.split('?').next()?;
        let (status, kind, bytes) = match site.0.get(path) {
            Some((kind, bytes)) => ("200 OK", *kind, bytes.as_slice()),
            None => ("404 Not Found", "text/plain", &b"no such file\n"[..]),
        };
        let length = bytes.len();
        let reply = format!(
            "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all(reply.as_bytes()).await.ok()?;
        if !is_head {
            stream.write_all(bytes).await.ok()?;
        }
        stream.flush().await.ok()?;
    }
}

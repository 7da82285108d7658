//! An HTTP proxy that knows CONNECT.

use tokio::io::{AsyncWriteExt, copy_bidirectional};
use tokio::net::TcpStream;

use crate::http_server::{Visit, read_head};

/// Serves one connection. What is asked for is kept; what passes through is not.
pub(crate) async fn serve(mut stream: TcpStream, refused: &str, visit: Visit) -> Option<()> {
    let mut buffer = Vec::new();
    let head = read_head(&mut stream, &mut buffer, &visit).await?;
    let target = head.strip_prefix("connect ")?.split(' ').next()?;
    if target.starts_with(refused) {
        let reply = b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n";
        return stream.write_all(reply).await.ok();
    }
    let mut outside = TcpStream::connect(target).await.ok()?;
    let reply = b"HTTP/1.1 200 Connection established\r\nvia: 1.1 test\r\n\r\n";
    stream.write_all(reply).await.ok()?;
    copy_bidirectional(&mut stream, &mut outside).await.ok()?;
    Some(())
}

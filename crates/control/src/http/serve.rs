//! The listener of the public API.

use std::future::Future;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::net::sockopt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::limit::CONNECTIONS_MAX;

/// A connection that has not sent a whole head by then is closed; also how long one may idle.
const HEAD_DEADLINE: Duration = Duration::from_secs(30);
/// The head of a request, and what a connection holds of what its peer does not read.
const BUFFER_BYTES: usize = 64 << 10;
const HEADERS_MAX: usize = 64;
/// What the kernel may hold of what a client does not read; it doubles this.
const SEND_BUFFER_BYTES: usize = 256 << 10;
/// A client that takes nothing for this long is cut off, so that it cannot keep a guest waiting.
const STALL_DEADLINE_MS: u32 = 10 * 60 * 1000;
/// A silent client is asked whether it is still there after this long, then this often.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
const KEEPALIVE_PROBES_MAX: u32 = 4;
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How long requests may take to end after the stop was asked for.
const STOP_DEADLINE: Duration = Duration::from_secs(10);

/// Serves `router` until `shutdown`, then lets requests end for a while. Dropping the future drops
/// every connection.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()>,
) {
    let stop = CancellationToken::new();
    let mut connections = JoinSet::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                connections.spawn(serve_connection(stream, router.clone(), stop.clone()));
            }
            Err(error) => {
                // Out of file descriptors, most likely: others must end first.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    stop.cancel();
    let _ = tokio::time::timeout(STOP_DEADLINE, connections.join_all()).await;
}

async fn serve_connection(stream: TcpStream, router: Router, stop: CancellationToken) {
    if let Err(error) = tune(&stream) {
        tracing::debug!(%error, "cannot set the options of a connection");
    }
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_DEADLINE)
        .max_buf_size(BUFFER_BYTES)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => {
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended early");
            }
            return;
        }
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    let _ = tokio::time::timeout(STOP_DEADLINE, connection).await;
}

fn tune(stream: &TcpStream) -> rustix::io::Result<()> {
    sockopt::set_tcp_nodelay(stream, true)?;
    sockopt::set_socket_send_buffer_size(stream, SEND_BUFFER_BYTES)?;
    sockopt::set_tcp_user_timeout(stream, STALL_DEADLINE_MS)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(stream, KEEPALIVE_PROBES_MAX)
}

//! The listener of the public API.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use http::header::HOST;
use http::{HeaderValue, Request, Version};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::arrival::TrustedProxies;
use super::connections::{Connections, Seat};
use super::open_streams::OpenStreams;
use super::tls;

/// A connection that has not sent the whole head of a further request by then is closed; also how
/// long one may idle.
const HEAD_DEADLINE: Duration = Duration::from_secs(30);
/// The head of a request, and what a connection holds of what its peer does not read.
const BUFFER_BYTES: usize = 64 << 10;
const HEADERS_MAX: usize = 64;
/// The same for a head in HTTP/2, and how many requests of one connection are under way at once.
const HEADER_LIST_BYTES: u32 = 64 << 10;
const STREAMS_MAX: u32 = 64;
/// How HTTP/2 begins.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const PREFACE_PAUSE: Duration = Duration::from_millis(20);
/// What one client may send ahead, on one stream and on all.
const WINDOW_BYTES: u32 = 256 << 10;
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

/// Where connections come in, and what is spoken there.
pub(crate) struct Listener {
    pub(crate) socket: TcpListener,
    /// Without it, plain text.
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) proxies: Arc<TrustedProxies>,
}

/// Serves `router` until `stop`, then lets requests end for a while. Dropping the future drops
/// every connection.
pub(crate) async fn serve(
    listener: Listener,
    router: Router,
    doors: &Arc<Connections>,
    stop: CancellationToken,
) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.socket.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                // Dropped otherwise: whoever it is finds the connection closed.
                if let Some(seat) = doors.admit(peer.ip()) {
                    let guest = Guest {
                        peer,
                        is_tls: listener.tls.is_some(),
                        proxies: Arc::clone(&listener.proxies),
                        seat,
                        first_head: Instant::now() + doors.first_head(),
                    };
                    connections.spawn(serve_connection(
                        stream,
                        listener.tls.clone(),
                        guest,
                        router.clone(),
                        stop.clone(),
                    ));
                }
            }
            Err(error) => {
                // Out of file descriptors, most likely: others must end first.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    let _ = tokio::time::timeout(STOP_DEADLINE, connections.join_all()).await;
}

/// Who is at the other end of a connection.
struct Guest {
    peer: SocketAddr,
    is_tls: bool,
    proxies: Arc<TrustedProxies>,
    seat: Seat,
    /// When the head of the first request must be there.
    first_head: Instant,
}

impl Guest {
    /// What comes of the beginning of a connection, if that is over in time.
    async fn begins<T>(
        &self,
        beginning: impl Future<Output = std::io::Result<T>>,
        stop: &CancellationToken,
    ) -> Option<T> {
        tokio::select! {
            begun = tokio::time::timeout_at(self.first_head, beginning) => begun.ok()?.ok(),
            () = self.seat.must_close() => None,
            () = stop.cancelled() => None,
        }
    }

    /// Ends when the connection must: nothing was asked in time, or another needs the place.
    async fn must_leave(&self) {
        let begun = tokio::time::timeout_at(self.first_head, self.seat.has_begun()).await;
        if begun.is_ok() {
            self.seat.must_close().await;
        }
    }
}

async fn serve_connection(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    guest: Guest,
    router: Router,
    stop: CancellationToken,
) {
    if let Err(error) = tune(&stream) {
        tracing::debug!(%error, "cannot set the options of a connection");
    }
    let Some(acceptor) = tls else {
        if let Some(spoken) = guest.begins(spoken(&stream), &stop).await {
            converse(stream, spoken, guest, router, stop).await;
        }
        return;
    };
    if let Some(stream) = guest
        .begins(tls::shake_hands(&acceptor, stream), &stop)
        .await
    {
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(tls::HTTP2);
        let spoken = if is_http2 {
            Spoken::Http2
        } else {
            Spoken::Http1
        };
        converse(stream, spoken, guest, router, stop).await;
    }
}

/// Answers requests over a connection that has begun.
async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    spoken: Spoken,
    guest: Guest,
    router: Router,
    stop: CancellationToken,
) {
    let router = TowerToHyperService::new(router);
    let streams = Arc::<OpenStreams>::default();
    let counted = Arc::clone(&streams);
    let guest = Arc::new(guest);
    let asking = Arc::clone(&guest);
    let service = service_fn(move |mut request: Request<Incoming>| {
        name_host(&mut request);
        let (proxies, headers) = (&asking.proxies, request.headers());
        let arrival = proxies.arrival(asking.peer, asking.is_tls, headers);
        request.extensions_mut().insert(arrival);
        let stream = (counted.begin(), asking.seat.begin());
        let answering = router.call(request);
        async move {
            let answer = answering.await?;
            Ok::<_, Infallible>(answer.map(|body| {
                body.map_frame(move |frame| {
                    // Under way until the body is dropped.
                    let _ = &stream;
                    frame
                })
            }))
        }
    });
    let stream = TokioIo::new(stream);
    let cut = guest.must_leave();
    match spoken {
        Spoken::Http1 => {
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_DEADLINE)
                .max_buf_size(BUFFER_BYTES)
                .max_headers(HEADERS_MAX)
                .serve_connection(stream, service)
                .with_upgrades();
            let over = stop.cancelled();
            drive(connection, |ending| ending.graceful_shutdown(), over, cut).await;
        }
        Spoken::Http2 => {
            let connection = http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .keep_alive_interval(KEEPALIVE_IDLE)
                .max_concurrent_streams(STREAMS_MAX)
                .initial_stream_window_size(WINDOW_BYTES)
                .initial_connection_window_size(WINDOW_BYTES)
                .max_header_list_size(HEADER_LIST_BYTES)
                .max_send_buf_size(BUFFER_BYTES)
                .serve_connection(stream, service);
            let over = async {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = streams.idle(HEAD_DEADLINE) => {}
                }
            };
            drive(connection, |ending| ending.graceful_shutdown(), over, cut).await;
        }
    }
}

/// What a client speaks.
#[derive(Debug, Clone, Copy)]
enum Spoken {
    Http1,
    Http2,
}

/// Looks at what comes first and leaves it there. No other request begins like the preface of
/// HTTP/2. All of it must be there: what serves HTTP/2 would wait for the rest for ever.
async fn spoken(stream: &TcpStream) -> std::io::Result<Spoken> {
    let mut first = [0; PREFACE.len()];
    loop {
        let count = stream.peek(&mut first).await?;
        let seen = &first[..count];
        if seen.is_empty() || !PREFACE.starts_with(seen) {
            return Ok(Spoken::Http1);
        }
        if count == PREFACE.len() {
            return Ok(Spoken::Http2);
        }
        // The kernel tells that there are bytes, and not that there are more than before.
        tokio::time::sleep(PREFACE_PAUSE).await;
    }
}

/// HTTP/2 names its host in another place; from here on it is where HTTP/1.1 has it.
fn name_host(request: &mut Request<Incoming>) {
    if request.version() != Version::HTTP_2 || request.headers().contains_key(HOST) {
        return;
    }
    let authority = request.uri().authority();
    let host = authority.and_then(|name| HeaderValue::from_str(name.as_str()).ok());
    if let Some(host) = host {
        request.headers_mut().insert(HOST, host);
    }
}

/// Runs a connection to its end, which is soon after it is over, and at once when it is cut.
async fn drive<C>(
    connection: C,
    finish: impl FnOnce(Pin<&mut C>),
    over: impl Future<Output = ()>,
    cut: impl Future<Output = ()>,
) where
    C: Future<Output = hyper::Result<()>>,
{
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => {
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended early");
            }
            return;
        }
        () = cut => return,
        () = over => finish(connection.as_mut()),
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

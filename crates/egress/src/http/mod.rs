//! Plain HTTP/1.1: every request is read, decided, and written anew.
//!
//! A request is never passed on as the bytes in which it came. The HTTP library parses it, the name
//! that it is for is decided, and the library writes it again to a connection whose address was
//! looked at. So nothing that two parsers read in two ways gets to the second one. In front of the
//! library stands a gate that refuses what a strict client never sends.
//!
//! ```text
//! guest -> gate -> library -> service: authority, decide, dial -> forward -> library -> outside
//! ```

mod authority;
mod denial;
mod forward;
mod gate;
mod head;
mod headers;
mod service;
mod upstream;

pub use head::{BadHead, Framing, Head, HeadReader};

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};

use crate::connection::{Session, Socket, Stream, linger};
use gate::Gate;
use service::Conversation;

/// How long a connection may stay open between two requests.
const NEXT_REQUEST_LIMIT: Duration = Duration::from_secs(60);
const HEADERS_MAX: usize = 128;
/// What is held of one side that the other side does not take. A guest can leave as many answers
/// unread as it may have connections, and all guests share one process.
const BUFFER_BYTES: usize = 64 << 10;

/// Serves a connection whose first bytes look like a request.
pub(crate) async fn serve(session: Arc<Session>, guest: Arc<Socket>, opening: Vec<u8>) {
    let (gate, heads) = Gate::new(Stream::new(Arc::clone(&guest)), opening);
    let conversation = Arc::new(Conversation::new(session, heads));
    let answering = Arc::clone(&conversation);
    let service = service_fn(move |request| {
        let conversation = Arc::clone(&answering);
        async move { Ok::<_, Infallible>(conversation.answer(request).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(NEXT_REQUEST_LIMIT)
        .max_headers(HEADERS_MAX)
        .max_buf_size(BUFFER_BYTES)
        .half_close(true)
        .preserve_header_case(true)
        .serve_connection(TokioIo::new(gate), service)
        .with_upgrades()
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a guest's HTTP connection ended");
    }
    conversation.run_tunnel().await;
    linger(&guest).await;
}

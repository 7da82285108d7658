//! Services as they run in sandboxes: one that is well-behaved, and one that says anything.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::extract::ws::{Message, WebSocketUpgrade};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use bytes::Bytes;
use futures::StreamExt;
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Starts a service that tells what it was asked, and does what its paths say.
pub(crate) async fn start() -> SocketAddr {
    let router = Router::new()
        .route("/stream", any(stream))
        .route("/forever", get(forever))
        .route(
            "/missing",
            get(async || (StatusCode::NOT_FOUND, "the service's own")),
        )
        .route("/headers", get(headers))
        .route("/socket", any(socket))
        .fallback(tell);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// Starts a service that answers every first bytes of a connection with these.
pub(crate) async fn start_raw(answer: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = [0; 1024];
            let _ = stream.read(&mut buffer).await;
            let _ = stream.write_all(answer).await;
        }
    });
    address
}

async fn tell(request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let value = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        (
            name.to_string(),
            String::from_utf8_lossy(value.as_bytes()).into_owned(),
        )
    };
    let headers: Vec<(String, String)> = head.headers.iter().map(value).collect();
    let told = json!({
        "method": head.method.as_str(),
        "uri": head.uri.to_string(),
        "headers": headers,
        "body": String::from_utf8_lossy(&body),
    });
    axum::Json(told).into_response()
}

/// Gives back what comes, as it comes.
async fn stream(request: Request) -> Body {
    Body::from_stream(request.into_body().into_data_stream())
}

async fn forever() -> Body {
    let begin = futures::stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"begin"))]);
    Body::from_stream(begin.chain(futures::stream::pending()))
}

async fn headers() -> (HeaderMap, &'static str) {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("set-cookie", "mine=1; Domain=localhost; Path=/"),
        ("set-cookie", "dayfly_port_1_sb-x=evil; Path=/"),
        ("clear-site-data", "\"*\""),
        ("x-request-id", "the service's own"),
        ("connection", "x-private"),
        ("x-private", "1"),
    ] {
        headers.append(name, value.parse().unwrap());
    }
    (headers, "")
}

/// Gives back every message.
async fn socket(upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(|mut socket| async move {
        while let Some(Ok(message)) = socket.recv().await {
            if matches!(message, Message::Close(_)) || socket.send(message).await.is_err() {
                return;
            }
        }
    })
}

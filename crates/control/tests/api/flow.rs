//! Backpressure: a peer that stands still holds back the other end.

use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use dayfly_control::admission::limit::Limits;
use futures::StreamExt;
use http::{Method, StatusCode};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::support::{Setup, Step, World, eventually};

/// All buffers between a guest and a client that does not read: two sockets, two HTTP
/// connections, one event and its escapes.
const IN_FLIGHT_BYTES_MAX: u64 = 2 << 20;

/// A connection with small buffers on which `request` was sent.
async fn send_raw(world: &World, request: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(16 << 10).unwrap();
    let mut stream = socket.connect(world.address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

fn exec_request(world: &World, id: &str, route: &str, command: &str) -> String {
    let body = json!({"cmd": command}).to_string();
    format!(
        "POST /v1/sandboxes/{id}/{route} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        world.key,
        body.len()
    )
}

#[tokio::test]
async fn a_client_that_does_not_read_holds_back_the_guest() {
    let world = World::start().await;
    let id = world.create().await;
    world
        .node
        .script("yes", [Step::Endless(Bytes::from(vec![b'y'; 32 << 10]))]);
    let stream = send_raw(&world, &exec_request(&world, &id, "exec/stream", "yes")).await;
    let out = &world.node.counters.bytes_out;
    let mut before = 0;
    eventually("the guest stands still", async || {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let now = out.load(Ordering::SeqCst);
        let still = now > 0 && now == before;
        before = now;
        still
    })
    .await;
    assert!(before < IN_FLIGHT_BYTES_MAX, "{before} bytes are in flight");
    drop(stream);
    let dropped = &world.node.counters.dropped;
    eventually("the node's stream is dropped", async || {
        dropped.load(Ordering::SeqCst) == 1
    })
    .await;
}

#[tokio::test]
async fn a_node_that_does_not_take_holds_back_the_upload() {
    let world = World::start().await;
    let id = world.create().await;
    let sent = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let counter = std::sync::Arc::clone(&sent);
    let pieces = futures::stream::repeat(Bytes::from(vec![0; 64 << 10]))
        .take(512)
        .map(move |piece| {
            counter.fetch_add(piece.len() as u64, Ordering::SeqCst);
            Ok::<_, std::convert::Infallible>(piece)
        });
    let path = format!("/v1/sandboxes/{id}/fs?path=/slow");
    let request = world
        .request(Method::PUT, &path)
        .body(Body::from_stream(pieces))
        .unwrap();
    let upload = world.http.request(request);
    let taken = &world.node.counters.bytes_in;
    let watch = async {
        eventually("a mebibyte arrived", async || {
            taken.load(Ordering::SeqCst) > 1 << 20
        })
        .await;
        let ahead = sent.load(Ordering::SeqCst) - taken.load(Ordering::SeqCst);
        assert!(
            ahead < 4 * IN_FLIGHT_BYTES_MAX,
            "{ahead} bytes are in flight"
        );
    };
    // Ending the race drops the upload, which the node must see as broken off.
    tokio::select! {
        _ = upload => panic!("32 MiB at 1 MiB a second cannot be done"),
        () = watch => {}
    }
}

#[tokio::test]
async fn execs_over_the_limit_are_refused_and_places_come_back() {
    let setup = Setup {
        limits: Limits::with(64, 1),
        ..Setup::default()
    };
    let world = World::with(setup).await;
    let id = world.create().await;
    world.node.script(
        "sleep",
        [
            Step::Stdout("a".into()),
            Step::Pause(Duration::from_secs(3600)),
        ],
    );
    let path = format!("/v1/sandboxes/{id}/exec/stream");
    let held = world
        .open(world.post_request(&path, &json!({"cmd": "sleep"})))
        .await;
    assert_eq!(held.status(), StatusCode::OK);
    let refused = world.post(&path, json!({"cmd": "true"})).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.refusal(), "too_many");
    assert!(refused.headers.contains_key("retry-after"));
    drop(held);
    eventually("the place is free", async || {
        world.post(&path, json!({"cmd": "true"})).await.status == StatusCode::OK
    })
    .await;
}

#[tokio::test]
async fn requests_over_the_cap_are_refused_but_health_is_not() {
    let setup = Setup {
        limits: Limits::with(1, 8),
        ..Setup::default()
    };
    let world = World::with(setup).await;
    let id = world.create().await;
    world
        .node
        .script("sleep", [Step::Pause(Duration::from_secs(3600))]);
    let mut held = send_raw(&world, &exec_request(&world, &id, "exec", "sleep")).await;
    eventually("the cap is reached", async || {
        world.get("/v1/me").await.status == StatusCode::TOO_MANY_REQUESTS
    })
    .await;
    assert_eq!(world.get("/health").await.status, StatusCode::OK);
    held.shutdown().await.unwrap();
    let mut rest = Vec::new();
    let _ = held.read_to_end(&mut rest).await;
    eventually("the place is free", async || {
        world.get("/v1/me").await.status == StatusCode::OK
    })
    .await;
}

//! Bytes between visitors and services: streams, upgrades, limits, and logs.

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use dayfly_control::GatewaySettings;
use futures::{SinkExt, StreamExt};
use http::{Method, StatusCode};
use http_body_util::BodyExt;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::gateway::{PORT, answer, by_host, host, served, visit, with_key};
use crate::support::log::Log;
use crate::support::{Setup, World, service};

#[tokio::test]
async fn bodies_flow_both_ways_at_once() {
    let (world, id) = served(Setup::default()).await;
    let (sender, receiver) = mpsc::channel::<Result<Bytes, std::io::Error>>(1);
    let request = with_key(&world, by_host(&world, &id, "/stream").method("POST"));
    let body = Body::from_stream(ReceiverStream::new(receiver));
    sender.send(Ok(Bytes::from_static(b"0"))).await.unwrap();
    let response = world.open(request.body(body).unwrap()).await;
    assert_eq!(response.status(), StatusCode::OK);
    let mut body = response.into_body();
    let mut received = Vec::new();
    for step in 0_u8..20 {
        let frame = body.frame().await.unwrap().unwrap();
        received.extend_from_slice(&frame.into_data().unwrap());
        assert_eq!(received.len(), usize::from(step) + 1);
        sender.send(Ok(Bytes::from(vec![step]))).await.unwrap();
    }
    drop(sender);
    received.extend_from_slice(&body.collect().await.unwrap().to_bytes());
    assert_eq!(received.len(), 21);
    // Large ones, of known length and not.
    let large = Bytes::from(vec![7; 5 << 20]);
    let piece = || Ok::<_, std::io::Error>(large.clone());
    let pieces = futures::stream::iter([piece(), piece()]);
    for (body, length) in [
        (Body::from(large), 5 << 20),
        (Body::from_stream(pieces), 10 << 20),
    ] {
        let request = with_key(&world, by_host(&world, &id, "/stream").method("PUT"));
        let echoed = answer(&world, request.body(body).unwrap()).await;
        assert_eq!(echoed.body.len(), length);
    }
}

#[tokio::test]
async fn heads_without_bodies_keep_their_length() {
    let (world, id) = served(Setup::default()).await;
    let raw = b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n";
    world.node.listen(&id, 9, service::start_raw(raw).await);
    let path = format!("/v1/sandboxes/{id}/ports/9/http/");
    let head = visit(&world, world.request(Method::HEAD, &path)).await;
    assert_eq!(
        (head.status, &head.headers["content-length"]),
        (StatusCode::OK, &"12".parse().unwrap())
    );
    // Two lengths: the one that was read is the one that is told.
    let raw = b"HTTP/1.1 200 OK\r\ncontent-length: 999\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    world.node.listen(&id, 10, service::start_raw(raw).await);
    let path = format!("/v1/sandboxes/{id}/ports/10/http/");
    let told = visit(&world, world.request(Method::GET, &path)).await;
    assert_eq!(told.text(), "ok");
}

async fn websocket(
    world: &World,
    uri: String,
    headers: &[(&'static str, &str)],
) -> WebSocketStream<TcpStream> {
    let stream = TcpStream::connect(world.address).await.unwrap();
    let mut request = uri.into_client_request().unwrap();
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    let (socket, _) = tokio_tungstenite::client_async(request, stream)
        .await
        .unwrap();
    socket
}

async fn echoes(socket: &mut WebSocketStream<TcpStream>) -> bool {
    if socket.send(Message::text("hello")).await.is_err() {
        return false;
    }
    let next = tokio::time::timeout(Duration::from_secs(5), socket.next()).await;
    matches!(next, Ok(Some(Ok(Message::Text(text)))) if text == "hello")
}

#[tokio::test]
async fn websockets_pass_in_both_forms_and_are_cut_with_their_link() {
    let (world, id) = served(Setup::default()).await;
    let links = format!("/v1/sandboxes/{id}/ports/{PORT}/links");
    let link = world.post(&links, json!({})).await.json();
    let token = link["token"].as_str().unwrap();
    let by_name = format!("ws://{}/socket", host(&id));
    let path = format!("/v1/sandboxes/{id}/ports/{PORT}/http/socket");
    let by_path = format!("ws://{}{path}", world.address);
    let key = format!("Bearer {}", world.key);
    let mut by_key = websocket(&world, by_path, &[("authorization", &key)]).await;
    assert!(echoes(&mut by_key).await);
    let mut by_header = websocket(&world, by_name.clone(), &[("x-dayfly-token", token)]).await;
    let mut by_query = websocket(&world, format!("{by_name}?dayfly_token={token}"), &[]).await;
    assert!(echoes(&mut by_header).await && echoes(&mut by_query).await);
    let received = String::from_utf8_lossy(&world.node.received()).into_owned();
    assert!(!received.contains(token) && !received.contains(&world.key));
    let link = link["id"].as_str().unwrap();
    let revoked = world.delete(&format!("{links}/{link}")).await;
    assert_eq!(revoked.status, StatusCode::NO_CONTENT);
    for mut socket in [by_header, by_query] {
        let next = tokio::time::timeout(Duration::from_secs(1), socket.next()).await;
        assert!(matches!(next, Ok(None | Some(Err(_)))), "{next:?}");
    }
    assert!(echoes(&mut by_key).await);
}

#[tokio::test]
async fn another_protocol_passes_after_the_service_s_consent() {
    let (world, id) = served(Setup::default()).await;
    let raw = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: my-own\r\n\r\nfirst words";
    world.node.listen(&id, 9, service::start_raw(raw).await);
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    let key = &world.key;
    let head = format!(
        "GET / HTTP/1.1\r\nhost: 9-{id}.localhost\r\nconnection: upgrade\r\nupgrade: my-own\r\nauthorization: Bearer {key}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 101"), "{answer}");
    assert!(answer.contains("upgrade: my-own") && answer.ends_with("\r\n\r\nfirst words"));
    // A service that does not consent is answered from as usual.
    let refused = with_key(&world, by_host(&world, &id, "/plain"))
        .header("connection", "upgrade")
        .header("upgrade", "my-own");
    assert_eq!(visit(&world, refused).await.json()["uri"], "/plain");
}

#[tokio::test]
async fn a_silent_service_is_cut_off() {
    let setup = Setup {
        gateway: GatewaySettings {
            idle_max: Duration::from_millis(300),
            ..GatewaySettings::default()
        },
        ..Setup::default()
    };
    let (world, id) = served(setup).await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    world.node.listen(&id, 9, silent.local_addr().unwrap());
    let late = world
        .get(&format!("/v1/sandboxes/{id}/ports/9/http/"))
        .await;
    assert_eq!(
        (late.status.as_u16(), late.refusal()),
        (504, "timeout".to_owned())
    );
    let request = with_key(&world, by_host(&world, &id, "/forever"));
    let response = world.open(request.body(Body::empty()).unwrap()).await;
    assert!(response.into_body().collect().await.is_err());
}

#[tokio::test]
async fn keys_and_tokens_are_in_no_log() {
    let (log, _guard) = Log::keep();
    let (world, id) = served(Setup::default()).await;
    let links = format!("/v1/sandboxes/{id}/ports/{PORT}/links");
    let link = world.post(&links, json!({})).await.json();
    let token = link["token"].as_str().unwrap();
    let cookie = format!("dayfly_port_{PORT}_{id}={token}");
    for request in [
        with_key(&world, by_host(&world, &id, "/")),
        by_host(&world, &id, "/").header("cookie", cookie),
        by_host(&world, &id, "/").header("x-dayfly-token", token),
        by_host(&world, &id, &format!("/?dayfly_token={token}")),
        by_host(&world, &id, &format!("/?dayfly_token={token}")).method("POST"),
        by_host(&world, "sb-local-other", &format!("/?dayfly_token={token}")),
        with_key(&world, by_host(&world, "sb-local-other", "/")),
    ] {
        visit(&world, request).await;
    }
    let log = log.text();
    assert!(log.contains("request_id"), "{log}");
    assert!(!log.contains(token) && !log.contains(&world.key));
}

#[tokio::test]
async fn old_clients_are_served() {
    let (world, id) = served(Setup::default()).await;
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    let (key, host) = (&world.key, host(&id));
    let head = format!("GET /old HTTP/1.0\r\nhost: {host}\r\nauthorization: Bearer {key}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.0 200"), "{answer}");
    assert!(answer.contains("\"uri\":\"/old\"") && !answer.contains("chunked"));
}

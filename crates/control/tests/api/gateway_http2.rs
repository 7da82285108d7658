//! Visitors that speak HTTP/2 from the first byte, as a proxy in front of us may.

use axum::body::Body;
use bytes::Bytes;
use futures::future::join_all;
use http::{Request, StatusCode, Version};
use http_body_util::BodyExt;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::gateway::{host, served};
use crate::support::{Setup, World};

async fn dial(world: &World) -> SendRequest<Body> {
    let stream = TcpStream::connect(world.address).await.unwrap();
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    sender
}

async fn ask(
    sender: &SendRequest<Body>,
    request: http::request::Builder,
    body: Body,
) -> (StatusCode, Bytes) {
    let request = request.version(Version::HTTP_2).body(body).unwrap();
    let answer = sender.clone().send_request(request).await.unwrap();
    assert_eq!(answer.version(), Version::HTTP_2);
    let status = answer.status();
    (
        status,
        answer.into_body().collect().await.unwrap().to_bytes(),
    )
}

#[tokio::test]
async fn many_requests_share_a_connection_and_a_service_sees_plain_ones() {
    let (world, id) = served(Setup::default()).await;
    let sender = dial(&world).await;
    let key = format!("Bearer {}", world.key);
    let requests = (0..20).map(|number| {
        let request = Request::post(format!("http://{}/n{number}?a=b", host(&id)))
            .header("authorization", &key)
            .header("cookie", "a=1")
            .header("cookie", format!("dayfly_port_8080_{id}=dpt_x"))
            .header("cookie", "b=2")
            .header("x-forwarded-for", "10.0.0.1");
        ask(&sender, request, Body::from(format!("body {number}")))
    });
    for (number, (status, body)) in join_all(requests).await.into_iter().enumerate() {
        assert_eq!(status, StatusCode::OK);
        let told: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(told["uri"], format!("/n{number}?a=b"));
        assert_eq!(told["body"], format!("body {number}"));
        let headers = told["headers"].as_array().unwrap();
        let all = |name: &str| -> Vec<&Value> {
            let named = headers.iter().filter(|header| header[0] == name);
            named.map(|header| &header[1]).collect()
        };
        assert_eq!(all("host"), [&Value::from(host(&id))]);
        assert_eq!(all("cookie"), ["a=1; b=2"]);
        assert_eq!(all("x-forwarded-for"), ["127.0.0.1"]);
        assert!(all("authorization").is_empty());
    }
}

#[tokio::test]
async fn a_stranger_and_a_doubtful_host_are_refused_and_the_api_answers() {
    let (world, id) = served(Setup::default()).await;
    let sender = dial(&world).await;
    let key = format!("Bearer {}", world.key);
    let before = world.node.port_calls();
    let stranger = Request::get(format!("http://{}/", host(&id)));
    assert_eq!(
        ask(&sender, stranger, Body::empty()).await.0,
        StatusCode::NOT_FOUND
    );
    let doubtful = Request::get("http://localhost/")
        .header("host", host(&id))
        .header("authorization", &key);
    assert_eq!(
        ask(&sender, doubtful, Body::empty()).await.0,
        StatusCode::BAD_REQUEST
    );
    assert_eq!(world.node.port_calls(), before);
    let api = Request::get("http://localhost/v1/sandboxes").header("authorization", &key);
    let (status, body) = ask(&sender, api, Body::empty()).await;
    assert_eq!(status, StatusCode::OK);
    let listed: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(listed["items"][0]["id"], id);
}

#[tokio::test]
async fn streams_pass_as_they_come() {
    let (world, id) = served(Setup::default()).await;
    let sender = dial(&world).await;
    let large = vec![7; 3 << 20];
    let request = Request::put(format!("http://{}/stream", host(&id)))
        .header("authorization", format!("Bearer {}", world.key));
    let (status, body) = ask(&sender, request, Body::from(large.clone())).await;
    assert_eq!((status, body.len()), (StatusCode::OK, large.len()));
}

#[tokio::test]
async fn half_a_preface_and_an_early_end_harm_nobody() {
    let (world, _) = served(Setup::default()).await;
    let mut half = TcpStream::connect(world.address).await.unwrap();
    half.write_all(b"PRI * HTTP/2.0\r\n\r\n").await.unwrap();
    // Not HTTP/2 after all, but a request that begins like it.
    let mut other = TcpStream::connect(world.address).await.unwrap();
    other.write_all(b"P").await.unwrap();
    other
        .write_all(b"UT /v1/health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .await
        .unwrap();
    let mut answer = String::new();
    other.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
    // The rest of the preface still makes it one.
    half.write_all(b"SM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .await
        .unwrap();
    let mut first = [0; 4];
    half.read_exact(&mut first).await.unwrap();
    // A frame of settings.
    assert_eq!(first[3], 4);
}

//! What Prometheus reads.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use axum::body::Body;
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use tokio::io::AsyncWriteExt as _;

use crate::support::{Setup, World, eventually};

async fn world() -> World {
    let setup = Setup {
        has_metrics: true,
        ..Setup::default()
    };
    World::with(setup).await
}

async fn get(world: &World, path: &str) -> (StatusCode, String) {
    let uri = format!("http://{}{path}", world.metrics_address.unwrap());
    let request = Request::get(uri).body(Body::empty()).unwrap();
    let answer = world.open(request).await;
    let status = answer.status();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

/// Every series with its value. A line that is no series is refused.
async fn series(world: &World) -> BTreeMap<String, f64> {
    let (status, text) = get(world, "/metrics").await;
    assert_eq!(status, StatusCode::OK);
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(name.starts_with("dayfly_"), "{line}");
            (name.to_owned(), value.parse().unwrap())
        })
        .collect()
}

#[tokio::test]
async fn requests_are_counted_by_route_and_nothing_has_an_id() {
    let world = world().await;
    let id = world.create().await;
    world.get(&format!("/v1/sandboxes/{id}")).await;
    world.get("/v1/sandboxes/sb-local-nobody").await;
    world.get("/nowhere").await;
    let strange = Method::from_bytes(b"STRANGE").unwrap();
    let request = world.request(strange, "/nowhere").body(Body::empty());
    world.send(request.unwrap()).await;
    let (_, text) = get(&world, "/metrics").await;
    let prefix = world.key.split('_').next_back().unwrap();
    assert!(!text.contains(&id) && !text.contains(prefix), "{text}");
    let found = series(&world).await;
    let requests = |route: &str, method: &str, code: u16| {
        let name = format!(
            "dayfly_http_requests_total{{code=\"{code}\",method=\"{method}\",route=\"{route}\"}}"
        );
        found.get(&name).copied()
    };
    assert_eq!(
        requests("/v1/sandboxes", "POST", 201),
        Some(1.0),
        "{found:#?}"
    );
    assert_eq!(requests("/v1/sandboxes/{id}", "GET", 200), Some(1.0));
    assert_eq!(requests("/v1/sandboxes/{id}", "GET", 404), Some(1.0));
    assert_eq!(requests("none", "GET", 404), Some(1.0));
    assert_eq!(requests("none", "other", 404), Some(1.0));
    assert_eq!(found["dayfly_refusals_total{code=\"not_found\"}"], 1.0);
    let count =
        "dayfly_http_request_duration_seconds_count{method=\"POST\",route=\"/v1/sandboxes\"}";
    assert_eq!(found[count], 1.0);
}

#[tokio::test]
async fn what_there_is_is_looked_up_when_it_is_read() {
    let world = world().await;
    let running = "dayfly_sandboxes{state=\"running\",template=\"base\"}";
    assert_eq!(series(&world).await.get(running), None);
    let id = world.create().await;
    // What was read half a second ago is read again.
    eventually("it is counted", async || {
        series(&world).await.get(running) == Some(&1.0)
    })
    .await;
    let found = series(&world).await;
    assert_eq!(found["dayfly_node_up"], 1.0);
    assert_eq!(
        found["dayfly_degraded{condition=\"node_unreachable\"}"],
        0.0
    );
    assert!(found.contains_key("dayfly_memory_bytes{kind=\"total\"}"));
    assert!(
        found
            .keys()
            .any(|name| name.starts_with("dayfly_build_info{version="))
    );
    world.delete(&format!("/v1/sandboxes/{id}")).await;
    eventually("it is counted no more", async || {
        !series(&world).await.contains_key(running)
    })
    .await;
    world.stop_node().await;
    eventually("the node is shown as away", async || {
        series(&world).await["dayfly_node_up"] == 0.0
    })
    .await;
    let found = series(&world).await;
    assert!(!found.contains_key("dayfly_memory_bytes{kind=\"total\"}"));
}

#[tokio::test]
async fn a_node_that_hangs_keeps_nobody_waiting() {
    let world = world().await;
    world.stop_node().await;
    let _hangs = world.hang_node();
    let began = Instant::now();
    let (first, second) = tokio::join!(series(&world), series(&world));
    assert!(
        began.elapsed() < Duration::from_secs(4),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(
        (first["dayfly_node_up"], second["dayfly_node_up"]),
        (0.0, 0.0)
    );
    assert_eq!(first.len(), second.len());
}

#[tokio::test]
async fn a_caller_that_hangs_up_is_counted() {
    let world = world().await;
    world.stop_node().await;
    let _hangs = world.hang_node();
    let mut stream = tokio::net::TcpStream::connect(world.address).await.unwrap();
    let head = format!(
        "POST /v1/sandboxes HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{{}}",
        world.key
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    drop(stream);
    let hung_up = "dayfly_http_requests_total{code=\"499\",method=\"POST\",route=\"none\"}";
    eventually("it is counted", async || {
        series(&world).await.contains_key(hung_up)
    })
    .await;
}

#[tokio::test]
async fn the_listener_has_metrics_and_nothing_else() {
    let world = world().await;
    assert_eq!(get(&world, "/v1/me").await.0, StatusCode::NOT_FOUND);
    assert_eq!(get(&world, "/health").await.0, StatusCode::NOT_FOUND);
    assert_eq!(world.get("/metrics").await.refusal(), "no_such_route");
}

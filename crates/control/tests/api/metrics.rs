//! What Prometheus reads.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use dayfly_control::{Certificate, ShownCertificate};
use dayfly_node_api::NodeError;
use dayfly_types::ErrorCode;
use dayfly_types::exec::ExitReason;
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use rcgen::{CertificateParams, KeyPair};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use crate::support::{Setup, Step, World, eventually, exited};

const CERTIFICATE: &str = "dayfly_tls_certificate_expiry_timestamp_seconds";

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
async fn commands_are_counted_by_how_they_ended() {
    let world = world().await;
    let id = world.create().await;
    let ended = |reason: ExitReason| {
        let mut end = exited(137);
        end.exit.reason = reason;
        Step::Exit(end)
    };
    let lost = NodeError::new(ErrorCode::GuestUnavailable, "gone");
    for (command, step) in [
        ("fine", Step::Exit(exited(0))),
        ("wrong", Step::Exit(exited(3))),
        ("signal", ended(ExitReason::Signaled)),
        ("late", ended(ExitReason::TimedOut)),
        ("large", ended(ExitReason::OutOfMemory)),
        ("kill", ended(ExitReason::Killed)),
        ("greedy", ended(ExitReason::LimitExceeded)),
        ("lost", Step::Fail(lost)),
    ] {
        world.node.script(command, [step]);
        let path = format!("/v1/sandboxes/{id}/exec");
        world.post(&path, json!({"cmd": command})).await;
    }
    let background = json!({"cmd": "wrong", "background": true});
    let path = format!("/v1/sandboxes/{id}/exec");
    world.post(&path, background).await;
    let ends = [
        ("exit_zero", 1.0),
        ("exit_nonzero", 2.0),
        ("signaled", 1.0),
        ("timed_out", 1.0),
        ("out_of_memory", 1.0),
        ("killed", 1.0),
        ("limit_exceeded", 1.0),
        ("lost", 1.0),
        ("unseen", 0.0),
    ];
    eventually("each is counted once", async || {
        let found = series(&world).await;
        ends.iter().all(|(end, count)| {
            found.get(&format!("dayfly_execs_total{{end=\"{end}\"}}")) == Some(count)
        })
    })
    .await;
}

#[tokio::test]
async fn a_capture_is_counted_with_its_pause() {
    let world = world().await;
    let id = world.create().await;
    let taken = world
        .post(&format!("/v1/sandboxes/{id}/snapshots"), json!({}))
        .await;
    assert_eq!(taken.status, StatusCode::CREATED, "{}", taken.text());
    let forked = world
        .post(&format!("/v1/sandboxes/{id}/fork"), json!({"count": 2}))
        .await;
    assert!(forked.status.is_success(), "{}", forked.text());
    let found = series(&world).await;
    for kind in ["snapshot", "fork"] {
        let of =
            |what: &str| found[&format!("dayfly_capture_pause_seconds_{what}{{kind=\"{kind}\"}}")];
        assert_eq!((of("count"), of("sum")), (1.0, 0.0015), "{kind}");
    }
}

#[tokio::test]
async fn what_the_node_counts_is_told() {
    let world = world().await;
    let before = series(&world).await;
    // What was told before is not added to.
    world.create().await;
    eventually("it is looked up again", async || {
        let running = "dayfly_sandboxes{state=\"running\",template=\"base\"}";
        series(&world).await.contains_key(running)
    })
    .await;
    for found in [before, series(&world).await] {
        for (process, times) in [("control", 2.0), ("node", 3.0), ("egress", 4.0)] {
            let name = format!("dayfly_process_restarts_total{{process=\"{process}\"}}");
            assert_eq!(found[&name], times, "{name}");
        }
        for (labels, count) in [
            ("decision=\"denied\",kind=\"tls\",reason=\"no_rule\"", 5.0),
            ("decision=\"allowed\",kind=\"dns\",reason=\"none\"", 0.0),
            ("decision=\"denied\",kind=\"dns\",reason=\"limit\"", 0.0),
        ] {
            let name = format!("dayfly_egress_decisions_total{{{labels}}}");
            assert_eq!(found[&name], count, "{name}");
        }
        assert!(!found.contains_key(CERTIFICATE));
    }
}

#[tokio::test]
async fn the_certificate_that_is_shown_is_told_until_when() {
    let certificate = |year: i32| {
        let mut params = CertificateParams::new(vec!["dayfly.test".to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        let key = KeyPair::generate().unwrap();
        let chain = params.self_signed(&key).unwrap().pem();
        let key = key.serialize_pem();
        Certificate::from_pem(chain.as_bytes(), key.as_bytes()).unwrap()
    };
    let shown = Arc::new(ShownCertificate::new(certificate(2040)));
    let world = World::with(Setup {
        tls: Some(Arc::clone(&shown)),
        has_metrics: true,
        ..Setup::default()
    })
    .await;
    assert_eq!(series(&world).await[CERTIFICATE], 2_208_988_800.0);
    shown.replace(certificate(2041));
    eventually("the other one is told", async || {
        series(&world).await[CERTIFICATE] == 2_240_611_200.0
    })
    .await;
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

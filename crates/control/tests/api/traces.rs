//! Traces of requests, as a receiver with the published messages gets them.

use std::collections::HashMap;

use axum::body::Body;
use dayfly_testkit::trace_receiver::{Span, TraceReceiver, Value, attribute};
use dayfly_trace::ExportSettings;
use http::{Method, Request, StatusCode};
use serde_json::json;

use crate::mcp_http;
use crate::support::{Setup, World};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";
const SERVER: i32 = 2;
const CLIENT: i32 = 3;

async fn world(sampler: &'static str) -> (World, TraceReceiver) {
    let receiver = TraceReceiver::start(&[]).await.unwrap();
    let settings = ExportSettings::from_variables(|name| match name {
        "OTEL_EXPORTER_OTLP_ENDPOINT" => Some(receiver.url()),
        "OTEL_TRACES_SAMPLER" => Some(sampler.to_owned()),
        _ => None,
    });
    let setup = Setup {
        traces: settings.unwrap(),
        has_metrics: true,
        ..Setup::default()
    };
    (World::with(setup).await, receiver)
}

fn parent(flags: &str) -> String {
    format!("00-{TRACE}-{CALLER}-{flags}")
}

fn traced(world: &World, method: Method, path: &str, parents: &[&str]) -> Request<Body> {
    let request = world.request(method, path);
    let request = request.header("content-type", "application/json");
    let named = parents.iter().fold(request, |request, parent| {
        request.header("traceparent", *parent)
    });
    named.body(Body::from("{}")).unwrap()
}

fn is_request(span: &Span) -> bool {
    span.kind == SERVER && attribute(span, "http.route").is_some()
}

fn text(span: &Span, key: &str) -> String {
    match attribute(span, key) {
        Some(Value::StringValue(text)) => text.clone(),
        other => panic!("{key} of {span:?} is {other:?}"),
    }
}

/// Names of all spans from the top down to this one.
fn path(spans: &[Span], span: &Span) -> Vec<String> {
    let by_id: HashMap<_, _> = spans.iter().map(|span| (&span.span_id, span)).collect();
    let mut names = vec![span.name.clone()];
    let mut above = by_id.get(&span.parent_span_id);
    while let Some(span) = above {
        names.insert(0, span.name.clone());
        above = by_id.get(&span.parent_span_id);
    }
    names
}

fn named<'a>(spans: &'a [Span], name: &str, kind: i32) -> &'a Span {
    let found = spans
        .iter()
        .find(|span| span.name == name && span.kind == kind);
    found.unwrap_or_else(|| panic!("no {name}: {spans:#?}"))
}

#[tokio::test]
async fn a_create_has_its_stages_under_the_callers_span() {
    let (world, mut receiver) = world("parentbased_always_on").await;
    let mut request = traced(&world, Method::POST, "/v1/sandboxes", &[&parent("01")]);
    let state = "vendor=a".parse().unwrap();
    request.headers_mut().insert("tracestate", state);
    let answer = world.send(request).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text());
    let spans = receiver.until(is_request).await;
    let request = named(&spans, "POST /v1/sandboxes", SERVER);
    assert_eq!(hex::encode(&request.parent_span_id), CALLER);
    assert_eq!(text(request, "http.route"), "/v1/sandboxes");
    assert_eq!(text(request, "dayfly.project"), "default");
    let id = answer.headers["x-request-id"].to_str().unwrap();
    assert_eq!(text(request, "dayfly.request_id"), id);
    for span in &spans {
        assert_eq!(hex::encode(&span.trace_id), TRACE);
        assert_eq!(span.trace_state, "vendor=a");
        let within = request.start_time_unix_nano..=request.end_time_unix_nano;
        assert!(within.contains(&span.start_time_unix_nano), "{span:?}");
        assert!(within.contains(&span.end_time_unix_nano), "{span:?}");
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano);
        assert_eq!(path(&spans, span)[0], "POST /v1/sandboxes", "{span:?}");
    }
    let restore = named(&spans, "node.restore", 1);
    let whole = [
        "POST /v1/sandboxes",
        "control.start",
        "node.ensure_sandbox",
        "node.ensure_sandbox",
        "node.restore",
    ];
    assert_eq!(path(&spans, restore), whole);
    let sandbox = answer.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(text(restore, "dayfly.sandbox_id"), sandbox);
    named(&spans, "node.ensure_sandbox", CLIENT);
    for stage in ["identify", "plan", "record", "finish"] {
        named(&spans, &format!("control.{stage}"), 1);
    }
}

#[tokio::test]
async fn what_strangers_send_and_what_the_caller_does_not_keep_is_not_traced() {
    let (world, mut receiver) = world("parentbased_always_on").await;
    let stranger = Request::get(format!("http://{}/v1/me", world.address))
        .header("traceparent", parent("01"))
        .header("authorization", "Bearer wrong");
    world.send(stranger.body(Body::empty()).unwrap()).await;
    let health = traced(&world, Method::GET, "/health", &[&parent("01")]);
    world.send(health).await;
    let unkept = traced(&world, Method::GET, "/v1/me", &[&parent("00")]);
    world.send(unkept).await;
    // The positive control, and the end of what is looked at.
    let kept = traced(&world, Method::GET, "/v1/templates", &[&parent("01")]);
    world.send(kept).await;
    let spans = receiver.until(is_request).await;
    let requests: Vec<_> = spans.iter().filter(|span| is_request(span)).collect();
    let [only] = requests.as_slice() else {
        panic!("{requests:#?}");
    };
    assert_eq!(only.name, "GET /v1/templates");
}

#[tokio::test]
async fn a_parent_that_is_not_well_formed_begins_a_new_trace() {
    let (world, mut receiver) = world("parentbased_always_on").await;
    let good = parent("01");
    let zero = good.replace(CALLER, &"0".repeat(16));
    let long = format!("{good}-{}", "a".repeat(60_000 / 2));
    let wrong: [&[&str]; 5] = [
        &[],
        &[&zero],
        &[&long],
        &[&good, &good],
        &["00-secret-secret-01"],
    ];
    for parents in wrong {
        world
            .send(traced(&world, Method::GET, "/v1/me", parents))
            .await;
        let spans = receiver.until(is_request).await;
        let request = spans.iter().find(|span| is_request(span)).unwrap();
        assert!(request.parent_span_id.is_empty(), "{request:?}");
        assert_ne!(hex::encode(&request.trace_id), TRACE);
        assert_eq!(request.trace_id.len(), 16);
    }
}

#[tokio::test]
async fn no_span_has_what_a_user_wrote() {
    let (world, mut receiver) = world("always_on").await;
    let id = world.create().await;
    let exec = json!({"cmd": "echo blueprint", "env": {"SECRET": "blueprint"}});
    world.post(&format!("/v1/sandboxes/{id}/exec"), exec).await;
    world
        .get(&format!("/v1/sandboxes/{id}/fs?path=/secret/blueprint"))
        .await;
    let is_file = |span: &Span| is_request(span) && span.name.ends_with("/fs");
    let spans = receiver.until(is_file).await;
    assert!(spans.iter().any(is_file), "{spans:#?}");
    let said = format!("{spans:?}");
    for secret in ["blueprint", "SECRET", world.key.as_str()] {
        assert!(!said.contains(secret), "{secret}: {said}");
    }
    let command = "POST /v1/sandboxes/{id}/exec";
    let started = named(&spans, "node.exec", CLIENT);
    assert_eq!(path(&spans, started)[0], command);
}

#[tokio::test]
async fn a_request_to_mcp_is_under_the_callers_span() {
    let (world, mut receiver) = world("parentbased_always_on").await;
    let parent = parent("01");
    let headers = [("traceparent", parent.as_str())];
    mcp_http::post(&world, &world.key, &mcp_http::initialize(), &headers).await;
    let is_mcp = |span: &Span| is_request(span) && span.name == "POST /mcp";
    let spans = receiver.until(is_mcp).await;
    let request = spans.iter().find(|span| is_mcp(span)).unwrap();
    assert_eq!(hex::encode(&request.parent_span_id), CALLER);
}

#[tokio::test]
async fn what_was_sent_is_counted() {
    let (world, mut receiver) = world("always_on").await;
    world.get("/v1/me").await;
    let spans = receiver.until(is_request).await;
    assert!(!spans.is_empty());
    let address = world.metrics_address.unwrap();
    let read = async || {
        let request = Request::get(format!("http://{address}/metrics"));
        let answer = world.open(request.body(Body::empty()).unwrap()).await;
        let body = http_body_util::BodyExt::collect(answer.into_body()).await;
        String::from_utf8(body.unwrap().to_bytes().to_vec()).unwrap()
    };
    crate::support::eventually("the spans are counted", async || {
        let text = read().await;
        text.contains("dayfly_trace_spans_total{outcome=\"sent\"}")
            && text.contains("dayfly_trace_spans_total{outcome=\"lost\"} 0")
    })
    .await;
}

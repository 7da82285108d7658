//! `/mcp` over HTTP: who may use it, sessions, and requests without one.

use axum::body::Body;
use http::{Method, Request, StatusCode};
use serde_json::{Value, json};

use crate::support::{Answer, Step, World, exited};

pub(crate) const SESSION: &str = "mcp-session-id";
const VERSION: &str = "2025-06-18";
const NEWEST: &str = "2026-07-28";

pub(crate) fn message(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

pub(crate) fn initialize() -> Value {
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": VERSION, "capabilities": {}, "clientInfo": client});
    message("initialize", params)
}

/// A request of the newest revision says by itself what others negotiate.
fn self_contained(method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": NEWEST,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    message(method, params)
}

pub(crate) async fn post(
    world: &World,
    key: &str,
    body: &Value,
    headers: &[(&str, &str)],
) -> Answer {
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(format!("http://{}/mcp", world.address))
        .header("authorization", format!("Bearer {key}"))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::from(body.to_string())).unwrap();
    world.send(request).await
}

/// A request without a message.
pub(crate) async fn request(world: &World, method: Method, headers: &[(&str, &str)]) -> Answer {
    let mut request = Request::builder()
        .method(method)
        .uri(format!("http://{}/mcp", world.address))
        .header("authorization", format!("Bearer {}", world.key));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    world.send(request.body(Body::empty()).unwrap()).await
}

/// The message of a response, which may come as an event.
fn told(answer: &Answer) -> Value {
    let text = answer.text();
    let mut events = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let event = events.find(|data| data.contains("jsonrpc"));
    serde_json::from_str(event.unwrap_or(text)).unwrap()
}

/// Begins a session and gives its id.
pub(crate) async fn begin(world: &World) -> String {
    let begun = post(world, &world.key, &initialize(), &[]).await;
    assert_eq!(begun.status, StatusCode::OK, "{}", begun.text());
    let session = begun.headers[SESSION].to_str().unwrap().to_owned();
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let headers = [(SESSION, session.as_str())];
    let ready = post(world, &world.key, &ready, &headers).await;
    assert_eq!(ready.status, StatusCode::ACCEPTED, "{}", ready.text());
    session
}

pub(crate) fn call(tool: &str, arguments: Value) -> Value {
    message("tools/call", json!({"name": tool, "arguments": arguments}))
}

#[tokio::test]
async fn a_session_has_a_sandbox_that_ends_with_it() {
    let world = World::start().await;
    world
        .node
        .script("hi", [Step::Stdout("hello".into()), Step::Exit(exited(0))]);
    let session = begin(&world).await;
    let headers = [(SESSION, session.as_str())];
    let hi = call("run_shell", json!({"command": "hi"}));
    let answer = post(&world, &world.key, &hi, &headers).await;
    let text = told(&answer)["result"]["content"][0]["text"].clone();
    assert!(
        text.as_str().unwrap().ends_with("\nstdout:\nhello"),
        "{text}"
    );
    assert_eq!(world.node.ids().len(), 1);
    let ended = request(&world, Method::DELETE, &headers).await;
    assert_eq!(ended.status, StatusCode::NO_CONTENT, "{}", ended.text());
    let gone = async || world.node.ids().is_empty();
    crate::support::eventually("the sandbox is gone", gone).await;
    let after = post(&world, &world.key, &hi, &headers).await;
    assert_eq!(after.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_session_of_another_key_looks_like_none() {
    let world = World::start().await;
    let session = begin(&world).await;
    let headers = [(SESSION, session.as_str())];
    let list = message("tools/list", json!({}));
    let foreign = post(&world, &world.foreign_key, &list, &headers).await;
    assert_eq!(foreign.refusal(), "not_found");
    let own = post(&world, &world.key, &list, &headers).await;
    assert!(told(&own)["result"]["tools"].is_array());
}

#[tokio::test]
async fn two_sessions_of_one_key_have_two_sandboxes() {
    let world = World::start().await;
    for _ in 0..2 {
        let session = begin(&world).await;
        let headers = [(SESSION, session.as_str())];
        let list = call("list_files", json!({}));
        post(&world, &world.key, &list, &headers).await;
    }
    assert_eq!(world.node.ids().len(), 2);
}

#[tokio::test]
async fn without_a_session_a_sandbox_must_be_named() {
    let world = World::start().await;
    let id = world.create().await;
    world.node.put_file(&id, "/workspace/a", b"x".to_vec());
    let headers = [
        ("mcp-protocol-version", NEWEST),
        ("mcp-method", "tools/call"),
    ];
    let request = |arguments: Value, tool: &str| {
        self_contained("tools/call", json!({"name": tool, "arguments": arguments}))
    };
    let with_name = |name: &'static str| [headers[0], headers[1], ("mcp-name", name)];
    let unnamed = request(json!({"path": "a"}), "read_file");
    let answer = post(&world, &world.key, &unnamed, &with_name("read_file")).await;
    let result = told(&answer)["result"].clone();
    assert_eq!(result["isError"], true, "{}", answer.text());
    let named = request(json!({"path": "a", "sandbox": id}), "read_file");
    let answer = post(&world, &world.key, &named, &with_name("read_file")).await;
    let text = told(&answer)["result"]["content"][0]["text"].clone();
    assert!(text.as_str().unwrap().ends_with("\tx"), "{text}");
    let by_header = [
        headers[0],
        headers[1],
        ("mcp-name", "read_file"),
        ("dayfly-sandbox", id.as_str()),
    ];
    let answer = post(&world, &world.key, &unnamed, &by_header).await;
    let text = told(&answer)["result"]["content"][0]["text"].clone();
    assert!(text.as_str().unwrap().ends_with("\tx"), "{text}");
    assert_eq!(world.node.ids().len(), 1, "none was made");
}

#[tokio::test]
async fn strangers_foreign_hosts_and_foreign_pages_are_refused() {
    let world = World::start().await;
    let body = initialize();
    let stranger = post(&world, "df_nobody", &body, &[]).await;
    assert_eq!(stranger.refusal(), "unauthorized");
    for headers in [
        [("origin", "http://evil.example")],
        [("origin", "null")],
        [("host", "evil.example")],
    ] {
        let refused = post(&world, &world.key, &body, &headers).await;
        assert_eq!(refused.refusal(), "forbidden", "{headers:?}");
    }
    let known = post(&world, &world.key, &body, &[("host", "box.example.org")]).await;
    assert_eq!(known.status, StatusCode::OK);
    let origin = format!("http://{}", world.address);
    let own = post(&world, &world.key, &body, &[("origin", &origin)]).await;
    assert_eq!(own.status, StatusCode::OK);
}

#[tokio::test]
async fn a_key_for_one_sandbox_reaches_that_one_alone() {
    let world = World::start().await;
    let (mine, other) = (world.create().await, world.create().await);
    for id in [&mine, &other] {
        world.node.put_file(id, "/workspace/a", b"x".to_vec());
    }
    let wish = json!({"scopes": ["exec"], "sandbox_id": mine});
    let made = world.post("/v1/me/tokens", wish).await.json();
    let key = made["token"].as_str().unwrap().to_owned();
    let headers = [
        ("mcp-protocol-version", NEWEST),
        ("mcp-method", "tools/call"),
        ("mcp-name", "read_file"),
    ];
    for (id, is_error) in [(&mine, false), (&other, true)] {
        let arguments = json!({"path": "a", "sandbox": id});
        let params = json!({"name": "read_file", "arguments": arguments});
        let body = self_contained("tools/call", params);
        let answer = post(&world, &key, &body, &headers).await;
        let result = told(&answer)["result"].clone();
        assert_eq!(result["isError"] == true, is_error, "{}", answer.text());
    }
}

#[tokio::test]
async fn a_message_over_its_limit_is_refused() {
    let world = World::start().await;
    let long = "x".repeat(dayfly_types::limits::MCP_MESSAGE_BYTES_MAX);
    let body = call("write_file", json!({"path": "a", "content": long}));
    let answer = post(&world, &world.key, &body, &[]).await;
    assert_eq!(answer.refusal(), "too_large");
}

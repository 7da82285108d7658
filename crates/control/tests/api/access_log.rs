//! One line for each request.

use axum::body::Body;
use dayfly_control::TrustedProxies;
use http::{Method, Request, StatusCode};

use crate::mcp_http;
use crate::support::log::Log;
use crate::support::world::eventually;
use crate::support::{Setup, World};

fn lines(log: &Log) -> Vec<String> {
    let text = log.text();
    let lines = text.lines().filter(|line| line.contains("dayfly_access"));
    lines.map(str::to_owned).collect()
}

#[tokio::test]
async fn a_line_says_who_asked_for_what_and_has_no_secret() {
    let (log, _current) = Log::keep();
    let world = World::start().await;
    let answer = world.get("/v1/me").await;
    let [line] = &lines(&log)[..] else {
        panic!("{:?}", lines(&log));
    };
    let id = answer.headers["x-request-id"].to_str().unwrap();
    let prefix = answer.json()["key_prefix"].as_str().unwrap().to_owned();
    let wanted = [
        format!("request_id={id}"),
        "method=\"GET\" route=\"/v1/me\" status=200 ms=".to_owned(),
        "project=default".to_owned(),
        format!("key=\"{prefix}\""),
        "client=127.0.0.1".to_owned(),
    ];
    for part in wanted {
        assert!(line.contains(&part), "{part} is not in {line}");
    }
    // A whole key where its prefix was meant, one in a header, and a path that is nobody's business.
    let path = format!("/v1/me/tokens/{}", world.foreign_key);
    let request = world.request(Method::DELETE, &path).body(Body::empty());
    world.send(request.unwrap()).await;
    let uri = format!(
        "http://{}/v1/sandboxes/x/fs?path=/secret/plan",
        world.address
    );
    let request = Request::get(uri).header("authorization", "Bearer wrong");
    world.send(request.body(Body::empty()).unwrap()).await;
    let lines = lines(&log);
    assert_eq!(lines.len(), 3, "{lines:#?}");
    for secret in [
        world.key.as_str(),
        world.foreign_key.as_str(),
        "wrong",
        "plan",
    ] {
        assert!(
            !lines.iter().any(|line| line.contains(secret)),
            "{secret}: {lines:#?}"
        );
    }
    assert!(
        lines[2].contains("status=401") && !lines[2].contains("key="),
        "{lines:#?}"
    );
}

/// Waits until the record has that a sandbox was made, by this address.
async fn made_from(world: &World, client: &str) {
    let is_there = async || {
        let record = world.get("/v1/audit").await.json();
        let entries = record["items"].as_array().unwrap();
        let is_it = |entry: &serde_json::Value| entry["operation"] == "POST /v1/sandboxes";
        let found = entries.iter().find(|entry| is_it(entry));
        found.is_some_and(|entry| entry["client"] == client)
    };
    eventually("the entry has the address", is_there).await;
}

/// Worlds whose proxy is not trusted and is, and whom the record names.
async fn worlds() -> [(World, &'static str); 2] {
    let proxies = TrustedProxies::new(vec!["127.0.0.1/32".parse().unwrap()]);
    let trusting = World::with(Setup {
        proxies,
        ..Setup::default()
    });
    [
        (World::start().await, "127.0.0.1"),
        (trusting.await, "192.0.2.7"),
    ]
}

#[tokio::test]
async fn the_audit_record_says_which_address_asked() {
    for (world, client) in worlds().await {
        let request = world
            .request(Method::POST, "/v1/sandboxes")
            .header("x-forwarded-for", "203.0.113.1, 192.0.2.7")
            .header("content-type", "application/json");
        let made = world.send(request.body(Body::from("{}")).unwrap()).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
        made_from(&world, client).await;
    }
}

#[tokio::test]
async fn the_audit_record_of_tools_says_which_address_asked() {
    for (world, client) in worlds().await {
        let session = mcp_http::begin(&world).await;
        let headers = [
            (mcp_http::SESSION, session.as_str()),
            ("x-forwarded-for", "192.0.2.7"),
        ];
        let list = mcp_http::call("list_files", serde_json::json!({}));
        mcp_http::post(&world, &world.key, &list, &headers).await;
        made_from(&world, client).await;
    }
}

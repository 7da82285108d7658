//! What one MCP client may have and reach.

use std::time::Duration;

use dayfly_control::admission::limit::{Limits, Sizes};
use dayfly_mcp::{HomeKind, HomeSettings, SandboxReach};
use dayfly_types::limits::MCP_CALLS_MAX;
use futures::future::join_all;
use http::{Method, StatusCode};
use rmcp::model::ReadResourceRequestParams;
use serde_json::{Value, json};

use crate::mcp_http::{SESSION, begin, call, initialize, message, post, request};
use crate::support::mcp::{McpClient, own, settings};
use crate::support::{Setup, Step, World, eventually, exited};

fn shell(command: &str) -> Value {
    json!({ "command": command })
}

fn kept(name: &str) -> HomeKind {
    HomeKind::Named {
        name: name.to_owned(),
        ttl_seconds: None,
    }
}

fn long() -> [Step; 2] {
    [Step::Pause(Duration::from_secs(600)), Step::Exit(exited(0))]
}

async fn commands(world: &World, id: &str) -> usize {
    let list = world.get(&format!("/v1/sandboxes/{id}/processes")).await;
    list.json()["items"].as_array().map_or(0, Vec::len)
}

#[tokio::test]
async fn a_client_has_so_many_calls_at_once_and_no_more() {
    let world = World::start().await;
    world.node.script("long", long());
    let client = McpClient::connect(&world, own()).await;
    client.text("list_files", json!({})).await;
    let id = world.node.ids()[0].to_string();
    let calls = (0..MCP_CALLS_MAX).map(|_| client.call("run_shell", shell("long")));
    let full = async || commands(&world, &id).await == MCP_CALLS_MAX;
    let one_more = async {
        eventually("all run", full).await;
        client.error("list_files", json!({})).await
    };
    let text = tokio::select! {
        _ = join_all(calls) => panic!("they do not end by themselves"),
        text = one_more => text,
    };
    assert!(text.contains("go on already\nhint: "), "{text}");
}

#[tokio::test]
async fn sessions_are_shared_among_projects() {
    let limits = Limits::of(Sizes {
        mcp_sessions: 4,
        ..Sizes::default()
    });
    let world = World::with(Setup {
        limits,
        ..Setup::default()
    })
    .await;
    let first = begin(&world).await;
    begin(&world).await;
    let refused = post(&world, &world.key, &initialize(), &[]).await;
    assert_eq!(refused.refusal(), "too_many");
    let other = post(&world, &world.foreign_key, &initialize(), &[]).await;
    assert_eq!(other.status, StatusCode::OK);
    let ended = request(&world, Method::DELETE, &[(SESSION, &first)]).await;
    assert!(ended.status.is_success());
    begin(&world).await;
}

#[tokio::test]
async fn a_session_that_could_not_be_ended_is_still_its_owners() {
    let world = World::start().await;
    let session = begin(&world).await;
    let newest = ("mcp-protocol-version", "2026-07-28");
    let refused = request(&world, Method::DELETE, &[(SESSION, &session), newest]).await;
    assert!(!refused.status.is_success(), "{:?}", refused.status);
    let list = message("tools/list", json!({}));
    let answer = post(&world, &world.key, &list, &[(SESSION, &session)]).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
}

#[tokio::test]
async fn an_id_that_is_under_way_is_refused() {
    let world = World::start().await;
    world.node.script("long", long());
    let session = begin(&world).await;
    let headers = [(SESSION, session.as_str())];
    let list = call("list_files", json!({}));
    post(&world, &world.key, &list, &headers).await;
    let id = world.node.ids()[0].to_string();
    let long = call("run_shell", shell("long"));
    let first = post(&world, &world.key, &long, &headers);
    let runs = async || commands(&world, &id).await == 1;
    tokio::select! {
        _ = first => panic!("it does not end by itself"),
        () = eventually("it runs", runs) => {}
    }
    // Whoever leaves does not end the call, so its id is still taken.
    let second = post(&world, &world.key, &list, &headers).await;
    assert_eq!(second.refusal(), "invalid_request");
    let mut other = list.clone();
    other["id"] = "another".into();
    let other = post(&world, &world.key, &other, &headers).await;
    assert_eq!(other.status, StatusCode::OK, "{}", other.text());
}

#[tokio::test]
async fn what_is_not_one_message_is_refused() {
    let world = World::start().await;
    let batch = json!([message("ping", json!({}))]);
    let answer = post(&world, &world.key, &batch, &[]).await;
    assert_eq!(answer.refusal(), "invalid_request");
}

#[tokio::test]
async fn a_client_that_has_its_own_alone_reaches_no_other() {
    let world = World::start().await;
    let other = world.create().await;
    let settings = HomeSettings {
        reach: SandboxReach::OwnOnly,
        ..settings(own())
    };
    let client = McpClient::with_settings(&world, settings, &world.key).await;
    let (read, delete) = (
        json!({"path": "a", "sandbox": other}),
        json!({"sandbox": other}),
    );
    for (tool, arguments) in [("read_file", read), ("delete_sandbox", delete)] {
        let text = client.error(tool, arguments).await;
        assert!(text.contains("not a sandbox of this client's"), "{text}");
    }
    let uri = format!("dayfly://sandbox/{other}/files/etc/hosts");
    let read = client
        .peer
        .read_resource(ReadResourceRequestParams::new(uri));
    assert!(read.await.is_err());
    let created = client.call("create_sandbox", json!({"name": "mine"})).await;
    let id = created.structured_content.unwrap()["id"].clone();
    let listed = client.call("list_sandboxes", json!({})).await;
    let listed = listed.structured_content.unwrap();
    assert_eq!(listed["sandboxes"].as_array().unwrap().len(), 1);
    for sandbox in [json!("mine"), id] {
        let write = json!({"path": "a", "content": "x", "sandbox": sandbox});
        client.text("write_file", write).await;
    }
    client
        .text("delete_sandbox", json!({"sandbox": "mine"}))
        .await;
    assert_eq!(world.node.ids().len(), 1, "the other is still there");
}

#[tokio::test]
async fn a_named_sandbox_with_another_network_is_refused() {
    let world = World::start().await;
    let client = async |allow: &[&str]| {
        let allow = allow.iter().map(|text| (*text).to_owned()).collect();
        let settings = HomeSettings {
            allow: Some(allow),
            ..settings(kept("work"))
        };
        McpClient::with_settings(&world, settings, &world.key).await
    };
    let first = client(&["pypi.org", "preset:git-hosts"]).await;
    first.text("list_files", json!({})).await;
    let same = client(&["preset:git-hosts", "PyPI.org:443,80"]).await;
    same.text("list_files", json!({})).await;
    for allow in [&["pypi.org"][..], &["preset:public"]] {
        let text = client(allow).await.error("list_files", json!({})).await;
        assert!(text.contains("not what --allow says"), "{text}");
        assert!(text.contains("\nhint: "), "{text}");
    }
    assert_eq!(world.node.ids().len(), 1);
}

#[tokio::test]
async fn a_named_sandbox_that_was_there_gets_the_time_to_live() {
    let world = World::start().await;
    let wish = json!({"name": "work", "template": "base", "ttl_seconds": 600});
    world.post("/v1/sandboxes", wish).await;
    let expires = async || {
        let found = world.get("/v1/sandboxes/work").await.json();
        found["expires_at"].clone()
    };
    assert!(expires().await.is_string());
    let client = McpClient::connect(&world, kept("work")).await;
    client.text("list_files", json!({})).await;
    assert_eq!(expires().await, Value::Null);
    let kind = HomeKind::Named {
        name: "work".to_owned(),
        ttl_seconds: Some(3600),
    };
    let client = McpClient::connect(&world, kind).await;
    client.text("list_files", json!({})).await;
    assert!(expires().await.is_string());
}

#[tokio::test]
async fn a_port_is_waited_for_by_the_server() {
    let world = World::start().await;
    let client = McpClient::connect(&world, own()).await;
    let silent = json!({"port": 8001, "timeout_seconds": 0.2});
    let text = client.error("expose_port", silent).await;
    assert!(
        text.contains("nothing listens on port 8001 after 0.2 s"),
        "{text}"
    );
    let waits = world.node.port_waits();
    assert_eq!(waits.len(), 1, "{waits:?}");
    assert_eq!(waits[0].limit, Duration::from_millis(200));
}

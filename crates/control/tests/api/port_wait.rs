//! Waiting until something in a sandbox listens: one request, which the node answers.

use std::time::Duration;

use dayfly_control::admission::limit::Limits;
use http::{Method, StatusCode};
use serde_json::json;

use crate::gateway::PORT;
use crate::support::{Setup, World, eventually, service};

fn path(id: &str) -> String {
    format!("/v1/sandboxes/{id}/ports/{PORT}/wait")
}

async fn until_it_waits(world: &World) {
    eventually("the node waits", async || {
        !world.node.port_waits().is_empty()
    })
    .await;
}

#[tokio::test]
async fn a_port_is_waited_for_by_one_request() {
    let world = World::start().await;
    let id = world.create().await;
    let listens = async {
        until_it_waits(&world).await;
        world.node.listen(&id, PORT, service::start().await);
    };
    let path = path(&id);
    let waits = world.post(&path, json!({"timeout_ms": 30_000}));
    let (found, ()) = tokio::join!(waits, listens);
    assert_eq!(found.status, StatusCode::OK, "{}", found.text());
    assert_eq!(found.json()["port"], PORT);
    assert!(found.json()["path_url"].is_string());
    let again = world.post(&path, json!({})).await;
    assert_eq!(again.status, StatusCode::OK, "{}", again.text());
    let limits: Vec<Duration> = world
        .node
        .port_waits()
        .iter()
        .map(|wait| wait.limit)
        .collect();
    assert_eq!(limits, [30, 60].map(Duration::from_secs));
}

#[tokio::test]
async fn a_wait_that_is_over_is_a_timeout_with_a_hint() {
    let world = World::start().await;
    let id = world.create().await;
    let late = world.post(&path(&id), json!({"timeout_ms": 0})).await;
    assert_eq!(late.status, StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(late.refusal(), "timeout");
    assert_eq!(late.json()["hint_code"], "port_timeout");
    for wrong in [json!({"timeout_ms": 600_001}), json!({"timeout": 1})] {
        let refused = world.post(&path(&id), wrong).await;
        assert_eq!(refused.refusal(), "invalid_request");
    }
    assert_eq!(world.node.port_waits().len(), 1, "refused before the node");
}

#[tokio::test]
async fn a_wait_ends_with_its_sandbox_and_says_how_that_ended() {
    let world = World::start().await;
    let id = world.create().await;
    let ends = async {
        until_it_waits(&world).await;
        let deleted = world.delete(&format!("/v1/sandboxes/{id}")).await;
        world.node.look_again();
        deleted
    };
    let path = path(&id);
    let (ended, deleted) = tokio::join!(world.post(&path, json!({})), ends);
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    assert_eq!(ended.refusal(), "not_found");
    assert!(ended.text().contains("is gone"), "{}", ended.text());
}

#[tokio::test]
async fn a_wait_has_a_place_among_commands_and_is_for_its_own_project() {
    let world = World::with(Setup {
        limits: Limits::with(64, 1),
        ..Setup::default()
    })
    .await;
    let id = world.create().await;
    let path = path(&id);
    let second = async {
        until_it_waits(&world).await;
        let refused = world.post(&path, json!({})).await;
        world.node.listen(&id, PORT, service::start().await);
        refused
    };
    let (first, second) = tokio::join!(world.post(&path, json!({})), second);
    assert_eq!(first.status, StatusCode::OK, "{}", first.text());
    assert_eq!(second.refusal(), "too_many");
    let foreign = world.ask(&world.foreign_key, Method::POST, &path, json!({}));
    assert_eq!(foreign.await.refusal(), "not_found");
}

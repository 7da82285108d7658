//! Pause, resume, hibernate, wake, and what else a sandbox can be made from.

use std::time::Duration;

use axum::body::Body;
use dayfly_control::ReconcileSettings;
use dayfly_node_api::NodeError;
use dayfly_types::{ErrorCode, SandboxId};
use http::{Method, StatusCode};
use serde_json::json;

use crate::support::{Setup, World, eventually};

#[tokio::test]
async fn a_state_is_changed_at_once_and_may_be_repeated() {
    let world = World::start().await;
    let id = world.create().await;
    let path = format!("/v1/sandboxes/{id}");
    for (change, status) in [
        ("pause", "paused"),
        ("pause", "paused"),
        ("resume", "running"),
        ("hibernate", "hibernated"),
        ("hibernate", "hibernated"),
        ("wake", "running"),
    ] {
        let changed = world.post(&format!("{path}/{change}"), json!({})).await;
        assert_eq!(changed.status, StatusCode::NO_CONTENT, "{change}");
        assert!(changed.body.is_empty());
        assert_eq!(world.get(&path).await.json()["status"], status);
    }
}

#[tokio::test]
async fn a_change_needs_no_body_under_any_content_type() {
    let world = World::start().await;
    let id = world.create().await;
    for content_type in [
        None,
        Some("text/plain;charset=UTF-8"),
        Some("application/json"),
    ] {
        for change in ["pause", "resume", "snapshots", "fork", "hibernate", "wake"] {
            let path = format!("/v1/sandboxes/{id}/{change}");
            let mut request = world.request(Method::POST, &path);
            if let Some(content_type) = content_type {
                request = request.header("content-type", content_type);
            }
            let answer = world.send(request.body(Body::empty()).unwrap()).await;
            assert!(answer.status.is_success(), "{change} {content_type:?}");
        }
    }
}

#[tokio::test]
async fn a_refused_change_is_told_with_its_code() {
    let world = World::start().await;
    let id = world.create().await;
    let wrong = NodeError::new(ErrorCode::WrongState, "it is being deleted");
    world.node.refuse_state(Some(wrong));
    for change in ["pause", "resume", "hibernate", "wake"] {
        let refused = world
            .post(&format!("/v1/sandboxes/{id}/{change}"), json!({}))
            .await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{change}");
        assert_eq!(refused.refusal(), "wrong_state");
        assert_eq!(refused.json()["error"], "it is being deleted");
    }
    let full = NodeError::new(ErrorCode::StorageFull, "the disk of the node is full");
    world.node.refuse_state(Some(full));
    let refused = world
        .post(&format!("/v1/sandboxes/{id}/hibernate"), json!({}))
        .await;
    assert_eq!(refused.status, StatusCode::INSUFFICIENT_STORAGE);
    assert_eq!(refused.refusal(), "storage_full");
    assert!(refused.json()["hint"].is_string());
}

#[tokio::test]
async fn an_exec_wakes_a_hibernated_sandbox_and_not_a_paused_one() {
    let world = World::start().await;
    let id = world.create().await;
    let path = format!("/v1/sandboxes/{id}");
    world.post(&format!("{path}/hibernate"), json!({})).await;
    let done = world
        .post(&format!("{path}/exec"), json!({"cmd": "hi"}))
        .await;
    assert_eq!(done.status, StatusCode::OK, "{}", done.text());
    eventually("it runs", async || {
        world.get(&path).await.json()["status"] == "running"
    })
    .await;
    world.post(&format!("{path}/pause"), json!({})).await;
    let refused = world
        .post(&format!("{path}/exec"), json!({"cmd": "hi"}))
        .await;
    assert_eq!(refused.refusal(), "wrong_state");
    assert!(refused.text().contains("resume"), "{}", refused.text());
}

#[tokio::test]
async fn the_reconciler_keeps_a_hibernated_sandbox() {
    let reconcile = ReconcileSettings {
        interval: Duration::from_millis(50),
        lost_after: Duration::from_millis(100),
        orphan_after: Duration::from_millis(100),
        ..ReconcileSettings::default()
    };
    let world = World::with(Setup {
        reconcile,
        ..Setup::default()
    })
    .await;
    let id = world.create().await;
    let lost = world.create().await;
    for id in [&id, &lost] {
        world
            .post(&format!("/v1/sandboxes/{id}/hibernate"), json!({}))
            .await;
    }
    world.node.lose(&SandboxId::parse(&lost).unwrap());
    // The sweep that removes the one has looked at the other.
    eventually("the lost one is gone", async || {
        world.get("/v1/sandboxes").await.json()["items"]
            .as_array()
            .unwrap()
            .len()
            == 1
    })
    .await;
    let kept = world.get(&format!("/v1/sandboxes/{id}")).await.json();
    assert_eq!(kept["status"], "hibernated");
}

#[tokio::test]
async fn everything_that_was_asked_for_reaches_the_node_and_is_shown() {
    let world = World::start().await;
    world
        .post("/v1/volumes", json!({"name": "data", "size_mb": 16}))
        .await;
    let body = json!({
        "cpu": 0.5, "disk_gb": 8, "idle_seconds": 60, "on_timeout": "hibernate",
        "persistent": true, "ttl_seconds": 900,
        "volumes": [{"name": "data"}, {"name": "more", "path": "/mnt/x", "read_only": true}],
    });
    let created = world.post("/v1/sandboxes", body).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.text());
    let wanted = world.node.last_wanted().unwrap();
    assert_eq!(wanted.cpu.map(u64::from), Some(500));
    assert_eq!(wanted.disk.map(u64::from), Some(8192));
    assert_eq!(wanted.lifecycle.idle_seconds, Some(60));
    assert_eq!(wanted.volumes[0].path, "/volumes/data");
    let path = format!("/v1/sandboxes/{}", created.json()["id"].as_str().unwrap());
    // Once from the node's word, once from the row alone.
    let live = world.get(&path).await.json();
    world.control.view.remove(&wanted.id);
    let stored = world.get(&path).await.json();
    for shown in [created.json(), live, stored] {
        assert_eq!(shown["cpu_limit"], 0.5);
        assert_eq!(shown["disk_gb"], 8.0);
        assert_eq!(shown["idle_seconds"], 60);
        assert_eq!(shown["on_timeout"], "hibernate");
        assert_eq!(shown["persistent"], true);
        assert_eq!(shown["ttl_seconds"], 900);
        assert!(shown["expires_at"].is_string());
        assert_eq!(shown["from_snapshot"], json!(null));
        assert_eq!(
            shown["volumes"],
            json!([{"name": "data", "path": "/volumes/data", "read_only": false},
                   {"name": "more", "path": "/mnt/x", "read_only": true}])
        );
    }
    let plain = world.post("/v1/sandboxes", json!({})).await.json();
    assert_eq!(plain["disk_gb"], 4.0);
    assert_eq!(
        (&plain["cpu_limit"], &plain["idle_seconds"]),
        (&json!(null), &json!(null))
    );
    assert_eq!(
        (&plain["on_timeout"], &plain["volumes"]),
        (&json!("delete"), &json!([]))
    );
}

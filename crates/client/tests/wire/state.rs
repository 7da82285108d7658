//! States, snapshots, forks and volumes on the wire.

use dayfly_client::ClientError;
use dayfly_client::api::{
    ChangeLifecycle, CreateSnapshot, CreateVolume, ForkSandbox, GrowVolume, OnTimeout,
    PromoteSandbox,
};
use dayfly_types::ErrorCode;

use crate::script::{Answer, Script, client};

const ID: &str = "sb-local-1";
const SNAPSHOT: &str = r#"{"id":"snap-local-1","sandbox_id":"sb-local-1","template":"base",
    "name":null,"size_bytes":1,"created_at":"2026-01-01T00:00:00Z","expires_at":null,
    "capture":{"pause_ms":1.5,"frozen_ms":2,"device_ms":0,"memory_ms":0,"disk_ms":0,
    "total_ms":9,"memory_bytes":1,"disk_bytes":2}}"#;
const LIFECYCLE: &str = r#"{"ttl_seconds":null,"persistent":true,"idle_seconds":60,
    "on_timeout":"hibernate","expires_at":null,"idle_for_seconds":3}"#;
const VOLUME: &str = r#"{"name":"v","size_mb":16,"created_at":"2026-01-01T00:00:00Z",
    "used_bytes":1,"writer":null,"readers":[]}"#;
const FORKED: &str = r#"{"children":[],"failures":{"sb-local-2":"no room"},"renewed":["id"],
    "not_renewed":[],"capture":{"pause_ms":1,"frozen_ms":2,"device_ms":0,"memory_ms":0,
    "disk_ms":0,"total_ms":9,"memory_bytes":1,"disk_bytes":2}}"#;

fn first_lines(script: &Script) -> Vec<String> {
    let requests = script.requests();
    let lines = requests
        .iter()
        .filter_map(|request| request.head.lines().next());
    lines.map(str::to_owned).collect()
}

#[tokio::test]
async fn a_change_of_a_state_is_repeated_and_has_no_body() {
    let script = Script::play([
        Answer::Drop,
        Answer::json(204, ""),
        Answer::json(204, ""),
        Answer::json(204, ""),
        Answer::json(204, ""),
    ])
    .await;
    let client = client(&script);
    client.pause_sandbox(ID).await.unwrap();
    client.resume_sandbox(ID).await.unwrap();
    client.hibernate_sandbox(ID).await.unwrap();
    client.wake_sandbox(ID).await.unwrap();
    let words = ["pause", "pause", "resume", "hibernate", "wake"];
    let expected = words.map(|word| format!("POST /v1/sandboxes/{ID}/{word} HTTP/1.1"));
    assert_eq!(first_lines(&script), expected);
    assert!(
        script
            .requests()
            .iter()
            .all(|request| request.body.is_empty())
    );
}

#[tokio::test]
async fn a_rollback_and_a_promote_are_never_sent_twice() {
    let script = Script::play([Answer::Drop, Answer::Drop]).await;
    let client = client(&script);
    let error = client.rollback_sandbox(ID, "snap-1").await.unwrap_err();
    assert!(matches!(error, ClientError::Lost { .. }), "{error:?}");
    let wish = PromoteSandbox::default();
    let error = client.promote_sandbox(ID, &wish).await.unwrap_err();
    assert!(matches!(error, ClientError::Lost { .. }), "{error:?}");
    assert_eq!(script.requests().len(), 2);
    assert_eq!(script.requests()[0].body, br#"{"snapshot_id":"snap-1"}"#);
}

#[tokio::test]
async fn a_change_of_a_lifecycle_sends_what_is_given_and_nulls() {
    let script = Script::play([Answer::json(200, LIFECYCLE), Answer::json(200, LIFECYCLE)]).await;
    let client = client(&script);
    let change = ChangeLifecycle {
        ttl_seconds: Some(None),
        on_timeout: Some(OnTimeout::Hibernate),
        ..ChangeLifecycle::default()
    };
    let lifecycle = client.set_lifecycle(ID, &change).await.unwrap();
    assert_eq!(
        (lifecycle.ttl_seconds, lifecycle.idle_seconds),
        (None, Some(60))
    );
    assert_eq!(client.lifecycle(ID).await.unwrap(), lifecycle);
    let body = &script.requests()[0].body;
    assert_eq!(body, br#"{"ttl_seconds":null,"on_timeout":"hibernate"}"#);
    let path = format!("/v1/sandboxes/{ID}/lifecycle HTTP/1.1");
    assert_eq!(
        first_lines(&script),
        [format!("PATCH {path}"), format!("GET {path}")]
    );
}

#[tokio::test]
async fn snapshots_and_forks_are_repeated_under_one_key() {
    let script = Script::play([
        Answer::Drop,
        Answer::json(201, SNAPSHOT),
        Answer::Drop,
        Answer::json(201, FORKED),
    ])
    .await;
    let client = client(&script);
    let snapshot = client.create_snapshot(ID, &CreateSnapshot::default()).await;
    assert_eq!(snapshot.unwrap().id, "snap-local-1");
    let forked = client.fork_sandbox(ID, &ForkSandbox::default()).await;
    assert_eq!(forked.unwrap().failures["sb-local-2"], "no room");
    let requests = script.requests();
    let keys: Vec<String> = requests
        .iter()
        .map(|request| request.header("idempotency-key"))
        .collect();
    assert!(!keys[0].is_empty() && keys[0] == keys[1] && keys[2] == keys[3]);
    assert_ne!(keys[0], keys[2]);
}

#[tokio::test]
async fn snapshots_are_listed_read_and_deleted() {
    let list = format!(r#"{{"snapshots":[{SNAPSHOT}]}}"#);
    let script = Script::play([
        Answer::json(200, &list),
        Answer::json(200, &list),
        Answer::json(200, SNAPSHOT),
        Answer::json(204, ""),
    ])
    .await;
    let client = client(&script);
    assert_eq!(client.list_snapshots(None).await.unwrap().len(), 1);
    assert_eq!(client.list_snapshots(Some(ID)).await.unwrap().len(), 1);
    let snapshot = client.get_snapshot("snap-local-1").await.unwrap();
    assert!((snapshot.capture.pause_ms - 1.5).abs() < 1e-9);
    client.delete_snapshot("snap-local-1").await.unwrap();
    assert_eq!(
        first_lines(&script),
        [
            "GET /v1/snapshots HTTP/1.1",
            "GET /v1/snapshots?sandbox_id=sb-local-1 HTTP/1.1",
            "GET /v1/snapshots/snap-local-1 HTTP/1.1",
            "DELETE /v1/snapshots/snap-local-1 HTTP/1.1",
        ]
    );
}

#[tokio::test]
async fn volumes_are_made_grown_listed_read_and_deleted() {
    let script = Script::play([
        Answer::Drop,
        Answer::json(200, VOLUME),
        Answer::json(200, VOLUME),
        Answer::json(200, &format!(r#"{{"items":[{VOLUME}]}}"#)),
        Answer::json(200, VOLUME),
        Answer::json(204, ""),
    ])
    .await;
    let client = client(&script);
    let request = CreateVolume {
        name: "v".to_owned(),
        size_mb: Some(16),
        size_gb: None,
    };
    assert_eq!(client.create_volume(&request).await.unwrap().size_mb, 16);
    let grow = GrowVolume {
        size_mb: Some(32),
        size_gb: None,
    };
    client.grow_volume("v", &grow).await.unwrap();
    assert_eq!(client.list_volumes().await.unwrap().len(), 1);
    client.get_volume("v").await.unwrap();
    client.delete_volume("v").await.unwrap();
    assert_eq!(
        first_lines(&script)[2..],
        [
            "PATCH /v1/volumes/v HTTP/1.1",
            "GET /v1/volumes HTTP/1.1",
            "GET /v1/volumes/v HTTP/1.1",
            "DELETE /v1/volumes/v HTTP/1.1",
        ]
    );
}

#[tokio::test]
async fn a_refusal_has_its_code_and_a_bad_name_is_never_sent() {
    let busy = r#"{"error":"in use","code":"volume_busy","request_id":"r"}"#;
    let script = Script::play([Answer::json(409, busy)]).await;
    let client = client(&script);
    let error = client.delete_volume("v").await.unwrap_err();
    assert_eq!(error.api_code(), Some(ErrorCode::VolumeBusy));
    for name in ["..", "a/b", ""] {
        let error = client.delete_volume(name).await.unwrap_err();
        assert!(matches!(error, ClientError::InvalidName { .. }), "{name}");
        let error = client.get_snapshot(name).await.unwrap_err();
        assert!(matches!(error, ClientError::InvalidName { .. }), "{name}");
    }
    assert_eq!(script.requests().len(), 1);
}

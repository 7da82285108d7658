//! Every refusal has the envelope, those of the framework included.

use axum::body::Body;
use http::{Method, StatusCode};
use serde_json::json;

use crate::support::World;

#[tokio::test]
async fn bodies_that_do_not_fit_are_refused() {
    let world = World::start().await;
    let id = world.create().await;
    let exec = format!("/v1/sandboxes/{id}/exec");
    let fork = format!("/v1/sandboxes/{id}/fork");
    let tree = format!("/v1/sandboxes/{id}/fork-tree");
    let snapshots = format!("/v1/sandboxes/{id}/snapshots");
    let rollback = format!("/v1/sandboxes/{id}/rollback");
    let promote = format!("/v1/sandboxes/{id}/promote");
    let cases = [
        ("/v1/sandboxes", "{"),
        ("/v1/sandboxes", "[]"),
        ("/v1/sandboxes", "\"x\""),
        ("/v1/sandboxes", r#"{"ttl_seconds":-1}"#),
        ("/v1/sandboxes", r#"{"ttl_seconds":1.5}"#),
        ("/v1/sandboxes", r#"{"ttl_seconds":"1"}"#),
        ("/v1/sandboxes", r#"{"metadata":{"a":1}}"#),
        ("/v1/sandboxes", r#"{"persistent":"yes"}"#),
        ("/v1/sandboxes", r#"{"template":"../x"}"#),
        ("/v1/sandboxes", r#"{"from_snapshot":5}"#),
        ("/v1/sandboxes", r#"{"from_snapshot":"../x"}"#),
        ("/v1/sandboxes", r#"{"volumes":[{}]}"#),
        ("/v1/sandboxes", r#"{"volumes":[{"name":"a","path":"/"}]}"#),
        ("/v1/sandboxes", r#"{"cpu":0.05}"#),
        ("/v1/sandboxes", r#"{"cpu":33}"#),
        ("/v1/sandboxes", r#"{"memory_mb":600}"#),
        ("/v1/sandboxes", r#"{"disk_gb":3.9}"#),
        ("/v1/sandboxes", r#"{"idle_seconds":4}"#),
        ("/v1/sandboxes", r#"{"on_timeout":"stop"}"#),
        (fork.as_str(), r#"{"count":0}"#),
        (fork.as_str(), r#"{"count":65}"#),
        (fork.as_str(), r#"{"metadata":{"explore_ttl":"soon"}}"#),
        (tree.as_str(), "{}"),
        (tree.as_str(), ""),
        (snapshots.as_str(), r#"{"retain_seconds":0}"#),
        (snapshots.as_str(), r#"{"name":7}"#),
        (rollback.as_str(), "{}"),
        (rollback.as_str(), r#"{"snapshot_id":"A"}"#),
        (promote.as_str(), r#"{"cleanup_siblings":"yes"}"#),
        ("/v1/volumes", r#"{"name":"v"}"#),
        ("/v1/volumes", r#"{"size_mb":16}"#),
        ("/v1/volumes", r#"{"name":"V","size_mb":16}"#),
        ("/v1/volumes", r#"{"name":"v","size_mb":15}"#),
        ("/v1/volumes", r#"{"name":"v","size_mb":16,"size_gb":1}"#),
        (exec.as_str(), "{}"),
        (exec.as_str(), ""),
        (exec.as_str(), r#"{"cmd":null}"#),
        (exec.as_str(), r#"{"cmd":5}"#),
        (exec.as_str(), r#"{"cmd":"a","timeout_seconds":1e400}"#),
    ];
    for (path, body) in cases {
        let request = world
            .request(Method::POST, path)
            .header("content-type", "application/json")
            .body(Body::from(body))
            .unwrap();
        let answer = world.send(request).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{path} {body}");
        assert_eq!(answer.refusal(), "invalid_request", "{path} {body}");
    }
    assert_eq!(world.node.ids().len(), 1);
}

#[tokio::test]
async fn a_value_that_does_not_fit_is_named_by_its_place() {
    let world = World::start().await;
    for (body, place) in [
        (json!({"metadata": {"task": 1}}), "metadata.task"),
        (json!({"volumes": [{"name": "a"}, {"name": 2}]}), "volumes"),
        (json!({"persistent": "yes"}), "persistent"),
    ] {
        let refused = world.post("/v1/sandboxes", body).await;
        let told = refused.json()["error"].as_str().unwrap().to_owned();
        assert!(told.contains(&format!("`{place}")), "{told}");
    }
}

#[tokio::test]
async fn the_framework_s_own_refusals_have_the_envelope() {
    let world = World::start().await;
    let missing = world.get("/v1/nonsense").await;
    assert_eq!(
        (missing.status, missing.refusal().as_str()),
        (StatusCode::NOT_FOUND, "no_such_route")
    );
    let request = world
        .request(Method::PATCH, "/v1/sandboxes")
        .body(Body::empty())
        .unwrap();
    let method = world.send(request).await;
    assert_eq!(method.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(method.refusal(), "method_not_allowed");
    let allow = method.headers["allow"].to_str().unwrap();
    assert!(allow.contains("GET") && allow.contains("POST"), "{allow}");
    let bad_id = world.get("/v1/sandboxes/NOT%20an%20id").await;
    assert_eq!(
        (bad_id.status, bad_id.refusal().as_str()),
        (StatusCode::NOT_FOUND, "not_found")
    );
    let bad_encoding = world.get("/v1/sandboxes/%ff").await;
    assert_eq!(bad_encoding.status, StatusCode::NOT_FOUND);
    bad_encoding.refusal();
}

#[tokio::test]
async fn media_types_and_sizes_are_held() {
    let world = World::start().await;
    let form = world
        .request(Method::POST, "/v1/sandboxes")
        .header("content-type", "application/x-www-form-urlencoded")
        .body(Body::from("template=base"))
        .unwrap();
    let answer = world.send(form).await;
    assert_eq!(answer.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    assert_eq!(answer.refusal(), "unsupported_media_type");

    let body = json!({"metadata": {"a": "x".repeat(2 << 20)}});
    let answer = world.post("/v1/sandboxes", body).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(answer.refusal(), "too_large");

    let id = world.create().await;
    let body = json!({"cmd": "x".repeat(600 << 10)});
    let answer = world.post(&format!("/v1/sandboxes/{id}/exec"), body).await;
    assert_eq!(answer.refusal(), "too_large");

    let stream = futures::stream::pending::<Result<bytes::Bytes, std::io::Error>>();
    let huge = world
        .request(Method::PUT, &format!("/v1/sandboxes/{id}/fs?path=/a"))
        .header("content-length", (6u64 << 30).to_string())
        .body(Body::from_stream(stream))
        .unwrap();
    let answer = world.send(huge).await;
    assert_eq!(answer.refusal(), "too_large");
}

//! How long a sandbox lives.

use dayfly_types::SandboxId;
use http::StatusCode;
use serde_json::{Value, json};

use crate::support::World;

async fn path(world: &World) -> String {
    let body = json!({"ttl_seconds": 600, "idle_seconds": 60});
    let created = world.post("/v1/sandboxes", body).await.json();
    format!("/v1/sandboxes/{}", created["id"].as_str().unwrap())
}

/// What a change leaves, without the times that pass.
async fn changed(world: &World, path: &str, body: Value) -> (Value, Value, Value, Value) {
    let answer = world.patch(&format!("{path}/lifecycle"), body).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    let read = world.get(&format!("{path}/lifecycle")).await.json();
    let shown = world.get(path).await.json();
    let answer = answer.json();
    for field in ["ttl_seconds", "persistent", "idle_seconds", "on_timeout"] {
        assert_eq!(answer[field], read[field], "{field}");
        assert_eq!(answer[field], shown[field], "{field}");
    }
    for one in [&answer, &read, &shown] {
        assert_eq!(one["expires_at"].is_null(), one["ttl_seconds"].is_null());
    }
    assert_eq!(answer["idle_for_seconds"], 3);
    let field = |name: &str| answer[name].clone();
    (
        field("ttl_seconds"),
        field("persistent"),
        field("idle_seconds"),
        field("on_timeout"),
    )
}

fn lifecycle(
    ttl: impl Into<Value>,
    persistent: bool,
    idle: impl Into<Value>,
    word: &str,
) -> (Value, Value, Value, Value) {
    (ttl.into(), persistent.into(), idle.into(), word.into())
}

#[tokio::test]
async fn a_change_sets_what_it_names_takes_away_nulls_and_leaves_the_rest() {
    let world = World::start().await;
    let path = path(&world).await;
    let steps = [
        (json!({}), lifecycle(600, false, 60, "delete")),
        (
            json!({"ttl_seconds": 900}),
            lifecycle(900, false, 60, "delete"),
        ),
        (
            json!({"persistent": true}),
            lifecycle(900, true, 60, "delete"),
        ),
        (
            json!({"on_timeout": "hibernate"}),
            lifecycle(900, true, 60, "hibernate"),
        ),
        (
            json!({"ttl_seconds": null}),
            lifecycle(Value::Null, true, 60, "hibernate"),
        ),
        (
            json!({"idle_seconds": null, "persistent": null, "on_timeout": null}),
            lifecycle(Value::Null, true, Value::Null, "hibernate"),
        ),
        (
            json!({"ttl_seconds": 7.0, "idle_seconds": 5, "persistent": false}),
            lifecycle(7, false, 5, "hibernate"),
        ),
    ];
    for (body, expected) in steps {
        assert_eq!(
            changed(&world, &path, body.clone()).await,
            expected,
            "{body}"
        );
    }
}

#[tokio::test]
async fn a_change_is_still_known_when_the_node_is_not() {
    let world = World::start().await;
    let path = path(&world).await;
    world
        .patch(&format!("{path}/lifecycle"), json!({"ttl_seconds": 9000}))
        .await;
    world.stop_node().await;
    let id = path.rsplit('/').next().unwrap();
    world.control.view.remove(&SandboxId::parse(id).unwrap());
    let shown = world.get(&path).await.json();
    assert_eq!(shown["ttl_seconds"], 9000);
    assert!(shown["expires_at"].as_str() > shown["created_at"].as_str());
    let refused = world.get(&format!("{path}/lifecycle")).await;
    assert_eq!(refused.refusal(), "node_unavailable");
}

#[tokio::test]
async fn times_out_of_range_and_other_shapes_change_nothing() {
    let world = World::start().await;
    let path = path(&world).await;
    for body in [
        json!({"ttl_seconds": 0}),
        json!({"ttl_seconds": -1}),
        json!({"ttl_seconds": "600"}),
        json!({"ttl_seconds": 31_536_001}),
        json!({"idle_seconds": 4}),
        json!({"on_timeout": "pause"}),
        json!({"persistent": "yes"}),
        json!([]),
    ] {
        let refused = world
            .patch(&format!("{path}/lifecycle"), body.clone())
            .await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{body}");
        assert_eq!(refused.refusal(), "invalid_request");
    }
    let kept = changed(&world, &path, json!({})).await;
    assert_eq!(kept, lifecycle(600, false, 60, "delete"));
}

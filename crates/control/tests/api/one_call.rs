//! What a call costs must not grow with what others have.

use http::StatusCode;
use serde_json::json;

use crate::support::World;

#[tokio::test]
async fn no_call_about_one_thing_asks_the_node_for_everything() {
    let world = World::start().await;
    let made = json!({"name": "data", "size_mb": 64});
    let made = world.post("/v1/volumes", made).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    let sandbox = world.create().await;
    let path = format!("/v1/sandboxes/{sandbox}/snapshots");
    let taken = world.post(&path, json!({})).await;
    assert_eq!(taken.status, StatusCode::CREATED, "{}", taken.text());
    let snapshot = taken.json()["id"].as_str().unwrap().to_owned();
    let from = world
        .post("/v1/sandboxes", json!({"from_snapshot": snapshot}))
        .await;
    assert_eq!(from.status, StatusCode::CREATED, "{}", from.text());
    for path in [
        "/v1/volumes".to_owned(),
        "/v1/volumes/data".to_owned(),
        "/v1/snapshots".to_owned(),
        format!("/v1/snapshots/{snapshot}"),
    ] {
        let read = world.get(&path).await;
        assert_eq!(read.status, StatusCode::OK, "{path}: {}", read.text());
    }
    for path in [
        format!("/v1/snapshots/{snapshot}"),
        "/v1/volumes/data".to_owned(),
    ] {
        let deleted = world.delete(&path).await;
        assert_eq!(deleted.status, StatusCode::NO_CONTENT, "{path}");
    }
    assert_eq!(world.node.lists_of_all(), 0);
    // That the count works: whoever wants all templates asks for all.
    world.get("/v1/templates").await;
    assert_eq!(world.node.lists_of_all(), 1);
}

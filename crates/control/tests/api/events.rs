//! Events: in order, resumable, and nobody else's.

use std::time::Duration;

use axum::body::Body;
use dayfly_node_api::NodeError;
use dayfly_types::ErrorCode;
use http::Method;
use http_body_util::BodyExt;
use serde_json::Value;

use crate::support::World;

/// Reads a stream until `count` events have come.
pub(crate) async fn read(world: &World, key: &str, after: &str, count: usize) -> Vec<Value> {
    let request = http::Request::builder()
        .method(Method::GET)
        .uri(format!("http://{}/v1/events{after}", world.address))
        .header("authorization", format!("Bearer {key}"))
        .body(Body::empty())
        .unwrap();
    let mut body = world.open(request).await.into_body();
    let (mut text, mut events) = (String::new(), Vec::new());
    while events.len() < count {
        let frame = tokio::time::timeout(Duration::from_secs(10), body.frame());
        let frame = frame.await.expect("an event in time").unwrap().unwrap();
        text.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
        events = text
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .map(|data| serde_json::from_str(data).unwrap())
            .collect();
    }
    events
}

#[tokio::test]
async fn a_reader_goes_on_where_it_was_and_sees_nobody_else() {
    let world = World::start().await;
    let id = world.create().await;
    let events = read(&world, &world.key, "?after=0", 2).await;
    let states: Vec<&str> = events
        .iter()
        .map(|event| event["state"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["creating", "running"]);
    assert!(
        events
            .iter()
            .all(|event| event["sandbox_id"] == id.as_str())
    );
    let cursor = events[1]["cursor"].as_str().unwrap();
    world
        .ask(
            &world.foreign_key,
            Method::POST,
            "/v1/sandboxes",
            Value::Null,
        )
        .await;
    world.delete(&format!("/v1/sandboxes/{id}")).await;
    let later = read(&world, &world.key, &format!("?after={cursor}"), 1).await;
    assert_eq!(later.last().unwrap()["state"], "deleted");
    assert!(later.iter().all(|event| event["sandbox_id"] == id.as_str()));
}

#[tokio::test]
async fn who_asks_for_no_past_sees_what_comes() {
    let world = World::start().await;
    world.create().await;
    let (events, id) = tokio::join!(read(&world, &world.key, "", 2), async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        world.create().await
    });
    assert!(
        events
            .iter()
            .all(|event| event["sandbox_id"] == id.as_str())
    );
    let wrong = world.get("/v1/events?after=soon").await;
    assert_eq!(wrong.refusal(), "invalid_request");
}

#[tokio::test]
async fn a_create_that_came_to_nothing_has_an_end_too() {
    let world = World::start().await;
    let full = NodeError::new(ErrorCode::NoCapacity, "no room");
    world.node.refuse_ensure(Some(full));
    let refused = world.post("/v1/sandboxes", serde_json::json!({})).await;
    assert_eq!(refused.refusal(), "no_capacity");
    let events = read(&world, &world.key, "?after=0", 2).await;
    let states: Vec<&Value> = events.iter().map(|event| &event["state"]).collect();
    assert_eq!(states, ["creating", "deleted"]);
    assert_eq!(events[0]["sandbox_id"], events[1]["sandbox_id"]);
}

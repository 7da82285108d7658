//! Volumes.

use dayfly_node_api::NodeError;
use dayfly_types::ErrorCode;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::World;

#[tokio::test]
async fn a_volume_is_made_once_read_listed_grown_and_deleted() {
    let world = World::start().await;
    let made = world
        .post("/v1/volumes", json!({"name": "data", "size_mb": 512}))
        .await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    let expected = json!({"name": "data", "size_mb": 512, "created_at": "2023-11-14T22:13:20Z",
        "used_bytes": 4096, "writer": null, "readers": []});
    assert_eq!(made.json(), expected);
    let again = world
        .post("/v1/volumes", json!({"name": "data", "size_gb": 0.5}))
        .await;
    assert_eq!(
        (again.status, again.json()),
        (StatusCode::OK, expected.clone())
    );
    assert_eq!(world.get("/v1/volumes/data").await.json(), expected);
    world
        .post("/v1/volumes", json!({"name": "a", "size_gb": 1}))
        .await;
    let list = world.get("/v1/volumes").await.json();
    assert_eq!(
        (&list["items"][0]["name"], &list["items"][1]["name"]),
        (&json!("a"), &json!("data"))
    );

    for _ in 0..2 {
        let grown = world.patch("/v1/volumes/data", json!({"size_gb": 2})).await;
        assert_eq!(
            (grown.status, &grown.json()["size_mb"]),
            (StatusCode::OK, &json!(2048))
        );
    }
    for _ in 0..2 {
        let deleted = world.delete("/v1/volumes/data").await;
        assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    }
    assert_eq!(world.get("/v1/volumes/data").await.refusal(), "not_found");
}

#[tokio::test]
async fn a_volume_of_another_size_is_neither_answered_with_nor_changed() {
    let world = World::start().await;
    world
        .post("/v1/volumes", json!({"name": "data", "size_mb": 512}))
        .await;
    for size in [256, 1024] {
        let refused = world
            .post("/v1/volumes", json!({"name": "data", "size_mb": size}))
            .await;
        assert_eq!(refused.status, StatusCode::CONFLICT);
        assert_eq!(refused.refusal(), "already_exists");
        assert!(refused.text().contains("512 MiB"), "{}", refused.text());
    }
    let shrunk = world
        .patch("/v1/volumes/data", json!({"size_mb": 256}))
        .await;
    assert_eq!(shrunk.refusal(), "invalid_request");
    let absent = world
        .patch("/v1/volumes/other", json!({"size_mb": 256}))
        .await;
    assert_eq!(absent.refusal(), "not_found");
    for body in [
        json!({}),
        json!({"size_mb": 1}),
        json!({"size_mb": 600, "size_gb": 1}),
    ] {
        let refused = world.patch("/v1/volumes/data", body).await;
        assert_eq!(refused.refusal(), "invalid_request");
    }
    assert_eq!(world.get("/v1/volumes/data").await.json()["size_mb"], 512);
    world
        .node
        .refuse_state(Some(NodeError::new(ErrorCode::StorageFull, "full")));
    let full = world
        .post("/v1/volumes", json!({"name": "more", "size_gb": 1}))
        .await;
    assert_eq!(full.status, StatusCode::INSUFFICIENT_STORAGE);
}

#[tokio::test]
async fn a_volume_that_a_sandbox_has_is_not_deleted() {
    let world = World::start().await;
    world
        .post("/v1/volumes", json!({"name": "data", "size_mb": 512}))
        .await;
    let sandbox = world
        .post("/v1/sandboxes", json!({"volumes": [{"name": "data"}]}))
        .await;
    let id = sandbox.json()["id"].clone();
    assert_eq!(world.get("/v1/volumes/data").await.json()["writer"], id);
    let refused = world.delete("/v1/volumes/data").await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert_eq!(refused.refusal(), "volume_busy");
    world
        .delete(&format!("/v1/sandboxes/{}", id.as_str().unwrap()))
        .await;
    let deleted = world.delete("/v1/volumes/data").await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn the_same_name_in_another_project_is_another_volume() {
    let world = World::start().await;
    world
        .post("/v1/volumes", json!({"name": "data", "size_mb": 512}))
        .await;
    let foreign = async |method: Method, path: &str, body: Value| {
        world.ask(&world.foreign_key, method, path, body).await
    };
    let list = foreign(Method::GET, "/v1/volumes", Value::Null).await;
    assert_eq!(list.json(), json!({"items": []}));
    let read = foreign(Method::GET, "/v1/volumes/data", Value::Null).await;
    assert_eq!(read.status, StatusCode::NOT_FOUND);
    let unknown = foreign(Method::GET, "/v1/volumes/none", Value::Null).await;
    let text = |answer: &crate::support::Answer, name: &str| {
        answer.json()["error"]
            .as_str()
            .unwrap()
            .replace(name, "NAME")
    };
    assert_eq!(text(&read, "data"), text(&unknown, "none"));
    let grown = foreign(Method::PATCH, "/v1/volumes/data", json!({"size_gb": 9})).await;
    assert_eq!(grown.refusal(), "not_found");
    let deleted = foreign(Method::DELETE, "/v1/volumes/data", Value::Null).await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    let body = json!({"name": "data", "size_mb": 16});
    let made = foreign(Method::POST, "/v1/volumes", body).await;
    assert_eq!(made.status, StatusCode::CREATED);
    assert_eq!(world.get("/v1/volumes/data").await.json()["size_mb"], 512);
}

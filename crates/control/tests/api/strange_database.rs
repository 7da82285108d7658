//! A database that the node does not know decides nothing, until the operator says so.

use std::sync::Arc;
use std::time::Duration;

use dayfly_node_api::NodeIdentity;
use http::StatusCode;
use serde_json::json;

use crate::support::fake_node::FakeNode;
use crate::support::{Setup, World, eventually};

/// Several times as long as it takes to adopt, to delete or to mark as gone.
const LONG_ENOUGH: Duration = Duration::from_millis(1200);

fn with_node(node: Arc<FakeNode>) -> Setup {
    Setup {
        node: Some(node),
        ..Setup::quick()
    }
}

/// A world whose node has two sandboxes and knows its database.
async fn world() -> (World, [String; 2]) {
    let world = World::with(Setup::quick()).await;
    let ids = [world.create().await, world.create().await];
    eventually("the node knows the database", async || {
        world.node.known_database().is_some()
    })
    .await;
    (world, ids)
}

async fn is_strange(world: &World) -> bool {
    let health = world.get("/health").await.json();
    let conditions = health["conditions"].as_array();
    let is_that = |condition: &serde_json::Value| condition["name"] == "strange_database";
    health["status"] == "degraded" && conditions.is_some_and(|found| found.iter().any(is_that))
}

async fn listed(world: &World) -> usize {
    let list = world.get("/v1/sandboxes").await.json();
    list["items"].as_array().unwrap().len()
}

async fn becomes_strange(world: &World) {
    eventually("health says so", async || is_strange(world).await).await;
    tokio::time::sleep(LONG_ENOUGH).await;
}

async fn accepted(world: &World) {
    world.node.accept_database().await.unwrap();
    eventually("it is known", async || !is_strange(world).await).await;
}

#[tokio::test]
async fn a_new_database_beside_sandboxes_deletes_and_adopts_nothing_before_it_is_accepted() {
    let (old, _) = world().await;
    let known = old.node.known_database();
    let new = World::with(with_node(Arc::clone(&old.node))).await;
    becomes_strange(&new).await;
    assert_eq!((new.node.ids().len(), listed(&new).await), (2, 0));
    // The node still knows the right one, which is there again as if nothing had happened.
    assert_eq!(old.node.known_database().unwrap().id, known.unwrap().id);
    assert!(!is_strange(&old).await);
    assert_eq!(listed(&old).await, 2);
    drop(old);
    accepted(&new).await;
    eventually("both are adopted", async || listed(&new).await == 2).await;
    assert_eq!(new.node.ids().len(), 2);
}

#[tokio::test]
async fn an_older_database_marks_nothing_as_gone_before_it_is_accepted() {
    let (world, ids) = world().await;
    world.node.know_database(|known| known.changes += 1000);
    becomes_strange(&world).await;
    let lost = dayfly_types::SandboxId::parse(&ids[0]).unwrap();
    world.node.lose(&lost);
    tokio::time::sleep(LONG_ENOUGH).await;
    assert_eq!(listed(&world).await, 2);
    // What is done with it meanwhile does not make it younger.
    world.node.know_database(|known| known.changes -= 1000);
    tokio::time::sleep(LONG_ENOUGH).await;
    assert!(is_strange(&world).await);
    accepted(&world).await;
    eventually("its row is deleted", async || listed(&world).await == 1).await;
}

#[tokio::test]
async fn a_foreign_database_deletes_nothing() {
    let (world, _) = world().await;
    world
        .node
        .know_database(|known| known.id = "another".to_owned());
    becomes_strange(&world).await;
    assert_eq!((world.node.ids().len(), listed(&world).await), (2, 2));
    // The right one is put back.
    accepted(&world).await;
    assert_eq!((world.node.ids().len(), listed(&world).await), (2, 2));
}

#[tokio::test]
async fn rows_outlive_a_node_that_was_emptied() {
    let (world, _) = world().await;
    world.node.empty();
    becomes_strange(&world).await;
    assert_eq!(listed(&world).await, 2);
    accepted(&world).await;
    eventually("they are given up", async || listed(&world).await == 0).await;
}

#[tokio::test]
async fn what_the_node_keeps_without_reading_it_is_shown_and_not_given_up() {
    let (world, ids) = world().await;
    let report = world.node.keep_unread(&ids[0]);
    let path = format!("/v1/sandboxes/{}", ids[0]);
    eventually("it is shown", async || {
        world.get(&path).await.json()["status"] == "unavailable"
    })
    .await;
    tokio::time::sleep(LONG_ENOUGH).await;
    let shown = world.get(&path).await;
    assert_eq!(shown.status, StatusCode::OK);
    assert_eq!(shown.json()["reason"], "its record cannot be read");
    let listed = world.get("/v1/sandboxes?status=unavailable").await.json();
    assert_eq!(listed["items"][0]["id"], json!(ids[0]));
    world.node.read_again(report);
    eventually("it is back", async || {
        world.get(&path).await.json()["status"] == "running"
    })
    .await;
}

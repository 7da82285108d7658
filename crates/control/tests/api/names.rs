//! Names of sandboxes: one for each, wherever an id may stand.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::World;

async fn named(world: &World, name: &str) -> String {
    let made = world.post("/v1/sandboxes", json!({"name": name})).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    assert_eq!(made.json()["name"], name);
    made.json()["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_name_stands_for_its_sandbox() {
    let world = World::start().await;
    let (other, id) = (world.create().await, named(&world, "notebook").await);

    let read = world.get("/v1/sandboxes/notebook").await.json();
    assert_eq!(
        (&read["id"], &read["name"]),
        (&json!(id), &json!("notebook"))
    );
    let unnamed = world.get(&format!("/v1/sandboxes/{other}")).await.json();
    assert_eq!(unnamed.get("name"), None);

    let body = json!({"cmd": "true"});
    let run = world.post("/v1/sandboxes/notebook/exec", body).await;
    assert_eq!(run.status, StatusCode::OK, "{}", run.text());
    let file = "/v1/sandboxes/notebook/fs?path=/a%20b";
    world.ask(&world.key, Method::PUT, file, Value::Null).await;
    assert!(world.node.last_file_request().contains("/a b"));
    let taken = world
        .post("/v1/sandboxes/notebook/snapshots", json!({}))
        .await;
    assert_eq!(taken.json()["sandbox_id"], id);
    let list = world.get("/v1/snapshots?sandbox_id=notebook").await.json();
    assert_eq!(list["snapshots"].as_array().unwrap().len(), 1);

    let audit = world.get(&format!("/v1/audit?subject={id}")).await.json();
    let items = audit["items"].as_array().unwrap();
    let asked = |entry: &Value| entry["operation"] == "POST /v1/sandboxes/notebook/exec";
    assert!(items.iter().any(asked), "{items:?}");
}

#[tokio::test]
async fn a_name_is_taken_until_its_sandbox_is_deleted() {
    let world = World::start().await;
    let first = named(&world, "notebook").await;
    let second = world
        .post("/v1/sandboxes", json!({"name": "notebook"}))
        .await;
    assert_eq!(second.refusal(), "already_exists");
    assert!(second.text().contains(&first), "{}", second.text());
    assert_eq!(world.node.ids().len(), 1, "nothing was made");

    // Another project's names are its own.
    let foreign = &world.foreign_key;
    let body = json!({"name": "notebook"});
    let theirs = world
        .ask(foreign, Method::POST, "/v1/sandboxes", body)
        .await;
    assert_eq!(theirs.status, StatusCode::CREATED);
    assert_ne!(theirs.json()["id"], first);

    let deleted = world.delete("/v1/sandboxes/notebook").await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    let gone = world.get("/v1/sandboxes/notebook").await;
    assert_eq!(gone.refusal(), "not_found");
    assert_ne!(named(&world, "notebook").await, first);
}

#[tokio::test]
async fn children_do_not_have_the_name_of_their_source() {
    let world = World::start().await;
    named(&world, "notebook").await;
    let forked = world
        .post("/v1/sandboxes/notebook/fork", json!({"count": 2}))
        .await;
    assert!(forked.status.is_success(), "{}", forked.text());
    let all = world.get("/v1/sandboxes").await.json();
    let names = all["items"].as_array().unwrap().iter();
    let names: Vec<_> = names.filter_map(|one| one.get("name")).collect();
    assert_eq!(names, ["notebook"]);
}

#[tokio::test]
async fn an_id_is_refused_as_a_name() {
    let world = World::start().await;
    for name in ["sb-local-1", "Notebook", "", "a b"] {
        let refused = world.post("/v1/sandboxes", json!({"name": name})).await;
        assert_eq!(refused.refusal(), "invalid_request", "{name}");
        assert!(refused.text().contains("name"), "{}", refused.text());
    }
}

#[tokio::test]
async fn a_key_for_one_sandbox_is_for_it_by_name_too_and_for_no_other() {
    let world = World::start().await;
    let mine = named(&world, "mine").await;
    let other = named(&world, "other").await;
    let wish = json!({"sandbox_id": "mine"});
    let made = world.post("/v1/me/tokens", wish).await.json();
    assert_eq!(made["sandbox_id"], mine);
    let key = made["token"].as_str().unwrap();
    let ask = async |path: &str| world.ask(key, Method::GET, path, Value::Null).await;
    assert_eq!(ask("/v1/sandboxes/mine").await.status, StatusCode::OK);
    let refused = ask("/v1/sandboxes/other").await;
    assert_eq!(refused.status, StatusCode::NOT_FOUND);
    assert!(!refused.text().contains(&other), "{}", refused.text());
}

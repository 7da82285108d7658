//! What a key made: listed, kept, or ended with it.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::gateway::{PORT, by_host, served, visit};
use crate::support::{Setup, World};

async fn make(world: &World, maker: &str, wish: Value) -> Value {
    let made = world.ask(maker, Method::POST, "/v1/me/tokens", wish).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    made.json()
}

fn secret(made: &Value) -> &str {
    made["token"].as_str().unwrap()
}

fn prefix(made: &Value) -> &str {
    made["prefix"].as_str().unwrap()
}

async fn works(world: &World, made: &Value) -> bool {
    let me = world
        .ask(secret(made), Method::GET, "/v1/me", json!({}))
        .await;
    me.status == StatusCode::OK
}

async fn revoke(world: &World, made: &Value, query: &str) -> StatusCode {
    let path = format!("/v1/me/tokens/{}{query}", prefix(made));
    world.delete(&path).await.status
}

#[tokio::test]
async fn a_key_names_the_one_that_made_it() {
    let world = World::start().await;
    let parent = make(&world, &world.key, json!({})).await;
    let child = make(&world, secret(&parent), json!({"scopes": ["read"]})).await;
    let list = world.get("/v1/me/tokens").await.json();
    let items = list["items"].as_array().unwrap();
    let maker = |made: &Value| {
        let found = items.iter().find(|item| item["prefix"] == made["prefix"]);
        found.unwrap()["made_by"].clone()
    };
    assert_eq!(maker(&child), parent["prefix"]);
    assert_eq!(maker(&parent), world.key[..12]);
}

#[tokio::test]
async fn a_key_ends_alone_or_with_everything_that_it_made() {
    let (world, id) = served(Setup::default()).await;
    let parent = make(&world, &world.key, json!({})).await;
    let child = make(&world, secret(&parent), json!({})).await;
    let grandchild = make(&world, secret(&child), json!({})).await;
    let sibling = make(&world, &world.key, json!({})).await;
    let path = format!("/v1/sandboxes/{id}/ports/{PORT}/links");
    for maker in [&grandchild, &sibling] {
        let wish = json!({"ttl_seconds": 600});
        let made = world.ask(secret(maker), Method::POST, &path, wish).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    }
    let public = json!({"public": true});
    world.ask(secret(&child), Method::POST, &path, public).await;
    let open = visit(&world, by_host(&world, &id, "/")).await;
    assert_eq!(open.status, StatusCode::OK, "the public link works");

    assert_eq!(revoke(&world, &parent, "").await, StatusCode::NO_CONTENT);
    assert!(!works(&world, &parent).await);
    assert!(works(&world, &child).await && works(&world, &grandchild).await);

    // Also of one that was revoked before without them.
    let again = revoke(&world, &parent, "?descendants=true").await;
    assert_eq!(again, StatusCode::NO_CONTENT);
    assert!(!works(&world, &child).await && !works(&world, &grandchild).await);
    assert!(works(&world, &sibling).await && works(&world, &json!({"token": world.key})).await);
    let shut = visit(&world, by_host(&world, &id, "/")).await;
    assert_eq!(
        shut.status,
        StatusCode::NOT_FOUND,
        "the public link is gone"
    );
    let left = world.get(&format!("/v1/sandboxes/{id}/links")).await.json();
    let left = left["items"].as_array().unwrap();
    assert_eq!((left.len(), &left[0]["made_by"]), (1, &sibling["prefix"]));
}

#[tokio::test]
async fn an_operator_s_key_takes_what_it_made_elsewhere_with_it() {
    let world = World::start().await;
    let operator = make(&world, &world.key, json!({"scopes": ["operator"]})).await;
    let path = "/v1/projects/other/tokens";
    let made = world
        .ask(secret(&operator), Method::POST, path, json!({}))
        .await;
    let elsewhere = made.json();
    assert!(works(&world, &elsewhere).await);
    let ended = revoke(&world, &operator, "?descendants=true").await;
    assert_eq!(ended, StatusCode::NO_CONTENT);
    assert!(!works(&world, &elsewhere).await);
    assert!(works(&world, &json!({"token": world.foreign_key})).await);
}

#[tokio::test]
async fn nobody_ends_what_a_wider_key_made() {
    let world = World::start().await;
    let operator = make(&world, &world.key, json!({"scopes": ["operator"]})).await;
    let made = make(&world, secret(&operator), json!({"scopes": ["read"]})).await;
    assert_eq!(revoke(&world, &operator, "").await, StatusCode::NO_CONTENT);
    let admin = make(&world, &world.key, json!({"scopes": ["admin"]})).await;
    let path = format!("/v1/me/tokens/{}?descendants=true", prefix(&operator));
    let tried = world
        .ask(secret(&admin), Method::DELETE, &path, json!({}))
        .await;
    assert_eq!(tried.refusal(), "forbidden");
    assert!(works(&world, &made).await);
}

#[tokio::test]
async fn a_revoked_maker_makes_nothing_more() {
    let world = World::start().await;
    let parent = make(&world, &world.key, json!({})).await;
    let project = dayfly_types::ProjectId::default_project();
    let store = &world.control.store;
    let row = |made_by: &str, hash: char| dayfly_control::store::KeyRow {
        hash: hash.to_string().repeat(64),
        project: project.clone(),
        prefix: format!("dfk_{}", hash.to_string().repeat(8)),
        reach: dayfly_control::tenancy::scope::Reach::everywhere(
            dayfly_control::tenancy::scope::Scopes::operator(),
        ),
        label: String::new(),
        made_by: Some(made_by.to_owned()),
        person: None,
        created_at_ms: 1,
        expires_at_ms: None,
        revoked_at_ms: None,
    };
    assert!(
        store
            .insert_api_key(&row(prefix(&parent), 'a'))
            .await
            .unwrap()
    );
    // As a create that had passed the door before the revocation.
    assert_eq!(revoke(&world, &parent, "").await, StatusCode::NO_CONTENT);
    assert!(
        !store
            .insert_api_key(&row(prefix(&parent), 'b'))
            .await
            .unwrap()
    );
}

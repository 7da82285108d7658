//! The key of the people on the host: no administrator's, in nobody's hands, and one at a time.

use dayfly_control::PresentedKey;
use dayfly_types::ProjectId;
use http::{Method, StatusCode};
use serde_json::json;

use crate::gateway::{PORT, served};
use crate::support::{Setup, World};

async fn with_local_key(key: &PresentedKey) -> (World, String) {
    let setup = Setup {
        local_key: Some(key.hash()),
        ..Setup::default()
    };
    let (world, id) = served(setup).await;
    let hash = key.hash().to_hex();
    let store = &world.control.store;
    store.ensure_local_key(Some(&hash), 1).await.unwrap();
    (world, id)
}

async fn links(world: &World, id: &str) -> usize {
    let list = world.get(&format!("/v1/sandboxes/{id}/links")).await.json();
    list["items"].as_array().unwrap().len()
}

#[tokio::test]
async fn it_makes_and_uses_sandboxes_and_administers_nothing() {
    let key = PresentedKey::generate().unwrap();
    let (world, _) = with_local_key(&key).await;
    let ask = |method, path, body| world.ask(key.reveal(), method, path, body);
    let made = ask(Method::POST, "/v1/sandboxes", json!({})).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    for (method, path) in [
        (Method::POST, "/v1/me/tokens"),
        (Method::GET, "/v1/projects"),
        (Method::GET, "/v1/audit"),
    ] {
        let refused = ask(method, path, json!({})).await;
        assert_eq!(refused.refusal(), "forbidden", "{path}");
    }
}

#[tokio::test]
async fn nobody_ends_it_by_name() {
    let key = PresentedKey::generate().unwrap();
    let (world, _) = with_local_key(&key).await;
    // With an operator's key, so with every key.
    for query in ["", "?descendants=true"] {
        let path = format!("/v1/me/tokens/local{query}");
        assert_eq!(world.delete(&path).await.refusal(), "forbidden");
    }
    let me = world.ask(key.reveal(), Method::GET, "/v1/me", json!({}));
    assert_eq!(me.await.status, StatusCode::OK);
}

#[tokio::test]
async fn the_next_one_takes_it_away_with_the_links_that_it_made() {
    let key = PresentedKey::generate().unwrap();
    let (world, id) = with_local_key(&key).await;
    let path = format!("/v1/sandboxes/{id}/ports/{PORT}/links");
    let wish = json!({"ttl_seconds": 600});
    for maker in [key.reveal(), world.key.as_str()] {
        let made = world.ask(maker, Method::POST, &path, wish.clone()).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    }
    let path = format!("/v1/sandboxes/{id}/fs/links");
    let file = world.ask(key.reveal(), Method::POST, &path, json!({"path": "a"}));
    let file = file.await.json()["id"].as_str().unwrap().to_owned();
    let store = &world.control.store;
    let project = ProjectId::default_project();
    let is_over = async || {
        let key = store.api_key(&project, &file).await.unwrap();
        key.unwrap().revoked_at_ms.is_some()
    };
    let hash = key.hash().to_hex();
    store.ensure_local_key(Some(&hash), 2).await.unwrap();
    assert!(!is_over().await, "a restart of control alone");
    assert_eq!(links(&world, &id).await, 2, "a restart of control alone");
    let next = PresentedKey::generate().unwrap().hash().to_hex();
    store.ensure_local_key(Some(&next), 3).await.unwrap();
    assert!(store.key_by_hash(&hash).await.unwrap().is_none());
    assert!(store.key_by_hash(&next).await.unwrap().is_some());
    assert_eq!(links(&world, &id).await, 1, "another's link stays");
    assert!(is_over().await, "a link to a file is a key that it made");
    store.ensure_local_key(None, 4).await.unwrap();
    assert!(store.key_by_hash(&next).await.unwrap().is_none());
}

#[tokio::test]
async fn one_that_the_database_still_has_works_no_more() {
    let key = PresentedKey::generate().unwrap();
    let world = World::start().await;
    let hash = key.hash().to_hex();
    let store = &world.control.store;
    store.ensure_local_key(Some(&hash), 1).await.unwrap();
    let me = world.ask(key.reveal(), Method::GET, "/v1/me", json!({}));
    assert_eq!(me.await.refusal(), "unauthorized");
}

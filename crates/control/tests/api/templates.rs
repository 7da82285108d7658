//! Templates that are baked when somebody asks for them.

use dayfly_node_api::BakeState;
use http::{Method, StatusCode};
use serde_json::json;

use crate::support::{World, eventually, template};

async fn world_with(state: BakeState) -> World {
    let world = World::start().await;
    world.node.set_templates(vec![template("base", state)]);
    world
}

#[tokio::test]
async fn create_from_a_template_that_is_not_baked_orders_it() {
    let world = world_with(BakeState::NotBaked).await;
    let shown = world.get("/v1/templates/base").await.json();
    assert_eq!(shown["state"], "not_baked");
    let refused = world.post("/v1/sandboxes", json!({})).await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.refusal(), "template_baking");
    assert_eq!(refused.json()["percent"], 0);
    assert!(refused.headers.contains_key("retry-after"));
    assert_eq!(world.node.ensure_calls(), 0);
    let shown = world.get("/v1/templates/base").await.json();
    assert_eq!(shown["state"], "waiting");
}

#[tokio::test]
async fn bake_may_be_asked_for_and_repeated() {
    let world = world_with(BakeState::NotBaked).await;
    for _ in 0..2 {
        let accepted = world.post("/v1/templates/base/bake", json!({})).await;
        assert_eq!(accepted.status, StatusCode::ACCEPTED);
        assert_eq!(accepted.json()["state"], "waiting");
    }
    let unknown = world.post("/v1/templates/nowhere/bake", json!({})).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    assert!(unknown.json()["error"].as_str().unwrap().contains("base"));
}

#[tokio::test]
async fn template_says_what_run_means_and_whose_other_name_it_is() {
    let world = World::start().await;
    let base = template("base", BakeState::Ready);
    let mut other = template("other", BakeState::Ready);
    other.alias_of = Some(base.name.clone());
    world.node.set_templates(vec![base, other]);
    let list = world.get("/v1/templates").await.json();
    assert_eq!(
        (&list[0]["run"], &list[0]["contexts"]),
        (&json!("shell"), &json!(["python"]))
    );
    assert_eq!(list[0].get("alias_of"), None);
    assert_eq!(list[1]["alias_of"], "base");
    let made = world
        .post("/v1/sandboxes", json!({"template": "other"}))
        .await;
    assert_eq!(made.status, StatusCode::CREATED);
    assert_eq!(made.json()["template"], "other");
}

#[tokio::test]
async fn a_template_that_is_baked_anew_or_failed_to_be_can_be_used() {
    let step = "booting".to_owned();
    let reason = "no disk".to_owned();
    let states = [
        BakeState::Waiting,
        BakeState::Baking { percent: 30, step },
        BakeState::Failed { reason },
    ];
    for state in states {
        let world = World::start().await;
        let mut base = template("base", state.clone());
        world.node.set_templates(vec![base.clone()]);
        let refused = world.post("/v1/sandboxes", json!({})).await;
        assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE, "{state:?}");
        let waits = world.get("/ready").await;
        assert_eq!(waits.refusal(), refused.refusal(), "{state:?}");
        assert_eq!(waits.json()["status"], "ok");
        base.is_usable = true;
        world.node.set_templates(vec![base]);
        eventually("it is ready", async || {
            world.get("/ready").await.status == StatusCode::OK
        })
        .await;
        let made = world.post("/v1/sandboxes", json!({})).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
        let shown = world.get("/v1/templates/base").await.json();
        assert_eq!(shown["usable"], true);
        assert_ne!(shown["state"], "ready");
    }
}

#[tokio::test]
async fn only_an_operator_has_a_ready_template_baked_anew_and_finds_new_recipes() {
    let world = World::start().await;
    let made = world.post("/v1/me/tokens", json!({})).await.json();
    let key = made["token"].as_str().unwrap();
    let path = "/v1/templates/base/bake";
    let asked = world.ask(key, Method::POST, path, json!({})).await;
    assert_eq!(asked.status, StatusCode::ACCEPTED);
    assert_eq!(asked.json()["state"], "ready", "an ordinary key baked it");
    let asked = world.post(path, json!({})).await;
    assert_eq!(asked.json()["state"], "waiting");
    assert_eq!(asked.json()["usable"], true);
    // No read of it comes before the order: the node may not know it yet.
    let fresh = world.post("/v1/templates/fresh/bake", json!({})).await;
    assert_eq!(fresh.status, StatusCode::ACCEPTED, "{}", fresh.text());
}

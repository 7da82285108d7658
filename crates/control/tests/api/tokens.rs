//! Keys: made, narrowed, expired, revoked, and never to be read again.

use std::time::{Duration, Instant};

use axum::body::Body;
use http::{Method, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::support::{World, eventually};

async fn make(world: &World, wish: Value) -> Value {
    let made = world.post("/v1/me/tokens", wish).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    made.json()
}

async fn status(world: &World, token: &Value, method: Method, path: &str) -> StatusCode {
    let key = token["token"].as_str().unwrap();
    world.ask(key, method, path, json!({})).await.status
}

#[tokio::test]
async fn a_key_is_told_once_and_listed_without_its_secret() {
    let world = World::start().await;
    let made = make(&world, json!({"label": "ci", "expires_in_days": 7})).await;
    let secret = made["token"].as_str().unwrap();
    assert!(secret.starts_with(made["prefix"].as_str().unwrap()));
    assert_eq!(made["label"], "ci");
    assert_eq!(
        made["scopes"],
        json!(["read", "create", "exec", "audit", "admin"])
    );
    let list = world.get("/v1/me/tokens").await;
    assert!(!list.text().contains(secret));
    let items = list.json()["items"].as_array().unwrap().clone();
    let listed = items
        .iter()
        .find(|item| item["prefix"] == made["prefix"])
        .unwrap();
    assert_eq!(listed["expires_at"], made["expires_at"]);
    assert_eq!(
        status(&world, &made, Method::GET, "/v1/me").await,
        StatusCode::OK
    );
}

#[tokio::test]
async fn i3_a_revoked_key_is_dead_within_a_second() {
    let world = World::start().await;
    let made = make(&world, json!({})).await;
    assert_eq!(
        status(&world, &made, Method::GET, "/v1/sandboxes").await,
        StatusCode::OK
    );
    let prefix = made["prefix"].as_str().unwrap();
    let began = Instant::now();
    let revoked = world.delete(&format!("/v1/me/tokens/{prefix}")).await;
    assert_eq!(revoked.status, StatusCode::NO_CONTENT);
    assert_eq!(
        status(&world, &made, Method::GET, "/v1/sandboxes").await,
        StatusCode::UNAUTHORIZED,
        "dead with the answer"
    );
    assert!(began.elapsed() < Duration::from_secs(1));
    let again = world.delete(&format!("/v1/me/tokens/{prefix}")).await;
    assert_eq!(again.refusal(), "not_found");
    let record = world.get("/v1/audit?limit=5").await.json();
    let tried = record["items"].as_array().unwrap().iter();
    let mut tried = tried.filter(|item| item["key_prefix"] == prefix);
    assert!(tried.any(|item| item["status"] == 401), "{record}");
}

#[tokio::test]
async fn a_key_that_another_process_revoked_is_dead_within_a_second() {
    let world = World::start().await;
    let made = make(&world, json!({})).await;
    assert_eq!(
        status(&world, &made, Method::GET, "/v1/me").await,
        StatusCode::OK
    );
    let prefix = made["prefix"].as_str().unwrap();
    let project = dayfly_types::ProjectId::default_project();
    let done = world
        .control
        .store
        .revoke_api_key(&project, prefix, 1)
        .await;
    assert_eq!(done.unwrap(), dayfly_control::store::Revoked::Now);
    let began = Instant::now();
    // When a request began that was still accepted: how long one takes says nothing about the key.
    let mut accepted_at = Duration::ZERO;
    eventually("it is refused", async || {
        let asked_at = began.elapsed();
        let is_refused =
            status(&world, &made, Method::GET, "/v1/me").await == StatusCode::UNAUTHORIZED;
        if !is_refused {
            accepted_at = asked_at;
        }
        is_refused
    })
    .await;
    assert!(accepted_at < Duration::from_secs(1), "{accepted_at:?}");
}

#[tokio::test]
async fn a_key_expires() {
    let world = World::start().await;
    let made = make(&world, json!({"expires_in_seconds": 1})).await;
    assert_eq!(
        status(&world, &made, Method::GET, "/v1/me").await,
        StatusCode::OK
    );
    eventually("it expired", async || {
        status(&world, &made, Method::GET, "/v1/me").await == StatusCode::UNAUTHORIZED
    })
    .await;
}

#[tokio::test]
async fn nobody_makes_a_key_for_more_than_their_own() {
    let world = World::start().await;
    let admin = make(&world, json!({"scopes": ["admin"]})).await;
    let key = admin["token"].as_str().unwrap();
    let ask = async |wish: Value| world.ask(key, Method::POST, "/v1/me/tokens", wish).await;
    let wider = ask(json!({"scopes": ["operator"]})).await;
    assert_eq!(wider.refusal(), "forbidden");
    for wish in [
        json!({"scopes": []}),
        json!({"scopes": ["everything"]}),
        json!({"sandbox": "sb-local-x"}),
        json!({"label": "a\u{1b}[31m"}),
        json!({"expires_in_days": 0}),
        json!({"expires_in_days": 1, "expires_in_seconds": 1}),
    ] {
        assert_eq!(
            ask(wish.clone()).await.refusal(),
            "invalid_request",
            "{wish}"
        );
    }
    let absent = ask(json!({"sandbox_id": "sb-local-absent"})).await;
    assert_eq!(absent.refusal(), "not_found");
}

#[tokio::test]
async fn a_key_for_one_sandbox_is_of_no_use_elsewhere() {
    let world = World::start().await;
    let (one, other) = (world.create().await, world.create().await);
    let made = make(&world, json!({"scopes": ["exec"], "sandbox_id": one})).await;
    let ask = async |method: Method, path: String| status(&world, &made, method, &path).await;
    let of = |id: &str| format!("/v1/sandboxes/{id}");
    assert_eq!(ask(Method::GET, of(&one)).await, StatusCode::OK);
    assert_eq!(ask(Method::GET, of(&other)).await, StatusCode::NOT_FOUND);
    assert_eq!(ask(Method::DELETE, of(&one)).await, StatusCode::FORBIDDEN);
    for path in [
        "/v1/sandboxes",
        "/v1/volumes",
        "/v1/me/tokens",
        "/v1/events",
    ] {
        let status = ask(Method::GET, path.to_owned()).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{path}");
    }
    let me = ask(Method::GET, "/v1/me".to_owned()).await;
    assert_eq!(me, StatusCode::OK);
}

/// A stream of events that a key opened, after its first bytes.
pub(crate) async fn follow_events(world: &World, key: &str) -> Body {
    let request = http::Request::builder()
        .uri(format!("http://{}/v1/events", world.address))
        .header("authorization", format!("Bearer {key}"))
        .body(Body::empty())
        .unwrap();
    let mut body = Body::new(world.open(request).await.into_body());
    assert!(body.frame().await.unwrap().is_ok(), "it is open");
    body
}

#[tokio::test]
async fn what_was_opened_with_a_key_ends_with_it() {
    let world = World::start().await;
    let made = make(&world, json!({})).await;
    let mut body = follow_events(&world, made["token"].as_str().unwrap()).await;
    let prefix = made["prefix"].as_str().unwrap();
    world.delete(&format!("/v1/me/tokens/{prefix}")).await;
    let next = tokio::time::timeout(Duration::from_secs(1), body.frame());
    let next = next.await.expect("cut within a second");
    assert!(next.is_none_or(|frame| frame.is_err()));
}

#[tokio::test]
async fn what_a_revocation_left_open_is_cut_off_by_the_next() {
    let world = World::start().await;
    let made = make(&world, json!({})).await;
    let mut body = follow_events(&world, made["token"].as_str().unwrap()).await;
    let prefix = made["prefix"].as_str().unwrap();
    // As if the server had ended between the row and the cut.
    let project = dayfly_types::ProjectId::default_project();
    let store = &world.control.store;
    store.revoke_api_key(&project, prefix, 1).await.unwrap();
    let again = world.delete(&format!("/v1/me/tokens/{prefix}")).await;
    assert_eq!(again.refusal(), "not_found");
    let next = tokio::time::timeout(Duration::from_secs(1), body.frame());
    let next = next.await.expect("cut within a second");
    assert!(next.is_none_or(|frame| frame.is_err()));
}

#[tokio::test]
async fn another_project_cannot_cut_off_what_a_key_opened() {
    let world = World::start().await;
    let made = make(&world, json!({})).await;
    let mut body = follow_events(&world, made["token"].as_str().unwrap()).await;
    let path = format!("/v1/me/tokens/{}", made["prefix"].as_str().unwrap());
    let tried = world
        .ask(&world.foreign_key, Method::DELETE, &path, json!({}))
        .await;
    assert_eq!(tried.refusal(), "not_found");
    world.create().await;
    let next = tokio::time::timeout(Duration::from_secs(5), body.frame());
    let next = next.await.expect("an event");
    assert!(next.unwrap().is_ok(), "it goes on");
}

#[tokio::test]
async fn nobody_ends_or_outlives_a_key_that_may_do_more() {
    let world = World::start().await;
    let hash = "c".repeat(64);
    world
        .control
        .store
        .ensure_admin_key(&hash, 1)
        .await
        .unwrap();
    let wish = json!({"scopes": ["admin"], "expires_in_seconds": 3600});
    let admin = make(&world, wish).await;
    let key = admin["token"].as_str().unwrap();
    let ended = world
        .ask(key, Method::DELETE, "/v1/me/tokens/admin", json!({}))
        .await;
    assert_eq!(ended.refusal(), "forbidden");
    let child = world
        .ask(key, Method::POST, "/v1/me/tokens", json!({}))
        .await
        .json();
    assert_eq!(child["expires_at"], admin["expires_at"]);
}

#[tokio::test]
async fn a_request_whose_caller_hung_up_is_in_the_record() {
    let world = World::start().await;
    world.node.delay_ensure(Duration::from_millis(500));
    let request = world.post_request("/v1/sandboxes", &json!({}));
    let sent = tokio::time::timeout(Duration::from_millis(200), world.http.request(request));
    assert!(sent.await.is_err(), "nobody waited");
    eventually("it is recorded", async || {
        let record = world.get("/v1/audit?limit=5").await.json();
        let items = record["items"].as_array().unwrap().clone();
        items
            .iter()
            .any(|item| item["status"] == 499 && item["operation"] == "POST /v1/sandboxes")
    })
    .await;
}

#[tokio::test]
async fn no_secret_is_in_the_database() {
    let world = World::start().await;
    let id = world.create().await;
    let key = make(&world, json!({"label": "canary"})).await;
    let path = format!("/v1/sandboxes/{id}/ports/8080/links");
    let link = world.post(&path, json!({})).await.json();
    // A whole key where its prefix was meant.
    let secret = key["token"].as_str().unwrap();
    world.delete(&format!("/v1/me/tokens/{secret}")).await;
    let told = world.get("/v1/audit").await;
    assert!(!told.text().contains(secret));
    let secrets = [secret, link["token"].as_str().unwrap(), world.key.as_str()];
    let mut files = 0;
    for entry in std::fs::read_dir(world.directory()).unwrap() {
        let path = entry.unwrap().path();
        let Ok(bytes) = std::fs::read(&path) else {
            continue;
        };
        for secret in secrets {
            let found = bytes
                .windows(secret.len())
                .any(|window| window == secret.as_bytes());
            assert!(!found, "{}", path.display());
        }
        files += 1;
    }
    assert!(files >= 1, "the database was read");
}

//! The environment variables of a sandbox: who has them, who replaces them, and who never sees them.

use std::collections::BTreeMap;

use dayfly_control::store::Store;
use dayfly_node_api::NodeError;
use dayfly_types::limits::{ENVIRONMENT_BYTES_MAX, EXEC_SPEC_BYTES_MAX};
use dayfly_types::{ErrorCode, ProjectId, SandboxId};
use http::StatusCode;
use serde_json::{Value, json};
use sqlx::SqlitePool;

use crate::support::World;
use crate::support::fake_context::DIE;
use crate::support::log::Log;

const SECRET: &str = "v3ry-s3cret";

async fn made(world: &World, body: Value) -> String {
    let made = world.post("/v1/sandboxes", body).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    made.json()["id"].as_str().unwrap().to_owned()
}

/// What a command of the sandbox has.
async fn of_command(world: &World, id: &str) -> Value {
    let path = format!("/v1/sandboxes/{id}/exec");
    let done = world.post(&path, json!({"cmd": "env"})).await;
    assert_eq!(done.status, StatusCode::OK, "{}", done.text());
    last(world)
}

fn last(world: &World) -> Value {
    json!(world.node.last_exec().unwrap().spec.env)
}

async fn names(world: &World, id: &str) -> Value {
    let sandbox = world.get(&format!("/v1/sandboxes/{id}")).await;
    sandbox.json()["env_names"].clone()
}

#[tokio::test]
async fn every_command_has_those_of_its_sandbox_under_its_own() {
    let world = World::start().await;
    let id = made(&world, json!({"env": {"A": "1", "B": "1"}})).await;
    let all = json!({"A": "1", "B": "2", "C": "2"});
    let request = json!({"cmd": "env", "env": {"B": "2", "C": "2"}});
    for route in ["exec", "exec/stream"] {
        let path = format!("/v1/sandboxes/{id}/{route}");
        assert_eq!(
            world.post(&path, request.clone()).await.status.as_u16(),
            200
        );
        assert_eq!(last(&world), all, "{route}");
    }
    let mut background = request.clone();
    background["background"] = json!(true);
    background["terminal"] = json!({"columns": 80, "rows": 24});
    let path = format!("/v1/sandboxes/{id}/exec");
    assert_eq!(world.post(&path, background).await.status.as_u16(), 202);
    assert_eq!(last(&world), all);
    let path = format!("/v1/sandboxes/{id}/run");
    for mode in ["shell", "python"] {
        let run = json!({"code": "env", "mode": mode});
        assert_eq!(world.post(&path, run).await.status.as_u16(), 200);
        assert_eq!(last(&world), json!({"A": "1", "B": "1"}), "{mode}");
    }
    let plain = world.create().await;
    assert_eq!(of_command(&world, &plain).await, json!({}));
    assert_eq!(names(&world, &plain).await, json!([]));
}

#[tokio::test]
async fn a_fork_and_a_wake_and_a_rollback_replace_them_and_else_they_stay() {
    let world = World::start().await;
    let id = made(&world, json!({"env": {"A": "1", "B": "1"}})).await;
    let path = format!("/v1/sandboxes/{id}");
    let child = async |body: Value| {
        let forked = world.post(&format!("{path}/fork"), body).await.json();
        forked["children"][0]["id"].as_str().unwrap().to_owned()
    };
    let same = child(json!({})).await;
    assert_eq!(of_command(&world, &same).await, json!({"A": "1", "B": "1"}));
    let other = child(json!({"env": {"A": "2"}})).await;
    assert_eq!(of_command(&world, &other).await, json!({"A": "2"}));
    assert_eq!(names(&world, &other).await, json!(["A"]));
    assert_eq!(names(&world, &id).await, json!(["A", "B"]));
    let snapshot = world.post(&format!("{path}/snapshots"), json!({})).await;
    let snapshot = snapshot.json()["id"].clone();
    for (change, body, expected) in [
        ("wake", json!({}), json!({"A": "1", "B": "1"})),
        ("wake", json!({"env": null}), json!({"A": "1", "B": "1"})),
        ("wake", json!({"env": {"C": "3"}}), json!({"C": "3"})),
        (
            "rollback",
            json!({"snapshot_id": snapshot}),
            json!({"C": "3"}),
        ),
        (
            "rollback",
            json!({"snapshot_id": snapshot, "env": {"D": "4"}}),
            json!({"D": "4"}),
        ),
        ("wake", json!({"env": {}}), json!({})),
    ] {
        world.post(&format!("{path}/hibernate"), json!({})).await;
        let changed = world.post(&format!("{path}/{change}"), body.clone()).await;
        assert!(changed.status.is_success(), "{change} {}", changed.text());
        assert_eq!(of_command(&world, &id).await, expected, "{change} {body}");
    }
    let copy = made(&world, json!({"from_snapshot": snapshot})).await;
    assert_eq!(of_command(&world, &copy).await, json!({}));
}

#[tokio::test]
async fn a_refused_wake_has_changed_nothing_and_a_deleted_sandbox_has_none() {
    let world = World::start().await;
    let id = made(&world, json!({"env": {"A": SECRET}})).await;
    let wake = format!("/v1/sandboxes/{id}/wake");
    let wrong = NodeError::new(ErrorCode::WrongState, "it is being deleted");
    world.node.refuse_state(Some(wrong));
    let refused = world.post(&wake, json!({"env": {"B": "2"}})).await;
    assert_eq!(refused.refusal(), "wrong_state");
    world.node.refuse_state(None);
    assert_eq!(names(&world, &id).await, json!(["A"]));
    let bad = world.post(&wake, json!({"env": {"A=": SECRET}})).await;
    assert_eq!(bad.refusal(), "invalid_request");
    let unknown = world.post(&wake, json!({"enc": {}})).await;
    assert_eq!(unknown.refusal(), "invalid_request");
    let foreign = world
        .ask(
            &world.foreign_key,
            http::Method::POST,
            &wake,
            json!({"env": {}}),
        )
        .await;
    assert_eq!(foreign.refusal(), "not_found");
    assert_eq!(of_command(&world, &id).await, json!({"A": SECRET}));
    let gone = world.delete(&format!("/v1/sandboxes/{id}")).await;
    assert!(gone.status.is_success());
    let (project, id) = (ProjectId::default_project(), SandboxId::parse(&id).unwrap());
    let row = world.control.store.sandbox(&project, &id).await.unwrap();
    let row = row.unwrap();
    assert!(row.deleted_at_ms.is_some() && row.environment.is_empty());
}

#[tokio::test]
async fn what_no_process_can_have_is_refused() {
    let world = World::start().await;
    for env in [
        json!({"": SECRET}),
        json!({"A=B": SECRET}),
        json!({"A\0": SECRET}),
        json!({"A": format!("{SECRET}\0")}),
        json!({"A": [SECRET]}),
        json!([SECRET]),
        json!(SECRET),
    ] {
        let refused = world.post("/v1/sandboxes", json!({"env": env})).await;
        assert_eq!(refused.refusal(), "invalid_request", "{env}");
        let text = refused.text();
        assert!(text.contains("env") && !text.contains(SECRET), "{text}");
    }
    let long = "x".repeat(ENVIRONMENT_BYTES_MAX);
    let refused = world
        .post("/v1/sandboxes", json!({"env": {"A": long}}))
        .await;
    assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
    let most = "x".repeat(ENVIRONMENT_BYTES_MAX - "A".len() - 2);
    let id = made(&world, json!({"env": {"A": most}})).await;
    let path = format!("/v1/sandboxes/{id}/exec");
    let command = |bytes| json!({"cmd": "x".repeat(bytes)});
    let room = EXEC_SPEC_BYTES_MAX - ENVIRONMENT_BYTES_MAX;
    assert_eq!(world.post(&path, command(room)).await.status.as_u16(), 200);
    let over = world.post(&path, command(room + 1)).await;
    assert_eq!(over.refusal(), "too_large");
}

#[tokio::test]
async fn the_same_key_with_other_values_is_another_request() {
    let world = World::start().await;
    let create = async |value: &str| {
        let body = json!({"env": {"A": value}});
        world.post_keyed("/v1/sandboxes", "key-1", body).await
    };
    let (first, again) = (create("1").await.json(), create("1").await.json());
    assert_eq!(first["id"], again["id"]);
    assert_eq!(create("2").await.refusal(), "idempotency_conflict");
}

/// What the database of a world keeps of its one keyed request.
async fn kept_of_request(world: &World) -> String {
    let file = world.directory().join("control.db");
    let pool = SqlitePool::connect(&format!("sqlite://{}", file.display()))
        .await
        .unwrap();
    let (kept,): (String,) = sqlx::query_as("SELECT request_hash FROM idempotency_keys")
        .fetch_one(&pool)
        .await
        .unwrap();
    kept
}

#[tokio::test]
async fn what_the_database_keeps_of_a_request_says_nothing_of_its_values() {
    let worlds = [World::start().await, World::start().await];
    let mut kept = Vec::with_capacity(2);
    for world in &worlds {
        let body = json!({"env": {"PIN": "1234"}});
        let made = world.post_keyed("/v1/sandboxes", "key-1", body).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
        kept.push(kept_of_request(world).await);
    }
    // Whoever could make it elsewhere could try all values.
    assert_ne!(kept[0], kept[1]);
    // A restart has the same key.
    let file = worlds[0].directory().join("control.db");
    let again = Store::open(&file).await.unwrap();
    assert_eq!(
        again.hash_of(&"request"),
        worlds[0].control.store.hash_of(&"request")
    );
    again.close().await;
}

#[tokio::test]
async fn values_are_in_no_response_no_record_and_no_log() {
    let (log, _guard) = Log::keep();
    let world = World::start().await;
    let env = json!({"env": {"TOKEN": SECRET}});
    let id = made(&world, env.clone()).await;
    let path = format!("/v1/sandboxes/{id}");
    let sessions = format!("{path}/repl/sessions");
    let context = json!({"id": "ctx", "language": "python"});
    let run = json!({"code": "1", "run_id": "r1"});
    let mut told = Vec::with_capacity(9);
    for (place, body) in [
        ("/v1/sandboxes".to_owned(), &env),
        (format!("{path}/fork"), &env),
        (format!("{path}/wake"), &env),
        (format!("{path}/exec"), &json!({"cmd": "x"})),
        (sessions.clone(), &context),
        (format!("{sessions}/ctx/run"), &run),
    ] {
        told.push(world.post(&place, body.clone()).await);
    }
    for place in ["/v1/sandboxes", "/v1/audit?limit=1000", &path] {
        told.push(world.get(place).await);
    }
    assert!(told.iter().all(|answer| answer.status.is_success()));
    for answer in told {
        assert!(!answer.text().contains(SECRET), "{}", answer.text());
    }
    assert_eq!(names(&world, &id).await, json!(["TOKEN"]));
    let log = log.text();
    assert!(log.contains("request_id") && !log.contains(SECRET), "{log}");
    // And yet whoever runs in the guest has it.
    assert_eq!(of_command(&world, &id).await, json!({"TOKEN": SECRET}));
}

/// What the bridge was asked, by operation; runs by what they do.
fn bridge_calls(world: &World) -> Vec<String> {
    let word = |call: &Value| match call["code"].as_str() {
        Some(code) if code.contains("environ.update") => "set".to_owned(),
        Some(code) => code.to_owned(),
        None => call["op"].as_str().unwrap().to_owned(),
    };
    world.node.take_bridge_calls().iter().map(word).collect()
}

#[tokio::test]
async fn a_context_has_them_before_its_first_code_and_after_each_start() {
    let world = World::start().await;
    let id = made(&world, json!({"env": {"A": "it's"}})).await;
    let sessions = format!("/v1/sandboxes/{id}/repl/sessions");
    let create = json!({"id": "ctx", "language": "python"});
    assert_eq!(
        world.post(&sessions, create.clone()).await.status.as_u16(),
        201
    );
    let calls = world.node.take_bridge_calls();
    let code = calls[2]["code"].as_str().unwrap();
    let text = code.split_once("loads(").unwrap().1.trim_end_matches("))");
    let json: String = serde_json::from_str(text).unwrap();
    let set: BTreeMap<String, String> = serde_json::from_str(&json).unwrap();
    assert_eq!(set, BTreeMap::from([("A".to_owned(), "it's".to_owned())]));
    let run = async |code: &str| {
        let run = json!({"code": code});
        world.post(&format!("{sessions}/ctx/run"), run).await.json()
    };
    // What code of the context changed since stays.
    assert_eq!(world.post(&sessions, create).await.status.as_u16(), 201);
    assert_eq!(run("1").await["state_lost"], json!(null));
    assert_eq!(bridge_calls(&world), ["create", "list", "list", "1"]);
    assert_eq!(run(DIE).await["status"], "died");
    assert_eq!(bridge_calls(&world), ["list", DIE]);
    let revived = run("2").await;
    assert_eq!(revived["state_lost"], true);
    assert!(revived["hint"].as_str().unwrap().contains("started anew"));
    assert_eq!(bridge_calls(&world), ["list", "restart", "set", "2"]);
    let restart = format!("{sessions}/ctx/restart");
    assert_eq!(world.post(&restart, json!({})).await.status.as_u16(), 204);
    assert_eq!(bridge_calls(&world), ["restart", "list", "set"]);
    let streamed = world
        .post(&format!("{sessions}/ctx/run/stream"), json!({"code": DIE}))
        .await;
    assert!(!streamed.text().contains("event: restarted"));
    let streamed = world
        .post(&format!("{sessions}/ctx/run/stream"), json!({"code": "3"}))
        .await;
    assert!(streamed.text().contains("event: restarted"));
}

#[tokio::test]
async fn code_without_a_named_context_has_them_too() {
    let world = World::start().await;
    let id = made(&world, json!({"env": {"A": "1"}})).await;
    let run = json!({"code": "1", "mode": "python_context"});
    let path = format!("/v1/sandboxes/{id}/run");
    for expected in [
        vec!["create", "list", "set", "1"],
        vec!["create", "list", "1"],
    ] {
        assert_eq!(world.post(&path, run.clone()).await.status.as_u16(), 200);
        assert_eq!(bridge_calls(&world), expected);
    }
    let plain = world.create().await;
    let path = format!("/v1/sandboxes/{plain}/run");
    assert_eq!(world.post(&path, run).await.status.as_u16(), 200);
    assert_eq!(bridge_calls(&world), ["create", "1"]);
}

#[tokio::test]
async fn a_context_of_its_own_values_is_refused_with_what_to_do() {
    let world = World::start().await;
    let id = world.create().await;
    let path = format!("/v1/sandboxes/{id}");
    for (route, body) in [
        ("repl/sessions", json!({"env": {"A": SECRET}})),
        (
            "repl/sessions/a/run",
            json!({"code": "1", "env": {"A": SECRET}}),
        ),
        ("run", json!({"code": "1", "env": {"A": SECRET}})),
    ] {
        let refused = world.post(&format!("{path}/{route}"), body).await;
        assert_eq!(refused.refusal(), "invalid_request", "{route}");
        let hint = refused.json()["hint"].as_str().unwrap().to_owned();
        assert!(hint.contains("restart the context"), "{hint}");
        assert!(!refused.text().contains(SECRET));
    }
}

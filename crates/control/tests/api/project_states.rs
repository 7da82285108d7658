//! Projects that may not be used, and their end.

use std::time::Duration;

use dayfly_node_api::NodeError;
use dayfly_types::ErrorCode;
use http::{Method, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::gateway::{PORT, by_host, visit};
use crate::gateway_links::{breaks, endless};
use crate::operators::{Team, prefix, record, team, token};
use crate::support::{Setup, World, eventually, service};
use crate::tenancy::{names, operations};
use crate::tokens::follow_events;

async fn suspend(world: &World, name: &str, wish: Value) -> Value {
    let path = format!("/v1/projects/{name}/suspend");
    let done = world.post(&path, wish).await;
    assert_eq!(done.status, StatusCode::OK, "{}", done.text());
    done.json()
}

async fn resume(world: &World, name: &str) {
    let path = format!("/v1/projects/{name}/resume");
    let done = world.post(&path, Value::Null).await;
    assert_eq!(done.status, StatusCode::OK, "{}", done.text());
    assert_eq!(done.json()["state"], "active");
}

/// What `key` gets for a list.
async fn list(world: &World, key: &str) -> StatusCode {
    let asked = world.ask(key, Method::GET, "/v1/sandboxes", Value::Null);
    asked.await.status
}

#[tokio::test]
async fn the_keys_of_a_suspended_project_open_nothing() {
    let world = World::start().await;
    let (one, two) = (team(&world, "team-a").await, team(&world, "team-b").await);
    let mut stream = follow_events(&world, &one.key).await;
    let done = suspend(&world, one.name, json!({"reason": "a key leaked"})).await;
    assert_eq!(done["project"]["state"], "suspended");
    assert_eq!(done["hibernated"], json!([]));
    let next = tokio::time::timeout(Duration::from_secs(1), stream.frame());
    let next = next.await.expect("cut within a second");
    assert!(next.is_none_or(|frame| frame.is_err()));
    let mut checked = 0;
    let named = names(&one.sandbox);
    for operation in operations() {
        let needs_no_key = ["health", "ready", "get_sign_in", "sign_in"];
        if needs_no_key.contains(&operation.id.as_str()) || operation.id == "get_me" {
            continue;
        }
        let answer = operation.ask(&world, &one.key, &named).await;
        let what = format!("{}: {}", operation.id, answer.text());
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{what}");
        assert_eq!(answer.refusal(), "project_suspended", "{what}");
        assert!(answer.text().contains("a key leaked"), "{what}");
        checked += 1;
    }
    assert!(checked >= 75, "{checked}");
    let me = world.ask(&one.key, Method::GET, "/v1/me", Value::Null);
    assert_eq!(me.await.status, StatusCode::OK);
    assert_eq!(list(&world, &two.key).await, StatusCode::OK);
    // A key that an operator makes meanwhile waits with the others.
    let new = token(&world, one.name, json!({})).await;
    assert_eq!(list(&world, &new).await, StatusCode::FORBIDDEN);
    resume(&world, one.name).await;
    for key in [&one.key, &new] {
        assert_eq!(list(&world, key).await, StatusCode::OK);
    }
    let entries = record(&world, &one.key).await;
    let fits = |entry: &&Value| entry["operation"] == "POST /v1/projects/team-a/suspend";
    let entry = entries.iter().find(fits).expect("an entry");
    assert_eq!(entry["detail"]["reason"], "a key leaked");
    assert_eq!(entry["key_prefix"], prefix(&world.key));
}

#[tokio::test]
async fn refusals_of_a_suspended_project_have_its_rate() {
    let world = World::start().await;
    let one = team(&world, "team-a").await;
    let limits = json!({"requests_per_second": 5});
    let set = world.patch("/v1/projects/team-a", limits).await;
    assert_eq!(set.status, StatusCode::OK, "{}", set.text());
    suspend(&world, one.name, json!({"reason": "a flood"})).await;
    let mut told = std::collections::BTreeMap::new();
    for _ in 0..60 {
        *told.entry(list(&world, &one.key).await).or_insert(0) += 1;
    }
    let limited = told.get(&StatusCode::TOO_MANY_REQUESTS);
    assert!(limited.is_some_and(|count| *count > 20), "{told:?}");
    assert!(told.contains_key(&StatusCode::FORBIDDEN), "{told:?}");
}

#[tokio::test]
async fn the_links_of_a_suspended_project_are_shut_and_open_again() {
    let world = World::start().await;
    let one = team(&world, "team-a").await;
    world
        .node
        .listen(&one.sandbox, PORT, service::start().await);
    let path = format!("/v1/sandboxes/{}/ports/{PORT}/links", one.sandbox);
    let made = world
        .ask(&one.key, Method::POST, &path, json!({}))
        .await
        .json();
    let token = made["token"].as_str().unwrap();
    let with = |name: &'static str, value: String| {
        by_host(&world, &one.sandbox, "/forever").header(name, value)
    };
    let by_link = || with("x-dayfly-token", token.to_owned());
    let by_key = || with("authorization", format!("Bearer {}", one.key));
    let (first, second) = (
        endless(&world, by_link()).await,
        endless(&world, by_key()).await,
    );
    suspend(&world, one.name, json!({"reason": "misuse"})).await;
    assert!(breaks(first).await && breaks(second).await);
    let before = world.node.port_calls();
    for request in [by_link(), by_key()] {
        assert_eq!(visit(&world, request).await.status, StatusCode::NOT_FOUND);
    }
    assert_eq!(world.node.port_calls(), before, "nobody asked the node");
    resume(&world, one.name).await;
    drop(endless(&world, by_link()).await);
}

#[tokio::test]
async fn a_suspension_can_hibernate_what_runs() {
    let world = World::start().await;
    let one = team(&world, "team-a").await;
    let wish = json!({"reason": "misuse", "stop_sandboxes": true});
    let done = suspend(&world, one.name, wish.clone()).await;
    assert_eq!(done["hibernated"], json!([one.sandbox]));
    let listed = world.get("/v1/sandboxes?project=team-a").await.json();
    assert_eq!(listed["items"][0]["status"], "hibernated");
    assert_eq!(
        suspend(&world, one.name, wish).await["hibernated"],
        json!([])
    );
    for (path, body, code) in [
        (
            "/v1/projects/default/suspend",
            json!({"reason": "x"}),
            "wrong_state",
        ),
        (
            "/v1/projects/team-a/suspend",
            json!({"reason": " "}),
            "invalid_request",
        ),
        ("/v1/projects/team-a/suspend", json!({}), "invalid_request"),
        (
            "/v1/projects/nobody/suspend",
            json!({"reason": "x"}),
            "not_found",
        ),
        ("/v1/projects/nobody/resume", Value::Null, "not_found"),
    ] {
        let refused = world.post(path, body).await;
        assert_eq!(refused.refusal(), code, "{path}: {}", refused.text());
    }
    // An operator of that project would lock itself out.
    let own = world
        .ask(
            &world.foreign_key,
            Method::POST,
            "/v1/projects/other/suspend",
            json!({"reason": "x"}),
        )
        .await;
    assert_eq!(own.refusal(), "wrong_state", "{}", own.text());
}

/// A team that has one of everything.
async fn full_team(world: &World) -> Team {
    let one = team(world, "team-a").await;
    let path = format!("/v1/sandboxes/{}/snapshots", one.sandbox);
    for (path, body) in [
        (path.as_str(), json!({})),
        ("/v1/volumes", json!({"name": "data", "size_mb": 64})),
    ] {
        let made = world.ask(&one.key, Method::POST, path, body).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    }
    one
}

/// What the node and the database have of the project.
async fn left(world: &World) -> usize {
    let project = dayfly_types::ProjectId::parse("team-a").unwrap();
    let sandboxes = world.get("/v1/sandboxes?project=team-a").await.json();
    let sandboxes = sandboxes["items"].as_array().unwrap().len();
    let usage = world.get("/v1/usage?project=team-a").await.json();
    let sizes = ["snapshot_mb", "volume_mb"].map(|name| usage[name] != 0);
    let links = world
        .control
        .store
        .links_of_project(&project)
        .await
        .unwrap();
    sandboxes + links.len() + sizes.iter().filter(|has| **has).count()
}

#[tokio::test]
async fn a_project_is_deleted_when_it_is_empty_or_with_everything() {
    let world = World::start().await;
    let one = full_team(&world).await;
    let refused = world.delete("/v1/projects/team-a").await;
    assert_eq!(refused.refusal(), "wrong_state", "{}", refused.text());
    let what = "sandboxes: 1, snapshots: 1, volumes: 1";
    assert!(refused.text().contains(what), "{}", refused.text());
    assert_eq!(
        list(&world, &one.key).await,
        StatusCode::OK,
        "it is as it was"
    );
    for _ in 0..2 {
        let gone = world.delete("/v1/projects/team-a?force=true").await;
        assert_eq!(gone.status, StatusCode::NO_CONTENT, "{}", gone.text());
    }
    assert_eq!(left(&world).await, 0);
    assert_eq!(list(&world, &one.key).await, StatusCode::UNAUTHORIZED);
    assert_eq!(
        world.get("/v1/projects/team-a").await.refusal(),
        "not_found"
    );
    let listed = world.get("/v1/projects").await;
    assert!(!listed.text().contains("team-a"), "{}", listed.text());
    // Its record stays, and nobody else gets to read it under its name.
    let kept = world
        .get("/v1/audit?project=team-a&limit=1000")
        .await
        .json();
    let operations: Vec<&Value> = kept["items"].as_array().unwrap().iter().collect();
    let did = |operation: &str| operations.iter().any(|it| it["operation"] == operation);
    assert!(
        did("POST /v1/volumes") && did("DELETE /v1/projects/team-a"),
        "{kept}"
    );
    let again = world.post("/v1/projects", json!({"id": "team-a"})).await;
    assert_eq!(again.refusal(), "already_exists", "{}", again.text());
    team(&world, "team-b").await;
    world.delete("/v1/sandboxes/notebook?project=team-b").await;
    let gone = world.delete("/v1/projects/team-b").await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT, "{}", gone.text());
    for (path, code) in [
        ("/v1/projects/default?force=true", "wrong_state"),
        ("/v1/projects/nobody", "not_found"),
        ("/v1/projects/team-c?forse=true", "invalid_request"),
    ] {
        assert_eq!(world.delete(path).await.refusal(), code, "{path}");
    }
}

#[tokio::test]
async fn a_deletion_that_was_cut_short_is_finished() {
    let world = World::with(Setup::quick()).await;
    let one = full_team(&world).await;
    let fault = NodeError::new(ErrorCode::NodeUnavailable, "the node is away");
    world.node.refuse_delete(Some(fault));
    let failed = world.delete("/v1/projects/team-a?force=true").await;
    assert_eq!(failed.refusal(), "node_unavailable", "{}", failed.text());
    let project = world.get("/v1/projects/team-a").await.json();
    assert_eq!(project["state"], "deleting");
    assert_eq!(list(&world, &one.key).await, StatusCode::UNAUTHORIZED);
    for (path, body) in [
        ("/v1/projects/team-a/tokens", json!({})),
        ("/v1/projects/team-a/resume", Value::Null),
        ("/v1/projects/team-a/suspend", json!({"reason": "x"})),
    ] {
        let refused = world.post(path, body).await;
        assert_eq!(
            refused.refusal(),
            "wrong_state",
            "{path}: {}",
            refused.text()
        );
    }
    world.node.refuse_delete(None);
    eventually("the project is gone", async || {
        world.get("/v1/projects/team-a").await.status == StatusCode::NOT_FOUND
    })
    .await;
    assert_eq!(left(&world).await, 0);
}

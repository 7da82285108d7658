//! The audit record when it cannot be written, and when somebody fills it.

use std::time::Duration;

use dayfly_control::ReconcileSettings;
use dayfly_control::audit::AuditSettings;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use sqlx::ConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;

use crate::support::{Setup, World, eventually};

const NO_AUDIT: &str = "CREATE TRIGGER no_audit BEFORE INSERT ON audit_records \
    BEGIN SELECT RAISE(ABORT, 'not now'); END";

async fn run(world: &World, statement: &'static str) {
    let options = SqliteConnectOptions::new()
        .filename(world.directory().join("control.db"))
        .busy_timeout(Duration::from_secs(10));
    let mut program = options.connect().await.unwrap();
    sqlx::raw_sql(statement)
        .execute(&mut program)
        .await
        .unwrap();
}

async fn entries(world: &World) -> Vec<Value> {
    let record = world.get("/v1/audit?limit=1000").await;
    assert_eq!(record.status, StatusCode::OK, "{}", record.text());
    record.json()["items"].as_array().unwrap().clone()
}

fn about<'a>(entries: &'a [Value], operation: &str) -> Vec<&'a Value> {
    let wanted = entries
        .iter()
        .filter(|entry| entry["operation"] == operation);
    wanted.collect()
}

#[tokio::test]
async fn while_nothing_can_be_recorded_keys_and_projects_stay_as_they_are() {
    let world = World::start().await;
    let made = world.post("/v1/me/tokens", json!({})).await.json();
    let (token, prefix) = (made["token"].as_str().unwrap(), &made["prefix"]);
    run(&world, NO_AUDIT).await;
    let id = world.create().await;
    eventually("it is noticed", async || {
        world.get("/health").await.status == StatusCode::SERVICE_UNAVAILABLE
    })
    .await;
    let health = world.get("/health").await;
    assert_eq!(health.refusal(), "audit_unavailable");
    assert_eq!(health.json()["conditions"][0]["name"], "audit_unwritable");
    let limits = json!({"vcpus": 7});
    for answer in [
        world.post("/v1/me/tokens", json!({})).await,
        world.post("/v1/projects/other/tokens", json!({})).await,
        world.post("/v1/projects", json!({"id": "new"})).await,
        world.patch("/v1/projects/other", limits.clone()).await,
    ] {
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(answer.refusal(), "audit_unavailable");
        assert!(answer.headers.contains_key("retry-after"));
    }
    // A key that leaked can be ended all the same, and work goes on.
    let path = format!("/v1/me/tokens/{}", prefix.as_str().unwrap());
    assert_eq!(world.delete(&path).await.status, StatusCode::NO_CONTENT);
    let me = world.ask(token, Method::GET, "/v1/me", Value::Null).await;
    assert_eq!(me.status, StatusCode::UNAUTHORIZED);
    world.create().await;
    run(&world, "DROP TRIGGER no_audit").await;
    eventually("it is well again", async || {
        world.get("/health").await.status == StatusCode::OK
    })
    .await;
    for (answer, status) in [
        (world.post("/v1/me/tokens", json!({})).await, 201),
        (world.post("/v1/projects", json!({"id": "new"})).await, 201),
        (world.patch("/v1/projects/other", limits).await, 200),
    ] {
        assert_eq!(answer.status.as_u16(), status, "{}", answer.text());
    }
    // What waited was written.
    let record = entries(&world).await;
    assert_eq!(about(&record, &format!("DELETE {path}")).len(), 1);
    let created = record.iter().any(|entry| entry["subject"] == id.as_str());
    assert!(created, "{record:?}");
}

#[tokio::test]
async fn refusals_that_repeat_are_one_entry_and_a_count() {
    let setup = Setup {
        reconcile: ReconcileSettings {
            audit: AuditSettings {
                repeats_within: Duration::from_secs(2),
                ..AuditSettings::default()
            },
            ..ReconcileSettings::default()
        },
        ..Setup::default()
    };
    let world = World::with(setup).await;
    let absent = "/v1/sandboxes/sb-local-00000000000000000000000001";
    for _ in 0..50 {
        assert_eq!(world.get(absent).await.status, StatusCode::NOT_FOUND);
    }
    let operation = format!("GET {absent}");
    let mut record = entries(&world).await;
    assert_eq!(about(&record, &operation).len(), 1, "{record:?}");
    eventually("the rest are told", async || {
        record = entries(&world).await;
        about(&record, &operation).len() == 2
    })
    .await;
    let told = about(&record, &operation)[0];
    assert_eq!(told["detail"]["repeated"], 49);
    assert_eq!(told["status"], 404);
}

#[tokio::test]
async fn a_long_path_of_a_refusal_is_cut_in_the_record() {
    let world = World::start().await;
    let absent = "/v1/sandboxes/sb-local-00000000000000000000000001/fs";
    let path = "x".repeat(3000);
    let answer = world.get(&format!("{absent}?path=/{path}")).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    let record = entries(&world).await;
    let entry = about(&record, &format!("GET {absent}"))[0];
    assert_eq!(entry["detail"]["path"].as_str().unwrap().len(), 256);
    assert_eq!(entry["detail"]["path_bytes"], 3001);
}

#[tokio::test]
async fn a_key_cannot_fill_the_disk_with_refusals() {
    let setup = Setup {
        reconcile: ReconcileSettings {
            audit: AuditSettings {
                bytes_max: 64 << 10,
                ..AuditSettings::default()
            },
            ..ReconcileSettings::default()
        },
        ..Setup::default()
    };
    let world = World::with(setup).await;
    let path = "x".repeat(1000);
    // Each another call, so that none is a repeat.
    for number in 0..400 {
        let absent = format!("/v1/sandboxes/sb-local-{number:026}/fs?path=/{path}");
        assert_eq!(world.get(&absent).await.status, StatusCode::NOT_FOUND);
    }
    let record = entries(&world).await;
    assert!(record.len() < 200, "{} entries", record.len());
    let dropped = about(&record, "audit.dropped");
    assert!(!dropped.is_empty());
    assert_eq!(dropped[0]["key_prefix"], "server");
    let last = record.first().unwrap()["seq"].as_u64().unwrap();
    assert!(last >= 400, "numbers went back: {last}");
}

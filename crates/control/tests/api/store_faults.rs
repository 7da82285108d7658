//! A database that is locked, or does not keep what it was told: nobody is told that something was
//! done that was not.

use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use serde_json::{Value, json};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions};

use crate::support::{World, eventually};

/// Another program that opened the database.
async fn other_program(world: &World) -> SqliteConnection {
    SqliteConnectOptions::new()
        .filename(world.directory().join("control.db"))
        .busy_timeout(Duration::from_secs(10))
        .connect()
        .await
        .unwrap()
}

async fn run(program: &mut SqliteConnection, statement: &str) {
    let statement = AssertSqlSafe(statement.to_owned());
    sqlx::raw_sql(statement).execute(program).await.unwrap();
}

async fn new_key(world: &World) -> (String, String) {
    let made = world.post("/v1/me/tokens", json!({})).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    let text = |field: &str| made.json()[field].as_str().unwrap().to_owned();
    (text("token"), text("prefix"))
}

async fn status(world: &World, key: &str) -> StatusCode {
    let answer = world.ask(key, Method::GET, "/v1/me", Value::Null).await;
    answer.status
}

#[tokio::test]
async fn a_locked_database_is_a_refusal_for_a_while_and_health_says_so() {
    let world = World::start().await;
    let (key, prefix) = new_key(&world).await;
    let path = format!("/v1/me/tokens/{prefix}");
    assert_eq!(world.get("/health").await.status, StatusCode::OK);
    let mut program = other_program(&world).await;
    run(&mut program, "BEGIN IMMEDIATE").await;
    let (made, revoked, created) = tokio::join!(
        world.post("/v1/me/tokens", json!({})),
        world.delete(&path),
        world.post("/v1/sandboxes", json!({})),
    );
    for answer in [made, revoked, created] {
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(answer.refusal(), "store_unavailable");
        assert!(answer.headers.contains_key("retry-after"));
    }
    let health = world.get("/health").await;
    assert_eq!(health.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(health.refusal(), "store_unavailable");
    assert_eq!(health.json()["status"], "degraded");
    let condition = &health.json()["conditions"][0];
    assert_eq!(condition["name"], "store_unwritable");
    assert!(!condition["remedy"].as_str().unwrap().is_empty());
    // Reading goes on, and the key that was not revoked works.
    assert_eq!(status(&world, &key).await, StatusCode::OK);
    run(&mut program, "ROLLBACK").await;
    eventually("it is well again", async || {
        world.get("/health").await.status == StatusCode::OK
    })
    .await;
    assert_eq!(world.delete(&path).await.status, StatusCode::NO_CONTENT);
    assert_eq!(status(&world, &key).await, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_flood_of_questions_for_health_is_few_writes() {
    let world = World::start().await;
    let mut program = other_program(&world).await;
    let count = "CREATE TABLE seen (id BIGINT); CREATE TRIGGER seen_1 AFTER INSERT ON write_checks \
        BEGIN INSERT INTO seen VALUES (1); END; CREATE TRIGGER seen_2 AFTER UPDATE ON write_checks \
        BEGIN INSERT INTO seen VALUES (1); END";
    run(&mut program, count).await;
    let began = Instant::now();
    for _ in 0..200 {
        assert_eq!(world.get("/health").await.status, StatusCode::OK);
    }
    let seconds = began.elapsed().as_secs();
    let (written,): (i64,) = sqlx::query_as("SELECT COUNT(*) FROM seen")
        .fetch_one(&mut program)
        .await
        .unwrap();
    assert!(written >= 1, "nothing was written");
    let most = i64::try_from(seconds).unwrap() + 2;
    assert!(written <= most, "{written} writes in {seconds} s");
}

#[tokio::test]
async fn a_revocation_that_is_not_kept_is_not_acknowledged() {
    let world = World::start().await;
    let (key, prefix) = new_key(&world).await;
    let path = format!("/v1/me/tokens/{prefix}");
    let mut program = other_program(&world).await;
    let undo = "CREATE TRIGGER undo AFTER UPDATE ON api_keys WHEN NEW.revoked_at_ms IS NOT NULL \
        BEGIN UPDATE api_keys SET revoked_at_ms = NULL WHERE hash = NEW.hash; END";
    run(&mut program, undo).await;
    let answer = world.delete(&path).await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(answer.refusal(), "store_unavailable");
    run(&mut program, "DROP TRIGGER undo").await;
    assert_eq!(world.delete(&path).await.status, StatusCode::NO_CONTENT);
    assert_eq!(status(&world, &key).await, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_link_key_or_project_that_is_not_kept_is_not_acknowledged() {
    let world = World::start().await;
    let id = world.create().await;
    let links = format!("/v1/sandboxes/{id}/ports/8080/links");
    let link = world.post(&links, json!({})).await.json();
    let link = format!("{links}/{}", link["id"].as_str().unwrap());
    let mut program = other_program(&world).await;
    for undo in [
        "CREATE TRIGGER undo_1 AFTER DELETE ON port_links BEGIN INSERT INTO port_links \
         (id, project_id, sandbox_id, port, token_hash, created_at_ms, expires_at_ms) VALUES \
         (OLD.id, OLD.project_id, OLD.sandbox_id, OLD.port, OLD.token_hash, OLD.created_at_ms, \
         OLD.expires_at_ms); END",
        "CREATE TRIGGER undo_2 AFTER INSERT ON api_keys BEGIN DELETE FROM api_keys \
         WHERE hash = NEW.hash; END",
        "CREATE TRIGGER undo_3 AFTER INSERT ON projects BEGIN DELETE FROM projects \
         WHERE id = NEW.id; END",
        "CREATE TRIGGER undo_4 AFTER UPDATE ON projects WHEN NEW.vcpus_max = 7 BEGIN \
         UPDATE projects SET vcpus_max = 8 WHERE id = NEW.id; END",
    ] {
        run(&mut program, undo).await;
    }
    let limits = json!({"vcpus": 7});
    for answer in [
        world.delete(&link).await,
        world.post("/v1/me/tokens", json!({})).await,
        world.post("/v1/projects", json!({"id": "gone"})).await,
        world.patch("/v1/projects/other", limits.clone()).await,
    ] {
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(answer.refusal(), "store_unavailable");
    }
    for number in 1..=4 {
        run(&mut program, &format!("DROP TRIGGER undo_{number}")).await;
    }
    for (answer, status) in [
        (world.delete(&link).await, 204),
        (world.post("/v1/me/tokens", json!({})).await, 201),
        (world.post("/v1/projects", json!({"id": "gone"})).await, 201),
        (world.patch("/v1/projects/other", limits).await, 200),
    ] {
        assert_eq!(answer.status.as_u16(), status, "{}", answer.text());
    }
}

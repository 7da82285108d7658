//! What an operator carries elsewhere.

use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::World;

async fn page(world: &World, query: &str) -> Value {
    let read = world.get(&format!("/v1/export?{query}")).await;
    assert_eq!(read.status, StatusCode::OK, "{}", read.text());
    read.json()
}

async fn token(world: &World, project: &str) -> String {
    let path = format!("/v1/projects/{project}/tokens");
    let made = world.post(&path, json!({})).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    made.json()["token"].as_str().unwrap().to_owned()
}

fn numbers(page: &Value) -> Vec<u64> {
    let entries = page["audit"].as_array().unwrap().iter();
    entries
        .map(|entry| entry["number"].as_u64().unwrap())
        .collect()
}

#[tokio::test]
async fn entries_of_all_projects_come_in_order_and_without_a_hole() {
    let world = World::start().await;
    for project in ["one", "two"] {
        let made = world.post("/v1/projects", json!({"id": project})).await;
        assert_eq!(made.status, StatusCode::CREATED);
    }
    let keys = [token(&world, "one").await, token(&world, "two").await];
    for turn in 0..6 {
        let key = &keys[turn % 2];
        let made = world
            .ask(key, Method::POST, "/v1/sandboxes", json!({}))
            .await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    }
    let all = page(&world, "").await;
    let found = numbers(&all);
    assert_eq!(found, (1..=found.len() as u64).collect::<Vec<_>>());
    let created = all["audit"].as_array().unwrap().iter();
    let created = created.filter(|entry| entry["operation"] == "POST /v1/sandboxes");
    let owners: Vec<&str> = created
        .map(|entry| entry["project"].as_str().unwrap())
        .collect();
    assert_eq!(owners, ["one", "two", "one", "two", "one", "two"]);
    assert!(all["events"].as_array().unwrap().len() >= 6);
    // In pages of three it is the same.
    let (mut after, mut seen) = (0, Vec::new());
    loop {
        let next = page(&world, &format!("after_audit={after}&limit=3")).await;
        let next = numbers(&next);
        assert!(next.len() <= 3);
        let Some(last) = next.last() else { break };
        after = *last;
        seen.extend(next);
    }
    assert_eq!(seen, found);
}

#[tokio::test]
async fn a_request_waits_for_what_comes_and_no_longer() {
    let world = World::start().await;
    let behind = |page: &Value| numbers(page).last().copied().unwrap_or(0);
    let events = |page: &Value| {
        let events = page["events"].as_array().unwrap();
        events.last().map_or("0".to_owned(), |event| {
            event["cursor"].as_str().unwrap().to_owned()
        })
    };
    let now = page(&world, "").await;
    let after = format!("after_audit={}&after_event={}", behind(&now), events(&now));
    let began = Instant::now();
    let query = format!("{after}&wait_seconds=25");
    let waiting = page(&world, &query);
    let acting = async {
        let made = world.post("/v1/projects", json!({"id": "late"})).await;
        assert_eq!(made.status, StatusCode::CREATED);
    };
    let (found, ()) = tokio::join!(waiting, acting);
    assert_eq!(found["audit"][0]["operation"], "POST /v1/projects");
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "it was not woken"
    );
    let after = format!(
        "after_audit={}&after_event={}",
        behind(&found),
        events(&now)
    );
    let began = Instant::now();
    let nothing = page(&world, &format!("{after}&wait_seconds=1")).await;
    assert_eq!(nothing["audit"], json!([]));
    assert_eq!(nothing["events"], json!([]));
    assert_eq!(nothing["series"], found["series"]);
    assert!(began.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn nobody_but_an_operator_exports() {
    let world = World::start().await;
    world.post("/v1/projects", json!({"id": "one"})).await;
    let key = token(&world, "one").await;
    let refused = world.ask(&key, Method::GET, "/v1/export", json!({})).await;
    assert_eq!(refused.refusal(), "forbidden");
    for wrong in [
        "after_audit=-1",
        "after_event=x",
        "limit=0",
        "wait_seconds=26",
        "project=one",
    ] {
        let refused = world.get(&format!("/v1/export?{wrong}")).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{wrong}");
    }
}

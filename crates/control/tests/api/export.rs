//! What an operator carries elsewhere.

use std::time::{Duration, Instant};

use dayfly_types::egress::Decision;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::network::create;
use crate::network_log::record;
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

/// The numbers of the decisions of a page, and the number that it came to.
fn decisions(page: &Value) -> (Vec<u64>, u64) {
    let egress = &page["egress"];
    let numbers = egress["decisions"].as_array().unwrap().iter();
    let numbers = numbers.map(|one| one["number"].as_u64().unwrap());
    (numbers.collect(), egress["through"].as_u64().unwrap())
}

#[tokio::test]
async fn decisions_about_egress_come_in_order_with_what_is_missing() {
    let world = World::start().await;
    world.node.begin_decisions("first");
    let id = create(&world, json!({})).await;
    let denied = |name| record(name, 443, Decision::Denied);
    world.node.record(&id, ["a.test", "b.test"].map(denied));
    world.node.lose_decisions(3);
    world.node.record(&id, [denied("c.test")]);
    let all = page(&world, "").await;
    assert_eq!(decisions(&all), (vec![1, 2, 6], 6));
    assert_eq!(all["egress"]["series"], "first");
    let first = &all["egress"]["decisions"][0];
    assert_eq!(first["project"], "default");
    assert_eq!(first["sandbox_id"], id);
    let log = world.get(&format!("/v1/sandboxes/{id}/network/log")).await;
    assert_eq!(first["record"], log.json()["records"][0]);
    for (query, found) in [
        ("after_egress=1&limit=1", (vec![2], 2)),
        ("after_egress=2", (vec![6], 6)),
        ("after_egress=6", (vec![], 6)),
    ] {
        assert_eq!(decisions(&page(&world, query).await), found, "{query}");
    }
    // Nobody waits for the next number of a series that is over.
    world.node.begin_decisions("second");
    let began = Instant::now();
    let other = page(&world, &format!("{}&after_egress=6", behind_all(&all))).await;
    assert_eq!(decisions(&other), (vec![], 0));
    assert_eq!(other["egress"]["series"], "second");
    assert!(began.elapsed() < Duration::from_secs(20));
}

/// A query that waits for what comes behind the audit record and the events of a page.
fn behind_all(page: &Value) -> String {
    let last = numbers(page).last().copied().unwrap_or(0);
    let events = page["events"].as_array().unwrap();
    let event = events
        .last()
        .map_or("0", |event| event["cursor"].as_str().unwrap());
    format!("after_audit={last}&after_event={event}&wait_seconds=25")
}

#[tokio::test]
async fn a_decision_ends_the_wait_and_a_node_that_is_away_holds_up_nothing_else() {
    let world = World::start().await;
    let id = create(&world, json!({})).await;
    let now = page(&world, "").await;
    let query = behind_all(&now);
    let began = Instant::now();
    let acting = async {
        world
            .node
            .record(&id, [record("a.test", 443, Decision::Denied)]);
    };
    let (found, ()) = tokio::join!(page(&world, &query), acting);
    assert_eq!(decisions(&found), (vec![1], 1));
    world.node.hide_decisions(true);
    let (found, made) = tokio::join!(
        page(&world, &query),
        world.post("/v1/projects", json!({"id": "late"}))
    );
    assert_eq!(made.status, StatusCode::CREATED);
    assert_eq!(found["audit"][0]["operation"], "POST /v1/projects");
    assert_eq!(found.get("egress"), Some(&Value::Null), "it is not told");
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "it was not woken"
    );
}

#[tokio::test]
async fn a_node_that_hangs_holds_up_neither_the_audit_record_nor_events() {
    let world = World::start().await;
    create(&world, json!({})).await;
    world.node.hang_decisions();
    let began = Instant::now();
    let now = page(&world, "").await;
    assert!(!numbers(&now).is_empty());
    assert_eq!(now.get("egress"), Some(&Value::Null));
    let query = behind_all(&now);
    let (found, made) = tokio::join!(
        page(&world, &query),
        world.post("/v1/projects", json!({"id": "late"}))
    );
    assert_eq!(made.status, StatusCode::CREATED);
    assert_eq!(found["audit"][0]["operation"], "POST /v1/projects");
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "it was held up for {:?}",
        began.elapsed()
    );
}

#[tokio::test]
async fn decisions_that_follow_each_other_are_one_page() {
    let world = World::start().await;
    let id = create(&world, json!({})).await;
    let query = behind_all(&page(&world, "").await);
    let denied = |name| record(name, 443, Decision::Denied);
    world.node.record(&id, [denied("a.test")]);
    world.node.record_when_read(&id, denied("b.test"));
    let found = page(&world, &query).await;
    assert_eq!(decisions(&found), (vec![1, 2], 2));
    // What is asked for without waiting comes at once, and a full page too.
    for now in ["", "limit=1&wait_seconds=25"] {
        let began = Instant::now();
        page(&world, now).await;
        assert!(began.elapsed() < Duration::from_secs(20), "{now}");
    }
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
        "after_egress=-1",
        "limit=0",
        "wait_seconds=26",
        "project=one",
    ] {
        let refused = world.get(&format!("/v1/export?{wrong}")).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{wrong}");
    }
}

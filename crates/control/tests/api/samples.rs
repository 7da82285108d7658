//! Metrics of sandboxes and usage by hour, as callers read them.

use std::time::Duration;

use dayfly_control::ReconcileSettings;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Setup, World, eventually};

/// Samples come so often that a test can wait for them.
async fn world() -> World {
    let quick = Setup::quick();
    let reconcile = ReconcileSettings {
        sample_interval: Duration::from_millis(20),
        ..quick.reconcile
    };
    World::with(Setup { reconcile, ..quick }).await
}

async fn samples(world: &World, id: &str) -> Vec<Value> {
    let read = world.get(&format!("/v1/sandboxes/{id}/metrics")).await;
    assert_eq!(read.status, StatusCode::OK, "{}", read.text());
    read.json()["items"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_sandbox_has_samples_of_its_life_until_it_is_deleted() {
    let world = world().await;
    let id = world.create().await;
    let path = format!("/v1/sandboxes/{id}/metrics");
    eventually("there are samples", async || {
        samples(&world, &id).await.len() >= 3
    })
    .await;
    let first = samples(&world, &id).await[0].clone();
    assert_eq!(first["cpu_us"], 1_500_000);
    assert_eq!(first["memory_bytes"], 64 << 20);
    assert_eq!(first["disk_bytes"], 3 << 20);
    assert_eq!(first["network_in_bytes"], 2000);
    assert_eq!(first["network_out_bytes"], 1000);
    let at = first["at"].as_str().unwrap();
    let upto = world.get(&format!("{path}?until={at}")).await.json();
    assert_eq!(upto["items"], json!([first]));
    let newest = world.get(&format!("{path}?limit=1&since={at}")).await;
    assert_eq!(newest.json()["items"].as_array().unwrap().len(), 1);
    for wrong in [
        format!("since={at}&until=2020-01-01T00:00:00Z"),
        "limit=0".to_owned(),
        "since=yesterday".to_owned(),
        "all_projects=true".to_owned(),
    ] {
        let refused = world.get(&format!("{path}?{wrong}")).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{wrong}");
    }
    // Asleep, it has no new ones; awake, its counters go on.
    let hibernate = format!("/v1/sandboxes/{id}/hibernate");
    let slept = world.post(&hibernate, json!({})).await;
    assert!(slept.status.is_success(), "{}", slept.text());
    let asleep = samples(&world, &id).await.len();
    let other = world.create().await;
    eventually("others have samples", async || {
        samples(&world, &other).await.len() >= 3
    })
    .await;
    assert_eq!(samples(&world, &id).await.len(), asleep);
    let wake = format!("/v1/sandboxes/{id}/wake");
    let woken = world.post(&wake, json!({})).await;
    assert!(woken.status.is_success(), "{}", woken.text());
    eventually("its counters go on", async || {
        samples(&world, &id).await.last().unwrap()["cpu_us"] == 3_000_000
    })
    .await;
    world.delete(&format!("/v1/sandboxes/{id}")).await;
    assert_eq!(world.get(&path).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn an_operator_reads_samples_and_hours_of_others() {
    let world = world().await;
    let id = world.create().await;
    let path = format!("/v1/sandboxes/{id}/metrics");
    let foreign = async |path: &str| {
        let key = &world.foreign_key;
        world.ask(key, Method::GET, path, json!({})).await
    };
    assert_eq!(foreign(&path).await.status, StatusCode::NOT_FOUND);
    let made = world
        .ask(&world.foreign_key, Method::POST, "/v1/sandboxes", json!({}))
        .await;
    let other = made.json()["id"].as_str().unwrap().to_owned();
    let as_operator = format!("/v1/sandboxes/{other}/metrics?project=other");
    eventually("an operator sees samples", async || {
        let read = world.get(&as_operator).await.json();
        !read["items"].as_array().unwrap().is_empty()
    })
    .await;
    let projects = async |query: &str| -> Vec<Value> {
        let read = world.get(&format!("/v1/usage/hours?{query}")).await;
        assert_eq!(read.status, StatusCode::OK, "{}", read.text());
        let items = read.json()["items"].as_array().unwrap().clone();
        items.iter().map(|item| item["project"].clone()).collect()
    };
    eventually("both are counted", async || {
        let all = projects("all_projects=true").await;
        all.contains(&json!("default")) && all.contains(&json!("other"))
    })
    .await;
    assert!(!projects("project=other").await.is_empty());
}

#[tokio::test]
async fn an_hour_has_what_was_started_and_how_long_it_ran() {
    let world = world().await;
    let since = "since=2026-01-01T00:00:00Z";
    let nothing = world.get("/v1/usage/hours").await.json();
    assert_eq!(nothing, json!({"items": [], "next_cursor": null}));
    // So short that there need not be a sample of it.
    for _ in 0..3 {
        let id = world.create().await;
        world.delete(&format!("/v1/sandboxes/{id}")).await;
    }
    let all = world.get(&format!("/v1/usage/hours?{since}")).await.json();
    let items = all["items"].as_array().unwrap();
    let sum = |field: &str| -> f64 {
        let amounts = items.iter().map(|item| item[field].as_f64().unwrap());
        amounts.sum()
    };
    let started = items.iter().map(|item| item["sandboxes_started"].as_u64());
    assert_eq!(started.sum::<Option<u64>>(), Some(3));
    let seconds = sum("sandbox_seconds");
    assert!(seconds > 0.0, "{all}");
    assert!((sum("vcpu_seconds") - seconds).abs() < 1e-6, "{all}");
    let memory = sum("memory_mb_seconds");
    assert!((memory - 512.0 * seconds).abs() < 1e-3, "{all}");
    assert!(items[0]["hour"].as_str().unwrap().ends_with(":00:00Z"));
    let first = world.get(&format!("/v1/usage/hours?{since}&limit=1")).await;
    let cursor = first.json()["next_cursor"].as_str().unwrap().to_owned();
    let rest = world.get(&format!("/v1/usage/hours?cursor={cursor}")).await;
    assert_eq!(
        rest.json()["items"].as_array().unwrap().len(),
        items.len() - 1
    );
    let wrong = world.get("/v1/usage/hours?cursor=7").await;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST);
}

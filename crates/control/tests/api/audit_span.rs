//! A part of the audit record, by time.

use dayfly_control::store::AuditEvent;
use dayfly_types::ProjectId;
use http::StatusCode;
use serde_json::Value;

use crate::support::World;

/// Of the first of January 2026, 00:00.
const DAY_MS: i64 = 1_767_225_600_000;
const MINUTE_MS: i64 = 60_000;

/// Queries, and the minutes that they find, newest first.
const SPANS: [(&str, &[&str]); 9] = [
    ("until=2026-01-01T00:04:00Z", &["4", "2", "3", "1", "0"]),
    // Both ends belong to it.
    (
        "since=2026-01-01T00:01:00Z&until=2026-01-01T00:03:00Z",
        &["2", "3", "1"],
    ),
    (
        "since=2026-01-01T00:02:00Z&until=2026-01-01T00:02:00Z",
        &["2"],
    ),
    (
        "since=2026-01-01T01:02:00%2B01:00&until=2026-01-01T00:02:30Z",
        &["2"],
    ),
    // To less than a millisecond.
    (
        "since=2026-01-01T00:01:00.000000001Z&until=2026-01-01T00:02:59.9999Z",
        &["2"],
    ),
    ("subject=sb-1&until=2026-01-01T00:02:00Z", &["1"]),
    ("until=2025-12-31T23:59:59Z", &[]),
    ("since=9999-12-31T23:59:59Z", &[]),
    ("until=0000-01-01T00:00:00Z", &[]),
];

/// Entries of two projects, one each minute. The fourth was written before the third, as it happens
/// when two requests end at once.
async fn world() -> World {
    let world = World::start().await;
    for (project, minutes) in [("default", [0, 1, 3, 2, 4]), ("other", [0, 1, 2, 3, 4])] {
        let entries = minutes.map(|minute| AuditEvent {
            project: ProjectId::parse(project).unwrap(),
            at_ms: DAY_MS + minute * MINUTE_MS,
            key_prefix: "dfk_test".to_owned(),
            request_id: String::new(),
            operation: format!("POST /v1/{project}/{minute}"),
            subject: Some(format!("sb-{}", minute % 2)),
            status: 201,
            detail: "{}".to_owned(),
            client: None,
        });
        let store = &world.control.store;
        store.append_audit(&entries, 1 << 20).await.unwrap();
    }
    world
}

async fn page(world: &World, query: &str) -> Value {
    let record = world.get(&format!("/v1/audit?{query}")).await;
    assert_eq!(record.status, StatusCode::OK, "{query}: {}", record.text());
    record.json()
}

/// The minutes of the entries of that day.
fn minutes(page: &Value) -> Vec<&str> {
    let entries = page["items"].as_array().unwrap().iter();
    let operations = entries.map(|entry| entry["operation"].as_str().unwrap());
    operations
        .filter_map(|operation| operation.strip_prefix("POST /v1/default/"))
        .collect()
}

#[tokio::test]
async fn a_span_of_the_record_is_what_was_done_within_it() {
    let world = world().await;
    for (query, wanted) in SPANS {
        assert_eq!(minutes(&page(&world, query).await), wanted, "{query}");
    }
    let since = page(&world, "since=2026-01-01T00:04:00Z&limit=1000").await;
    assert_eq!(minutes(&since), ["4"]);
}

#[tokio::test]
async fn pages_of_a_span_together_are_the_span() {
    let world = world().await;
    let span = "since=2026-01-01T00:01:00Z&until=2026-01-01T00:04:00Z&limit=2";
    let first = page(&world, span).await;
    assert_eq!(minutes(&first), ["4", "2"]);
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = page(&world, &format!("{span}&cursor={cursor}")).await;
    assert_eq!(minutes(&second), ["3", "1"]);
    let cursor = second["next_cursor"].as_str().unwrap();
    let third = page(&world, &format!("{span}&cursor={cursor}")).await;
    assert_eq!(minutes(&third), [""; 0]);
    assert!(third["next_cursor"].is_null());
}

#[tokio::test]
async fn what_is_no_time_is_refused() {
    let world = world().await;
    for query in [
        "since=",
        "since=yesterday",
        "until=1h",
        "until=2026-01-01",
        "since=2026-01-01T00:00:00",
        "since=2026-02-30T00:00:00Z",
        "since=2026-01-01T01:02:00+01:00",
        "since=1767225600",
        "since=2026-01-01T00:00:00Z&since=2026-01-01T00:00:00Z",
        "since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z",
    ] {
        let refused = world.get(&format!("/v1/audit?{query}")).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{query}");
        assert_eq!(refused.refusal(), "invalid_request", "{query}");
    }
}

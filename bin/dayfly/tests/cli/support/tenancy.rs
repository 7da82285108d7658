//! Keys, usage and the audit record of the fake server.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::server::{Shared, begin};

pub(super) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/v1/me", get(me))
        .route("/v1/usage/sandboxes", get(loads))
        .route("/v1/audit", get(audit))
        .route("/v1/me/tokens", get(tokens))
        .route("/v1/me/tokens/{prefix}", delete(revoke))
        .route("/v1/projects/{project}", delete(revoke))
        .route("/v1/projects/{project}/suspend", post(suspend))
        .route("/v1/projects/{project}/resume", post(resume))
        .route("/v1/usage", get(usage))
        .route("/v1/usage/projects", get(usages))
        .route("/v1/usage/hours", get(hours))
        .route("/v1/sandboxes/{id}/metrics", get(metrics))
}

async fn me() -> Json<Value> {
    Json(
        json!({"project": "team-a", "key_prefix": "dfk_ab", "scopes": ["read", "create"],
        "sandbox_id": null}),
    )
}

async fn loads(State(shared): State<Arc<Shared>>) -> Json<Value> {
    let world = shared.world.lock().expect("no test panics with the lock");
    let load = |id: &String| json!({"id": id, "cpu_us": 5, "memory_bytes": 3 << 20});
    let items: Vec<Value> = world.sandboxes.keys().map(load).collect();
    Json(json!({"at_ms": 1000, "items": items}))
}

async fn tokens() -> Json<Value> {
    Json(
        json!({"items": [{"prefix": "dfk_ab", "label": "ci", "scopes": ["read"],
        "sandbox_id": null, "made_by": null, "created_at": "2026-01-01T00:00:00Z",
        "expires_at": null, "project": "team-b"}]}),
    )
}

async fn revoke() -> StatusCode {
    StatusCode::NO_CONTENT
}

fn team_b() -> Value {
    json!({"id": "team-b", "state": "active", "created_at": "2026-01-01T00:00:00Z",
        "limits": used()["limits"]})
}

async fn suspend() -> Json<Value> {
    Json(json!({"project": team_b(), "hibernated": ["sb-local-1"], "failed": []}))
}

async fn resume() -> Json<Value> {
    Json(team_b())
}

fn used() -> Value {
    json!({"sandboxes": 2, "vcpus": 2, "memory_mb": 512, "snapshot_mb": 0, "volume_mb": 0,
        "disk_mb": 0, "project": "team-b", "limits": {"sandboxes": 5, "vcpus": null,
        "memory_mb": null, "snapshot_mb": null, "volume_mb": null, "requests_per_second": null,
        "disk_mb": null, "keeps_output": false}})
}

async fn usage() -> Json<Value> {
    Json(used())
}

async fn usages() -> Json<Value> {
    Json(json!({"items": [used()]}))
}

/// Newest first, in pages of three at most. The cursor is the last entry of the page before.
async fn audit(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Json<Value> {
    begin(&shared, "audit");
    let world = shared.world.lock().expect("no test panics with the lock");
    let number = |name: &str| query.get(name).and_then(|text| text.parse::<u64>().ok());
    let before = number("cursor").unwrap_or(u64::MAX);
    let length = number("limit").unwrap_or(100).min(3);
    let entries = world.audit.iter().rev();
    let within = |entry: &&Value| {
        // All of them are of UTC and of one length.
        let at = entry["at"].as_str().unwrap_or_default();
        let is_late = query.get("since").is_none_or(|since| at >= since.as_str());
        is_late && query.get("until").is_none_or(|until| at <= until.as_str())
    };
    let entries = entries.filter(within);
    let mut older = entries.filter(|entry| entry["seq"].as_u64() < Some(before));
    let page: Vec<&Value> = older
        .by_ref()
        .take(usize::try_from(length).expect("small"))
        .collect();
    let has_more = older.next().is_some();
    let last = page.last().map(|entry| entry["seq"].to_string());
    Json(json!({"items": page, "next_cursor": last.filter(|_| has_more)}))
}

async fn hours() -> Json<Value> {
    Json(
        json!({"items": [{"hour": "2026-01-01T00:00:00Z", "sandboxes_started": 3,
        "sandbox_seconds": 12.5, "vcpu_seconds": 25.0, "memory_mb_seconds": 6400.0,
        "cpu_seconds": 1.25, "network_in_bytes": 10, "network_out_bytes": 20,
        "project": "team-b"}], "next_cursor": null}),
    )
}

/// One CPU at a quarter, then at a half.
async fn metrics() -> Json<Value> {
    let sample = |second: u64, cpu_us: u64, mib: u64| {
        json!({"at": format!("2026-01-01T00:00:{second}Z"), "cpu_us": cpu_us,
            "memory_bytes": mib << 20, "disk_bytes": 5 << 20, "network_in_bytes": second << 10,
            "network_out_bytes": 7})
    };
    Json(
        json!({"items": [sample(10, 0, 10), sample(20, 2_500_000, 30),
        sample(30, 7_500_000, 20)]}),
    )
}

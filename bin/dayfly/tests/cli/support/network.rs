//! What the sandboxes of the fake server reach.
//!
//! A policy whose first rule is `refused.test` is refused; one that names `slow.test` is taken
//! and not in force. The record has three entries and a hole.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use dayfly_api::{AllowNetwork, NetworkMode, NetworkWish, RuleWish};
use serde_json::{Value, json};

use super::server::{Shared, refuse};

pub(super) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/v1/sandboxes/{id}/network", get(read).put(set))
        .route("/v1/sandboxes/{id}/network/allow", post(allow))
        .route("/v1/sandboxes/{id}/network/log", get(log))
        .route("/v1/sandboxes/{id}/network/suggest", get(suggest))
        .route("/v1/network-default", get(default).put(set_default))
        .route("/v1/network-presets", get(presets))
}

fn note(shared: &Shared, wish: NetworkWish) {
    let mut world = shared.world.lock().expect("no test panics with the lock");
    world.networks.push(wish);
}

fn rule(wish: &RuleWish) -> Value {
    match wish {
        RuleWish::Text(host) => json!({"id": host, "host": host, "ports": [80, 443]}),
        RuleWish::Rule(parts) => json!(parts),
    }
}

fn answer(shared: &Shared, wish: NetworkWish) -> Response {
    let rules: Vec<Value> = wish.rules.iter().map(rule).collect();
    let names = |host: &str| rules.iter().any(|rule| rule["host"] == host);
    if names("refused.test") {
        let hint = Some("name another");
        return refuse(400, "invalid_request", "entry 1 is no rule", hint);
    }
    let network = json!({"mode": wish.mode, "rules": rules, "epoch": 2,
        "enforced": !names("slow.test")});
    note(shared, wish);
    Json(network).into_response()
}

async fn read(State(shared): State<Arc<Shared>>, Path(id): Path<String>) -> Response {
    let world = shared.world.lock().expect("no test panics with the lock");
    if !world.sandboxes.contains_key(&id) {
        return refuse(404, "not_found", "no such sandbox", None);
    }
    Json(
        json!({"mode": "allowlist", "epoch": 4, "enforced": true, "rules": [
        {"id": "mine\u{1b}[2J", "host": "*.example.com", "ports": [443]},
        {"id": "net", "cidr": "93.184.216.0/24", "ports": [22, 80]}]}),
    )
    .into_response()
}

async fn set(State(shared): State<Arc<Shared>>, Json(wish): Json<NetworkWish>) -> Response {
    answer(&shared, wish)
}

async fn allow(State(shared): State<Arc<Shared>>, Json(body): Json<AllowNetwork>) -> Response {
    let mode = NetworkMode::Allowlist;
    let rules = body.rules;
    answer(&shared, NetworkWish { mode, rules })
}

async fn default() -> Json<Value> {
    Json(json!({"mode": "deny", "rules": []}))
}

async fn set_default(State(shared): State<Arc<Shared>>, Json(wish): Json<NetworkWish>) -> Response {
    answer(&shared, wish)
}

async fn presets() -> Json<Value> {
    Json(json!({"items": [
        {"name": "git-hosts", "description": "hosts", "mode": "allowlist",
            "rules": [{"id": "git-hosts/github.com", "host": "github.com", "ports": [443]}]},
        {"name": "public", "description": "all", "mode": "public", "rules": []}]}))
}

async fn suggest(State(shared): State<Arc<Shared>>, Path(id): Path<String>) -> Json<Value> {
    let is_empty = {
        let world = shared.world.lock().expect("no test panics with the lock");
        world.sandboxes[&id].status == "paused"
    };
    let rules = json!([{"id": "pypi.org", "host": "pypi.org", "ports": [443]}]);
    Json(
        json!({"mode": "allowlist", "rules": if is_empty { json!([]) } else { rules },
        "unnamed": ["93.184.216.34:22"], "records": 9, "lost": 3, "truncated": false}),
    )
}

fn records() -> [Value; 3] {
    let record = |sequence: u64, decision: &str, name: &str| {
        json!({"sequence": sequence, "at": "2026-01-01T00:00:00Z", "kind": "tls",
            "decision": decision, "name": name, "name_source": "sni", "port": 443,
            "bytes_up": 0, "bytes_down": 0, "duration_ms": 0, "suppressed": 0})
    };
    let mut denied = record(5, "denied", "evil.test");
    denied["reason"] = json!("no_rule");
    let mut closed = record(6, "closed", "pypi.org");
    closed["rule"] = json!("pypi");
    (closed["bytes_up"], closed["bytes_down"]) = (json!(10), json!(20));
    let mut asked = record(7, "allowed", "pypi.org");
    asked["kind"] = json!("dns");
    asked["would_deny"] = json!(true);
    asked.as_object_mut().expect("an object").remove("port");
    [denied, closed, asked]
}

/// A page has one record; a stream has all and ends.
async fn log(Query(query): Query<BTreeMap<String, String>>, headers: HeaderMap) -> Response {
    let after: u64 = query["after"].parse().expect("a number");
    if i64::try_from(after).is_err() {
        return refuse(400, "invalid_request", "`after` is too large", None);
    }
    let is_wanted = |record: &Value| record["sequence"].as_u64() > Some(after);
    let wanted = records().into_iter().filter(is_wanted);
    let is_stream = headers
        .get("accept")
        .is_some_and(|value| value == "text/event-stream");
    if is_stream {
        let records = wanted.map(|record| format!("event: record\ndata: {record}\n\n"));
        let lost = "event: lost\ndata: {\"count\":4}\n\n";
        let events: String = [lost.to_owned()].into_iter().chain(records).collect();
        let kind = [("content-type", "text/event-stream; charset=utf-8")];
        return (kind, format!("{events}event: end\ndata: {{}}\n\n")).into_response();
    }
    let page: Vec<Value> = wanted.take(1).collect();
    let lost = if after == 0 { 4 } else { 0 };
    Json(json!({"records": page, "oldest": 5, "latest": 7, "lost": lost})).into_response()
}

//! Commands of the fake server's sandboxes: `exec-runs` runs, `exec-ended` was killed, others are not known.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use dayfly_api::SignalRequest;
use serde_json::{Value, json};

use super::server::{Shared, refuse};

pub(crate) const RUNS: &str = "exec-runs";
pub(crate) const ENDED: &str = "exec-ended";

pub(super) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/v1/sandboxes/{id}/processes", get(list))
        .route("/v1/sandboxes/{id}/processes/{exec}", get(read))
        .route("/v1/sandboxes/{id}/processes/{exec}/signal", post(signal))
}

fn process(exec: &str, reason: Option<&str>) -> Value {
    let extent = json!({"start": 0, "end": 0});
    let state = if reason.is_some() {
        "exited"
    } else {
        "running"
    };
    json!({"exec_id": exec, "title": "make test", "user": "agent", "pid": 42, "state": state,
        "reason": reason, "exit_code": reason.map(|_| 137), "duration_ms": 1200,
        "started_at": "2026-01-01T00:00:00Z", "terminal": false, "takes_stdin": false,
        "stdin_bytes": 0, "stdout": extent, "stderr": extent})
}

fn missing() -> Response {
    let text = "the sandbox has no such exec; the oldest ended ones are forgotten first";
    refuse(404, "not_found", text, None)
}

async fn list() -> Json<Value> {
    Json(json!({"items": [process(RUNS, None), process(ENDED, Some("killed"))]}))
}

async fn read(Path((_, exec)): Path<(String, String)>) -> Response {
    match exec.as_str() {
        RUNS => Json(process(RUNS, None)).into_response(),
        ENDED => Json(process(ENDED, Some("killed"))).into_response(),
        _ => missing(),
    }
}

/// As the real one: what has ended gets no signal, although it is listed.
async fn signal(
    State(shared): State<Arc<Shared>>,
    Path((_, exec)): Path<(String, String)>,
    Json(request): Json<SignalRequest>,
) -> Response {
    if exec != RUNS {
        return missing();
    }
    let mut world = shared.world.lock().expect("no test panics with the lock");
    world.signals.push(request.signal);
    StatusCode::NO_CONTENT.into_response()
}

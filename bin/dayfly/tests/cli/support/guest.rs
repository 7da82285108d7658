//! What runs and lies in the sandboxes of the fake server.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use dayfly_api::{Command, ExecRequest};
use futures::StreamExt as _;
use serde_json::json;

use super::server::{Shared, begin, refuse};

fn event(name: &str, data: &serde_json::Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

fn output(name: &str, chunk: &str) -> String {
    event(name, &json!({ "chunk": chunk }))
}

fn exit(code: i32, reason: &str, signal: Option<i32>) -> String {
    let data = json!({"exit_code": code, "reason": reason, "signal": signal, "duration_ms": 12});
    event("exit", &data)
}

/// The events of a program, and whether the stream stays open after them.
fn script(request: &ExecRequest) -> (String, bool) {
    let argv = match &request.cmd {
        Command::Argv(argv) => argv.clone(),
        Command::Shell(text) => vec!["shell".to_owned(), text.clone()],
    };
    let second = argv.get(1).cloned().unwrap_or_default();
    match argv[0].as_str() {
        "exit" => (
            exit(second.parse().expect("a number"), "exited", None),
            false,
        ),
        "kill" => (exit(137, "signaled", Some(9)), false),
        "echo" => (output("stdout", &second) + &exit(0, "exited", None), false),
        "both" => {
            let events = [
                ": alive\n\n".to_owned(),
                output("stdout", "to out, é\n"),
                output("stderr", "to err\n"),
                output("stdout", "no newline"),
                exit(3, "exited", None),
            ];
            (events.concat(), false)
        }
        "request" => {
            let text = serde_json::to_string(request).expect("it came as JSON");
            (output("stdout", &text) + &exit(0, "exited", None), false)
        }
        "late" => {
            let error = json!({"error": "command timeout after 1 s", "code": "timeout"});
            (output("stdout", "partial") + &event("error", &error), false)
        }
        "lost" => {
            let error = json!({"error": "the guest is gone", "code": "guest_unavailable"});
            let events = format!("event: lost\ndata: {{}}\n\ndata: {error}\nevent: error\n\n");
            (output("stdout", "partial") + &events, false)
        }
        "cut" => (output("stdout", "partial"), false),
        "hang" => (output("stdout", "started\n"), true),
        other => panic!("the script knows no {other:?}"),
    }
}

pub(super) async fn exec_stream(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    Json(request): Json<ExecRequest>,
) -> Response {
    begin(&shared, "exec");
    let is_known = shared
        .world
        .lock()
        .expect("no test panics with the lock")
        .sandboxes
        .contains_key(&id);
    if !is_known {
        return refuse(404, "not_found", "no such sandbox", None);
    }
    let header = [("content-type", "text/event-stream; charset=utf-8")];
    if request.cmd == Command::Argv(vec!["flood".to_owned()]) {
        let flood = futures::stream::repeat_with(|| Ok::<_, Infallible>(output("stdout", "y\n")));
        return (header, Body::from_stream(flood)).into_response();
    }
    let (events, stays_open) = script(&request);
    let events = futures::stream::iter([Ok::<_, Infallible>(events)]);
    let body = if stays_open {
        Body::from_stream(events.chain(futures::stream::pending()))
    } else {
        Body::from_stream(events)
    };
    (header, body).into_response()
}

type PathQuery = Query<BTreeMap<String, String>>;

pub(super) async fn read_file(
    State(shared): State<Arc<Shared>>,
    Query(query): PathQuery,
) -> Response {
    let world = shared.world.lock().expect("no test panics with the lock");
    match world.files.get(&query["path"]) {
        Some(bytes) => bytes.clone().into_response(),
        None => refuse(404, "not_found", "no such file", None),
    }
}

pub(super) async fn write_file(
    State(shared): State<Arc<Shared>>,
    Query(query): PathQuery,
    body: Bytes,
) -> Response {
    let path = query["path"].clone();
    let written = json!({"path": path, "bytes": body.len()});
    shared
        .world
        .lock()
        .expect("no test panics with the lock")
        .files
        .insert(path, body);
    Json(written).into_response()
}

pub(super) async fn stat(State(shared): State<Arc<Shared>>, Query(query): PathQuery) -> Response {
    let path = &query["path"];
    let world = shared.world.lock().expect("no test panics with the lock");
    let size = world.files.get(path).map(Bytes::len);
    let is_dir = path == "/workspace";
    if size.is_none() && !is_dir {
        return refuse(404, "not_found", "no such file", None);
    }
    Json(json!({
        "name": path.rsplit('/').next(), "path": path, "is_dir": is_dir, "is_symlink": false,
        "size": size.unwrap_or(0), "mode": "0644", "mtime": 0, "uid": 1000, "gid": 1000,
    }))
    .into_response()
}

//! What runs and lies in the sandboxes of the fake server.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use dayfly_api::{
    Advice, Command, ExecExitEvent, ExecRequest, Process, SOCKET_STDERR, SOCKET_STDOUT, SocketCall,
    SocketEvent, StreamExtent,
};
use serde_json::json;

use super::server::{Shared, begin, refuse};

fn event(event: &SocketEvent) -> Message {
    Message::Text(serde_json::to_string(event).expect("plain data").into())
}

fn output(stream: u8, offset: u64, chunk: &str) -> Message {
    let mut bytes = vec![stream];
    bytes.extend_from_slice(&offset.to_be_bytes());
    bytes.extend_from_slice(chunk.as_bytes());
    Message::Binary(bytes.into())
}

fn stdout(chunk: &str) -> Message {
    output(SOCKET_STDOUT, 0, chunk)
}

fn exit(code: i32, reason: &str, signal: Option<i32>) -> Message {
    event(&SocketEvent::Exit(ExecExitEvent {
        exit_code: code,
        reason: reason.to_owned(),
        signal,
        duration_ms: 12,
        limits_hit: Vec::new(),
        advice: Advice::default(),
    }))
}

/// What a program sends, and whether the socket stays open after it. `earned` is what its sandbox
/// has earned by `earn`.
fn script(request: &ExecRequest, earned: &str) -> (Vec<Message>, bool) {
    let argv = match &request.cmd {
        Command::Argv(argv) => argv.clone(),
        Command::Shell(text) => text.split(' ').map(str::to_owned).collect(),
    };
    let second = argv.get(1).cloned().unwrap_or_default();
    let done = || exit(0, "exited", None);
    let messages = match argv[0].as_str() {
        "exit" => vec![exit(second.parse().expect("a number"), "exited", None)],
        "kill" => vec![exit(137, "signaled", Some(9))],
        "greedy" => vec![exit(137, "limit_exceeded", Some(9))],
        "echo" => vec![stdout(&second), done()],
        "earn" => vec![done()],
        "score" => vec![stdout(&format!("it has earned\n{earned}\n")), done()],
        "both" => vec![
            Message::Ping(Bytes::new()),
            stdout("to out, é\n"),
            output(SOCKET_STDERR, 0, "to err\n"),
            output(SOCKET_STDOUT, 11, "no newline"),
            exit(3, "exited", None),
        ],
        "request" => {
            let text = serde_json::to_string(request).expect("it came as JSON");
            vec![stdout(&text), done()]
        }
        "late" => vec![stdout("partial"), exit(137, "timed_out", Some(9))],
        "lost" => {
            let error = SocketEvent::Error {
                error: "the guest is gone".to_owned(),
                code: "guest_unavailable".to_owned(),
            };
            vec![stdout("partial"), event(&error)]
        }
        "cut" => vec![stdout("partial")],
        "hang" => return (vec![stdout("started\n")], true),
        other => panic!("the script knows no {other:?}"),
    };
    (messages, false)
}

fn process(request: &ExecRequest) -> SocketEvent {
    let nothing = StreamExtent { start: 0, end: 0 };
    SocketEvent::Attached(Box::new(Process {
        exec_id: request.exec_id.clone().unwrap_or_default(),
        title: "scripted".to_owned(),
        user: "agent".to_owned(),
        pid: 42,
        started_at: "2026-01-01T00:00:00Z".to_owned(),
        state: "running".to_owned(),
        exit_code: None,
        signal: None,
        reason: None,
        limits_hit: Vec::new(),
        duration_ms: 0,
        terminal: false,
        takes_stdin: request.stdin_open == Some(true),
        stdin_bytes: 0,
        stdout: nothing,
        stderr: nothing,
    }))
}

pub(super) async fn exec_socket(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    upgrade: WebSocketUpgrade,
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
    upgrade.on_upgrade(|socket| play(socket, shared, id))
}

/// Nobody can attach here: what the script ended is over.
pub(super) async fn attach_socket() -> Response {
    refuse(404, "not_found", "no such exec", None)
}

async fn play(mut socket: WebSocket, shared: Arc<Shared>, id: String) {
    let Some(Ok(Message::Text(first))) = socket.recv().await else {
        return;
    };
    let Ok(SocketCall::Start(request)) = serde_json::from_str(&first) else {
        return;
    };
    if socket.send(event(&process(&request))).await.is_err() {
        return;
    }
    if request.stdin_open == Some(true) {
        return echo_input(socket).await;
    }
    if request.cmd == Command::Argv(vec!["flood".to_owned()]) {
        while socket.send(stdout("y\n")).await.is_ok() {}
        return;
    }
    let earned = note_shell(&shared, &id, &request.cmd);
    let (messages, stays_open) = script(&request, &earned);
    for message in messages {
        if socket.send(message).await.is_err() {
            return;
        }
    }
    if stays_open {
        while let Some(Ok(_)) = socket.recv().await {}
    }
}

/// Notes a command of a shell, and gives what its sandbox has earned.
fn note_shell(shared: &Shared, id: &str, command: &Command) -> String {
    let mut world = shared.world.lock().expect("no test panics with the lock");
    if let Command::Shell(text) = command {
        world.shells.push((id.to_owned(), text.clone()));
    }
    let mut of_sandbox = world.shells.iter().filter(|(sandbox, _)| sandbox == id);
    let earned = of_sandbox.find_map(|(_, text)| text.strip_prefix("earn "));
    earned.unwrap_or("nothing").to_owned()
}

/// Plays `cat`.
async fn echo_input(mut socket: WebSocket) {
    let mut offset = 0;
    while let Some(Ok(message)) = socket.recv().await {
        match message {
            Message::Binary(bytes) => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let _ = socket.send(output(SOCKET_STDOUT, offset, &text)).await;
                offset += bytes.len() as u64;
            }
            Message::Text(text) if text.contains("close_stdin") => {
                let _ = socket.send(exit(0, "exited", None)).await;
                return;
            }
            Message::Text(_) | Message::Ping(_) | Message::Pong(_) | Message::Close(_) => {}
        }
    }
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
    let is_dir = path == "/workspace" || path == ".";
    if size.is_none() && !is_dir {
        return refuse(404, "not_found", "no such file", None);
    }
    Json(json!({
        "name": path.rsplit('/').next(), "path": path, "is_dir": is_dir, "is_symlink": false,
        "size": size.unwrap_or(0), "mode": "0644", "mtime": 0, "uid": 1000, "gid": 1000,
    }))
    .into_response()
}

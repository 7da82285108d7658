use std::path::PathBuf;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixListener;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;

struct Engine {
    socket: PathBuf,
    task: JoinHandle<()>,
    _directory: tempfile::TempDir,
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// An engine whose state is each of `states` in turn, one for each question; every answer is
/// followed by a stop. It has `failed` writes behind it.
fn engine(states: &'static [&'static str], failed: u64) -> Engine {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().canonicalize().unwrap().join("events.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let task = tokio::spawn(async move {
        let mut states = states.iter();
        while let Ok((stream, _)) = listener.accept().await {
            let mut stream = BufReader::new(stream);
            stream.write_all(b"{\"QMP\": {}}\n").await.unwrap();
            let mut line = String::new();
            while stream.read_line(&mut line).await.unwrap_or(0) > 0 {
                let request: serde_json::Value = serde_json::from_str(&line).unwrap();
                line.clear();
                let id = &request["id"];
                let answer = match request["execute"].as_str() {
                    Some("query-status") => {
                        let Some(state) = states.next() else { return };
                        serde_json::json!({ "status": state })
                    }
                    Some("query-blockstats") => serde_json::json!([
                        { "stats": { "failed_rd_operations": 7 } },
                        { "stats": { "failed_wr_operations": failed } },
                    ]),
                    _ => serde_json::json!({}),
                };
                let event = "{\"event\": \"RESUME\"}\n{\"event\": \"STOP\"}";
                let text = format!("{{\"return\": {answer}, \"id\": {id}}}\n{event}\n");
                if stream.write_all(text.as_bytes()).await.is_err() {
                    break;
                }
            }
        }
    });
    Engine {
        socket,
        task,
        _directory: directory,
    }
}

async fn soon(events: &mut Events, engine: &Engine) -> Option<Heard> {
    let limit = Duration::from_millis(500);
    timeout(limit, events.next(&engine.socket)).await.ok()
}

#[tokio::test]
async fn a_stop_by_an_error_is_told_from_any_other_stop() {
    let engine = engine(&["running", "paused", STOPPED_BY_ERROR, "paused"], 0);
    let mut events = Events::default();
    let told = soon(&mut events, &engine).await;
    assert_eq!(told, Some(Heard::StoppedByError));
    // The stop after that is a pause, and the conversation goes on where it was.
    assert_eq!(soon(&mut events, &engine).await, None);
}

#[tokio::test]
async fn a_guest_that_stood_still_before_anybody_listened_is_told_of() {
    let engine = engine(&[STOPPED_BY_ERROR], 0);
    let told = soon(&mut Events::default(), &engine).await;
    assert_eq!(told, Some(Heard::StoppedByError));
}

#[tokio::test]
async fn a_failed_write_is_told_once_and_does_not_hide_a_stop() {
    let engine = engine(&["running", STOPPED_BY_ERROR, "running"], 1);
    let mut events = Events::default();
    let told = soon(&mut events, &engine).await;
    assert_eq!(told, Some(Heard::WriteFailed));
    let told = soon(&mut events, &engine).await;
    assert_eq!(told, Some(Heard::StoppedByError));
    assert_eq!(soon(&mut events, &engine).await, None);
}

#[tokio::test]
async fn a_guest_that_will_not_run_again_is_told_of() {
    for (state, end) in [
        (SHUT_DOWN, GuestEnd::ShutDown),
        (CANNOT_RUN, GuestEnd::CannotRun),
    ] {
        let states: &'static [&'static str] = match end {
            GuestEnd::ShutDown => &["running", SHUT_DOWN],
            GuestEnd::CannotRun => &["running", CANNOT_RUN],
        };
        let engine = engine(states, 0);
        let told = soon(&mut Events::default(), &engine).await;
        assert_eq!(told, Some(Heard::GuestEnded(end)), "{state}");
    }
}

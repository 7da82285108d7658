//! Streamed execs, byte for byte.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use dayfly_node_api::NodeError;
use dayfly_types::ErrorCode;
use dayfly_types::exec::ExitReason;
use http::StatusCode;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::support::{Answer, Step, World, eventually, exited};

async fn stream(steps: impl IntoIterator<Item = Step>) -> Answer {
    let world = World::start().await;
    let id = world.create().await;
    world.node.script("run", steps);
    let body = json!({"cmd": "run", "timeout_seconds": 2.5});
    let answer = world
        .post(&format!("/v1/sandboxes/{id}/exec/stream"), body)
        .await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(
        answer.headers["content-type"],
        "text/event-stream; charset=utf-8"
    );
    assert_eq!(answer.headers["transfer-encoding"], "chunked");
    answer
}

/// The stream without the event that names the exec.
fn behind_start(answer: &Answer) -> &str {
    let (started, rest) = answer.text().split_once("\n\n").unwrap();
    assert!(started.starts_with("event: started\ndata: {\"exec_id\":\"ex-"));
    rest
}

#[tokio::test]
async fn events_have_the_one_form_that_both_clients_read() {
    let answer = stream([
        Step::Stdout("é\r\n".into()),
        Step::Stderr("\u{2028}\u{85}х".into()),
        Step::Exit(exited(3)),
    ])
    .await;
    let expected = "event: stdout\ndata: {\"chunk\":\"\\u00e9\\r\\n\"}\n\n\
        event: stderr\ndata: {\"chunk\":\"\\u2028\\u0085\\u0445\"}\n\n\
        event: exit\ndata: {\"exit_code\":3,\"reason\":\"exited\",\"duration_ms\":7}\n\n";
    assert_eq!(behind_start(&answer), expected);
}

#[tokio::test]
async fn a_character_that_arrives_in_two_pieces_is_sent_in_one() {
    let answer = stream([
        Step::Stdout(Bytes::from_static(b"a\xf0\x9f")),
        Step::Stderr("between".into()),
        Step::Stdout(Bytes::from_static(b"\xa6\x80\xff")),
        Step::Stdout(Bytes::from_static(b"\xc3")),
        Step::Exit(exited(0)),
    ])
    .await;
    let expected = "event: stdout\ndata: {\"chunk\":\"a\"}\n\n\
        event: stderr\ndata: {\"chunk\":\"between\"}\n\n\
        event: stdout\ndata: {\"chunk\":\"\\ud83e\\udd80\\ufffd\"}\n\n\
        event: stdout\ndata: {\"chunk\":\"\\ufffd\"}\n\n\
        event: exit\ndata: {\"exit_code\":0,\"reason\":\"exited\",\"duration_ms\":7}\n\n";
    assert_eq!(behind_start(&answer), expected);
}

#[tokio::test]
async fn a_mebibyte_without_a_newline_comes_in_small_events() {
    let text = "0123456789abcdef".repeat(1 << 16);
    let answer = stream([Step::Stdout(text.clone().into()), Step::Exit(exited(0))]).await;
    let mut together = String::new();
    let events: Vec<&str> = behind_start(&answer).split_terminator("\n\n").collect();
    for event in &events[..events.len() - 1] {
        assert!(event.len() + 2 <= 64 << 10);
        let data = event.strip_prefix("event: stdout\ndata: ").unwrap();
        let data: Value = serde_json::from_str(data).unwrap();
        together.push_str(data["chunk"].as_str().unwrap());
    }
    assert!(together == text);
    assert!(events.last().unwrap().starts_with("event: exit\n"));
}

#[tokio::test]
async fn a_timeout_is_one_plain_error_event() {
    let mut late = exited(137);
    late.exit.reason = ExitReason::TimedOut;
    let answer = stream([Step::Stdout("part".into()), Step::Exit(late)]).await;
    let expected = "event: stdout\ndata: {\"chunk\":\"part\"}\n\n\
        event: error\ndata: {\"error\":\"timeout: the command ran longer than its limit of 2.5 \
        seconds\",\"code\":\"timeout\"}\n\n";
    assert_eq!(behind_start(&answer), expected);
}

#[tokio::test]
async fn a_loss_is_told_so_that_both_clients_notice() {
    let error = NodeError::new(ErrorCode::GuestUnavailable, "the guest is gone");
    for step in [Step::Vanish, Step::Fail(error)] {
        let answer = stream([Step::Stdout("part".into()), step]).await;
        let text = behind_start(&answer);
        let (before, after) = text.split_once("event: lost\ndata: {}\n\n").unwrap();
        assert_eq!(before, "event: stdout\ndata: {\"chunk\":\"part\"}\n\n");
        assert!(after.starts_with("data: {\"error\":\""), "{after}");
        assert!(
            after.ends_with("\"code\":\"guest_unavailable\"}\nevent: error\n\n"),
            "{after}"
        );
        assert!(!after.contains("timeout"));
    }
}

#[tokio::test]
async fn a_node_that_dies_is_a_loss_too() {
    let world = World::start().await;
    let id = world.create().await;
    let pause = Step::Pause(Duration::from_secs(3600));
    world
        .node
        .script("run", [Step::Stdout("part".into()), pause]);
    let path = format!("/v1/sandboxes/{id}/exec/stream");
    let response = world
        .open(world.post_request(&path, &json!({"cmd": "run"})))
        .await;
    world.stop_node().await;
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let text = std::str::from_utf8(&body).unwrap();
    assert!(
        text.contains("event: lost\n") && text.ends_with("event: error\n\n"),
        "{text}"
    );
}

#[tokio::test]
async fn each_event_is_one_chunk_and_silence_is_broken_by_comments() {
    let world = World::start().await;
    let id = world.create().await;
    let steps = [
        Step::Stdout("a".into()),
        Step::Pause(Duration::from_millis(10_500)),
        Step::Exit(exited(0)),
    ];
    world.node.script("run", steps);
    let path = format!("/v1/sandboxes/{id}/exec/stream");
    let response = world
        .open(world.post_request(&path, &json!({"cmd": "run"})))
        .await;
    let mut body = response.into_body();
    let mut frames = Vec::new();
    while let Some(frame) = body.frame().await {
        frames.push(frame.unwrap().into_data().unwrap());
    }
    assert!(frames[0].starts_with(b"event: started\n"));
    assert_eq!(frames[1], "event: stdout\ndata: {\"chunk\":\"a\"}\n\n");
    assert_eq!(frames[2], ": alive\n\n");
    assert!(frames[3].starts_with(b"event: exit\n"));
    assert_eq!(frames.len(), 4);
}

#[tokio::test]
async fn hanging_up_lets_the_reader_go() {
    let world = World::start().await;
    let id = world.create().await;
    let pause = Step::Pause(Duration::from_secs(3600));
    world.node.script("run", [Step::Stdout("a".into()), pause]);
    let path = format!("/v1/sandboxes/{id}/exec/stream");
    let response = world
        .open(world.post_request(&path, &json!({"cmd": "run"})))
        .await;
    drop(response);
    let dropped = &world.node.counters.dropped;
    eventually("the node's stream is dropped", async || {
        dropped.load(Ordering::SeqCst) == 1
    })
    .await;
}

#[tokio::test]
async fn an_exec_that_cannot_start_is_a_status() {
    let world = World::start().await;
    let answer = world
        .post(
            "/v1/sandboxes/sb-local-none/exec/stream",
            json!({"cmd": "true"}),
        )
        .await;
    assert_eq!(answer.refusal(), "not_found");
}

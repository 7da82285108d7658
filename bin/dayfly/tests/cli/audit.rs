//! `dayfly audit`.

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::support::{FakeServer, Program, within};

fn entry(seq: u64, at: &str) -> Value {
    json!({"seq": seq, "at": at, "key_prefix": "dfk_ab", "request_id": "req-1",
        "operation": format!("POST /v1/number/{seq}"), "subject": null, "status": 201,
        "detail": {"cmd": "make"}})
}

/// One entry each hour of the first of January.
async fn server() -> FakeServer {
    let server = FakeServer::start().await;
    for hour in 1..=8 {
        let at = format!("2026-01-01T{hour:02}:00:00Z");
        server.world().audit.push(entry(hour, &at));
    }
    server
}

async fn numbers(program: &Program, words: &[&str]) -> Vec<u64> {
    let done = program.run(&[&["audit", "--json"], words].concat()).await;
    assert_eq!(done.status, 0, "{done:?}");
    let entries = done.json();
    let entries = entries.as_array().unwrap().iter();
    entries
        .map(|entry| entry["seq"].as_u64().unwrap())
        .collect()
}

#[tokio::test]
async fn a_span_of_the_audit_log_is_read_over_pages() {
    let server = server().await;
    let program = Program::at(&server);
    let (since, until) = ("2026-01-01T03:00:00Z", "2026-01-01T07:30:00Z");
    assert_eq!(numbers(&program, &[]).await, [8, 7, 6, 5, 4, 3, 2, 1]);
    assert_eq!(
        numbers(&program, &["--since", since]).await,
        [8, 7, 6, 5, 4, 3]
    );
    let span = ["--since", since, "--until", until];
    assert_eq!(numbers(&program, &span).await, [7, 6, 5, 4, 3]);
    let few = ["--until", until, "-n", "2"];
    assert_eq!(numbers(&program, &few).await, [7, 6]);
    assert_eq!(numbers(&program, &["--until", "2025-12-31"]).await, [0; 0]);
    assert_eq!(numbers(&program, &["--since", "1h"]).await, [0; 0]);
    for wrong in [&["--since", "tomorrow"][..], &["-f", "--until", "1h"]] {
        let done = program.run(&[&["audit"], wrong].concat()).await;
        assert_eq!(done.status, 2, "{done:?}");
    }
}

#[tokio::test]
async fn new_entries_are_followed_one_in_a_line() {
    let server = server().await;
    let mut running = Program::at(&server).start(&["audit", "-f", "-n", "2", "--json"]);
    let stdout = running.child.stdout.take().unwrap();
    let mut lines = BufReader::new(stdout).lines();
    let mut next = async || {
        let line = within("a line", lines.next_line()).await.unwrap().unwrap();
        serde_json::from_str::<Value>(&line).unwrap()["seq"].as_u64()
    };
    assert_eq!((next().await, next().await), (Some(7), Some(8)));
    for seq in 9..=13 {
        server
            .world()
            .audit
            .push(entry(seq, "2026-01-02T00:00:00Z"));
    }
    for seq in 9..=13 {
        assert_eq!(next().await, Some(seq));
    }
    running.signal(Signal::INT);
    let done = running.finish().await;
    assert_eq!((done.status, done.stderr.as_str()), (130, ""));
}

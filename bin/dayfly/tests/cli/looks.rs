//! Requests that are shown.

use crate::support::{FakeServer, Program};

const A: &str = "sb-local-aaaa0000000000000000000000";

#[tokio::test]
async fn verbose_shows_each_request_and_never_the_key() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    let done = program.run(&["-v", "pause", "aaaa"]).await;
    let lines: Vec<&str> = done.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{done:?}");
    assert!(
        lines[0].starts_with("request: GET /v1/sandboxes?limit="),
        "{done:?}"
    );
    let paused = format!("request: POST /v1/sandboxes/{A}/pause 204 ");
    assert!(lines[1].starts_with(&paused), "{done:?}");
    assert!(lines[1].ends_with(" ms req-test"), "{done:?}");
    let done = program
        .run(&["exec", A, "--verbose", "--", "exit", "3"])
        .await;
    assert_eq!(done.status, 3);
    assert!(done.stderr.contains("/exec/socket 101 "), "{done:?}");
    assert!(!done.stderr.contains(FakeServer::KEY), "{done:?}");
    assert_eq!(program.run(&["pause", A]).await.stderr, "");

    let away = Program::new()
        .with("DAYFLY_API_URL", "http://127.0.0.1:1")
        .with("DAYFLY_API_KEY", FakeServer::KEY);
    let done = away.run(&["ls", "-v"]).await;
    let expected = "request: GET /v1/sandboxes?limit=";
    assert!(done.stderr.starts_with(expected), "{done:?}");
    assert!(done.stderr.contains(" no response "), "{done:?}");
    assert!(!done.stderr.contains(FakeServer::KEY), "{done:?}");
}

//! Colours, and requests that are shown.

use crate::support::{FakeServer, Program, Screen};

const A: &str = "sb-local-aaaa0000000000000000000000";
const GREEN_RUNNING: &str = "\x1b[32mrunning\x1b[0m";

#[tokio::test]
async fn colours_come_with_a_flag_the_environment_or_a_terminal() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    assert!(!program.run(&["ls"]).await.stdout().contains('\x1b'));
    let done = program.run(&["ls", "--color", "always"]).await;
    assert!(done.stdout().contains(GREEN_RUNNING), "{done:?}");
    let done = program.run(&["--color=always", "info", "zzz"]).await;
    assert!(
        done.stderr.starts_with("\x1b[1m\x1b[31merror\x1b[0m: "),
        "{done:?}"
    );
    let done = program.run(&["--color=always", "help"]).await;
    assert!(done.stdout().contains("\x1b["), "{done:?}");
    let done = program.run(&["ls", "--color", "pink"]).await;
    assert_eq!(done.status, 2);

    let forced = Program::at(&server).with("CLICOLOR_FORCE", "1");
    let done = forced.run(&["ls"]).await;
    assert!(done.stdout().contains(GREEN_RUNNING), "{done:?}");
    let done = forced.run(&["ls", "--color", "never"]).await;
    assert!(!done.stdout().contains('\x1b'), "{done:?}");

    let on_terminal = Program::at(&server).with("TERM", "xterm");
    let (_, seen) = Screen::start(&on_terminal, &["ls"]).finish().await;
    assert!(seen.contains(GREEN_RUNNING), "{seen:?}");
    let plain = on_terminal.with("NO_COLOR", "1");
    let (_, seen) = Screen::start(&plain, &["ls"]).finish().await;
    assert!(!seen.contains('\x1b'), "{seen:?}");
}

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

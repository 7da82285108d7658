//! What is looked at until somebody has seen enough.

use rustix::process::Signal;

use crate::support::{FakeServer, Program, Screen};

const A: &str = "sb-local-aaaa0000000000000000000000";

#[tokio::test]
async fn ctrl_c_ends_what_is_followed_without_a_word() {
    for words in [
        &["events"][..],
        &["net", "log", "-f", A],
        &["logs", "-f", A],
        &["fs", "watch", A],
    ] {
        let server = FakeServer::with(&[A]).await;
        server.world().holds_streams = true;
        let running = Program::at(&server).start(words);
        server.reached("stream").await;
        running.signal(Signal::INT);
        let done = running.finish().await;
        assert_eq!(
            (done.status, done.stderr.as_str()),
            (130, ""),
            "{words:?}: {done:?}"
        );
    }
}

#[tokio::test]
async fn top_ends_with_q_or_a_signal_and_says_nothing() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server).with("TERM", "xterm");
    let mut screen = Screen::start(&program, &["top", "--every", "0.1"]);
    screen.saw("OWN MEMORY").await;
    screen.press("xq");
    let (status, seen) = screen.finish().await;
    assert_eq!(status, 0, "{seen}");
    assert!(!seen.contains("error"), "{seen}");

    let mut screen = Screen::start(&program, &["top", "--every", "0.1"]);
    screen.saw("OWN MEMORY").await;
    screen.signal(Signal::INT);
    let (status, seen) = screen.finish().await;
    assert_eq!(status, 130, "{seen}");
    assert!(!seen.contains("error"), "{seen}");
}

//! `dayfly pause`, `resume`, `hibernate`, `wake` and `ttl`.

use dayfly_api::OnTimeout;
use serde_json::json;

use crate::support::{FakeServer, Program};

const A: &str = "sb-local-aaaa0000000000000000000000";

#[tokio::test]
async fn a_state_is_changed_by_a_beginning_of_an_id_and_may_be_repeated() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    for (command, status) in [
        ("pause", "paused"),
        ("pause", "paused"),
        ("resume", "running"),
        ("hibernate", "hibernated"),
        ("wake", "running"),
    ] {
        let done = program.run(&[command, "aaaa"]).await;
        assert_eq!((done.status, done.stdout()), (0, format!("{A}\n").as_str()));
        assert_eq!(server.world().sandboxes[A].status, status);
    }
    let done = program.run(&["hibernate", A, "--json"]).await;
    assert_eq!(done.json()["status"], "hibernated");
}

#[tokio::test]
async fn a_refused_change_says_what_why_and_what_to_do() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    server.world().sandboxes.get_mut(A).unwrap().status = "failed".to_owned();
    for command in ["pause", "resume", "hibernate", "wake"] {
        let done = program.run(&[command, A]).await;
        assert_eq!((done.status, done.stdout()), (125, ""));
        let expected = format!(
            "error: cannot {command} sandbox {A}: the sandbox is failed\n\nhint: delete it\n"
        );
        assert_eq!(done.stderr, expected);
        assert_eq!(program.run(&[command, "zzzz"]).await.status, 125);
        assert_eq!(program.run(&[command]).await.status, 2);
    }
}

#[tokio::test]
async fn ttl_without_a_change_shows_and_changes_nothing() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    let done = program.run(&["ttl", "aaaa"]).await;
    assert_eq!(
        done.stdout(),
        "ttl\t3600 s\nexpires\tnever\nidle\tnone\non timeout\tdelete\npersistent\tno\nidle for\t4 s\n"
    );
    let done = program.run(&["ttl", A, "--json"]).await;
    assert_eq!(done.json()["ttl_seconds"], 3600);
    assert!(server.world().lifecycle_changes.is_empty());
}

#[tokio::test]
async fn ttl_sends_what_is_named_and_nothing_else() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    let args = [
        "ttl",
        A,
        "none",
        "--idle",
        "10m",
        "--on-timeout",
        "hibernate",
        "--json",
    ];
    let done = program.run(&args).await;
    assert_eq!(done.json()["ttl_seconds"], json!(null));
    assert_eq!(done.json()["idle_seconds"], 600);
    let args = ["ttl", A, "90", "--idle", "none", "--persistent", "true"];
    assert_eq!(program.run(&args).await.status, 0);
    let changes = server.world().lifecycle_changes.clone();
    assert_eq!(
        (changes[0].ttl_seconds, changes[0].idle_seconds),
        (Some(None), Some(Some(600)))
    );
    assert_eq!(changes[0].on_timeout, Some(OnTimeout::Hibernate));
    assert_eq!(changes[0].persistent, None);
    assert_eq!(
        (changes[1].ttl_seconds, changes[1].idle_seconds),
        (Some(Some(90)), Some(None))
    );
    assert_eq!(
        (changes[1].persistent, changes[1].on_timeout),
        (Some(true), None)
    );
}

#[tokio::test]
async fn a_ttl_that_makes_no_sense_is_a_usage_error_and_sends_nothing() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    for args in [
        vec!["ttl", A, "soon"],
        vec!["ttl", A, "0"],
        vec!["ttl", A, "--idle", "x"],
        vec!["ttl", A, "--on-timeout", "stop"],
        vec!["ttl", A, "--persistent", "maybe"],
    ] {
        let done = program.run(&args).await;
        assert_eq!(done.status, 2, "{args:?}: {done:?}");
    }
    let done = program
        .run(&["ttl", "sb-local-00000000000000000000000009", "5m"])
        .await;
    assert_eq!(done.status, 125);
    assert!(done.stderr.contains("no such sandbox"), "{done:?}");
    assert!(server.world().lifecycle_changes.is_empty());
}

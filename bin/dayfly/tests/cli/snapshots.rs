//! `dayfly snapshot`, `rollback`, `fork` and `promote`.

use dayfly_api::OnTimeout;
use serde_json::json;

use crate::support::{FakeServer, Program};

const A: &str = "sb-local-aaaa0000000000000000000000";
const B: &str = "sb-local-bbbb0000000000000000000000";
const SNAPSHOT: &str = "snap-local-00000000000000000000000001";

#[tokio::test]
async fn snapshots_are_taken_listed_and_deleted() {
    let server = FakeServer::with(&[A, B]).await;
    let program = Program::at(&server);
    let args = [
        "snapshot", "create", "aaaa", "--name", "a\u{1b}b", "--retain", "1d",
    ];
    let done = program.run(&args).await;
    assert_eq!(
        (done.status, done.stdout()),
        (0, format!("{SNAPSHOT}\n").as_str())
    );
    assert_eq!(done.stderr, "the sandbox was paused for 1.5 ms\n");
    let done = program.run(&["snapshot", "create", B, "--json"]).await;
    assert_eq!(done.json()["capture"]["pause_ms"], 1.5);

    let done = program.run(&["snapshot", "ls"]).await;
    let lines: Vec<&str> = done.stdout().lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(
        lines[1].starts_with(&format!("{SNAPSHOT}\t{A}\tbase\tab\t")),
        "{done:?}"
    );
    let done = program.run(&["snapshot", "ls", "aaaa", "--quiet"]).await;
    assert_eq!(done.stdout(), format!("{SNAPSHOT}\n"));
    let done = program.run(&["snapshot", "ls", "--json"]).await;
    assert_eq!(done.json()[0]["sandbox_id"], B);

    let done = program.run(&["snapshot", "rm", SNAPSHOT]).await;
    assert_eq!(
        (done.status, done.stdout()),
        (0, format!("{SNAPSHOT}\n").as_str())
    );
    assert_eq!(program.run(&["snapshot", "rm", SNAPSHOT]).await.status, 0);
    let done = program
        .run(&["snapshot", "rm", "--json", "snap-local"])
        .await;
    assert_eq!(done.json()["failed"], json!([]));
    let done = program.run(&["snapshot", "ls"]).await;
    assert!(done.stderr.contains("no snapshots"), "{done:?}");
}

#[tokio::test]
async fn a_name_stands_for_its_snapshot() {
    let server = FakeServer::with(&[A, B]).await;
    let program = Program::at(&server);
    program
        .run(&["snapshot", "create", A, "--name", "tools"])
        .await;
    program.run(&["snapshot", "create", B]).await;
    let done = program.run(&["rollback", A, "tools"]).await;
    assert_eq!(done.status, 0, "{done:?}");
    let done = program.run(&["snapshot", "rm", "tools"]).await;
    assert_eq!(
        (done.status, done.stdout()),
        (0, format!("{SNAPSHOT}\n").as_str())
    );
    let done = program.run(&["snapshot", "rm", "tools"]).await;
    assert_eq!(done.status, 125, "{done:?}");
}

#[tokio::test]
async fn an_unknown_or_ambiguous_snapshot_deletes_nothing() {
    let server = FakeServer::with(&[A, B]).await;
    let program = Program::at(&server);
    for _ in 0..2 {
        program.run(&["snapshot", "create", A]).await;
    }
    let done = program.run(&["snapshot", "rm", "snap-local"]).await;
    assert_eq!(done.status, 125);
    assert!(done.stderr.contains("fits 2 snapshots: "), "{done:?}");
    let done = program.run(&["snapshot", "rm", SNAPSHOT, "zzzz"]).await;
    assert!(
        done.stderr
            .contains("no snapshot is named, or has an id that starts with, \"zzzz\""),
        "{done:?}"
    );
    assert!(
        done.stderr.contains("hint: `dayfly snapshot ls`"),
        "{done:?}"
    );
    assert_eq!(server.world().snapshots.len(), 2);
    let done = program.run(&["snapshot", "create", "zzzz"]).await;
    assert_eq!(done.status, 125);
}

#[tokio::test]
async fn a_sandbox_goes_back_to_its_snapshot() {
    let server = FakeServer::with(&[A, B]).await;
    let program = Program::at(&server);
    program.run(&["snapshot", "create", A]).await;
    let done = program.run(&["rollback", "aaaa", "snap-local-0000"]).await;
    assert_eq!(
        (done.status, done.stdout()),
        (0, format!("{A}\n").as_str()),
        "{done:?}"
    );
    let done = program.run(&["rollback", A, SNAPSHOT, "--json"]).await;
    assert_eq!(done.json()["id"], A);
    let unknown = "snap-local-00000000000000000000000009";
    let done = program.run(&["rollback", A, unknown]).await;
    assert_eq!(done.status, 125);
    let expected = format!("error: cannot take sandbox {A} back to {unknown}: no such snapshot");
    assert!(done.stderr.starts_with(&expected), "{done:?}");
}

#[tokio::test]
async fn create_and_run_take_everything_that_a_sandbox_can_be() {
    let server = FakeServer::with(&[A, B]).await;
    let program = Program::at(&server);
    program.run(&["snapshot", "create", A]).await;
    let flags = [
        "--from-snapshot",
        "snap-local-0000",
        "--disk-only",
        "--volume",
        "data",
        "--volume",
        "more:/mnt:ro",
        "--cpu",
        "0.5",
        "--disk-gb",
        "8",
        "--idle",
        "5m",
        "--on-timeout",
        "hibernate",
    ];
    let create = [&["create"], &flags[..]].concat();
    let run = [&["run"], &flags[..], &["--", "exit", "0"]].concat();
    for args in [create, run] {
        let done = program.run(&args).await;
        assert_eq!(done.status, 0, "{done:?}");
        let request = server.world().creates.last().unwrap().clone();
        assert_eq!(request.from_snapshot.as_deref(), Some(SNAPSHOT));
        assert_eq!(request.disk_only, Some(true));
        let volumes = request.volumes.unwrap();
        assert_eq!(
            (volumes[0].name.as_str(), &volumes[0].path),
            ("data", &None)
        );
        assert_eq!(volumes[1].path.as_deref(), Some("/mnt"));
        assert_eq!(volumes[1].read_only, Some(true));
        assert_eq!((request.cpu, request.disk_gb), (Some(0.5), Some(8.0)));
        assert_eq!(request.idle_seconds, Some(300));
        assert_eq!(request.on_timeout, Some(OnTimeout::Hibernate));
    }
    for args in [
        vec!["create", "--from-snapshot", SNAPSHOT, "--template", "base"],
        vec!["create", "--disk-only"],
        vec!["create", "--volume", "a:b"],
        vec!["create", "--cpu", "many"],
    ] {
        assert_eq!(program.run(&args).await.status, 2, "{args:?}");
    }
    let done = program.run(&["create", "--from-snapshot", "zzzz"]).await;
    assert_eq!(done.status, 125);
    assert_eq!(server.world().creates.len(), 2);
}

#[tokio::test]
async fn fork_prints_the_children() {
    let server = FakeServer::with(&[A, B]).await;
    let program = Program::at(&server);
    let done = program.run(&["fork", "aaaa"]).await;
    let first = format!("sb-local-f{:025}", 1);
    assert_eq!(
        (done.status, done.stdout()),
        (0, format!("{first}\n").as_str())
    );
    let args = [
        "fork",
        A,
        "--count",
        "2",
        "--all-or-nothing",
        "--reseed",
        "--ttl",
        "5m",
        "--json",
    ];
    let done = program.run(&args).await;
    assert_eq!(done.json()["children"].as_array().unwrap().len(), 2);
    let options = server.world().forks[1].options.clone();
    assert_eq!(options.all_or_nothing, Some(true));
    assert_eq!(options.reseed_user_space, Some(true));
    assert_eq!(options.ttl_seconds, Some(300));
}

#[tokio::test]
async fn a_fork_that_made_some_prints_those_and_fails() {
    let server = FakeServer::with(&[A, B]).await;
    let program = Program::at(&server);
    let done = program.run(&["fork", A, "-c", "4"]).await;
    assert_eq!((done.status, done.stdout().lines().count()), (125, 3));
    assert!(done.stderr.contains("was not made: no room"), "{done:?}");
    let done = program
        .run(&["fork", A, "-c", "4", "--all-or-nothing"])
        .await;
    assert_eq!((done.status, done.stdout()), (125, ""));
    let expected = format!("error: cannot fork sandbox {A}: no room");
    assert!(done.stderr.starts_with(&expected), "{done:?}");
    assert_eq!(program.run(&["fork", "zzzz"]).await.status, 125);
    assert_eq!(program.run(&["fork", A, "--count", "x"]).await.status, 2);
}

#[tokio::test]
async fn promote_deletes_siblings_only_when_asked() {
    let server = FakeServer::with(&[A, B]).await;
    let program = Program::at(&server);
    program.run(&["fork", A, "-c", "2"]).await;
    let (first, second) = (
        format!("sb-local-f{:025}", 1),
        format!("sb-local-f{:025}", 2),
    );
    let done = program.run(&["promote", &first]).await;
    assert_eq!((done.status, done.stdout()), (0, ""));
    assert_eq!(server.world().sandboxes.len(), 4);
    let done = program
        .run(&["promote", &first, "--tree", "tree-2", "--cleanup"])
        .await;
    assert_eq!(done.status, 125);
    assert!(done.stderr.contains("of another tree"), "{done:?}");
    assert_eq!(server.world().sandboxes.len(), 4);
    let done = program
        .run(&["promote", &first, "--tree", "tree-1", "--cleanup"])
        .await;
    assert_eq!(
        (done.status, done.stdout()),
        (0, format!("{second}\n").as_str())
    );
    let done = program.run(&["promote", &first, "--json"]).await;
    assert_eq!(done.json()["winner"], first);
}

#[tokio::test]
async fn a_run_and_the_children_of_a_fork_can_have_labels() {
    let server = FakeServer::start().await;
    let program = Program::at(&server);
    let labels = ["--metadata", "task=7", "--metadata", "by=me"];
    let done = program
        .run(&[&["run"], &labels[..], &["--", "exit", "0"]].concat())
        .await;
    assert_eq!(done.status, 0, "{done:?}");
    let id = "sb-local-aaaa0000000000000000000000";
    server.add(id);
    let done = program.run(&[&["fork", id], &labels[..]].concat()).await;
    assert_eq!(done.status, 0, "{done:?}");
    let world = server.world();
    for metadata in [&world.creates[0].metadata, &world.forks[0].options.metadata] {
        let metadata = metadata.as_ref().unwrap();
        assert_eq!((metadata["task"].as_str(), metadata.len()), ("7", 2));
    }
}

//! `dayfly volume`.

use serde_json::json;

use crate::support::{FakeServer, Program};

#[tokio::test]
async fn volumes_are_made_listed_grown_and_deleted() {
    let server = FakeServer::start().await;
    let program = Program::at(&server);
    for _ in 0..2 {
        let done = program.run(&["volume", "create", "data", "512M"]).await;
        assert_eq!((done.status, done.stdout()), (0, "data\n"), "{done:?}");
    }
    let done = program
        .run(&["volume", "grow", "data", "2G", "--json"])
        .await;
    assert_eq!(done.json()["size_mb"], 2048);
    let done = program.run(&["volume", "ls"]).await;
    assert!(
        done.stdout().starts_with("data\t2048 MiB\t1 MiB\t"),
        "{done:?}"
    );
    assert_eq!(
        program.run(&["volume", "ls", "-q"]).await.stdout(),
        "data\n"
    );
    let done = program.run(&["volume", "ls", "--json"]).await;
    assert_eq!(done.json()[0]["readers"], json!([]));
    for _ in 0..2 {
        let done = program.run(&["volume", "rm", "data"]).await;
        assert_eq!((done.status, done.stdout()), (0, "data\n"));
    }
    let done = program.run(&["volume", "ls"]).await;
    assert!(done.stderr.contains("no volumes"), "{done:?}");
}

#[tokio::test]
async fn a_refusal_says_what_why_and_what_to_do() {
    let server = FakeServer::start().await;
    let program = Program::at(&server);
    program.run(&["volume", "create", "busy", "16M"]).await;
    let done = program.run(&["volume", "create", "busy", "1G"]).await;
    assert_eq!(done.status, 125);
    assert_eq!(
        done.stderr,
        "error: cannot create volume busy: it has another size\n\nhint: grow it\n"
    );
    let done = program
        .run(&["volume", "rm", "busy", "other", "--json"])
        .await;
    assert_eq!(done.status, 125);
    assert_eq!(done.json()["deleted"], json!(["other"]));
    assert_eq!(
        done.json()["failed"][0]["error"],
        "cannot delete volume busy: a sandbox has it"
    );
    let done = program.run(&["volume", "grow", "absent", "1G"]).await;
    assert!(done.stderr.contains("no such volume"), "{done:?}");
    let done = program.run(&["volume", "grow", "..", "1G"]).await;
    assert!(done.stderr.contains("not a valid name"), "{done:?}");
    for size in ["16", "1.5G", "much"] {
        let done = program.run(&["volume", "create", "v", size]).await;
        assert_eq!(done.status, 2, "{size}: {done:?}");
    }
    assert_eq!(server.world().volumes.len(), 1);
}

//! What an operator asks about other projects.

use serde_json::json;

use crate::support::{FakeServer, Program};

const A: &str = "sb-local-aaaa0000000000000000000000";

async fn server() -> FakeServer {
    let server = FakeServer::with(&[A]).await;
    server
        .world()
        .audit
        .push(json!({"seq": 1, "at": "2026-01-01T00:00:00Z",
        "key_prefix": "dfk_ab", "request_id": "req-1", "operation": "POST /v1/sandboxes",
        "subject": null, "status": 201, "detail": {}, "project": "team-b"}));
    server
}

#[tokio::test]
async fn the_server_is_told_whose_things_are_meant() {
    for (words, asked) in [
        (
            "ls --project team-b",
            "GET /v1/sandboxes?limit=500&project=team-b",
        ),
        (
            "ls --all-projects",
            "GET /v1/sandboxes?limit=500&all_projects=true",
        ),
        (
            "top --once --every 0.1 --project team-b",
            "GET /v1/usage/sandboxes?project=team-b",
        ),
        (
            "audit --all-projects",
            "GET /v1/audit?limit=50&all_projects=true",
        ),
        (
            "token ls --project team-b",
            "GET /v1/me/tokens?project=team-b",
        ),
        (
            "token rm --descendants --project team-b dfk_ab",
            "DELETE /v1/me/tokens/dfk_ab?descendants=true&project=team-b",
        ),
        (
            "project usage --project team-b",
            "GET /v1/usage?project=team-b",
        ),
        ("project usage --all-projects", "GET /v1/usage/projects"),
        (
            "project usage --by-hour --since 2026-01-01 --until 2026-02-01 --all-projects",
            "GET /v1/usage/hours?since=2026-01-01T00%3A00%3A00Z&until=2026-02-01T00%3A00%3A00Z\
             &all_projects=true",
        ),
        (
            "top --since 2026-01-01 --project team-b",
            &format!("GET /v1/sandboxes/{A}/metrics?since=2026-01-01T00%3A00%3A00Z&project=team-b"),
        ),
        (
            "project suspend team-b --reason leaked --stop",
            "POST /v1/projects/team-b/suspend",
        ),
        ("project resume team-b", "POST /v1/projects/team-b/resume"),
        ("project rm team-b", "DELETE /v1/projects/team-b"),
        (
            "project rm team-b --force --yes",
            "DELETE /v1/projects/team-b?force=true",
        ),
        (
            "rm --project team-b aaaa",
            &format!("DELETE /v1/sandboxes/{A}?project=team-b"),
        ),
    ] {
        let server = server().await;
        let words: Vec<&str> = words.split(' ').collect();
        let done = Program::at(&server).run(&words).await;
        assert_eq!(done.status, 0, "{words:?}: {done:?}");
        let requests = server.world().requests.clone();
        assert!(requests.iter().any(|one| one == asked), "{requests:?}");
    }
}

#[tokio::test]
async fn a_view_over_all_projects_names_them() {
    let server = server().await;
    let program = Program::at(&server);
    for words in [
        "audit --all-projects",
        "token ls --all-projects",
        "project usage --all-projects",
        "project usage --by-hour --all-projects",
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let done = program.run(&words).await;
        assert!(done.stdout().contains("team-b"), "{words:?}: {done:?}");
        let done = program.run(&[&words[..], &["--json"]].concat()).await;
        assert_eq!(done.json()[0]["project"], "team-b", "{done:?}");
    }
    for command in ["ls", "top", "audit", "events"] {
        let both = [command, "--project", "team-b", "--all-projects"];
        let done = program.run(&both).await;
        assert_eq!(done.status, 2, "{command}: {done:?}");
    }
}

#[tokio::test]
async fn nothing_of_a_project_is_deleted_without_being_asked_twice() {
    let server = server().await;
    let done = Program::at(&server)
        .run(&["project", "rm", "team-b", "--force"])
        .await;
    assert_eq!(done.status, 125, "{done:?}");
    assert!(done.stderr.contains("--yes"), "{done:?}");
    assert_eq!(server.world().requests, [""; 0]);
}

#[tokio::test]
async fn top_since_sums_a_life_up_and_shows_the_samples_of_one() {
    let server = server().await;
    let program = Program::at(&server);
    let all = program.run(&["top", "--since", "1h", "--json"]).await;
    let one = &all.json()[0];
    assert_eq!(one["id"], A, "{all:?}");
    assert_eq!(one["samples"], 3);
    assert_eq!(one["cpu_percent_mean"], 37.5);
    assert_eq!(one["cpu_percent_max"], 50.0);
    assert_eq!(one["memory_bytes_mean"], 20 << 20);
    assert_eq!(one["memory_bytes_max"], 30 << 20);
    assert_eq!(one["network_in_bytes"], 20 << 10);
    let table = program.run(&["top", "--since", "1h"]).await;
    for cell in ["37.5%", "50.0%", "20 MiB", "30 MiB", "20 KiB"] {
        assert!(table.stdout().contains(cell), "{cell}: {table:?}");
    }
    let samples = program.run(&["top", "--since", "1h", A]).await;
    assert_eq!(samples.stdout().lines().count(), 3, "{samples:?}");
    let samples = program.run(&["top", "--since", "1h", A, "--json"]).await;
    assert_eq!(samples.json()[2]["cpu_us"], 7_500_000, "{samples:?}");
    for wrong in [
        &["top", A][..],
        &["top", "--since", "1h", "--once"],
        &["top", "--since", "1h", A, "--all-projects"],
        &["project", "usage", "--since", "1h"],
    ] {
        let refused = program.run(wrong).await;
        assert_eq!(refused.status, 2, "{wrong:?}: {refused:?}");
    }
}

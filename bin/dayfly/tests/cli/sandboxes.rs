//! The commands that list, show, make and delete.

use crate::support::{FakeServer, Program};
use dayfly_api::BakeTemplate;
use serde_json::json;

const A: &str = "sb-local-aaaa0000000000000000000000";
const B: &str = "sb-local-aabb0000000000000000000000";

async fn server_with_two() -> FakeServer {
    let server = FakeServer::start().await;
    server.add(A);
    server.add(B);
    server
}

#[tokio::test]
async fn create_prints_the_id_alone() {
    let server = FakeServer::start().await;
    let program = Program::at(&server);
    let args = [
        "create",
        "--persistent",
        "--metadata",
        "a=1",
        "--metadata",
        "b=2",
        "--ttl",
        "90",
    ];
    let done = program.run(&args).await;
    assert_eq!(done.status, 0, "{done:?}");
    assert_eq!(done.stdout(), "sb-local-00000000000000000000000001\n");
    assert_eq!(done.stderr, "");
    let request = server.world().creates[0].clone();
    assert_eq!(
        (request.persistent, request.ttl_seconds),
        (Some(true), Some(90))
    );
    assert_eq!(request.metadata.unwrap().len(), 2);

    let done = program.run(&["create", "--json"]).await;
    assert_eq!(done.json()["status"], "running");
}

#[tokio::test]
async fn ls_is_tabbed_for_programs_ids_when_quiet_and_an_array_as_json() {
    let server = server_with_two().await;
    let program = Program::at(&server);
    let done = program.run(&["ls"]).await;
    let lines: Vec<&str> = done.stdout().lines().collect();
    assert_eq!(lines.len(), 2, "{done:?}");
    assert!(
        lines[0].starts_with(&format!("{A}\tbase\trunning\t")),
        "{done:?}"
    );

    let done = program.run(&["ls", "-q"]).await;
    assert_eq!(done.stdout(), format!("{A}\n{B}\n"));

    let done = program.run(&["--json", "ls"]).await;
    assert_eq!(done.json()[1]["id"], B);
}

#[tokio::test]
async fn a_sandbox_has_a_name_that_stands_for_it() {
    let server = server_with_two().await;
    let program = Program::at(&server);
    let done = program
        .run(&["create", "--name", "notebook", "--json"])
        .await;
    let id = done.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(done.json()["name"], "notebook");
    let done = program.run(&["info", "notebook", "--json"]).await;
    assert_eq!(done.json()["id"], id);
    let done = program.run(&["ls"]).await;
    let line = done.stdout().lines().find(|line| line.starts_with(&id));
    assert!(line.unwrap().ends_with("\tnotebook"), "{done:?}");
    let done = program.run(&["rm", "notebook"]).await;
    assert_eq!(done.status, 0, "{done:?}");
    let done = program.run(&["info", "notebook"]).await;
    assert!(
        done.stderr
            .contains("no sandbox is named, or has an id that starts with, \"notebook\""),
        "{done:?}"
    );
}

#[tokio::test]
async fn an_empty_list_is_an_empty_array_and_words_go_to_standard_error() {
    let server = FakeServer::start().await;
    let program = Program::at(&server);
    assert_eq!(program.run(&["ls", "--json"]).await.json(), json!([]));
    let done = program.run(&["ls"]).await;
    assert_eq!(done.stdout(), "");
    assert!(done.stderr.contains("no sandboxes"));
    assert_eq!(program.run(&["ls", "--quiet"]).await.stderr, "");
}

#[tokio::test]
async fn info_takes_a_unique_beginning_and_shows_nothing_that_steers_a_terminal() {
    let server = server_with_two().await;
    let program = Program::at(&server);
    for text in [A, "sb-local-aaaa", "aaaa"] {
        let done = program.run(&["info", text]).await;
        assert_eq!(done.status, 0, "{done:?}");
        assert!(done.stdout().contains(&format!("id\t{A}\n")), "{done:?}");
        assert!(done.stdout().contains("metadata note\ta[2Jb\n"), "{done:?}");
    }
    assert_eq!(
        program.run(&["info", "aabb", "--json"]).await.json()["id"],
        B
    );
}

#[tokio::test]
async fn an_ambiguous_beginning_names_the_candidates() {
    let server = server_with_two().await;
    let program = Program::at(&server);
    for args in [
        vec!["info", "aa"],
        vec!["rm", "aa"],
        vec!["exec", "aa", "--", "exit", "0"],
    ] {
        let done = program.run(&args).await;
        assert_eq!(done.status, 125);
        assert!(
            done.stderr.contains(&format!("fits 2 sandboxes: {A}, {B}")),
            "{done:?}"
        );
        assert!(
            done.stderr.contains("\n\nhint: give more characters"),
            "{done:?}"
        );
    }
    assert!(server.world().deleted.is_empty());
}

#[tokio::test]
async fn a_missing_sandbox_is_an_error_with_a_hint_and_a_code() {
    let server = FakeServer::start().await;
    let program = Program::at(&server);
    let done = program.run(&["info", A]).await;
    assert_eq!(done.status, 125);
    let expected = format!(
        "error: cannot read sandbox {A}: no such sandbox\n\nhint: `dayfly ls` shows the sandboxes\n"
    );
    assert_eq!(done.stderr, expected);

    let done = program.run(&["info", A, "--json"]).await;
    assert_eq!(done.stdout(), "");
    let error: serde_json::Value = serde_json::from_str(&done.stderr).unwrap();
    assert_eq!(error["code"], "not_found");
    assert_eq!(error["request_id"], "req-test");
}

#[tokio::test]
async fn the_servers_own_hint_and_request_id_are_shown() {
    let server = FakeServer::start().await;
    let done = Program::at(&server).run(&["create", "-T", "broken"]).await;
    assert_eq!(
        done.stderr,
        "error: cannot create a sandbox: a fault (request req-test)\n\nhint: tell the operator\n"
    );
}

#[tokio::test]
async fn rm_deletes_several_and_may_be_repeated() {
    let server = server_with_two().await;
    let program = Program::at(&server);
    let done = program.run(&["rm", A, "aabb"]).await;
    assert_eq!(done.status, 0, "{done:?}");
    let mut lines: Vec<&str> = done.stdout().lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, [A, B]);
    assert_eq!(program.run(&["rm", A]).await.status, 0);
    let done = program.run(&["rm", "--json", A]).await;
    assert_eq!(done.json(), json!({"deleted": [A], "failed": []}));
}

#[tokio::test]
async fn a_typing_error_deletes_nothing() {
    let server = server_with_two().await;
    let done = Program::at(&server).run(&["rm", A, "zzzz"]).await;
    assert_eq!(done.status, 125);
    assert!(server.world().deleted.is_empty());
}

#[tokio::test]
async fn rm_all_needs_yes_where_nobody_can_be_asked() {
    let server = server_with_two().await;
    let program = Program::at(&server);
    let done = program.run(&["rm", "--all"]).await;
    assert_eq!(done.status, 125);
    assert!(done.stderr.ends_with("\n\nhint: add --yes\n"), "{done:?}");
    assert!(server.world().deleted.is_empty());
    assert_eq!(program.run(&["rm", "--all", "--yes"]).await.status, 0);
    assert_eq!(server.world().deleted.len(), 2);
    assert_eq!(
        program.run(&["rm", "--all"]).await.status,
        0,
        "nothing to ask about"
    );
}

#[tokio::test]
async fn a_failed_delete_is_told_with_its_id() {
    let server = server_with_two().await;
    server.world().fails_on_delete = true;
    let program = Program::at(&server);
    let done = program.run(&["rm", A]).await;
    assert_eq!((done.status, done.stdout()), (125, ""));
    assert!(
        done.stderr
            .starts_with(&format!("error: cannot delete sandbox {A}: ")),
        "{done:?}"
    );
    let done = program.run(&["rm", "--json", A]).await;
    assert_eq!(
        (done.status, &done.json()["failed"][0]["id"]),
        (125, &A.into())
    );
}

#[tokio::test]
async fn templates_and_the_host_are_shown() {
    let server = FakeServer::start().await;
    let program = Program::at(&server);
    let done = program.run(&["template", "ls"]).await;
    assert_eq!(
        done.stdout(),
        "base\tbaking 40 %\t1\t256 MiB\t1024 MiB\t1 MiB\tplain\n\
         tools\tfailed\t1\t256 MiB\t1024 MiB\t1 MiB\tplain\n"
    );
    assert_eq!(
        program.run(&["template", "ls", "--json"]).await.json()[0]["state"],
        "baking"
    );
    let done = program.run(&["node"]).await;
    assert!(
        done.stdout().contains("parked engines of base\t1 of 2\n"),
        "{done:?}"
    );
    assert_eq!(
        program.run(&["node", "--json"]).await.json()["node"],
        "node-1"
    );
}

#[tokio::test]
async fn template_is_baked_and_waited_for() {
    let server = FakeServer::start().await;
    let program = Program::at(&server);
    let asked = program.run(&["template", "bake", "base", "--json"]).await;
    assert_eq!(
        (asked.status, &asked.json()["state"]),
        (0, &"baking".into())
    );
    let waited = program
        .run(&["template", "bake", "base", "--wait", "--json"])
        .await;
    assert_eq!(waited.json()["state"], "ready");
    let failed = program.run(&["template", "bake", "broken", "--wait"]).await;
    assert_eq!(failed.status, 125);
    assert!(failed.stderr.contains("no space left"), "{failed:?}");
}

#[tokio::test]
async fn sizes_are_asked_for_one_by_one() {
    let server = FakeServer::start().await;
    let program = Program::at(&server);
    let args = [
        "template",
        "bake",
        "base",
        "--memory",
        "1024,4096",
        "--cpu",
        "2",
        "--wait",
    ];
    let baked = program.run(&args).await;
    assert_eq!(baked.status, 0, "{baked:?}");
    assert!(
        baked
            .stderr
            .contains("4096 MiB, 2 CPU: ready, baked in 2.3 s"),
        "{baked:?}"
    );
    let size = |memory| BakeTemplate {
        memory_mb: Some(memory),
        cpu: Some(2),
    };
    assert_eq!(server.world().sizes_baked, [size(1024), size(4096)]);
    let made = program.run(&["create", "--memory", "1024"]).await;
    assert_eq!(made.status, 0, "{made:?}");
    assert_eq!(server.world().creates[0].memory_mb, Some(1024));
    for args in [
        vec!["create", "--memory", "much"],
        vec!["template", "bake", "base", "--memory", "1024,x"],
    ] {
        assert_eq!(program.run(&args).await.status, 2, "{args:?}");
    }
}

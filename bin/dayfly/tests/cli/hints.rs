//! Failures that say where to look, in the words of the command line.

use crate::support::processes::{ENDED, RUNS};
use crate::support::{FakeServer, Program};

const A: &str = "sb-local-aaaa0000000000000000000000";

#[tokio::test]
async fn signals_have_names_and_numbers() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    for words in [
        &["kill", "aaaa", RUNS][..],
        &["kill", "-s", "TERM", "aaaa", RUNS],
        &["kill", "aaaa", RUNS, "-s", "sigint"],
        &["kill", "aaaa", RUNS, "--signal", "9"],
    ] {
        let done = program.run(words).await;
        assert_eq!(done.status, 0, "{words:?}: {done:?}");
    }
    assert_eq!(server.world().signals, [9, 15, 2, 9]);
    let done = program.run(&["kill", "-s", "TREM", A, RUNS]).await;
    assert_eq!(done.status, 2);
    assert!(done.stderr.contains("TERM, INT or KILL"), "{done:?}");
}

#[tokio::test]
async fn a_command_that_has_ended_cannot_be_killed_and_is_not_called_unknown() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    let done = program.run(&["kill", A, ENDED]).await;
    assert_eq!(done.status, 125);
    let words = format!("error: command {ENDED} has ended already: killed\n");
    assert!(done.stderr.starts_with(&words), "{done:?}");
    let done = program.run(&["kill", A, "exec-other"]).await;
    assert_eq!(done.status, 125);
    assert!(done.stderr.contains("no such exec"), "{done:?}");
    assert!(done.stderr.contains("hint: `dayfly ps ID`"), "{done:?}");
}

#[tokio::test]
async fn what_is_not_found_is_looked_for_where_its_kind_is_listed() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    std::fs::write(program.path("f"), "x").unwrap();
    for (words, hint) in [
        (
            &["cp", "aaaa:/none", "-"][..],
            "`dayfly fs ls ID:DIRECTORY`",
        ),
        (&["fs", "stat", "aaaa:/none"], "`dayfly fs ls ID:DIRECTORY`"),
        (&["template", "info", "none"], "`dayfly template ls`"),
        (&["create", "-T", "none"], "`dayfly template ls`"),
        (&["volume", "grow", "none", "2G"], "`dayfly volume ls`"),
        (&["attach", A, "exec-other"], "`dayfly ps ID`"),
        (
            &["rollback", A, "snap-local-00000000000000000000000009"],
            "`dayfly snapshot ls`",
        ),
        (&["port", "rm", A, "8000-other"], "`dayfly port links ID`"),
        (
            &["info", "sb-local-00000000000000000000000009"],
            "`dayfly ls`",
        ),
    ] {
        let done = program.run(words).await;
        assert_eq!(done.status, 125, "{words:?}: {done:?}");
        let expected = format!("\nhint: {hint}");
        assert!(done.stderr.contains(&expected), "{words:?}: {done:?}");
    }
}

#[tokio::test]
async fn a_template_that_could_not_be_baked_says_why() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    let expected =
        "error: cannot create a sandbox: template tools could not be baked: no space left";
    for words in [
        &["run", "-T", "tools", "--", "true"][..],
        &["create", "-T", "tools"],
    ] {
        let done = program.run(words).await;
        assert_eq!(done.status, 125);
        assert!(done.stderr.starts_with(expected), "{done:?}");
        let hint = "hint: `dayfly template bake tools --wait` tries again\n";
        assert!(done.stderr.ends_with(hint), "{done:?}");
    }
    let done = program.run(&["create", "-T", "tools", "--json"]).await;
    assert!(
        done.stderr.contains(r#""code":"template_failed""#),
        "{done:?}"
    );
}

#[tokio::test]
async fn a_hint_of_the_server_names_commands() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    let done = program.run(&["create", "-T", "scope"]).await;
    let hint = "hint: `dayfly whoami` says what this key may be used for\n";
    assert!(done.stderr.ends_with(hint), "{done:?}");
}

#[tokio::test]
async fn a_sandbox_alone_lists_its_workspace() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    for place in ["aaaa", "aaaa:", "aaaa:./"] {
        let done = program.run(&["fs", "ls", "-q", place]).await;
        assert_eq!(done.status, 0, "{place}: {done:?}");
    }
    let asked = server.world().file_requests.clone();
    assert!(
        asked.iter().all(|request| request["path"] == "/workspace"),
        "{asked:?}"
    );
}

#[tokio::test]
async fn a_path_is_told_without_parts_that_lead_nowhere() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    std::fs::create_dir(program.path("proj")).unwrap();
    let done = program.run(&["cp", "proj", "aaaa:"]).await;
    assert_eq!(done.status, 0, "{done:?}");
    assert!(done.stderr.ends_with("to proj\n"), "{done:?}");
    std::fs::write(program.path("f"), "x").unwrap();
    let done = program.run(&["cp", "f", "aaaa:./d/./f"]).await;
    assert!(done.stderr.ends_with("to d/f\n"), "{done:?}");
}

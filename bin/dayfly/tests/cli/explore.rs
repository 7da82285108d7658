//! `dayfly explore`: which child is kept, and that no other one is left behind.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{FakeServer, Program};

const A: &str = "sb-local-aaaa0000000000000000000000";

/// The children of a fork of the fake server, in order.
fn child(number: usize) -> String {
    format!("sb-local-f{number:025}")
}

/// What still exists.
fn left(server: &FakeServer) -> Vec<String> {
    server.world().sandboxes.keys().cloned().collect()
}

fn shells(server: &FakeServer, sandbox: &str) -> Vec<String> {
    let world = server.world();
    let of_sandbox = world.shells.iter().filter(|(id, _)| id == sandbox);
    of_sandbox.map(|(_, text)| text.clone()).collect()
}

async fn explore(server: &FakeServer, candidates: &[&str], more: &[&str]) -> (i32, Value) {
    let mut args = vec!["explore", "aaaa", "--json"];
    for candidate in candidates {
        args.extend(["--candidate", candidate]);
    }
    args.extend(more);
    let done = Program::at(server).run(&args).await;
    (done.status, done.json())
}

#[tokio::test]
async fn the_best_child_is_kept_and_the_others_are_deleted() {
    let server = FakeServer::with(&[A]).await;
    let args = [
        "explore",
        "aaaa",
        "--candidate",
        "earn 2",
        "--candidate",
        "earn 7.5",
        "--candidate",
        "earn -1",
        "--score",
        "score",
        "--timeout",
        "30s",
    ];
    let done = Program::at(&server).run(&args).await;
    assert_eq!(done.status, 0, "{done:?}");
    assert_eq!(done.stdout(), format!("{}\n", child(2)));
    for line in [
        "score 2: earn 2\n",
        "score 7.5: earn 7.5\n",
        "score -1: earn -1\n",
    ] {
        assert!(done.stderr.contains(line), "{done:?}");
    }
    assert!(done.stderr.contains("of: earn 7.5\n"), "{done:?}");
    assert_eq!(left(&server), [A.to_owned(), child(2)]);
    for (number, candidate) in ["earn 2", "earn 7.5", "earn -1"].into_iter().enumerate() {
        assert_eq!(shells(&server, &child(number + 1)), [candidate, "score"]);
    }
    let world = server.world();
    assert_eq!(world.forks.len(), 1, "one fork for all");
    assert_eq!(world.forks[0].count, Some(3));
    assert_eq!(world.forks[0].options.all_or_nothing, Some(true));
    assert_eq!(world.forks[0].options.metadata, None);
}

#[tokio::test]
async fn without_a_score_command_success_counts_and_json_has_the_words_of_the_sdks() {
    let server = FakeServer::with(&[A]).await;
    let candidates = ["exit 3", "echo one", "echo two"];
    let (status, found) = explore(&server, &candidates, &[]).await;
    assert_eq!((status, &found["winner"]), (0, &json!(child(2))));
    assert_eq!(found["best"], found["attempts"][1]);
    let first = json!({"candidate": "exit 3", "score": 0.0, "error": null, "skipped": false,
        "result": {"exit_code": 3, "reason": "exited", "stdout": "", "stderr": "",
            "truncated": false}});
    assert_eq!(found["attempts"][0], first);
    assert_eq!(found["attempts"][2]["result"]["stdout"], "two");
    assert_eq!(left(&server), [A.to_owned(), child(2)]);
}

#[tokio::test]
async fn a_score_that_is_good_enough_ends_the_rest() {
    let server = FakeServer::with(&[A]).await;
    let more = ["--score", "score", "--stop-at", "-2"];
    // The first never ends, the third never begins.
    let parallel = [&more[..], &["--parallel", "2"]].concat();
    let (status, found) = explore(&server, &["hang", "earn -2", "hang"], &parallel).await;
    assert_eq!((status, &found["winner"]), (0, &json!(child(2))), "{found}");
    let skipped = json!({"candidate": "hang", "result": null, "score": null, "error": null,
        "skipped": true});
    assert_eq!(found["attempts"][0], skipped);
    assert_eq!(found["attempts"][2], skipped);
    assert_eq!(left(&server), [A.to_owned(), child(2)]);
}

#[tokio::test]
async fn a_winner_is_promoted_and_children_have_a_time_to_live() {
    let server = FakeServer::with(&[A]).await;
    let more = ["--promote", "--ttl", "5m"];
    let (status, found) = explore(&server, &["exit 0", "exit 1"], &more).await;
    assert_eq!((status, &found["winner"]), (0, &json!(child(1))));
    assert_eq!(left(&server), [A.to_owned(), child(1)]);
    let world = server.world();
    assert!(world.deleted.is_empty(), "one promote deletes them");
    let metadata = json!(world.forks[0].options.metadata);
    assert_eq!(metadata, json!({"explore_ttl": "300"}));
    assert_eq!(world.forks[0].options.ttl_seconds, None);
}

#[tokio::test]
async fn without_any_score_nobody_is_kept() {
    let server = FakeServer::with(&[A]).await;
    let candidates = ["late", "cut", "earn much"];
    let (status, found) = explore(&server, &candidates, &["--score", "score"]).await;
    assert_eq!((status, &found["winner"]), (125, &Value::Null));
    let error = |number: usize| found["attempts"][number]["error"].as_str().unwrap();
    assert_eq!(error(0), "the command ran past its time limit");
    assert!(error(1).contains("the outcome of the command is unknown"));
    assert!(error(2).contains("is no number: \"much\""), "{found}");
    assert_eq!(left(&server), [A]);
    let args = ["explore", A, "--candidate", "late"];
    let done = Program::at(&server).run(&args).await;
    assert_eq!((done.status, done.stdout()), (125, ""));
    assert!(
        done.stderr.contains("warning: no score: late: "),
        "{done:?}"
    );
    assert!(done.stderr.contains("error: no candidate has a score"));
}

#[tokio::test]
async fn a_signal_deletes_every_child() {
    let server = FakeServer::with(&[A]).await;
    let args = ["explore", A, "--candidate", "hang", "--candidate", "hang"];
    let running = Program::at(&server).start(&args);
    server.reached("exec").await;
    running.signal(Signal::INT);
    let done = running.finish().await;
    assert_eq!((done.status, done.stdout()), (130, ""), "{done:?}");
    assert_eq!(left(&server), [A]);
    assert_eq!(server.world().deleted.len(), 2);
}

#[tokio::test]
async fn a_child_that_is_not_deleted_is_told() {
    let server = FakeServer::with(&[A]).await;
    server.world().fails_on_delete = true;
    let args = [
        "explore",
        A,
        "--candidate",
        "exit 0",
        "--candidate",
        "exit 1",
    ];
    let done = Program::at(&server).run(&args).await;
    assert_eq!(done.status, 125);
    assert_eq!(done.stdout(), format!("{}\n", child(1)));
    let expected = format!("`dayfly rm {}` deletes it", child(2));
    assert!(done.stderr.contains(&expected), "{done:?}");
}

#[tokio::test]
async fn candidates_come_from_flags_and_a_file() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    std::fs::write(program.path("list"), "earn 1\n\n  \nearn 9\n").unwrap();
    let args = [
        "explore",
        A,
        "--candidates",
        "list",
        "--candidate",
        "earn 3",
        "--score",
        "score",
    ];
    let done = program.run(&args).await;
    assert_eq!(done.stdout(), format!("{}\n", child(3)), "{done:?}");
    assert_eq!(shells(&server, &child(1))[0], "earn 3");
    let args = ["explore", A, "--candidates", "-"];
    let done = program.run_with_input(&args, b"exit 1\nexit 0\n").await;
    assert_eq!(done.stdout(), format!("{}\n", child(2)), "{done:?}");
}

#[tokio::test]
async fn what_cannot_be_explored_forks_nothing() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    let many = "exit 0\n".repeat(65);
    std::fs::write(program.path("many"), many).unwrap();
    std::fs::write(program.path("none"), "\n").unwrap();
    let one = ["--candidate", "exit 0"];
    for (args, status) in [
        (vec![], 2),
        (vec!["--candidates", "none"], 2),
        (vec!["--candidates", "many"], 2),
        (vec!["--candidates", "missing"], 125),
        (vec!["--candidate", " "], 2),
        (vec![one[0], one[1], "--parallel", "0"], 2),
        (vec![one[0], one[1], "--stop-at", "nan"], 2),
        (vec![one[0], one[1], "--timeout", "soon"], 2),
    ] {
        let done = program.run(&[&["explore", A], &args[..]].concat()).await;
        assert_eq!(done.status, status, "{args:?}: {done:?}");
        assert!(server.world().forks.is_empty(), "{args:?}");
    }
    let four = ["exit 0"; 4].map(|one| ["--candidate", one]).concat();
    let done = program.run(&[&["explore", A], &four[..]].concat()).await;
    assert_eq!(done.status, 125);
    assert!(
        done.stderr
            .starts_with(&format!("error: cannot fork sandbox {A}: no room"))
    );
}

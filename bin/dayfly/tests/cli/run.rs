//! `dayfly run`: what comes out, how it ends, and that nothing is left behind.

use crate::support::{FakeServer, Program, within};
use rustix::process::Signal;
use tokio::io::AsyncReadExt as _;

const FIRST: &str = "sb-local-00000000000000000000000001";

#[tokio::test]
async fn run_ends_as_the_command_did_and_deletes_the_sandbox() {
    for (command, status) in [(["exit", "0"], 0), (["exit", "7"], 7), (["kill", "x"], 137)] {
        let server = FakeServer::start().await;
        let done = Program::at(&server)
            .run(&["run", "--", command[0], command[1]])
            .await;
        assert_eq!(done.status, status, "{command:?}: {done:?}");
        assert_eq!(server.world().deleted, [FIRST]);
        assert_eq!(server.world().idempotency_keys.len(), 1);
    }
}

#[tokio::test]
async fn output_goes_where_the_command_sent_it_byte_for_byte() {
    let server = FakeServer::start().await;
    let done = Program::at(&server).run(&["run", "--", "both"]).await;
    assert_eq!(done.status, 3);
    assert_eq!(done.stdout(), "to out, é\nno newline");
    assert_eq!(done.stderr, "to err\n");
}

#[tokio::test]
async fn arguments_and_flags_arrive_as_they_were_given() {
    let server = FakeServer::start().await;
    let args = [
        "run",
        "-T",
        "base",
        "--ttl",
        "2m",
        "--env",
        "A=b=c",
        "--timeout",
        "1.5",
        "--cwd",
        "/tmp",
        "--user",
        "root",
        "--",
        "request",
        "it's",
        "a \"test\"",
        "--json",
    ];
    let done = Program::at(&server).run(&args).await;
    let request: serde_json::Value = serde_json::from_str(done.stdout()).unwrap();
    assert_eq!(
        request["cmd"],
        serde_json::json!(["request", "it's", "a \"test\"", "--json"])
    );
    assert_eq!(request["env"]["A"], "b=c");
    assert_eq!(request["timeout_seconds"], 1.5);
    assert_eq!(
        (&request["cwd"], &request["user"]),
        (&"/tmp".into(), &"root".into())
    );
    let world = server.world();
    assert_eq!(world.creates[0].template.as_deref(), Some("base"));
    assert_eq!(world.creates[0].ttl_seconds, Some(120));
}

#[tokio::test]
async fn a_sandbox_lives_longer_than_its_commands_time_limit() {
    let server = FakeServer::start().await;
    let program = Program::at(&server);
    program
        .run(&["run", "--timeout", "2h", "--", "exit", "0"])
        .await;
    program
        .run(&["run", "--timeout", "1m", "--", "exit", "0"])
        .await;
    assert_eq!(server.world().creates[0].ttl_seconds, Some(7260));
    assert_eq!(server.world().creates[1].ttl_seconds, None);
}

#[tokio::test]
async fn standard_input_is_given_to_the_command() {
    let server = FakeServer::start().await;
    let program = Program::at(&server);
    let done = program
        .run_with_input(&["run", "--stdin", "--", "cat"], b"print(1)\n\xff")
        .await;
    assert_eq!(done.status, 0, "{done:?}");
    assert_eq!(
        done.stdout, b"print(1)\n\xef\xbf\xbd",
        "the script answers in text"
    );
}

#[tokio::test]
async fn a_time_limit_ends_with_124() {
    let server = FakeServer::start().await;
    let done = Program::at(&server)
        .run(&["run", "--timeout", "1", "--", "late"])
        .await;
    assert_eq!(done.status, 124);
    assert_eq!(done.stdout(), "partial");
    assert!(
        done.stderr
            .starts_with("error: the command ran past its time limit\n"),
        "{done:?}"
    );
    assert_eq!(server.world().deleted, [FIRST]);
}

#[tokio::test]
async fn a_stream_without_an_exit_status_is_a_failure_with_unknown_outcome() {
    for command in ["cut", "lost"] {
        let server = FakeServer::start().await;
        let done = Program::at(&server).run(&["run", "--", command]).await;
        assert_eq!(done.status, 125);
        assert_eq!(done.stdout(), "partial");
        let expected = format!(
            " in {FIRST}: the outcome of the command is unknown: no such exec\n\n\
             hint: the command may have run"
        );
        assert!(
            done.stderr.starts_with("error: lost the command ex-"),
            "{done:?}"
        );
        assert!(done.stderr.contains(&expected), "{done:?}");
        assert_eq!(server.world().deleted, [FIRST]);
    }
}

#[tokio::test]
async fn json_is_one_object_at_the_end() {
    let server = FakeServer::start().await;
    let program = Program::at(&server);
    let done = program.run(&["run", "--json", "--", "both"]).await;
    assert_eq!(done.status, 3);
    assert_eq!(
        done.json(),
        serde_json::json!({
            "sandbox_id": FIRST, "stdout": "to out, é\nno newline", "stderr": "to err\n",
            "exit_code": 3, "reason": "exited", "signal": null, "duration_ms": 12,
            "truncated": false, "sandbox_deleted": true,
        })
    );
    assert_eq!(done.stderr, "");

    let done = program.run(&["run", "--json", "--", "kill"]).await;
    assert_eq!((done.status, &done.json()["signal"]), (137, &9.into()));

    let done = program.run(&["run", "--json", "--", "late"]).await;
    assert_eq!(done.status, 124);
    assert_eq!(done.json()["reason"], "timeout");
    assert_eq!(done.json()["stdout"], "partial");
}

#[tokio::test]
async fn keep_leaves_the_sandbox_and_names_it_on_standard_error() {
    let server = FakeServer::start().await;
    let done = Program::at(&server)
        .run(&["run", "--keep", "--", "echo", "hi"])
        .await;
    assert_eq!((done.status, done.stdout()), (0, "hi"));
    assert_eq!(done.stderr, format!("kept sandbox {FIRST}\n"));
    assert!(server.world().deleted.is_empty());
}

#[tokio::test]
async fn a_baking_template_is_waited_for_with_progress() {
    let server = FakeServer::start().await;
    let program = Program::at(&server);
    let done = program
        .run(&["run", "-T", "bakes", "--", "echo", "hi"])
        .await;
    assert_eq!((done.status, done.stdout()), (0, "hi"), "{done:?}");
    for percent in [25, 50, 75] {
        let words = format!("waiting: template bakes is baking, {percent} %");
        assert!(done.stderr.contains(&words), "{done:?}");
    }
    assert!(
        !done.stderr.contains('\u{1b}'),
        "no drawing without a terminal"
    );
    let keys = server.world().idempotency_keys.clone();
    assert_eq!(keys.len(), 4);
}

#[tokio::test]
async fn no_wait_fails_at_once() {
    let server = FakeServer::start().await;
    let program = Program::at(&server);
    let done = program
        .run(&["run", "--no-wait", "-T", "bakes", "--", "exit", "0"])
        .await;
    assert_eq!(done.status, 125);
    assert!(
        done.stderr
            .contains("cannot create a sandbox: template is baking"),
        "{done:?}"
    );
    assert_eq!(server.world().creates.len(), 1);
}

#[tokio::test]
async fn a_signal_stops_the_command_and_deletes_the_sandbox() {
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let server = FakeServer::start().await;
        let mut running = Program::at(&server).start(&["run", "--", "hang"]);
        let mut stdout = running.child.stdout.take().unwrap();
        let mut started = [0; 8];
        within("the command starts", stdout.read_exact(&mut started))
            .await
            .unwrap();
        running.signal(signal);
        let done = running.finish().await;
        assert_eq!(done.status, status, "{done:?}");
        assert!(
            done.stderr.contains(&format!("deleting sandbox {FIRST}")),
            "{done:?}"
        );
        assert_eq!(server.world().deleted, [FIRST]);
    }
}

#[tokio::test]
async fn a_signal_during_the_create_leaves_no_sandbox() {
    let server = FakeServer::start().await;
    let mut running = Program::at(&server).start(&["run", "-T", "slow", "--", "exit", "0"]);
    server.reached("create").await;
    running.signal(Signal::INT);
    running.hear("stopping").await;
    server.release();
    let done = running.finish().await;
    assert_eq!(done.status, 130, "{done:?}");
    assert_eq!(server.world().deleted, [FIRST]);
}

#[tokio::test]
async fn a_signal_while_waiting_stops_the_waiting() {
    let server = FakeServer::start().await;
    let mut running = Program::at(&server).start(&["run", "-T", "full", "--", "exit", "0"]);
    running.hear("the host has no room").await;
    running.signal(Signal::TERM);
    let done = running.finish().await;
    assert_eq!(done.status, 143, "{done:?}");
    assert!(server.world().sandboxes.is_empty());
}

#[tokio::test]
async fn a_second_signal_gives_up_and_says_what_may_be_left() {
    let server = FakeServer::start().await;
    server.world().hangs_on_delete = true;
    let running = Program::at(&server).start(&["run", "--", "hang"]);
    server.reached("exec").await;
    running.signal(Signal::INT);
    server.reached("delete").await;
    running.signal(Signal::INT);
    let done = running.finish().await;
    assert_eq!(done.status, 130, "{done:?}");
    assert!(
        done.stderr
            .contains(&format!("warning: sandbox {FIRST} may still exist")),
        "{done:?}"
    );
}

#[tokio::test]
async fn a_failed_delete_is_told_and_does_not_hide_the_commands_status() {
    let server = FakeServer::start().await;
    server.world().fails_on_delete = true;
    let program = Program::at(&server);
    let done = program.run(&["run", "--", "exit", "7"]).await;
    assert_eq!(done.status, 7);
    assert!(
        done.stderr.contains("may still exist (cannot delete)"),
        "{done:?}"
    );
    let done = program.run(&["run", "--json", "--", "exit", "7"]).await;
    assert_eq!(done.json()["sandbox_deleted"], false);
}

#[tokio::test]
async fn a_closed_standard_output_ends_the_command_silently() {
    let server = FakeServer::start().await;
    let mut running = Program::at(&server).start(&["run", "--", "flood"]);
    let mut stdout = running.child.stdout.take().unwrap();
    let mut first = [0; 2];
    within("output", stdout.read_exact(&mut first))
        .await
        .unwrap();
    drop(stdout);
    let done = running.finish().await;
    assert_eq!((done.status, done.stderr.as_str()), (141, ""));
    assert_eq!(server.world().deleted, [FIRST]);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_failure_of_dayfly() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let program = Program::new()
        .with("DAYFLY_API_KEY", "k")
        .with("DAYFLY_API_URL", &url);
    let done = program.run(&["run", "--", "exit", "0"]).await;
    assert_eq!(done.status, 69);
    let expected =
        format!("error: cannot create a sandbox: cannot reach {url}: Connection refused");
    assert!(done.stderr.starts_with(&expected), "{done:?}");
    assert!(
        done.stderr.contains("\n\nhint: is dayflyd running there?"),
        "{done:?}"
    );
}

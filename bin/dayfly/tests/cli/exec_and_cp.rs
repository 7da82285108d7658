//! `dayfly exec` and `dayfly cp`.

use crate::support::{FakeServer, Program};
use rustix::process::Signal;

const A: &str = "sb-local-aaaa0000000000000000000000";

#[tokio::test]
async fn exec_ends_as_the_command_did_and_leaves_the_sandbox() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    let done = program.run(&["exec", A, "--", "both"]).await;
    assert_eq!((done.status, done.stderr.as_str()), (3, "to err\n"));
    assert_eq!(
        program.run(&["exec", "aaaa", "exit", "127"]).await.status,
        127
    );
    assert_eq!(
        program
            .run(&["exec", A, "--timeout", "1s", "--", "late"])
            .await
            .status,
        124
    );
    assert!(server.world().deleted.is_empty());
}

#[tokio::test]
async fn exec_takes_flags_before_the_command_and_none_from_it() {
    let server = FakeServer::with(&[A]).await;
    let args = [
        "exec", A, "--cwd", "/tmp", "-e", "A=1", "request", "--cwd", "-x", "--", "y",
    ];
    let done = Program::at(&server).run(&args).await;
    let request: serde_json::Value = serde_json::from_str(done.stdout()).unwrap();
    assert_eq!(
        request["cmd"],
        serde_json::json!(["request", "--cwd", "-x", "--", "y"])
    );
    assert_eq!(request["cwd"], "/tmp");
}

#[tokio::test]
async fn exec_as_json_has_no_word_about_deleting() {
    let server = FakeServer::with(&[A]).await;
    let done = Program::at(&server)
        .run(&["exec", "--json", A, "--", "both"])
        .await;
    assert_eq!(done.json()["exit_code"], 3);
    assert!(done.json().get("sandbox_deleted").is_none());
}

#[tokio::test]
async fn a_signal_ends_exec_and_leaves_the_sandbox() {
    let server = FakeServer::with(&[A]).await;
    let running = Program::at(&server).start(&["exec", A, "--", "hang"]);
    server.reached("exec").await;
    running.signal(Signal::INT);
    let done = running.finish().await;
    assert_eq!(done.status, 130);
    assert!(
        done.stderr
            .contains(&format!("stopping the command in {A}")),
        "{done:?}"
    );
}

fn every_byte() -> Vec<u8> {
    (0..200_000u32)
        .map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()[3])
        .collect()
}

#[tokio::test]
async fn files_come_back_byte_for_byte() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    let content = every_byte();
    std::fs::write(program.path("in.bin"), &content).unwrap();

    let done = program.run(&["cp", "in.bin", "aaaa:/workspace/"]).await;
    assert_eq!((done.status, done.stdout()), (0, ""), "{done:?}");
    assert_eq!(done.stderr, "copied 200000 bytes to /workspace/in.bin\n");
    assert_eq!(server.world().files["/workspace/in.bin"], content);

    let from = format!("{A}:/workspace/in.bin");
    assert_eq!(program.run(&["cp", &from, "out.bin"]).await.status, 0);
    assert_eq!(std::fs::read(program.path("out.bin")).unwrap(), content);

    std::fs::create_dir(program.path("directory")).unwrap();
    let done = program.run(&["cp", "--json", &from, "directory"]).await;
    assert_eq!(done.json()["bytes"], 200_000);
    assert_eq!(
        std::fs::read(program.path("directory/in.bin")).unwrap(),
        content
    );
    let left: Vec<_> = std::fs::read_dir(program.path("directory"))
        .unwrap()
        .collect();
    assert_eq!(left.len(), 1, "no part file is left");
}

#[tokio::test]
async fn a_dash_is_standard_input_or_output() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    let content = every_byte();
    let done = program
        .run_with_input(&["cp", "-", &format!("{A}:/x")], &content)
        .await;
    assert_eq!(done.status, 0, "{done:?}");
    let done = program.run(&["cp", &format!("{A}:/x"), "-"]).await;
    assert!(done.stdout == content, "what came back differs");
    std::fs::write(program.path("empty"), "").unwrap();
    assert_eq!(
        program
            .run(&["cp", "empty", &format!("{A}:/x")])
            .await
            .status,
        0
    );
    assert!(server.world().files["/x"].is_empty());
}

#[tokio::test]
async fn a_copy_that_makes_no_sense_is_a_usage_error() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    for args in [
        ["cp", "a", "b"],
        ["cp", "aaaa:/a", "aaaa:/b"],
        ["cp", "aaaa:", "b"],
    ] {
        let done = program.run(&args).await;
        assert_eq!(done.status, 2, "{done:?}");
        assert!(done.stderr.contains("\n\nhint: "), "{done:?}");
    }
}

#[tokio::test]
async fn a_missing_file_leaves_nothing_behind() {
    let server = FakeServer::with(&[A]).await;
    let program = Program::at(&server);
    let done = program.run(&["cp", "aaaa:/nothing", "out"]).await;
    assert_eq!(done.status, 125);
    assert!(done.stderr.contains("no such file"), "{done:?}");
    assert_eq!(std::fs::read_dir(program.home.path()).unwrap().count(), 0);
    let done = program.run(&["cp", "nothing", "aaaa:/x"]).await;
    assert!(
        done.stderr
            .starts_with("error: cannot read nothing: No such file"),
        "{done:?}"
    );
}

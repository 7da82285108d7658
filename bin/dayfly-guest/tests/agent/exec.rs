//! What an exec promises: true exit codes, exact bytes, streams that do not disturb each other.

use crate::support::{Guest, argv, collect, pattern, run, shell, within};
use bytes::Bytes;
use dayfly_guest_client::{AttachSpec, CallError, StreamError};
use dayfly_guest_proto::GuestErrorCode;
use dayfly_types::exec::{ExecEvent, ExecSpec};
use dayfly_types::exec::{ExitReason, StdinMode};

fn with_env(mut spec: ExecSpec, key: &str, value: &str) -> ExecSpec {
    spec.env.insert(key.to_owned(), value.to_owned());
    spec
}

#[tokio::test]
async fn exit_codes_tell_the_truth() {
    let guest = Guest::start();
    let client = guest.connect().await;
    for (spec, code, signal, reason) in [
        (shell("true"), 0, None, ExitReason::Exited),
        (shell("exit 7"), 7, None, ExitReason::Exited),
        (shell("exit 255"), 255, None, ExitReason::Exited),
        (
            argv(&["/bin/sh", "-c", "exit 3"]),
            3,
            None,
            ExitReason::Exited,
        ),
        (shell("kill -TERM $$"), 143, Some(15), ExitReason::Signaled),
        (shell("kill -KILL $$"), 137, Some(9), ExitReason::Signaled),
    ] {
        let output = run(&client, spec.clone()).await;
        let exit = (output.exit.code, output.exit.signal, output.exit.reason);
        assert_eq!(exit, (code, signal, reason), "{spec:?}");
    }
}

#[tokio::test]
async fn missing_and_unexecutable_commands_end_like_in_a_shell() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let missing = run(&client, argv(&["no-such-command"])).await;
    assert_eq!(missing.exit.code, 127);
    assert_eq!(
        missing.stderr_text(),
        "no-such-command: command not found\n"
    );
    let refused = run(&client, argv(&["/etc/passwd"])).await;
    assert_eq!(refused.exit.code, 126);
    assert_eq!(refused.stderr_text(), "/etc/passwd: Permission denied\n");
    let mut elsewhere = argv(&["true"]);
    elsewhere.cwd = Some("/no/such/place".to_owned());
    let elsewhere = run(&client, elsewhere).await;
    assert_eq!(elsewhere.exit.code, 126);
    assert!(elsewhere.stderr_text().contains("/no/such/place"));
}

#[tokio::test]
async fn timeout_kills_and_says_so() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let mut spec = shell("echo before; sleep 1000; echo after");
    spec.timeout_ms = Some(300);
    let output = run(&client, spec).await;
    assert_eq!((output.exit.code, output.exit.signal), (137, Some(9)));
    assert_eq!(output.exit.reason, ExitReason::TimedOut);
    assert_eq!(output.stdout_text(), "before\n");
}

#[tokio::test]
async fn output_of_eight_mebibytes_is_exact() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bytes");
    let bytes = pattern(8 << 20);
    std::fs::write(&path, &bytes).unwrap();
    let output = run(&client, argv(&["cat", path.to_str().unwrap()])).await;
    assert!(output.stdout == bytes, "bytes differ");
    assert_eq!(output.exit.code, 0);
}

#[tokio::test]
async fn input_of_eight_mebibytes_comes_back_exact() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let mut spec = argv(&["cat"]);
    spec.stdin = StdinMode::Piped;
    let session = client.exec(spec).await.unwrap();
    let bytes = pattern(8 << 20);
    let (input, sent) = (session.input(), bytes.clone());
    let writer = tokio::spawn(async move {
        input.write_stdin(sent).await.unwrap();
        input.close_stdin().await.unwrap();
        input.close_stdin().await.unwrap();
        input.write_stdin(Bytes::from_static(b"late")).await
    });
    let output = collect(session).await;
    assert!(output.stdout == bytes, "bytes differ");
    let late = within(writer).await.unwrap();
    assert!(matches!(late, Err(StreamError::Ended)), "{late:?}");
}

#[tokio::test]
async fn input_to_a_process_that_does_not_read_does_not_stall_its_end() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let mut spec = shell("exec 0<&-; echo closed; sleep 0.2");
    spec.stdin = StdinMode::Piped;
    let session = client.exec(spec).await.unwrap();
    let input = session.input();
    let writer = tokio::spawn(async move { input.write_stdin(pattern(4 << 20)).await });
    assert_eq!(collect(session).await.stdout_text(), "closed\n");
    // Taken and dropped, or cut off by the end: never a hang.
    let _ = within(writer).await.unwrap();
}

#[tokio::test]
async fn input_without_a_pipe_or_after_the_exit_is_refused() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let session = client.exec(shell("sleep 1000")).await.unwrap();
    let refused = within(session.write_stdin(pattern(10))).await;
    assert!(matches!(refused, Err(StreamError::Ended)), "{refused:?}");
    let mut spec = shell("true");
    spec.stdin = StdinMode::Piped;
    let mut session = client.exec(spec).await.unwrap();
    while within(session.next()).await.unwrap().is_some() {}
    let late = within(session.write_stdin(pattern(10))).await;
    assert!(matches!(late, Err(StreamError::Ended)), "{late:?}");
}

#[tokio::test]
async fn stalled_reader_does_not_stall_another_exec() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let mut stalled = client.exec(shell("yes")).await.unwrap();
    let first = within(stalled.next()).await.unwrap();
    assert!(matches!(first, Some(ExecEvent::Stdout(_))));
    let output = run(&client, shell("head -c 3000000 /dev/zero; echo done >&2")).await;
    assert_eq!(output.stdout.len(), 3_000_000);
    assert_eq!(output.stderr_text(), "done\n");
    stalled.signal(15).await.unwrap();
    assert_eq!(collect(stalled).await.exit.code, 143);
}

#[tokio::test]
async fn dropping_a_session_leaves_its_process_alone() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let spec = shell("until test -e $GO; do sleep 0.01; done; echo went on");
    let directory = tempfile::tempdir().unwrap();
    let go = directory.path().join("go");
    let spec = with_env(spec, "GO", go.to_str().unwrap());
    let id = spec.exec_id.clone();
    let session = client.exec(spec).await.unwrap();
    let pid = session.pid();
    drop(session);
    // Calls are served in order, so the cancel of the dropped session has been by now.
    client.status().await.unwrap();
    assert!(Guest::is_alive(pid));
    std::fs::write(go, "").unwrap();
    let (_, session) = client
        .attach_exec(&id, AttachSpec::from_start())
        .await
        .unwrap();
    assert_eq!(collect(session).await.stdout_text(), "went on\n");
}

#[tokio::test]
async fn background_child_does_not_hold_the_exit_and_lives_on() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let output = run(
        &client,
        shell("(while sleep 0.01; do echo tick; done) & echo $!"),
    )
    .await;
    assert_eq!(output.exit.code, 0);
    let pid: u32 = output
        .stdout_text()
        .lines()
        .next()
        .unwrap()
        .parse()
        .unwrap();
    // It goes on writing into a pipe that nobody reads, and must survive that.
    let second = run(&client, shell("sleep 0.2; echo later")).await;
    assert_eq!(second.stdout_text(), "later\n");
    assert!(Guest::is_alive(pid));
    let killed = run(&client, argv(&["kill", &pid.to_string()])).await;
    assert_eq!(killed.exit.code, 0);
}

#[tokio::test]
async fn kill_signal_is_reported_as_killed() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let session = client.exec(shell("sleep 1000; true")).await.unwrap();
    session.signal(9).await.unwrap();
    let output = collect(session).await;
    assert_eq!(
        (output.exit.code, output.exit.reason),
        (137, ExitReason::Killed)
    );
}

#[tokio::test]
async fn environment_and_directory_are_the_ones_asked_for() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let mut spec = shell("echo $PWD $GREETING $LANG $HOME; cat");
    spec.cwd = Some("/usr".to_owned());
    spec.env.insert("GREETING".to_owned(), "hello".to_owned());
    let output = run(&client, spec).await;
    assert_eq!(output.stdout_text(), "/usr hello C.UTF-8 /root\n");
}

#[tokio::test]
async fn shell_line_longer_than_an_argument_runs() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let line = format!("# {}\necho made it; exit 5", "x".repeat(300_000));
    let output = run(&client, shell(&line)).await;
    assert_eq!(
        (output.stdout_text().as_str(), output.exit.code),
        ("made it\n", 5)
    );
}

#[tokio::test]
async fn nonsense_is_refused_and_the_conversation_goes_on() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let mut stranger = shell("true");
    stranger.user = Some("nobody-of-this-name".to_owned());
    let mut bad_name = shell("true");
    bad_name.env.insert("A=B".to_owned(), String::new());
    for spec in [argv(&[]), argv(&[""]), argv(&["a\0b"]), stranger, bad_name] {
        let Err(CallError::Refused(error)) = client.exec(spec).await else {
            panic!("not refused");
        };
        assert_eq!(error.code, GuestErrorCode::Invalid);
    }
    let session = client.exec(shell("sleep 1000")).await.unwrap();
    let Err(CallError::Refused(error)) = session.signal(4000).await else {
        panic!("not refused")
    };
    assert_eq!(error.code, GuestErrorCode::Invalid);
}

#[tokio::test]
async fn a_hundred_execs_at_once_all_answer() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let mut tasks = tokio::task::JoinSet::new();
    for index in 0..100 {
        let client = client.clone();
        tasks.spawn(async move {
            let output = run(&client, shell(&format!("echo {index}; exit {index}"))).await;
            assert_eq!(output.stdout_text(), format!("{index}\n"));
            assert_eq!(output.exit.code, index);
        });
    }
    within(async {
        while let Some(result) = tasks.join_next().await {
            result.unwrap();
        }
    })
    .await;
}

//! Execs with a terminal of their own.

use crate::support::{Gate, Guest, argv, collect, pattern, printed, run, shell, within};
use bytes::Bytes;
use dayfly_guest_client::{AttachSpec, ExecSession};
use dayfly_types::exec::{ExecEvent, ExecSpec};
use dayfly_types::exec::{ExitReason, StdinMode, WindowSize};

const MIB: usize = 1 << 20;
const SMALL: WindowSize = WindowSize {
    columns: 80,
    rows: 24,
};
const LARGE: WindowSize = WindowSize {
    columns: 203,
    rows: 51,
};

fn in_terminal(mut spec: ExecSpec) -> ExecSpec {
    spec.terminal = Some(SMALL);
    spec.stdin = StdinMode::Piped;
    spec
}

async fn type_in(session: &ExecSession, text: &str) {
    let bytes = Bytes::copy_from_slice(text.as_bytes());
    within(session.write_stdin(bytes)).await.unwrap();
}

/// Reads until the terminal has shown a text. Gives everything up to then.
async fn shown(session: &mut ExecSession, text: &str) -> String {
    let mut seen = String::new();
    while !seen.contains(text) {
        match within(session.next()).await.unwrap() {
            Some(ExecEvent::Stdout(bytes)) => seen.push_str(&String::from_utf8_lossy(&bytes)),
            other => panic!("{other:?} instead of {text:?} after {seen:?}"),
        }
    }
    seen
}

#[tokio::test]
async fn process_has_a_terminal_of_the_size_asked_for_on_every_stream() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let line = "test -t 0 && test -t 1 && test -t 2 && stty size && echo $TERM >&2; \
                test $(tty) = $(readlink /proc/self/fd/2) && exec 3</dev/tty && echo controls";
    let output = run(&client, in_terminal(shell(line))).await;
    assert_eq!(
        output.stdout_text(),
        "24 80\r\nxterm-256color\r\ncontrols\r\n"
    );
    assert!(output.stderr.is_empty(), "everything is stdout");
    assert_eq!(output.exit.code, 0);
    let mut spec = in_terminal(shell("echo $TERM; cat"));
    spec.env.insert("TERM".to_owned(), "dumb".to_owned());
    spec.stdin = StdinMode::Null;
    assert_eq!(run(&client, spec).await.stdout_text(), "dumb\r\n");
}

#[tokio::test]
async fn typing_is_echoed_and_sizes_change_as_told() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let spec = in_terminal(shell(
        "trap 'echo resized' WINCH; read a; echo got $a; stty size; exit 6",
    ));
    let id = spec.exec_id.clone();
    let mut session = client.exec(spec).await.unwrap();
    type_in(&session, "hel").await;
    shown(&mut session, "hel").await;
    client.resize_exec(&id, LARGE).await.unwrap();
    type_in(&session, "lo\r").await;
    let seen = shown(&mut session, "51 203\r\n").await;
    assert!(seen.contains("got hello\r\n"), "{seen:?}");
    assert_eq!(collect(session).await.exit.code, 6);
    assert!(client.resize_exec(&id, SMALL).await.is_err(), "it is over");
    let info = client.describe_exec(&id).await.unwrap();
    assert!(info.is_terminal && !info.takes_stdin);
    assert_eq!(info.stdin_bytes, 6);
}

#[tokio::test]
async fn interrupt_that_is_typed_reaches_the_process() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let line = "trap 'echo caught; exit 3' INT; echo ready; while :; do sleep 0.01; done";
    let mut session = client.exec(in_terminal(shell(line))).await.unwrap();
    shown(&mut session, "ready").await;
    type_in(&session, "\u{3}").await;
    shown(&mut session, "caught").await;
    assert_eq!(collect(session).await.exit.code, 3);
    let mut plain = client
        .exec(in_terminal(shell("echo ready; sleep 1000")))
        .await
        .unwrap();
    shown(&mut plain, "ready").await;
    type_in(&plain, "\u{3}").await;
    let exit = collect(plain).await.exit;
    assert_eq!((exit.code, exit.reason), (130, ExitReason::Signaled));
}

#[tokio::test]
async fn interrupt_by_id_is_for_the_program_in_front_and_not_for_the_shell() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let mut spec = in_terminal(argv(&["bash", "--norc", "--noprofile", "-i"]));
    spec.env.insert("PS1".to_owned(), "prompt> ".to_owned());
    let id = spec.exec_id.clone();
    let mut session = client.exec(spec).await.unwrap();
    shown(&mut session, "prompt> ").await;
    type_in(&session, "(echo in''front; sleep 1000)\r").await;
    shown(&mut session, "infront").await;
    client.signal_exec(&id, 2).await.unwrap();
    shown(&mut session, "prompt> ").await;
    type_in(&session, "echo code''is $?\r").await;
    shown(&mut session, "codeis 130").await;
    type_in(&session, "exit 7\r").await;
    assert_eq!(collect(session).await.exit.code, 7);
}

#[tokio::test]
async fn end_of_input_is_what_a_person_would_type() {
    let guest = Guest::start();
    let client = guest.connect().await;
    for text in ["", "whole line\n", "half a line"] {
        let line = "stty -echo; echo ready; cat; echo over";
        let mut session = client.exec(in_terminal(shell(line))).await.unwrap();
        shown(&mut session, "ready\r\n").await;
        type_in(&session, text).await;
        session.close_stdin().await.unwrap();
        let output = collect(session).await;
        let expected = format!("{}over\r\n", text.replace('\n', "\r\n"));
        assert_eq!(output.stdout_text(), expected);
        assert_eq!(output.exit.code, 0);
    }
}

#[tokio::test]
async fn much_output_of_a_terminal_is_exact_over_lost_conversations() {
    let guest = Guest::start();
    let bytes = pattern(20 * MIB);
    let file = printed(&bytes);
    let spec = in_terminal(shell(&format!("stty -opost; cat {}; exit 4", file.path)));
    let id = spec.exec_id.clone();
    let client = guest.connect().await;
    let mut session = client.exec(spec).await.unwrap();
    drop(client);
    let mut seen = Vec::new();
    for round in 1..=5 {
        while seen.len() < round * 3 * MIB {
            let Some(ExecEvent::Stdout(more)) = within(session.next()).await.unwrap() else {
                panic!("no output");
            };
            seen.extend_from_slice(&more);
        }
        drop(session);
        let client = guest.connect().await;
        let from = AttachSpec {
            stdout: Some(seen.len() as u64),
            stderr: None,
            stdin: false,
        };
        session = client.attach_exec(&id, from).await.unwrap().1;
    }
    let rest = collect(session).await;
    seen.extend_from_slice(&rest.stdout);
    assert!(seen == bytes, "bytes differ");
    assert_eq!(rest.exit.code, 4);
}

#[tokio::test]
async fn much_input_of_a_terminal_is_exact() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let bytes = pattern(MIB);
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("copy");
    let line = format!(
        "stty raw -echo; echo ready; head -c {} > {}",
        bytes.len(),
        copy.display()
    );
    let mut session = client.exec(in_terminal(shell(&line))).await.unwrap();
    shown(&mut session, "ready").await;
    within(session.write_stdin(bytes.clone())).await.unwrap();
    assert_eq!(collect(session).await.exit.code, 0);
    assert!(std::fs::read(copy).unwrap() == bytes, "bytes differ");
}

#[tokio::test]
async fn end_of_the_main_process_hangs_up_what_it_left() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let spec = in_terminal(shell("sleep 1000 & echo $!; exit 5"));
    let output = run(&client, spec).await;
    assert_eq!(output.exit.code, 5);
    let pid: u32 = output.stdout_text().trim().parse().unwrap();
    crate::support::eventually(|| !Guest::is_alive(pid)).await;
}

#[tokio::test]
async fn process_that_lets_go_of_its_terminal_lives_on_and_may_come_back() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let gate = Gate::new();
    let line = format!(
        "echo before; exec </dev/null >/dev/null 2>&1; {}; echo after >/dev/tty; exit 3",
        gate.wait()
    );
    let mut session = client.exec(in_terminal(shell(&line))).await.unwrap();
    shown(&mut session, "before\r\n").await;
    assert!(Guest::is_alive(session.pid()));
    gate.open();
    let output = collect(session).await;
    assert_eq!(output.stdout_text(), "after\r\n");
    assert_eq!(output.exit.code, 3);
}

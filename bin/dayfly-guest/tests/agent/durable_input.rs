//! Input that was accepted stays accepted, whoever sent it.

use crate::support::{Gate, Guest, argv, collect, from, pattern, shell, until, within};
use bytes::Bytes;
use dayfly_guest_client::AttachSpec;
use dayfly_types::exec::ExecSpec;
use dayfly_types::exec::StdinMode;

const MIB: usize = 1 << 20;

fn cat_with_input() -> ExecSpec {
    let mut spec = argv(&["cat"]);
    spec.stdin = StdinMode::Piped;
    spec
}

fn input_only() -> AttachSpec {
    AttachSpec {
        stdout: None,
        stderr: None,
        stdin: true,
    }
}

#[tokio::test]
async fn input_goes_on_in_the_next_conversation_where_it_was_cut() {
    let guest = Guest::start();
    let bytes = pattern(3 * MIB);
    let spec = cat_with_input();
    let id = spec.exec_id.clone();
    let client = guest.connect().await;
    drop(client.exec(spec).await.unwrap());
    drop(client);
    let mut next = 0;
    for round in 1..=6 {
        let client = guest.connect().await;
        let (info, session) = client.attach_exec(&id, input_only()).await.unwrap();
        assert!(info.takes_stdin);
        let taken = usize::try_from(info.stdin_bytes).unwrap();
        assert!(taken <= next, "more than was sent");
        next = (taken + MIB).min(bytes.len());
        session.write_stdin(bytes.slice(taken..next)).await.unwrap();
        if round == 6 {
            session.close_stdin().await.unwrap();
            let (_, session) = client.attach_exec(&id, from(0)).await.unwrap();
            let output = collect(session).await;
            assert!(output.stdout == bytes[..next], "bytes differ");
            let info = client.describe_exec(&id).await.unwrap();
            assert_eq!((info.takes_stdin, info.stdin_bytes), (false, next as u64));
        }
    }
}

#[tokio::test]
async fn accepted_input_waits_for_its_process_over_conversations() {
    let guest = Guest::start();
    let (bytes, gate) = (pattern(200_000), Gate::new());
    let mut spec = shell(&format!("{}; cat", gate.wait()));
    spec.stdin = StdinMode::Piped;
    let id = spec.exec_id.clone();
    let client = guest.connect().await;
    let session = client.exec(spec).await.unwrap();
    session.write_stdin(bytes.clone()).await.unwrap();
    until(&client, &id, |info| info.stdin_bytes == 200_000).await;
    drop((session, client));
    let client = guest.connect().await;
    let (_, session) = client.attach_exec(&id, input_only()).await.unwrap();
    session.close_stdin().await.unwrap();
    until(&client, &id, |info| !info.takes_stdin).await;
    gate.open();
    let (_, session) = client.attach_exec(&id, from(0)).await.unwrap();
    assert!(collect(session).await.stdout == bytes, "bytes differ");
}

#[tokio::test]
async fn input_of_a_session_that_was_dropped_at_once_arrives() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let spec = cat_with_input();
    let id = spec.exec_id.clone();
    let reader = client.exec(spec).await.unwrap();
    let bytes = pattern(100 * 7000);
    for (index, piece) in bytes.chunks(7000).enumerate() {
        let (_, session) = client.attach_exec(&id, input_only()).await.unwrap();
        session
            .write_stdin(Bytes::copy_from_slice(piece))
            .await
            .unwrap();
        drop(session);
        let sent = (index as u64 + 1) * 7000;
        until(&client, &id, |info| info.stdin_bytes == sent).await;
    }
    reader.close_stdin().await.unwrap();
    assert!(collect(reader).await.stdout == bytes, "bytes differ");
}

#[tokio::test]
async fn input_after_its_end_is_dropped_and_never_hangs() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let gate = Gate::new();
    let mut spec = shell(&format!("cat; {}", gate.wait()));
    spec.stdin = StdinMode::Piped;
    let id = spec.exec_id.clone();
    let first = client.exec(spec).await.unwrap();
    let (_, second) = client.attach_exec(&id, input_only()).await.unwrap();
    first.write_stdin(Bytes::from_static(b"all")).await.unwrap();
    first.close_stdin().await.unwrap();
    until(&client, &id, |info| !info.takes_stdin).await;
    within(second.write_stdin(pattern(MIB))).await.unwrap();
    assert_eq!(client.describe_exec(&id).await.unwrap().stdin_bytes, 3);
    gate.open();
    assert_eq!(collect(first).await.stdout_text(), "all");
}

#[tokio::test]
async fn process_that_ends_without_reading_leaves_no_sender_waiting() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let mut spec = shell("head -c 1000000 /dev/zero");
    spec.stdin = StdinMode::Piped;
    let session = client.exec(spec).await.unwrap();
    // Nobody reads the output yet, so the exit is not known to this host either.
    within(session.write_stdin(pattern(2 * MIB))).await.unwrap();
    assert_eq!(collect(session).await.stdout.len(), 1_000_000);
}

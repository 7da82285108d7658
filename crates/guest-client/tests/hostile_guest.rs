//! A guest that lies: every lie ends the conversation with its reason, none costs memory or a
//! panic, and calls that wait are told.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what fails in a test must fail the test"
)]

mod support;

use dayfly_guest_client::{
    AgentClient, CallError, ConnectError, ConversationLost, ListSpec, ProtocolViolation, ReadRange,
    StreamError, WriteSpec,
};
use dayfly_guest_proto::{
    ChannelId, DataHeader, Event, FreePages, GuestMessage, Request, Response, StreamKind,
    WindowError,
};
use dayfly_types::exec::{ExecExit, ExitReason};
use dayfly_types::file::{FileMode, OpenedFile};
use dayfly_types::limits::{FRAME_PAYLOAD_BYTES_MAX, STREAM_CREDIT_BYTES};
use support::{DEADLINE, ScriptedGuest, exec_spec, within};
use tokio::net::UnixStream;

async fn violation(client: &AgentClient) -> ProtocolViolation {
    let lost = within(client.closed()).await;
    let ConversationLost::Protocol(violation) = lost else {
        panic!("no violation: {lost:?}")
    };
    violation
}

fn data(channel: u32, stream: StreamKind, offset: u64) -> DataHeader {
    DataHeader {
        channel: ChannelId(channel),
        stream,
        offset,
        is_end: false,
    }
}

/// Starts an exec whose guest does whatever the test tells it to.
async fn start_exec(
    client: &AgentClient,
    guest: &mut ScriptedGuest,
) -> dayfly_guest_client::ExecSession {
    let session = tokio::spawn({
        let client = client.clone();
        async move { client.exec(exec_spec()).await.unwrap() }
    });
    let call = guest.next_call().await;
    assert!(matches!(call.request, Request::StartExec(_)));
    guest
        .answer(call.call, Ok(Response::ExecStarted { pid: 9 }))
        .await;
    within(session).await.unwrap()
}

#[tokio::test]
async fn garbage_ends_the_conversation() {
    let (client, mut guest) = ScriptedGuest::connect().await;
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.status().await }
    });
    guest.next_call().await;
    guest.raw_control(b"surprise").await;
    assert!(matches!(
        violation(&client).await,
        ProtocolViolation::Frame(_)
    ));
    assert!(matches!(
        within(waiting).await.unwrap(),
        Err(CallError::Lost(_))
    ));
}

#[tokio::test]
async fn credit_overrun_ends_the_conversation() {
    let (client, mut guest) = ScriptedGuest::connect().await;
    let mut session = start_exec(&client, &mut guest).await;
    let frame = vec![0; FRAME_PAYLOAD_BYTES_MAX];
    let frames = STREAM_CREDIT_BYTES as usize / frame.len();
    for index in 0..=frames {
        guest
            .data(
                data(1, StreamKind::Stdout, (index * frame.len()) as u64),
                &frame,
            )
            .await;
    }
    let ProtocolViolation::Window { source, .. } = violation(&client).await else {
        panic!("not a window violation");
    };
    assert!(matches!(source, WindowError::Overrun { .. }));
    assert!(within(session.next()).await.is_err());
}

#[tokio::test]
async fn lies_about_offsets_streams_and_channels_end_the_conversation() {
    type Expected = fn(&ProtocolViolation) -> bool;
    let lies: [(DataHeader, Expected); 4] = [
        // A gap says that the guest dropped bytes; going back is a lie.
        (data(1, StreamKind::Stdout, 0), |v| {
            matches!(v, ProtocolViolation::Window { .. })
        }),
        (data(1, StreamKind::File, 0), |v| {
            matches!(v, ProtocolViolation::WrongChannel { .. })
        }),
        (data(1, StreamKind::Stdin, 0), |v| {
            matches!(v, ProtocolViolation::WrongChannel { .. })
        }),
        (data(77, StreamKind::Stdout, 0), |v| {
            matches!(v, ProtocolViolation::UnknownChannel { .. })
        }),
    ];
    for (header, is_expected) in lies {
        let (client, mut guest) = ScriptedGuest::connect().await;
        let _session = start_exec(&client, &mut guest).await;
        guest.data(data(1, StreamKind::Stdout, 5), b"fine").await;
        guest.data(header, b"lie").await;
        let seen = violation(&client).await;
        assert!(is_expected(&seen), "{header:?} gave {seen:?}");
    }
}

#[tokio::test]
async fn credit_for_bytes_never_sent_ends_the_conversation() {
    let (client, mut guest) = ScriptedGuest::connect().await;
    let _session = start_exec(&client, &mut guest).await;
    guest.credit(ChannelId(1), StreamKind::Stdin, 1).await;
    assert!(matches!(
        violation(&client).await,
        ProtocolViolation::Window { .. }
    ));
}

#[tokio::test]
async fn answer_without_a_call_and_event_without_a_channel_end_the_conversation() {
    let (client, mut guest) = ScriptedGuest::connect().await;
    guest.answer(55, Ok(Response::Done)).await;
    assert_eq!(
        violation(&client).await,
        ProtocolViolation::UnknownCall { call: 55 }
    );
    let (client, mut guest) = ScriptedGuest::connect().await;
    let channel = ChannelId(3);
    guest
        .message(&GuestMessage::Event(Event::WriteDone { channel, bytes: 1 }))
        .await;
    assert_eq!(
        violation(&client).await,
        ProtocolViolation::UnknownChannel { channel }
    );
}

#[tokio::test]
async fn event_of_another_purpose_and_second_exit_end_the_conversation() {
    let exit = || ExecExit {
        code: 0,
        signal: None,
        reason: ExitReason::Exited,
        limits_hit: Vec::new(),
    };
    let channel = ChannelId(1);
    let exited = GuestMessage::Event(Event::ExecExited {
        channel,
        exit: exit(),
        duration_ms: 1,
    });
    let written = GuestMessage::Event(Event::WriteDone { channel, bytes: 1 });
    for lies in [vec![written], vec![exited.clone(), exited]] {
        let (client, mut guest) = ScriptedGuest::connect().await;
        let _session = start_exec(&client, &mut guest).await;
        for lie in &lies {
            guest.message(lie).await;
        }
        assert_eq!(
            violation(&client).await,
            ProtocolViolation::WrongChannel { channel }
        );
    }
}

#[tokio::test]
async fn endless_unknown_events_end_the_conversation() {
    let (client, mut guest) = ScriptedGuest::connect().await;
    for _ in 0..10 {
        guest.json(br#"{"event":{"kind":"from_the_future"}}"#).await;
    }
    let status = tokio::spawn({
        let client = client.clone();
        async move { client.status().await }
    });
    let call = guest.next_call().await.call;
    guest.answer(call, Ok(Response::Done)).await;
    assert!(matches!(
        within(status).await.unwrap(),
        Err(CallError::UnexpectedAnswer)
    ));
    guest
        .flood(br#"{"event":{"kind":"from_the_future"}}"#, 3000)
        .await;
    assert_eq!(
        violation(&client).await,
        ProtocolViolation::TooManyUnknownEvents
    );
}

#[tokio::test]
async fn message_without_end_ends_the_conversation() {
    let (client, mut guest) = ScriptedGuest::connect().await;
    guest.endless_message().await;
    assert!(matches!(
        violation(&client).await,
        ProtocolViolation::Message(_)
    ));
}

#[tokio::test]
async fn late_bytes_of_a_dropped_exec_are_forgiven_up_to_what_was_possible() {
    let (client, mut guest) = ScriptedGuest::connect().await;
    let session = start_exec(&client, &mut guest).await;
    drop(session);
    let call = guest.next_call().await;
    assert_eq!(
        call.request,
        Request::CancelChannel {
            channel: ChannelId(1)
        }
    );
    guest.answer(call.call, Ok(Response::Done)).await;
    guest.data(data(1, StreamKind::Stdout, 0), &[0; 1000]).await;
    let status = tokio::spawn({
        let client = client.clone();
        async move { client.status().await }
    });
    let call = guest.next_call().await.call;
    guest.refuse(call).await;
    assert!(matches!(
        within(status).await.unwrap(),
        Err(CallError::Refused(_))
    ));
    for _ in 0..100 {
        guest
            .data(
                data(1, StreamKind::Stdout, 0),
                &[0; FRAME_PAYLOAD_BYTES_MAX],
            )
            .await;
    }
    assert_eq!(violation(&client).await, ProtocolViolation::TooMuchLate);
}

#[tokio::test]
async fn stalled_consumer_holds_one_window_and_others_go_on() {
    let (client, mut guest) = ScriptedGuest::connect().await;
    let mut stalled = start_exec(&client, &mut guest).await;
    let mut other = start_exec(&client, &mut guest).await;
    let frame = vec![7; FRAME_PAYLOAD_BYTES_MAX];
    let frames = STREAM_CREDIT_BYTES as usize / frame.len();
    for index in 0..frames {
        guest
            .data(
                data(1, StreamKind::Stdout, (index * frame.len()) as u64),
                &frame,
            )
            .await;
    }
    guest.data(data(2, StreamKind::Stdout, 0), b"fine").await;
    let event = within(other.next()).await.unwrap().unwrap();
    assert_eq!(
        event,
        dayfly_types::exec::ExecEvent::Stdout(b"fine".as_slice().into())
    );
    // Nothing was taken, so nothing was granted; one read takes all and grants it.
    within(stalled.next()).await.unwrap();
    let granted = guest.next_credit().await;
    assert_eq!(
        granted,
        (ChannelId(1), StreamKind::Stdout, STREAM_CREDIT_BYTES)
    );
}

#[tokio::test]
async fn write_waits_for_credit_and_learns_of_failure() {
    let (client, mut guest) = ScriptedGuest::connect().await;
    let file = tokio::spawn({
        let client = client.clone();
        async move { client.write_file("/x", WriteSpec::default()).await.unwrap() }
    });
    let call = guest.next_call().await;
    guest.answer(call.call, Ok(Response::Done)).await;
    let mut file = within(file).await.unwrap();
    let window = STREAM_CREDIT_BYTES as usize;
    let writer = tokio::spawn(async move { file.write(vec![1; window + 1].into()).await });
    assert_eq!(guest.data_bytes(window).await, window);
    assert!(!writer.is_finished());
    guest.fail(ChannelId(1)).await;
    let result = within(writer).await.unwrap();
    assert!(matches!(result, Err(StreamError::Failed(_))), "{result:?}");
}

#[tokio::test]
async fn read_that_fails_half_way_gives_its_error_after_its_bytes() {
    let (client, mut guest) = ScriptedGuest::connect().await;
    let file = tokio::spawn({
        let client = client.clone();
        async move {
            client
                .read_file("/x", None, ReadRange::default())
                .await
                .unwrap()
        }
    });
    let call = guest.next_call().await;
    let opened = Response::FileOpened(OpenedFile {
        size: u64::MAX,
        mode: FileMode::of(0o644),
        mtime: -1,
    });
    guest.answer(call.call, Ok(opened)).await;
    let mut file = within(file).await.unwrap();
    guest.data(data(1, StreamKind::File, 0), b"half").await;
    assert_eq!(
        within(file.next()).await.unwrap().unwrap().as_ref(),
        b"half"
    );
    guest.fail(ChannelId(1)).await;
    assert!(matches!(
        within(file.next()).await,
        Err(StreamError::Failed(_))
    ));
    assert!(matches!(within(file.next()).await, Ok(None)));
}

#[tokio::test]
async fn directory_that_never_ends_is_given_up() {
    let (client, mut guest) = ScriptedGuest::connect().await;
    let listing =
        tokio::spawn(async move { client.list_directory("/", &ListSpec::default()).await });
    for _ in 0..2 {
        let call = guest.next_call().await.call;
        guest.answer(call, Ok(support::page_of_one("same"))).await;
    }
    let result = within(listing).await.unwrap();
    assert!(
        matches!(result, Err(CallError::UnexpectedAnswer)),
        "{result:?}"
    );
}

#[tokio::test]
async fn silent_guest_is_given_up_at_the_deadline() {
    let (control, _silent_control) = UnixStream::pair().unwrap();
    let (bulk, _silent_bulk) = UnixStream::pair().unwrap();
    let deadline = std::time::Duration::from_millis(900);
    let result = within(AgentClient::connect(control, bulk, deadline)).await;
    assert!(
        matches!(result, Err(ConnectError::NoAnswer { limit_ms: 900 })),
        "{result:?}"
    );
}

#[tokio::test]
async fn guest_that_only_sends_noise_is_given_up() {
    let (control, mut noise) = UnixStream::pair().unwrap();
    let (bulk, _silent_bulk) = UnixStream::pair().unwrap();
    let noise = tokio::spawn(async move {
        while tokio::io::AsyncWriteExt::write_all(&mut noise, &[0xDF; 65_536])
            .await
            .is_ok()
        {}
    });
    let result = within(AgentClient::connect(control, bulk, DEADLINE)).await;
    assert!(
        matches!(result, Err(ConnectError::Stale { .. })),
        "{result:?}"
    );
    within(noise).await.unwrap();
}

#[tokio::test]
async fn guest_of_another_generation_is_told_apart() {
    let result = ScriptedGuest::connect_with_generation(0).await;
    assert!(
        matches!(result, Err(ConnectError::NoCommonGeneration)),
        "{result:?}"
    );
}

#[tokio::test]
async fn more_free_pages_than_were_asked_for_are_refused() {
    for (told, is_fine) in [(2, true), (3, false)] {
        let (client, mut guest) = ScriptedGuest::connect().await;
        let asked = tokio::spawn(async move { client.free_pages(16, 2).await });
        let call = guest.next_call().await;
        let anything = FreePages {
            first: u64::MAX,
            count: u64::MAX,
        };
        let ranges = vec![anything; told];
        guest
            .answer(call.call, Ok(Response::FreePages { ranges }))
            .await;
        let outcome = within(asked).await.unwrap();
        assert_eq!(outcome.is_ok(), is_fine, "{outcome:?}");
    }
}

//! What a broken host can do to execs: nothing but lose its own conversation.

use crate::raw::RawHost;
use crate::support::{Gate, Guest, new_id};
use dayfly_guest_proto::{
    ChannelId, Event, GuestErrorCode, Request, Response, StartExec, StreamKind,
};
use dayfly_types::ExecId;
use dayfly_types::exec::{ExecCommand, ExecSpec, StdinMode};
use dayfly_types::limits::STREAM_CREDIT_BYTES as WINDOW;

fn start(channel: u32, line: &str) -> StartExec {
    let command = ExecCommand::Shell(line.to_owned());
    let spec = ExecSpec {
        user: Some("root".to_owned()),
        stdin: StdinMode::Piped,
        ..ExecSpec::new(new_id(), command)
    };
    StartExec {
        channel: ChannelId(channel),
        spec,
    }
}

fn attach(channel: u32, exec_id: &ExecId, offset: u64) -> Request {
    Request::AttachExec {
        channel: ChannelId(channel),
        exec_id: exec_id.clone(),
        stdout_offset: Some(offset),
        stderr_offset: None,
        stdin: true,
    }
}

#[test]
fn channel_has_one_use_at_a_time() {
    let guest = Guest::start();
    let mut host = RawHost::open(&guest, 1);
    let first = start(1, "cat");
    host.call(Request::StartExec(first.clone())).unwrap();
    let again = [
        Request::StartExec(start(1, "true")),
        Request::StartExec(first.clone()),
        attach(1, &first.spec.exec_id, 0),
        Request::ConnectSocket {
            channel: ChannelId(1),
            path: "/nowhere".to_owned(),
        },
        Request::OpenRead {
            channel: ChannelId(1),
            path: "/etc/passwd".to_owned(),
            user: None,
            offset: 0,
            limit: None,
        },
    ];
    for request in again {
        let refused = host.call(request).unwrap_err();
        assert_eq!(refused.code, GuestErrorCode::Exists, "{refused}");
    }
    let refused = host
        .call(attach(2, &first.spec.exec_id, u64::MAX))
        .unwrap_err();
    assert_eq!(refused.code, GuestErrorCode::Invalid);
    host.call(attach(2, &first.spec.exec_id, 0)).unwrap();
}

#[test]
fn streams_that_a_channel_did_not_ask_for_do_not_come() {
    let guest = Guest::start();
    let mut host = RawHost::open(&guest, 1);
    let gate = Gate::new();
    let spec = start(1, &format!("echo out; echo err >&2; {}", gate.wait()));
    host.call(Request::StartExec(spec.clone())).unwrap();
    host.call(attach(2, &spec.spec.exec_id, 0)).unwrap();
    gate.open();
    host.until(|host| host.events.len() == 2);
    for wanted in [1, 2] {
        let is_it = |event: &Event| matches!(event, Event::ExecExited { channel, .. } if channel.0 == wanted);
        assert!(host.events.iter().any(is_it));
    }
    host.until(|host| host.data.iter().filter(|(header, _)| header.is_end).count() == 3);
    let of_second = host.data.iter().filter(|(header, _)| header.channel.0 == 2);
    let streams: Vec<_> = of_second.map(|(header, _)| header.stream).collect();
    assert!(streams.iter().all(|stream| *stream == StreamKind::Stdout));
}

/// The guest hears nothing more of this host, and serves the next one.
fn assert_lost(guest: &Guest, host: RawHost, id: &ExecId) {
    drop(host);
    let mut other = RawHost::open(guest, 99);
    let described = other.call(Request::DescribeExec {
        exec_id: id.clone(),
    });
    let Ok(Response::Exec(info)) = described else {
        panic!("{described:?}");
    };
    assert!(info.exit.is_none(), "the exec goes on");
}

#[test]
fn bytes_and_credit_against_the_rules_end_the_conversation_and_no_exec() {
    type Offence = fn(&mut RawHost);
    let offences: [Offence; 4] = [
        |host| host.send(1, StreamKind::Stdin, 7, b"at the wrong place"),
        |host| host.credit(1, StreamKind::Stdout, 1 << 20),
        |host| host.credit(1, StreamKind::Stderr, 0),
        |host| {
            for piece in 0..6 {
                host.send(1, StreamKind::Stdin, piece * 60_000, &[0; 60_000]);
            }
        },
    ];
    for offence in offences {
        let guest = Guest::start();
        let mut host = RawHost::open(&guest, 1);
        let spec = start(1, "sleep 1000");
        host.call(Request::StartExec(spec.clone())).unwrap();
        offence(&mut host);
        assert_lost(&guest, host, &spec.spec.exec_id);
    }
}

#[test]
fn bytes_for_channels_that_nobody_has_are_ignored() {
    let guest = Guest::start();
    let mut host = RawHost::open(&guest, 1);
    let spec = start(1, "cat");
    host.call(Request::StartExec(spec.clone())).unwrap();
    for channel in [0, 2, u32::MAX] {
        host.send(channel, StreamKind::Stdin, 1 << 50, b"lost");
        host.send(channel, StreamKind::Stdout, 0, b"odd");
        host.credit(channel, StreamKind::Stdout, 5);
        host.credit(channel, StreamKind::Stdin, 5);
    }
    host.send(1, StreamKind::Stdin, 0, b"kept\n");
    host.until(|host| !host.data.is_empty());
    assert_eq!(host.data[0].1, b"kept\n");
}

#[test]
fn input_that_overtakes_nothing_survives_the_close_of_its_channel() {
    let guest = Guest::start();
    let mut host = RawHost::open(&guest, 1);
    let spec = start(1, "cat");
    host.call(Request::StartExec(spec.clone())).unwrap();
    host.call(attach(2, &spec.spec.exec_id, 0)).unwrap();
    let channel = ChannelId(2);
    host.call(Request::CancelChannel { channel }).unwrap();
    // Sent before the cancel as the host sees it, but on the slower port.
    host.send(2, StreamKind::Stdin, 0, b"late but true\n");
    host.until(|host| !host.data.is_empty());
    assert_eq!(host.data[0].1, b"late but true\n");
}

#[test]
fn reader_without_credit_gets_one_window_and_the_rest_when_it_pays() {
    let guest = Guest::start();
    let mut host = RawHost::open(&guest, 1);
    let spec = start(1, "head -c 1000000 /dev/zero");
    host.call(Request::StartExec(spec)).unwrap();
    let received = |host: &RawHost| {
        let lengths = host.data.iter().map(|(_, bytes)| bytes.len());
        lengths.sum::<usize>()
    };
    for step in 1..=3 {
        host.until(|host| received(host) == step * WINDOW as usize);
        host.call(Request::Status).unwrap();
        assert_eq!(received(&host), step * WINDOW as usize);
        assert!(host.events.is_empty(), "it has not everything yet");
        host.credit(1, StreamKind::Stdout, WINDOW);
    }
    host.until(|host| !host.events.is_empty() && received(host) == 1_000_000);
}

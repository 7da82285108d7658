//! The surface of the protocol is frozen in `schema/gen-1.json`.
//!
//! A difference is either a mistake or an addition. Set `DAYFLY_BLESS=1` to write the file anew,
//! and read its difference: nothing that was there may change or go.
#![expect(
    clippy::unwrap_used,
    reason = "what fails in a test must fail the test"
)]

use std::collections::BTreeMap;
use std::path::Path;

use dayfly_guest_proto::message::{AnswerResult, EVENT_KINDS, REQUEST_KINDS};
use dayfly_guest_proto::{
    Activity, AgentToken, Answer, Call, ChannelId, CopyMark, DataHeader, Entropy, Event, ExecPage,
    FrameEncoder, FreePages, GuestError, GuestErrorCode, GuestMessage, GuestState, HookResult,
    Identified, Identity, IdentityEvent, MachineId, Nonce, Opening, PortRole, Request, Response,
    SessionTag, StartExec, Status, StreamKind, copy_mark, frame, opening,
};
use dayfly_types::exec::{
    ExecCommand, ExecExit, ExecInfo, ExecLimits, ExecSpec, ExitReason, LimitKind, LogExtent,
    LogRule, StdinMode, WhenFull, WindowSize,
};
use dayfly_types::file::{
    ChangeKind, ChangedPath, DirectoryPage, FileMode, FileStat, OpenedFile, WatchEvent, WatchKind,
};
use dayfly_types::{ExecId, SandboxId, limits};
use serde_json::{Value, json};

const CHANNEL: ChannelId = ChannelId(7);

fn sandbox_id() -> SandboxId {
    SandboxId::parse("sb-local-0123456789abcdefghjkmnpqrs").unwrap()
}

fn user() -> Option<String> {
    Some("agent".to_owned())
}

fn start_exec(command: ExecCommand) -> Request {
    let spec = ExecSpec {
        exec_id: exec_id(),
        command,
        cwd: Some("/workspace".to_owned()),
        env: BTreeMap::from([("KEY".to_owned(), "value".to_owned())]),
        user: user(),
        timeout_ms: Some(1000),
        stdin: StdinMode::Piped,
        terminal: Some(WindowSize {
            columns: 80,
            rows: 24,
        }),
        log: LogRule {
            bytes_max: 1 << 20,
            when_full: WhenFull::Block,
        },
        limits: ExecLimits {
            memory_bytes: Some(64 << 20),
            cpu_ms: Some(5000),
            processes_max: Some(10),
        },
        is_service: true,
    };
    Request::StartExec(StartExec {
        channel: CHANNEL,
        spec,
    })
}

fn exec_id() -> ExecId {
    ExecId::parse("ex-0123456789abcdefghjkmnpqrs").unwrap()
}

fn exec_info() -> ExecInfo {
    ExecInfo {
        exec_id: exec_id(),
        number: 3,
        title: "make".to_owned(),
        user: "agent".to_owned(),
        pid: 42,
        started_unix_ms: 1_700_000_000_000,
        exit: Some(ExecExit {
            code: 137,
            signal: Some(9),
            reason: ExitReason::LimitExceeded,
            limits_hit: vec![LimitKind::Memory],
        }),
        duration_ms: 12,
        is_terminal: false,
        takes_stdin: true,
        stdin_bytes: 9,
        stdout: LogExtent { start: 5, end: 70 },
        stderr: LogExtent::default(),
    }
}

fn identify(event: Option<IdentityEvent>, reseed_user_space: bool) -> Request {
    Request::Identify(Identity {
        sandbox_id: sandbox_id(),
        hostname: "box".to_owned(),
        machine_id: MachineId::from_random([0xAB; 16]),
        wall_clock_unix_nanos: 1_700_000_000_123_456_789,
        entropy: Entropy([0x5A; 32]),
        agent_token: AgentToken::new("token"),
        event,
        reseed_user_space,
    })
}

fn requests() -> Vec<Request> {
    let (life, work, disks) = (life_requests(), work_requests(), disk_requests());
    let (processes, trees) = (process_requests(), tree_requests());
    let former = life.into_iter().chain(work).chain(disks);
    former.chain(processes).chain(trees).collect()
}

fn life_requests() -> Vec<Request> {
    vec![
        Request::Status,
        identify(None, false),
        identify(Some(IdentityEvent::Fork), true),
        Request::Thaw {
            wall_clock_unix_nanos: Some(1_700_000_000_000_000_000),
        },
        Request::Quiesce {
            lease_ms: None,
            mark: None,
        },
        Request::Quiesce {
            lease_ms: Some(20_000),
            mark: Some(CopyMark::from_nonce(&[0xC3; 32])),
        },
    ]
}

fn work_requests() -> Vec<Request> {
    let path = || "/workspace/a".to_owned();
    vec![
        start_exec(ExecCommand::Argv(vec!["echo".to_owned(), "hi".to_owned()])),
        start_exec(ExecCommand::Shell("echo hi".to_owned())),
        Request::SignalExec {
            channel: CHANNEL,
            signal: 15,
        },
        Request::CloseStdin { channel: CHANNEL },
        Request::OpenRead {
            channel: CHANNEL,
            path: path(),
            user: user(),
            offset: 5,
            limit: Some(10),
        },
        Request::OpenWrite {
            channel: CHANNEL,
            path: path(),
            user: user(),
            mode: Some(0o644),
            make_parents: true,
            append: false,
            offset: Some(4096),
        },
        Request::CancelChannel { channel: CHANNEL },
        Request::Stat {
            path: path(),
            user: user(),
        },
        Request::ListDirectory {
            path: path(),
            user: user(),
            after: Some("b".to_owned()),
            limit: 100,
            depth: 2,
        },
        Request::MakeDirectory {
            path: path(),
            user: user(),
            mode: Some(0o755),
            make_parents: true,
        },
        Request::Remove {
            path: path(),
            user: user(),
            recursive: true,
        },
    ]
}

fn disk_requests() -> Vec<Request> {
    vec![
        Request::MountVolume {
            serial: "spare0".to_owned(),
            path: "/volumes/data".to_owned(),
            read_only: true,
            expect_bytes: Some(16 << 20),
        },
        Request::UnmountVolume {
            path: "/volumes/data".to_owned(),
        },
        Request::GrowDisk {
            expect_bytes: 2 << 30,
        },
        Request::Activity,
    ]
}

fn process_requests() -> Vec<Request> {
    vec![
        Request::AttachExec {
            channel: CHANNEL,
            exec_id: exec_id(),
            stdout_offset: Some(5),
            stderr_offset: Some(0),
            stdin: true,
        },
        Request::DescribeExec { exec_id: exec_id() },
        Request::ListExecs {
            after: 2,
            limit: 100,
        },
        Request::SignalProcess {
            exec_id: exec_id(),
            signal: 2,
        },
        Request::ResizeTerminal {
            exec_id: exec_id(),
            size: WindowSize {
                columns: 120,
                rows: 40,
            },
        },
        Request::ForgetExec { exec_id: exec_id() },
    ]
}

fn tree_requests() -> Vec<Request> {
    let path = || "/workspace/a".to_owned();
    vec![
        Request::Move {
            from: path(),
            to: "/workspace/b".to_owned(),
            user: user(),
            replace: true,
        },
        Request::ChangeMode {
            path: path(),
            mode: 0o600,
            user: user(),
        },
        Request::WatchDirectory {
            channel: CHANNEL,
            path: path(),
            user: user(),
            recursive: true,
        },
        Request::PackTree {
            channel: CHANNEL,
            path: path(),
            user: user(),
        },
        Request::UnpackTree {
            channel: CHANNEL,
            path: path(),
            user: user(),
        },
        Request::ListChanges {
            channel: CHANNEL,
            path: "/".to_owned(),
            since_unix_nanos: Some(1_700_000_000_000_000_000),
        },
        Request::ConnectSocket {
            channel: CHANNEL,
            path: "/run/service.sock".to_owned(),
        },
        Request::ConnectPort {
            channel: CHANNEL,
            port: 8080,
        },
        Request::ListPorts,
        Request::WaitPort {
            port: 8080,
            timeout_ms: 5000,
        },
        Request::FreeMemory,
        Request::ListFreePages {
            block_pages: 16,
            ranges_max: 8192,
        },
    ]
}

fn lines() -> Value {
    json!([
        WatchEvent {
            kind: WatchKind::Moved,
            path: "/workspace/b".to_owned(),
            is_dir: false,
            from: Some("/workspace/a".to_owned()),
        },
        WatchEvent {
            kind: WatchKind::Overflow,
            path: String::new(),
            is_dir: false,
            from: None,
        },
        ChangedPath {
            path: "/workspace/a".to_owned(),
            kind: ChangeKind::Added,
            is_dir: false,
            size: 3,
            mtime: 1_700_000_000,
        },
    ])
}

fn entry() -> FileStat {
    FileStat {
        name: "a".to_owned(),
        path: "/workspace/a".to_owned(),
        is_dir: false,
        is_symlink: true,
        size: 3,
        mode: FileMode::of(0o644),
        mtime: 1_700_000_000,
        uid: 1000,
        gid: 1000,
    }
}

fn responses() -> Vec<Response> {
    vec![
        Response::Done,
        Response::Status(Status {
            agent_version: "0.1.0".to_owned(),
            generation: 1,
            boot_id: "01234567-89ab-4cde-8f01-23456789abcd".to_owned(),
            uptime_ms: 1234,
            state: GuestState::Running,
        }),
        Response::Identified(Identified {
            sandbox_id: sandbox_id(),
            hooks: Vec::new(),
            renewed: Vec::new(),
            not_renewed: Vec::new(),
        }),
        Response::Identified(Identified {
            sandbox_id: sandbox_id(),
            hooks: vec![HookResult {
                name: "10-reseed".to_owned(),
                exit_code: Some(137),
                timed_out: true,
            }],
            renewed: vec!["machine_id".to_owned()],
            not_renewed: vec!["process_ids".to_owned()],
        }),
        Response::ExecStarted { pid: 42 },
        Response::FileOpened(OpenedFile {
            size: 3,
            mode: FileMode::of(0o644),
            mtime: 1_700_000_000,
        }),
        Response::Entry(entry()),
        Response::Directory(DirectoryPage {
            entries: vec![entry()],
            has_more: true,
        }),
        Response::Activity(Activity {
            execs: 2,
            busy_ms: 1500,
        }),
        Response::Exec(exec_info()),
        Response::Execs(ExecPage {
            execs: vec![exec_info()],
            has_more: true,
        }),
        Response::FreeMemory { bytes: 300 << 20 },
        Response::FreePages {
            ranges: vec![FreePages {
                first: 4096,
                count: 1024,
            }],
        },
    ]
}

fn error() -> GuestError {
    GuestError::new(GuestErrorCode::NotFound, "no such file")
}

fn events() -> Vec<Event> {
    let exit = ExecExit {
        code: 137,
        signal: Some(9),
        reason: ExitReason::TimedOut,
        limits_hit: Vec::new(),
    };
    vec![
        Event::ExecExited {
            channel: CHANNEL,
            exit,
            duration_ms: 12,
        },
        Event::WriteDone {
            channel: CHANNEL,
            bytes: 3,
        },
        Event::StreamFailed {
            channel: CHANNEL,
            error: error(),
        },
    ]
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes_on_the_wire() -> Value {
    let encoder = FrameEncoder::new(SessionTag(0x0102_0304));
    let encoded = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        write(&mut out);
        hex(&out)
    };
    let header = DataHeader {
        channel: CHANNEL,
        stream: StreamKind::Stdout,
        offset: 258,
        is_end: true,
    };
    let nonce = Nonce([0x11; 16]);
    json!({
        "control_frame": encoded(&|out| encoder.control(b"{}", out)),
        "data_frame": encoded(&|out| encoder.data(header, b"bytes", out)),
        "credit_frame": encoded(&|out| encoder.credit(CHANNEL, StreamKind::Stdin, 4096, out)),
        "opening": hex(&Opening::new(nonce, PortRole::Control).encode()),
        "opening_ack": hex(&Opening::new(nonce, PortRole::Bulk).answer().encode()),
        "copy_mark_prefix": hex(&copy_mark::page_prefix(&[0xC3; 32])),
        "session_tag_of_opening": nonce.session_tag().0,
    })
}

fn surface() -> Value {
    let calls: Vec<_> = requests()
        .into_iter()
        .map(|request| Call { call: 1, request })
        .collect();
    let mut messages: Vec<_> = responses()
        .into_iter()
        .map(|response| Answer {
            call: 1,
            result: AnswerResult::Ok(response),
        })
        .map(GuestMessage::Answer)
        .collect();
    messages.push(GuestMessage::Answer(Answer {
        call: 1,
        result: AnswerResult::Error(error()),
    }));
    messages.extend(events().into_iter().map(GuestMessage::Event));
    json!({
        "generation": 1,
        "calls": calls,
        "guest_messages": messages,
        "lines": lines(),
        "words": {
            "error_code": GuestErrorCode::ALL,
            "exit_reason": [
                ExitReason::Exited, ExitReason::Signaled, ExitReason::TimedOut,
                ExitReason::OutOfMemory, ExitReason::Killed, ExitReason::LimitExceeded,
            ],
            "limit_kind": [LimitKind::Memory, LimitKind::Cpu, LimitKind::Processes],
            "when_full": [WhenFull::DropOldest, WhenFull::Block],
            "watch_kind": [
                WatchKind::Ready, WatchKind::Created, WatchKind::Modified, WatchKind::Removed,
                WatchKind::Moved, WatchKind::Overflow,
            ],
            "change_kind": [ChangeKind::Added, ChangeKind::Modified, ChangeKind::Removed],
            "identity_event": [
                IdentityEvent::Create, IdentityEvent::Fork, IdentityEvent::Wake,
                IdentityEvent::Rollback,
            ],
            "guest_state": [GuestState::Quarantined, GuestState::Running, GuestState::Quiesced],
            "stdin": [StdinMode::Null, StdinMode::Piped],
            "stream": StreamKind::ALL.map(|stream| json!([stream, stream.wire()])),
        },
        "constants": {
            "control_port": dayfly_guest_proto::CONTROL_PORT_NAME,
            "bulk_port": dayfly_guest_proto::BULK_PORT_NAME,
            "frame_header_bytes": frame::FRAME_HEADER_BYTES,
            "frame_payload_bytes_max": limits::FRAME_PAYLOAD_BYTES_MAX,
            "control_message_bytes_max": limits::CONTROL_MESSAGE_BYTES_MAX,
            "stream_credit_bytes": limits::STREAM_CREDIT_BYTES,
            "preamble_bytes": opening::PREAMBLE_BYTES,
            "copy_mark_page_bytes": copy_mark::PAGE_BYTES,
            "copy_mark_flag_offset": copy_mark::FLAG_OFFSET,
        },
        "wire": bytes_on_the_wire(),
    })
}

#[test]
fn live_surface_equals_the_frozen_schema() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/gen-1.json");
    let live = serde_json::to_string_pretty(&surface()).unwrap() + "\n";
    if std::env::var_os("DAYFLY_BLESS").is_some() {
        std::fs::write(&path, &live).unwrap();
    }
    let frozen = std::fs::read_to_string(&path).unwrap();
    assert!(
        live == frozen,
        "the protocol changed; live surface:\n{live}"
    );
}

#[test]
fn samples_cover_every_kind_and_round_trip() {
    let kind = |value: Value| value["kind"].as_str().unwrap().to_owned();
    let mut seen: Vec<_> = requests()
        .iter()
        .map(|request| kind(serde_json::to_value(request).unwrap()))
        .collect();
    seen.dedup();
    assert_eq!(seen, REQUEST_KINDS);
    let seen: Vec<_> = events()
        .iter()
        .map(|event| kind(serde_json::to_value(event).unwrap()))
        .collect();
    assert_eq!(seen, EVENT_KINDS);
    for request in requests() {
        let call = Call { call: 8, request };
        assert_eq!(
            Call::parse(&serde_json::to_vec(&call).unwrap()).unwrap(),
            call
        );
    }
}

#[test]
fn frozen_messages_still_parse() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/gen-1.json");
    let frozen: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    for call in frozen["calls"].as_array().unwrap() {
        Call::parse(call.to_string().as_bytes()).unwrap();
    }
    for message in frozen["guest_messages"].as_array().unwrap() {
        GuestMessage::parse(message.to_string().as_bytes()).unwrap();
    }
}

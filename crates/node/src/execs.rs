//! Execs and contexts of a guest, in the words of the node's contract.

use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use dayfly_guest_client::{
    AgentClient, AttachSpec, CallError, ExecEvent as GuestEvent, ExecInput, ExecSession, ExecSpec,
    GuestSocket, OutputStream as GuestStream,
};
use dayfly_guest_proto as guest;
use dayfly_node_api::{
    AttachExec, ContextLines, ExecCommand, ExecEvent, ExecEvents, ExecExit, ExecReport,
    ExecRequest, ExitReason, FileBytes, LimitKind, LogExtent, NodeError, OutputGap, OutputStream,
    StdinWrite, TerminalSize, WhenFull,
};
use dayfly_types::limits::{AGENT_CALL_DEADLINE, CONTEXT_LINE_BYTES_MAX, EXECS_MAX};
use dayfly_types::{ErrorCode, ExecId};
use futures::StreamExt;

use crate::calls::{call_failed, lost, stream_failed};
use crate::sandbox::OpenCall;

/// Where templates with contexts have their bridge.
const CONTEXT_SOCKET: &str = "/run/dayfly-contexts/bridge.sock";

/// Between two looks at how much input a guest has taken.
const SETTLE_PAUSE: Duration = Duration::from_millis(5);

/// How soon a caller may ask again when too many commands run.
const TOO_MANY_RETRY: Duration = Duration::from_secs(1);

/// Starts an exec, or finds the one that was started with this id, and gives its events.
pub(crate) async fn start(
    agent: &AgentClient,
    mut request: ExecRequest,
    call: OpenCall,
) -> Result<ExecEvents, NodeError> {
    let stdin = request.stdin.take().map(Bytes::from);
    let keeps_open = request.keeps_stdin_open;
    let id = request.id.clone();
    let session = agent
        .exec(spec(request, stdin.is_some() || keeps_open))
        .await
        .map_err(start_failed)?;
    if let Some(bytes) = stdin {
        // This may be a repeat, whose input the guest has taken already.
        let info = agent.describe_exec(&id).await.map_err(call_failed)?;
        if info.takes_stdin {
            let rest = bytes.slice(clamp(info.stdin_bytes, bytes.len())..);
            send_apart(session.input(), rest, !keeps_open);
        }
    }
    Ok(events(session, call))
}

fn spec(request: ExecRequest, takes_stdin: bool) -> ExecSpec {
    ExecSpec {
        exec_id: request.id,
        command: match request.command {
            ExecCommand::Argv(words) => guest::ExecCommand::Argv(words),
            ExecCommand::Shell(text) => guest::ExecCommand::Shell(text),
        },
        cwd: request.cwd,
        env: request.env,
        user: request.user,
        timeout: request.timeout_ms.map(Duration::from_millis),
        stdin: if takes_stdin {
            guest::StdinMode::Piped
        } else {
            guest::StdinMode::Null
        },
        terminal: request.terminal.map(terminal_size),
        log: guest::LogRule {
            bytes_max: request.log.bytes_max,
            when_full: match request.log.when_full {
                WhenFull::DropOldest => guest::WhenFull::DropOldest,
                WhenFull::Block => guest::WhenFull::Block,
            },
        },
        limits: guest::ExecLimits {
            memory_bytes: request.limits.memory_bytes,
            cpu_ms: request.limits.cpu_ms,
            processes_max: request.limits.processes_max,
        },
        is_service: false,
    }
}

const fn terminal_size(size: TerminalSize) -> guest::TerminalSize {
    guest::TerminalSize {
        columns: size.columns,
        rows: size.rows,
    }
}

/// Sends input apart from the output: a process that writes before it reads must not wait for
/// itself.
fn send_apart(input: ExecInput, bytes: Bytes, is_last: bool) {
    tokio::spawn(async move {
        // It may end without reading all of its input; that is its own business.
        if input.write_stdin(bytes).await.is_ok() && is_last {
            let _ = input.close_stdin().await;
        }
    });
}

fn events(session: ExecSession, call: OpenCall) -> ExecEvents {
    futures::stream::unfold(Some((session, call)), |open| async move {
        let (mut session, call) = open?;
        match session.next().await {
            Ok(Some(event)) => Some((Ok(event_of(event)), Some((session, call)))),
            Ok(None) => None,
            Err(error) => Some((Err(lost(&error)), None)),
        }
    })
    .boxed()
}

/// Gives the output of an exec that was started before.
pub(crate) async fn attach(
    agent: &AgentClient,
    request: AttachExec,
    call: OpenCall,
) -> Result<(ExecReport, ExecEvents), NodeError> {
    let spec = AttachSpec {
        stdout: request.stdout_offset,
        stderr: request.stderr_offset,
        stdin: false,
    };
    let attached = agent.attach_exec(&request.exec, spec).await;
    let (info, session) = attached.map_err(exec_failed)?;
    Ok((report(info), events(session, call)))
}

/// Sends input to an exec and gives how much it has taken in total.
pub(crate) async fn write_stdin(
    agent: &AgentClient,
    request: StdinWrite,
    mut content: FileBytes,
) -> Result<u64, NodeError> {
    let spec = AttachSpec {
        stdout: None,
        stderr: None,
        stdin: true,
    };
    let attached = agent.attach_exec(&request.exec, spec).await;
    let (info, session) = attached.map_err(exec_failed)?;
    if !info.takes_stdin {
        let text =
            "the process takes no input: it has ended, or its input was closed or never open";
        return Err(NodeError::new(ErrorCode::WrongState, text));
    }
    let taken = info.stdin_bytes;
    let first = request.offset.unwrap_or(taken);
    if first > taken {
        let text = format!("input goes on at byte {taken}");
        return Err(NodeError::new(ErrorCode::InvalidRequest, text));
    }
    let mut repeated = taken - first;
    let mut sent = taken;
    while let Some(piece) = content.next().await {
        let mut piece = piece?;
        let skipped = clamp(repeated, piece.len());
        repeated -= skipped as u64;
        let piece = piece.split_off(skipped);
        sent += piece.len() as u64;
        session.write_stdin(piece).await.map_err(stream_failed)?;
    }
    if request.is_last {
        session.close_stdin().await.map_err(stream_failed)?;
    }
    settled(agent, &request.exec, sent).await
}

/// The guest's own count, once it has taken what was sent: bytes come on another port than calls.
async fn settled(agent: &AgentClient, exec: &ExecId, sent: u64) -> Result<u64, NodeError> {
    let end = Instant::now() + AGENT_CALL_DEADLINE;
    loop {
        let info = agent.describe_exec(exec).await.map_err(exec_failed)?;
        let is_settled = info.stdin_bytes >= sent || info.exit.is_some() || !info.takes_stdin;
        if is_settled || Instant::now() > end {
            return Ok(info.stdin_bytes);
        }
        tokio::time::sleep(SETTLE_PAUSE).await;
    }
}

/// A refusal that is about an exec and not about a file.
fn exec_failed(error: CallError) -> NodeError {
    let mut failure = call_failed(error);
    if failure.code == ErrorCode::NotFound {
        failure.message =
            "the sandbox has no such exec; the oldest ended ones are forgotten first".to_owned();
    }
    if failure.code == ErrorCode::InvalidRequest {
        failure.message = "the exec has no such offset, signal or terminal".to_owned();
    }
    failure
}

fn start_failed(error: CallError) -> NodeError {
    let code = match &error {
        CallError::Refused(refusal) => Some(refusal.code),
        CallError::Lost(_)
        | CallError::TimedOut { .. }
        | CallError::UnexpectedAnswer
        | CallError::TooLong
        | CallError::TooMany { .. } => None,
    };
    match code {
        Some(guest::GuestErrorCode::Exists) => {
            let text = "another command was started with this exec id";
            NodeError::new(ErrorCode::AlreadyExists, text)
        }
        Some(guest::GuestErrorCode::TooMany) => {
            let text = format!("{EXECS_MAX} commands run in this sandbox, which is the most");
            NodeError::new(ErrorCode::TooMany, text).retry_after(TOO_MANY_RETRY)
        }
        Some(guest::GuestErrorCode::Unsupported) => {
            let text = "the guest cannot keep this limit";
            NodeError::new(ErrorCode::NotImplemented, text)
        }
        Some(_) | None => call_failed(error),
    }
}

fn clamp(value: u64, limit: usize) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX).min(limit)
}

fn event_of(event: GuestEvent) -> ExecEvent {
    match event {
        GuestEvent::Stdout(bytes) => ExecEvent::Stdout(bytes),
        GuestEvent::Stderr(bytes) => ExecEvent::Stderr(bytes),
        GuestEvent::Gap { stream, bytes } => ExecEvent::Gap(OutputGap {
            stream: match stream {
                GuestStream::Stdout => OutputStream::Stdout,
                GuestStream::Stderr => OutputStream::Stderr,
            },
            bytes,
        }),
        GuestEvent::Exited { exit, duration_ms } => ExecEvent::Exited(exit_of(exit, duration_ms)),
    }
}

fn exit_of(exit: guest::ExecExit, duration_ms: u64) -> ExecExit {
    let limit = |kind: guest::LimitKind| match kind {
        guest::LimitKind::Memory => Some(LimitKind::Memory),
        guest::LimitKind::Cpu => Some(LimitKind::Cpu),
        guest::LimitKind::Processes => Some(LimitKind::Processes),
        guest::LimitKind::Unknown | _ => None,
    };
    ExecExit {
        exit_code: exit.code,
        signal: exit.signal,
        reason: exit_reason(exit.reason),
        duration_ms,
        limits_hit: exit
            .limits_hit
            .into_iter()
            .filter_map(limit)
            .take(3)
            .collect(),
    }
}

fn exit_reason(reason: guest::ExitReason) -> ExitReason {
    match reason {
        guest::ExitReason::Signaled => ExitReason::Signaled,
        guest::ExitReason::TimedOut => ExitReason::TimedOut,
        guest::ExitReason::OutOfMemory => ExitReason::OutOfMemory,
        guest::ExitReason::Killed => ExitReason::Killed,
        guest::ExitReason::LimitExceeded => ExitReason::LimitExceeded,
        // A newer guest may know more reasons; its exit code still holds.
        guest::ExitReason::Exited | guest::ExitReason::Unknown | _ => ExitReason::Exited,
    }
}

pub(crate) fn report(info: guest::ExecInfo) -> ExecReport {
    let extent = |log: guest::LogExtent| LogExtent {
        start: log.start.min(log.end),
        end: log.end,
    };
    let duration_ms = info.duration_ms;
    ExecReport {
        id: info.exec_id,
        title: info.title,
        user: info.user,
        pid: info.pid,
        started_unix_ms: info.started_unix_ms,
        exit: info.exit.map(|exit| exit_of(exit, duration_ms)),
        duration_ms,
        is_terminal: info.is_terminal,
        takes_stdin: info.takes_stdin,
        stdin_bytes: info.stdin_bytes,
        stdout: extent(info.stdout),
        stderr: extent(info.stderr),
    }
}

pub(crate) async fn describe(agent: &AgentClient, exec: &ExecId) -> Result<ExecReport, NodeError> {
    agent
        .describe_exec(exec)
        .await
        .map(report)
        .map_err(exec_failed)
}

pub(crate) async fn list(agent: &AgentClient) -> Result<Vec<ExecReport>, NodeError> {
    let execs = agent.list_execs().await.map_err(call_failed)?;
    Ok(execs.into_iter().map(report).collect())
}

pub(crate) async fn signal(
    agent: &AgentClient,
    exec: &ExecId,
    number: i32,
) -> Result<(), NodeError> {
    agent.signal_exec(exec, number).await.map_err(exec_failed)
}

pub(crate) async fn resize(
    agent: &AgentClient,
    exec: &ExecId,
    size: TerminalSize,
) -> Result<(), NodeError> {
    let size = terminal_size(size);
    agent.resize_exec(exec, size).await.map_err(exec_failed)
}

pub(crate) async fn forget(agent: &AgentClient, exec: &ExecId) -> Result<(), NodeError> {
    agent.forget_exec(exec).await.map_err(call_failed)
}

/// Sends one request to the bridge of a guest's contexts and gives the lines of its answer.
pub(crate) async fn context(
    agent: &AgentClient,
    request: Bytes,
    call: OpenCall,
) -> Result<ContextLines, NodeError> {
    let socket = agent.connect_socket(CONTEXT_SOCKET).await;
    let socket = socket.map_err(|error| {
        let refusal = call_failed(error);
        // The guest's word for "nobody listens there".
        if refusal.code != ErrorCode::NotFound {
            return refusal;
        }
        let text = "this template has no contexts; use one that has, such as code-interpreter";
        NodeError::new(ErrorCode::NotImplemented, text)
    })?;
    let mut line = BytesMut::from(&request[..]);
    line.extend_from_slice(b"\n");
    socket.send(line.freeze()).await.map_err(stream_failed)?;
    socket.end().await.map_err(stream_failed)?;
    let start = Lines {
        socket,
        buffer: BytesMut::new(),
        _call: call,
    };
    let lines = futures::stream::unfold(Some(start), |lines| async move {
        let mut lines = lines?;
        match lines.next().await {
            Ok(Some(line)) => Some((Ok(line), Some(lines))),
            Ok(None) => None,
            Err(error) => Some((Err(error), None)),
        }
    });
    Ok(lines.boxed())
}

struct Lines {
    socket: GuestSocket,
    buffer: BytesMut,
    _call: OpenCall,
}

impl Lines {
    async fn next(&mut self) -> Result<Option<Bytes>, NodeError> {
        let mut searched = 0;
        loop {
            let found = self.buffer[searched..].iter().position(|b| *b == b'\n');
            if let Some(end) = found {
                let mut line = self.buffer.split_to(searched + end + 1);
                line.truncate(searched + end);
                return Ok(Some(line.freeze()));
            }
            searched = self.buffer.len();
            if searched > CONTEXT_LINE_BYTES_MAX {
                let text = "the guest's context bridge sent a line that is too long";
                return Err(NodeError::new(ErrorCode::GuestUnavailable, text));
            }
            match self.socket.next().await.map_err(stream_failed)? {
                Some(bytes) => self.buffer.extend_from_slice(&bytes),
                None => return Ok(None),
            }
        }
    }
}

//! Execs and contexts of a guest, in the words of the node's contract.

use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use dayfly_guest_client::{AgentClient, AttachSpec, CallError, ExecInput, GuestSocket};
use dayfly_guest_proto as guest;
use dayfly_node_api::{
    AttachExec, ContextLines, EnsureExec, ExecEvents, FileBytes, NodeError, StdinWrite,
};
use dayfly_types::exec::{ExecEvent, ExecInfo, ReadOffsets, StdinMode, WindowSize};
use dayfly_types::limits::{AGENT_CALL_DEADLINE, CONTEXT_LINE_BYTES_MAX, EXECS_MAX};
use dayfly_types::{ErrorCode, ExecId};
use futures::StreamExt;

use crate::calls::{call_failed, stream_failed};
use crate::followed::{Place, follow};
use crate::sandbox::OpenCall;

/// Where templates with contexts have their bridge.
const CONTEXT_SOCKET: &str = "/run/dayfly-contexts/bridge.sock";

/// Between two looks at how much input a guest has taken.
const SETTLE_PAUSE: Duration = Duration::from_millis(5);

/// A guest may name each kind of limit once.
const LIMIT_KINDS: usize = 3;

/// How soon a caller may ask again when too many commands run.
const TOO_MANY_RETRY: Duration = Duration::from_secs(1);

/// Starts an exec, or finds the one that was started with this id, and gives its events.
pub(crate) async fn start(
    agent: &AgentClient,
    place: Place,
    request: EnsureExec,
    call: OpenCall,
) -> Result<ExecEvents, NodeError> {
    let keeps_open = request.keeps_stdin_open;
    let mut spec = request.spec;
    spec.stdin = if request.input.is_some() || keeps_open {
        StdinMode::Piped
    } else {
        StdinMode::Null
    };
    let id = spec.exec_id.clone();
    let session = agent.exec(spec).await.map_err(start_failed)?;
    if let Some(bytes) = request.input.map(Bytes::from) {
        // This may be a repeat, whose input the guest has taken already.
        let info = agent.describe_exec(&id).await.map_err(call_failed)?;
        if info.takes_stdin {
            let rest = bytes.slice(clamp(info.stdin_bytes, bytes.len())..);
            send_apart(session.input(), rest, !keeps_open, call.beside());
        }
    }
    Ok(follow(place, id, ReadOffsets::BEGINNING, session, call))
}

/// Sends input apart from the output: a process that writes before it reads must not wait for
/// itself. Until it has taken all, this is a call of its own.
fn send_apart(input: ExecInput, bytes: Bytes, is_last: bool, call: OpenCall) {
    tokio::spawn(async move {
        let _call = call;
        // It may end without reading all of its input; that is its own business.
        if input.write_stdin(bytes).await.is_ok() && is_last {
            let _ = input.close_stdin().await;
        }
    });
}

/// Gives the output of an exec that was started before.
pub(crate) async fn attach(
    agent: &AgentClient,
    place: Place,
    request: AttachExec,
    call: OpenCall,
) -> Result<(ExecInfo, ExecEvents), NodeError> {
    let spec = AttachSpec {
        stdout: request.stdout_offset,
        stderr: request.stderr_offset,
        stdin: false,
    };
    let attached = agent.attach_exec(&request.exec, spec).await;
    let (info, session) = attached.map_err(exec_failed)?;
    let offsets = ReadOffsets {
        stdout: request.stdout_offset,
        stderr: request.stderr_offset,
    };
    let events = follow(place, request.exec, offsets, session, call);
    Ok((checked(info), events))
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

/// What a guest says of an exec, with nothing in it that cannot be.
fn checked(mut info: ExecInfo) -> ExecInfo {
    for log in [&mut info.stdout, &mut info.stderr] {
        log.start = log.start.min(log.end);
    }
    if let Some(exit) = &mut info.exit {
        exit.limits_hit.truncate(LIMIT_KINDS);
    }
    info
}

pub(crate) fn checked_event(mut event: ExecEvent) -> ExecEvent {
    if let ExecEvent::Exited(end) = &mut event {
        end.exit.limits_hit.truncate(LIMIT_KINDS);
    }
    event
}

pub(crate) async fn describe(agent: &AgentClient, exec: &ExecId) -> Result<ExecInfo, NodeError> {
    agent
        .describe_exec(exec)
        .await
        .map(checked)
        .map_err(exec_failed)
}

pub(crate) async fn list(agent: &AgentClient) -> Result<Vec<ExecInfo>, NodeError> {
    let execs = agent.list_execs().await.map_err(call_failed)?;
    Ok(execs.into_iter().map(checked).collect())
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
    size: WindowSize,
) -> Result<(), NodeError> {
    agent.resize_exec(exec, size).await.map_err(exec_failed)
}

pub(crate) async fn forget(agent: &AgentClient, exec: &ExecId) -> Result<(), NodeError> {
    agent.forget_exec(exec).await.map_err(call_failed)
}

/// Sends one request to the bridge of a guest's contexts and gives the lines of its answer.
pub(crate) async fn context(
    agent: &AgentClient,
    request: &str,
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
    let mut line = BytesMut::from(request.as_bytes());
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

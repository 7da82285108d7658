//! Calls that go straight to a guest: execs and files. The owner only lends the agent handle.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use dayfly_core::lifecycle::takes_calls;
use dayfly_guest_client::{
    AgentClient, CallError, ConversationLost, ExecEvent as GuestEvent, ExecSpec, ReadRange,
    StreamError, WriteOptions,
};
use dayfly_guest_proto::{
    ExecCommand as GuestCommand, ExitReason as GuestReason, FileEntry, GuestError, GuestErrorCode,
    StdinMode,
};
use dayfly_node_api::{
    Directory, DirectoryEntry, ExecCommand, ExecEvent, ExecEvents, ExecExit, ExecRequest,
    ExitReason, FileBytes, FileInfo, FileRead, FileWrite, NodeError, Watch,
};
use dayfly_types::{ErrorCode, SandboxState, limits};
use futures::StreamExt;
use tokio::sync::broadcast::error::RecvError;

use crate::parts::Parts;
use crate::sandbox::{OpenCall, Published, SandboxHandle, wrong_state};

/// How long a call waits for a conversation that is being opened anew, after a restart of the node
/// for example.
const AGENT_WAIT: Duration = Duration::from_secs(10);

/// How often a sandbox that falls asleep under a call is woken for it.
const WAKES_MAX: usize = 3;

/// The agent of a sandbox that takes calls, and what counts as activity until it is dropped. One
/// that sleeps is woken first.
pub(crate) async fn agent(handle: &SandboxHandle) -> Result<(AgentClient, OpenCall), NodeError> {
    let call = handle.activity.begin();
    for _ in 0..WAKES_MAX {
        handle.wake_if_asleep().await?;
        match agent_now(handle).await {
            // It fell asleep between the two.
            Err(error) if handle.is_asleep() => tracing::debug!(%error, "waking it once more"),
            outcome => return outcome.map(|agent| (agent, call)),
        }
    }
    Err(wrong_state(handle.report().state))
}

async fn agent_now(handle: &SandboxHandle) -> Result<AgentClient, NodeError> {
    let mut published = handle.published.clone();
    let settled = |now: &Published| now.agent.is_some() || !may_come(now.report.state);
    match tokio::time::timeout(AGENT_WAIT, published.wait_for(settled)).await {
        Ok(Ok(now)) => match &now.agent {
            Some(agent) if takes_calls(now.report.state) => Ok(agent.clone()),
            _ => Err(wrong_state(now.report.state)),
        },
        Ok(Err(_)) => Err(wrong_state(SandboxState::Deleted)),
        Err(_) => Err(NodeError::new(
            ErrorCode::GuestUnavailable,
            "the guest agent does not answer; the sandbox can only be deleted",
        )),
    }
}

fn may_come(state: SandboxState) -> bool {
    matches!(
        state,
        SandboxState::Creating | SandboxState::Running | SandboxState::Resuming
    )
}

/// Starts an exec and gives its events. Dropping them ends the process in the guest.
pub(crate) async fn exec(
    agent: &AgentClient,
    request: ExecRequest,
    call: OpenCall,
) -> Result<ExecEvents, NodeError> {
    let stdin = request.stdin.map(Bytes::from);
    let spec = ExecSpec {
        exec_id: request.id,
        command: match request.command {
            ExecCommand::Argv(words) => GuestCommand::Argv(words),
            ExecCommand::Shell(text) => GuestCommand::Shell(text),
        },
        cwd: request.cwd,
        env: request.env,
        user: request.user,
        timeout: request.timeout_ms.map(Duration::from_millis),
        stdin: if stdin.is_some() {
            StdinMode::Piped
        } else {
            StdinMode::Null
        },
    };
    let session = agent.exec(spec).await.map_err(call_failed)?;
    if let Some(bytes) = stdin {
        let input = session.input();
        // Apart from the output: a process that writes before it reads must not wait for itself.
        tokio::spawn(async move {
            // It may end without reading all of its input; that is its own business.
            if input.write_stdin(bytes).await.is_ok() {
                let _ = input.close_stdin().await;
            }
        });
    }
    let events = futures::stream::unfold(Some((session, call)), |open| async move {
        let (mut session, call) = open?;
        match session.next().await {
            Ok(Some(event)) => Some((Ok(exec_event(event)), Some((session, call)))),
            Ok(None) => None,
            Err(error) => Some((Err(lost(&error)), None)),
        }
    });
    Ok(events.boxed())
}

fn exec_event(event: GuestEvent) -> ExecEvent {
    match event {
        GuestEvent::Stdout(bytes) => ExecEvent::Stdout(bytes),
        GuestEvent::Stderr(bytes) => ExecEvent::Stderr(bytes),
        GuestEvent::Exited { exit, duration_ms } => ExecEvent::Exited(ExecExit {
            exit_code: exit.code,
            signal: exit.signal,
            reason: exit_reason(exit.reason),
            duration_ms,
        }),
    }
}

fn exit_reason(reason: GuestReason) -> ExitReason {
    match reason {
        GuestReason::Signaled => ExitReason::Signaled,
        GuestReason::TimedOut => ExitReason::TimedOut,
        GuestReason::OutOfMemory => ExitReason::OutOfMemory,
        GuestReason::Killed => ExitReason::Killed,
        // A newer guest may know more reasons; its exit code still holds.
        GuestReason::Exited | GuestReason::Unknown | _ => ExitReason::Exited,
    }
}

/// Opens a file of the guest.
pub(crate) async fn read_file(
    agent: &AgentClient,
    request: FileRead,
    call: OpenCall,
) -> Result<(FileInfo, FileBytes), NodeError> {
    let file = agent
        .read_file(&request.path, request.user.as_deref(), ReadRange::default())
        .await
        .map_err(call_failed)?;
    let info = FileInfo {
        size: file.info().size,
        mode: permission_bits(&file.info().mode),
        mtime: file.info().mtime,
    };
    let bytes = file.into_stream().map(move |part| {
        let _open = &call;
        part.map_err(stream_failed)
    });
    Ok((info, bytes.boxed()))
}

/// Writes a file of the guest as a whole or not at all.
pub(crate) async fn write_file(
    agent: &AgentClient,
    request: FileWrite,
    mut content: FileBytes,
) -> Result<u64, NodeError> {
    let options = WriteOptions {
        user: request.user,
        mode: request.mode,
        make_parents: true,
        append: false,
    };
    let mut file = agent
        .write_file(&request.path, options)
        .await
        .map_err(call_failed)?;
    while let Some(part) = content.next().await {
        // Returning drops the file, which discards it in the guest.
        file.write(part?).await.map_err(stream_failed)?;
    }
    file.finish().await.map_err(stream_failed)
}

pub(crate) async fn list_directory(
    agent: &AgentClient,
    path: &str,
) -> Result<Directory, NodeError> {
    let listing = agent
        .list_directory(path, None, limits::DIRECTORY_ENTRIES_MAX)
        .await
        .map_err(call_failed)?;
    let entries = listing.entries.into_iter().map(entry).collect();
    Ok(Directory {
        entries,
        truncated: listing.is_truncated,
    })
}

pub(crate) async fn stat(agent: &AgentClient, path: &str) -> Result<DirectoryEntry, NodeError> {
    agent.stat(path, None).await.map(entry).map_err(call_failed)
}

fn entry(entry: FileEntry) -> DirectoryEntry {
    DirectoryEntry {
        mode: permission_bits(&entry.mode),
        name: entry.name,
        path: entry.path,
        is_dir: entry.is_dir,
        is_symlink: entry.is_symlink,
        size: entry.size,
        mtime: entry.mtime,
        uid: entry.uid,
        gid: entry.gid,
    }
}

/// The guest sends octal digits; what is none reads as no permission.
fn permission_bits(octal: &str) -> u32 {
    u32::from_str_radix(octal, 8).unwrap_or(0) & 0o7777
}

/// Reports of every sandbox, then of every change.
pub(crate) fn watch(parts: Arc<Parts>) -> Watch {
    // Subscribed before the first list, so that no change falls between the two.
    let feed = parts.listen();
    let first = parts.reports();
    let start = (parts, feed, first);
    futures::stream::unfold(start, |(parts, mut feed, mut waiting)| async move {
        loop {
            if let Some(report) = waiting.pop() {
                return Some((Ok((*report).clone()), (parts, feed, waiting)));
            }
            match feed.recv().await {
                Ok(report) => waiting.push(report),
                // Missed some: everything again, which holds the last value of each.
                Err(RecvError::Lagged(_)) => waiting = parts.reports(),
                Err(RecvError::Closed) => return None,
            }
        }
    })
    .boxed()
}

fn call_failed(error: CallError) -> NodeError {
    match error {
        CallError::Refused(refusal) => refused(&refusal),
        CallError::Lost(loss) => lost(&loss),
        CallError::TimedOut { .. } | CallError::UnexpectedAnswer => {
            NodeError::new(ErrorCode::GuestUnavailable, error.to_string())
        }
        CallError::TooLong => NodeError::new(ErrorCode::TooLarge, error.to_string()),
        CallError::TooMany { .. } => NodeError::new(ErrorCode::TooMany, error.to_string())
            .retry_after(Duration::from_secs(1)),
    }
}

fn stream_failed(error: StreamError) -> NodeError {
    match error {
        StreamError::Failed(refusal) => refused(&refusal),
        StreamError::Lost(loss) => lost(&loss),
        StreamError::TimedOut { .. } | StreamError::Ended => {
            NodeError::new(ErrorCode::GuestUnavailable, error.to_string())
        }
    }
}

fn lost(loss: &ConversationLost) -> NodeError {
    let text = format!("the guest is gone: {loss}");
    NodeError::new(ErrorCode::GuestUnavailable, text)
}

/// Our own words for each code: the guest's text is not to be trusted, so it is not passed on.
fn refused(refusal: &GuestError) -> NodeError {
    let (code, text) = match refusal.code {
        GuestErrorCode::NotFound => (ErrorCode::NotFound, "no such file or user in the guest"),
        GuestErrorCode::PermissionDenied => (ErrorCode::Forbidden, "the guest denies permission"),
        GuestErrorCode::IsDirectory => (ErrorCode::InvalidRequest, "it is a directory"),
        GuestErrorCode::NotDirectory => (ErrorCode::InvalidRequest, "it is not a directory"),
        GuestErrorCode::Exists => (ErrorCode::InvalidRequest, "it exists already"),
        GuestErrorCode::NoSpace => (ErrorCode::DiskFull, "the guest's disk is full"),
        GuestErrorCode::Invalid => (
            ErrorCode::InvalidRequest,
            "the guest cannot do that with what it was given",
        ),
        GuestErrorCode::TooMany => (ErrorCode::TooMany, "the guest has too many of them open"),
        GuestErrorCode::Unsupported => (
            ErrorCode::NotImplemented,
            "the guest agent of this template is too old for it",
        ),
        GuestErrorCode::Busy => (
            ErrorCode::WrongState,
            "something in the guest still uses it",
        ),
        GuestErrorCode::WrongState => (ErrorCode::WrongState, "the guest is in another state"),
        GuestErrorCode::Io | _ => (ErrorCode::GuestUnavailable, "the guest's disk failed"),
    };
    NodeError::new(code, text)
}

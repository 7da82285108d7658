//! Execs over a WebSocket: output with offsets, input, signals and sizes on one connection.
//!
//! ```text
//! client                                   server
//!  |  {"type":"start","cmd":...}  ------->      (on exec/socket only)
//!  |  <------ {"type":"attached", ...}
//!  |  <------ binary: stream, offset, bytes
//!  |  binary: input            ---------->
//!  |  <------ {"type":"exit", ...}, close
//! ```
//! A client that was cut off comes back on `processes/{exec_id}/socket` with its offsets.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use bytes::{BufMut, Bytes, BytesMut};
use dayfly_api::{SOCKET_HEADER_BYTES, SOCKET_STDERR, SOCKET_STDOUT, SocketCall, SocketEvent};
use dayfly_node_api::{
    AttachExec, ExecEvents, FileBytes, NodeApi, NodeCalls, NodeError, StdinWrite,
};
use dayfly_types::exec::{ExecEvent, ExecInfo, OutputStream, ReadOffsets};
use dayfly_types::limits::{FRAME_PAYLOAD_BYTES_MAX, JSON_BODY_BYTES_MAX};
use dayfly_types::{ErrorCode, ExecId, SandboxId};
use futures::{SinkExt, StreamExt};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;

use crate::admission::limit::Permit;
use crate::control::Control;
use crate::exec::audit::attached_detail;
use crate::exec::follow::{Position, follow};
use crate::exec::http as exec;
use crate::exec::process::{exit_event, process};
use crate::exec::process_parameter::{AttachParameter, ProcessParameter};
use crate::exec::spec::{ExecPlan, terminal_size};
use crate::http::answer::SocketRefusals;
use crate::http::auth::{Caller, key_ended};
use crate::http::error::ApiError;
use crate::http::key_bound::bound_bytes;
use crate::http::known_names;
use crate::http::parameter::SandboxParameter;
use crate::sandbox::read::locate;
use crate::tenancy::key_ends::KeyEnd;

/// How long a client has to say what it wants to start.
const START_DEADLINE: Duration = Duration::from_secs(30);
/// How long a client has to take the word that it is refused.
const REFUSAL_DEADLINE: Duration = Duration::from_secs(1);
/// A sign of life after this much silence.
const PING_INTERVAL: Duration = Duration::from_secs(10);
/// Input messages that wait for the guest.
const INPUT_QUEUE_LENGTH: usize = 8;
const WRITE_BUFFER_BYTES: usize = 256 << 10;

type Upgrade = Result<WebSocketUpgrade, WebSocketUpgradeRejection>;

/// What one socket is about.
struct Attached {
    target: Target,
    position: Position,
    report: ExecInfo,
    events: ExecEvents,
    _place: Permit,
}

/// The exec that input and signals go to.
#[derive(Clone)]
struct Target {
    node: Arc<dyn NodeApi>,
    sandbox: SandboxId,
    exec: ExecId,
}

/// Starts a command on a WebSocket; its first message is the request.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/exec/socket", operation_id = "exec_socket", tag = "exec",
    params(SandboxParameter), responses((status = 101), SocketRefusals))]
pub(crate) async fn start(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    SandboxParameter { id }: SandboxParameter,
    upgrade: Upgrade,
) -> Result<Response, ApiError> {
    let upgrade = accept(upgrade)?;
    locate(&control, &caller.project, &id).await?;
    // From the start, so that sockets on which nothing is said are counted too.
    let place = control.limits.exec(&caller.project)?;
    Ok(upgrade.on_upgrade(move |mut socket| async move {
        let begun = tokio::select! {
            biased;
            () = caller.end.reached() => Err(key_ended()),
            begun = begin(control, &caller, (id, place), &mut socket) => begun,
        };
        match begun {
            Ok(attached) => serve_until(caller.end, socket, attached).await,
            Err(error) => refuse(socket, error).await,
        }
    }))
}

/// Attaches to an exec on a WebSocket, from offsets on.
#[utoipa::path(get, path = "/v1/sandboxes/{id}/processes/{exec_id}/socket", operation_id = "process_socket", tag = "exec",
    params(ProcessParameter, AttachParameter), responses((status = 101), SocketRefusals))]
pub(crate) async fn attach(
    State(control): State<Arc<Control>>,
    Extension(caller): Extension<Caller>,
    ProcessParameter {
        id: sandbox,
        exec_id: exec,
    }: ProcessParameter,
    from: AttachParameter,
    upgrade: Upgrade,
) -> Result<Response, ApiError> {
    let (stdout, stderr) = from.offsets();
    let upgrade = accept(upgrade)?;
    locate(&control, &caller.project, &sandbox).await?;
    let place = control.limits.exec(&caller.project)?;
    let request = AttachExec {
        exec: exec.clone(),
        stdout_offset: Some(stdout),
        stderr_offset: Some(stderr),
    };
    let (report, events) = control.node.attach_exec(&sandbox, request).await?;
    let position = Position {
        sandbox,
        exec,
        offsets: ReadOffsets {
            stdout: Some(stdout),
            stderr: Some(stderr),
        },
    };
    let attached = Attached {
        events: follow(Arc::clone(&control.node), position.clone(), events),
        target: Target::new(&control, &position),
        position,
        report,
        _place: place,
    };
    caller.notebook.take_over();
    let detail = attached_detail(attached.position.exec.as_str());
    caller.notebook.write(101, &detail);
    Ok(upgrade.on_upgrade(move |socket| serve_until(caller.end, socket, attached)))
}

fn accept(upgrade: Upgrade) -> Result<WebSocketUpgrade, ApiError> {
    let upgrade = upgrade.map_err(|_| {
        ApiError::invalid("this route speaks WebSocket: the request must ask for the upgrade")
    })?;
    Ok(upgrade
        .max_message_size(JSON_BODY_BYTES_MAX)
        .max_frame_size(JSON_BODY_BYTES_MAX)
        .max_write_buffer_size(WRITE_BUFFER_BYTES))
}

/// Reads what to start, and starts it.
async fn begin(
    control: Arc<Control>,
    caller: &Caller,
    (id, place): (SandboxId, Permit),
    socket: &mut WebSocket,
) -> Result<Attached, ApiError> {
    let first = tokio::time::timeout(START_DEADLINE, socket.recv()).await;
    let Ok(Some(Ok(Message::Text(text)))) = first else {
        return Err(ApiError::invalid("the first message must be a start"));
    };
    let call: SocketCall = known_names::read(text.as_bytes(), None)?;
    let SocketCall::Start(request) = call else {
        return Err(ApiError::invalid("the first message must be a start"));
    };
    let plan = ExecPlan::try_from(*request)?.in_the_foreground();
    let started = exec::start(&control, caller, &id, &plan, place).await?;
    let report = control.node.describe_exec(&id, &started.exec).await?;
    let position = Position::start(id, started.exec);
    Ok(Attached {
        target: Target::new(&control, &position),
        position,
        report,
        events: started.events,
        _place: started.place,
    })
}

async fn refuse(mut socket: WebSocket, error: ApiError) {
    let event = SocketEvent::Error {
        error: error.message,
        code: error.code.as_str().to_owned(),
    };
    let telling = async {
        socket.send(text(&event)).await?;
        socket.send(Message::Close(None)).await
    };
    // One who does not read is not told.
    let _ = tokio::time::timeout(REFUSAL_DEADLINE, telling).await;
}

/// Serves for as long as the key lasts that opened the socket.
async fn serve_until(end: KeyEnd, socket: WebSocket, attached: Attached) {
    tokio::select! {
        biased;
        () = end.reached() => {}
        () = serve(end.clone(), socket, attached) => {}
    }
}

/// Carries bytes both ways until the exec ends or the client goes. What one side does not read
/// holds back the other: nothing is kept here.
async fn serve(end: KeyEnd, socket: WebSocket, mut attached: Attached) {
    let (mut out, mut from_client) = socket.split();
    let event = SocketEvent::Attached(Box::new(process(attached.report.clone())));
    if out.send(text(&event)).await.is_err() {
        return;
    }
    let mut input = Input::new(attached.target.clone(), attached.report.takes_stdin, end);
    let mut pings = tokio::time::interval(PING_INTERVAL);
    pings.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            event = attached.events.next() => {
                let (messages, is_last) = attached.messages(event);
                for message in messages {
                    if out.send(message).await.is_err() {
                        return;
                    }
                }
                if is_last {
                    break;
                }
            }
            call = from_client.next(), if input.has_room() => match call {
                Some(Ok(message)) => {
                    if let Some(refusal) = input.take(message).await
                        && out.send(text(&refusal)).await.is_err()
                    {
                        return;
                    }
                }
                Some(Err(_)) | None => return,
            },
            () = input.settle() => {}
            _ = pings.tick() => {
                if out.send(Message::Ping(Bytes::new())).await.is_err() {
                    return;
                }
            }
        }
    }
    let close = CloseFrame {
        code: axum::extract::ws::close_code::NORMAL,
        reason: Utf8Bytes::default(),
    };
    let _ = out.send(Message::Close(Some(close))).await;
}

impl Attached {
    /// What to tell the client of an event, and whether it is the last.
    fn messages(&mut self, event: Option<Result<ExecEvent, NodeError>>) -> (Vec<Message>, bool) {
        let event = match event.unwrap_or_else(|| Err(crate::exec::collect::lost())) {
            Ok(event) => event,
            Err(error) => {
                let error = ApiError::from(error);
                let event = SocketEvent::Error {
                    error: error.message,
                    code: error.code.as_str().to_owned(),
                };
                return (vec![text(&event)], true);
            }
        };
        let before = self.position.offsets;
        self.position.offsets.advance(&event);
        match event {
            ExecEvent::Stdout(bytes) => (output(SOCKET_STDOUT, before.stdout, &bytes), false),
            ExecEvent::Stderr(bytes) => (output(SOCKET_STDERR, before.stderr, &bytes), false),
            ExecEvent::Gap(gap) => {
                let (stream, offset) = match gap.stream {
                    OutputStream::Stdout => ("stdout", before.stdout),
                    OutputStream::Stderr => ("stderr", before.stderr),
                };
                let event = SocketEvent::Gap {
                    stream: stream.to_owned(),
                    offset: offset.unwrap_or(0),
                    bytes: gap.bytes,
                };
                (vec![text(&event)], false)
            }
            ExecEvent::Exited(end) => (vec![text(&SocketEvent::Exit(exit_event(&end)))], true),
        }
    }
}

fn output(stream: u8, offset: Option<u64>, bytes: &Bytes) -> Vec<Message> {
    let mut offset = offset.unwrap_or(0);
    let pieces = bytes.chunks(FRAME_PAYLOAD_BYTES_MAX);
    pieces
        .map(|piece| {
            let mut message = BytesMut::with_capacity(SOCKET_HEADER_BYTES + piece.len());
            message.put_u8(stream);
            message.put_u64(offset);
            message.put_slice(piece);
            offset += piece.len() as u64;
            Message::Binary(message.freeze())
        })
        .collect()
}

fn text(event: &SocketEvent) -> Message {
    // Plain data with string keys always serialises.
    Message::Text(serde_json::to_string(event).unwrap_or_default().into())
}

impl Target {
    fn new(control: &Control, position: &Position) -> Self {
        Self {
            node: Arc::clone(&control.node),
            sandbox: position.sandbox.clone(),
            exec: position.exec.clone(),
        }
    }

    /// Sends input apart from everything else.
    fn write(&self, is_last: bool, content: FileBytes) -> JoinHandle<Result<u64, NodeError>> {
        let target = self.clone();
        let request = StdinWrite {
            exec: self.exec.clone(),
            offset: None,
            is_last,
        };
        tokio::spawn(async move {
            target
                .node
                .write_stdin(&target.sandbox, request, content)
                .await
        })
    }
}

/// The way of input to the guest: one open request for as long as the socket lives.
struct Input {
    target: Target,
    sender: Option<mpsc::Sender<Result<Bytes, NodeError>>>,
    work: Option<JoinHandle<Result<u64, NodeError>>>,
}

impl Input {
    fn new(target: Target, takes_stdin: bool, end: KeyEnd) -> Self {
        if !takes_stdin {
            return Self {
                target,
                sender: None,
                work: None,
            };
        }
        let (sender, content) = mpsc::channel(INPUT_QUEUE_LENGTH);
        // What waits here when the key ends must not arrive either.
        let content = bound_bytes(ReceiverStream::new(content).boxed(), end);
        let work = target.write(false, content);
        Self {
            target,
            sender: Some(sender),
            work: Some(work),
        }
    }

    /// Whether a message of the client can be taken now. One that cannot waits in the kernel.
    fn has_room(&self) -> bool {
        self.sender
            .as_ref()
            .is_none_or(|sender| sender.capacity() > 0 || sender.is_closed())
    }

    /// Ends when there is room again; never when there is room already.
    async fn settle(&self) {
        match &self.sender {
            Some(sender) if !self.has_room() => drop(sender.reserve().await),
            _ => std::future::pending().await,
        }
    }

    async fn take(&mut self, message: Message) -> Option<SocketEvent> {
        let outcome = match message {
            Message::Binary(bytes) => self.send(bytes),
            Message::Text(text) => self.call(&text).await,
            Message::Ping(_) | Message::Pong(_) | Message::Close(_) => Ok(()),
        };
        outcome.err().map(|error| SocketEvent::Error {
            error: error.message,
            code: error.code.as_str().to_owned(),
        })
    }

    fn send(&mut self, bytes: Bytes) -> Result<(), ApiError> {
        let closed = || {
            let text = "the process takes no input";
            ApiError::new(ErrorCode::WrongState, text)
        };
        let sender = self.sender.as_ref().ok_or_else(closed)?;
        sender.try_send(Ok(bytes)).map_err(|_| closed())
    }

    async fn call(&mut self, text: &str) -> Result<(), ApiError> {
        let call: SocketCall = known_names::read(text.as_bytes(), None)?;
        let Target {
            node,
            sandbox,
            exec,
        } = &self.target;
        match call {
            SocketCall::Start(_) => Err(ApiError::invalid("the exec is started already")),
            SocketCall::Resize(size) => {
                let size = terminal_size(size)?;
                Ok(node.resize_exec(sandbox, exec, size).await?)
            }
            SocketCall::Signal { signal } => Ok(node.signal_exec(sandbox, exec, signal).await?),
            SocketCall::CloseStdin => self.close().await,
        }
    }

    /// Ends the input behind everything that was sent.
    async fn close(&mut self) -> Result<(), ApiError> {
        self.sender = None;
        if let Some(work) = self.work.take() {
            match work.await {
                Ok(outcome) => drop(outcome?),
                Err(_) => return Ok(()),
            }
        }
        let nothing = futures::stream::empty().boxed();
        match self.target.write(true, nothing).await {
            Ok(outcome) => outcome.map(drop).map_err(ApiError::from),
            Err(_) => Ok(()),
        }
    }
}

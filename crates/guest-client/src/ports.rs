//! The tasks of a conversation: a reader and a writer for each port.

use std::future::Future;
use std::io;
use std::sync::Arc;

use dayfly_guest_proto::{FrameEncoder, HostPort, PortRole};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::conversation::{BULK_QUEUE_LENGTH, CONTROL_QUEUE_LENGTH, Conversation};
use crate::error::{ConversationLost, ProtocolViolation};
use crate::intake::Intake;
use crate::open::{Opened, READ_BYTES};

/// Starts the tasks. They end when the set is dropped or the conversation is lost.
pub(crate) fn start(opened: Opened) -> (Arc<Conversation>, JoinSet<()>) {
    let encoder = FrameEncoder::new(opened.nonce.session_tag());
    let (control_queue, control_messages) = mpsc::channel(CONTROL_QUEUE_LENGTH);
    let (bulk_queue, bulk_frames) = mpsc::channel(BULK_QUEUE_LENGTH);
    let conversation = Arc::new(Conversation::new(encoder, control_queue, bulk_queue));
    let mut tasks = JoinSet::new();
    let ports = [
        (PortRole::Control, opened.control, control_messages),
        (PortRole::Bulk, opened.bulk, bulk_frames),
    ];
    for (role, port, queue) in ports {
        let (reader, writer) = tokio::io::split(port.socket);
        let run = run_reader(role, reader, port.parser, Arc::clone(&conversation));
        tasks.spawn(until_lost(Arc::clone(&conversation), run));
        let run = run_writer(role, writer, queue, Arc::clone(&conversation));
        tasks.spawn(until_lost(Arc::clone(&conversation), run));
    }
    (conversation, tasks)
}

/// Ends a task with its conversation, so that the guest sees both sockets close at once.
async fn until_lost(conversation: Arc<Conversation>, task: impl Future<Output = ()>) {
    tokio::select! {
        _ = conversation.closed() => {}
        () = task => {}
    }
}

async fn run_reader(
    port: PortRole,
    mut socket: ReadHalf<UnixStream>,
    mut parser: HostPort,
    conversation: Arc<Conversation>,
) {
    let mut intake = Intake::new(port);
    let mut buffer = vec![0; READ_BYTES];
    let reason = loop {
        if let Err(violation) = take_all(&mut parser, &mut intake, &conversation) {
            tracing::warn!(port = port.name(), error = ?violation, "guest broke the protocol");
            break ConversationLost::Protocol(violation);
        }
        match socket.read(&mut buffer).await {
            Ok(0) => break ConversationLost::PortClosed { port },
            Ok(count) => parser.push(&buffer[..count]),
            Err(source) => break failed(port, source),
        }
    };
    conversation.lose(reason);
}

fn take_all(
    parser: &mut HostPort,
    intake: &mut Intake,
    conversation: &Conversation,
) -> Result<(), ProtocolViolation> {
    while let Some(frame) = parser.next_frame().map_err(ProtocolViolation::Frame)? {
        intake.take(frame, conversation)?;
    }
    Ok(())
}

async fn run_writer(
    port: PortRole,
    mut socket: WriteHalf<UnixStream>,
    mut queue: mpsc::Receiver<Vec<u8>>,
    conversation: Arc<Conversation>,
) {
    let nudge = match port {
        PortRole::Control => &conversation.control_nudge,
        PortRole::Bulk => &conversation.bulk_nudge,
    };
    loop {
        let mut bytes = Vec::new();
        conversation.take_urgent(port, &mut bytes);
        if bytes.is_empty() {
            tokio::select! {
                biased;
                () = nudge.notified() => continue,
                next = queue.recv() => match next {
                    Some(next) => bytes = next,
                    None => return,
                },
            }
        }
        if let Err(source) = socket.write_all(&bytes).await {
            return conversation.lose(failed(port, source));
        }
    }
}

fn failed(port: PortRole, source: io::Error) -> ConversationLost {
    ConversationLost::PortFailed {
        port,
        source: Arc::new(source),
    }
}

//! The client and the server of the contract, with a unix socket between them, and what is frozen
//! of what they say.
#![expect(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod echo_node;
mod sample_calls;
mod samples;
mod schema;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use dayfly_node_api::{
    EnsureSandbox, FileRead, FileWrite, Greeting, NodeApi, NodeCall, NodeCalls, NodeClient,
    NodeError, NodeReply, WatchFiles, server, socket, traced,
};
use dayfly_types::egress::EgressPolicy;
use dayfly_types::exec::{ExecEvent, OutputGap, OutputStream};
use dayfly_types::{ErrorCode, SandboxId, TraceParent};
use echo_node::EchoNode;
use futures::StreamExt;
use samples::{end, ensure_exec, full};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

struct World {
    node: Arc<EchoNode>,
    client: NodeClient,
    id: SandboxId,
    socket: PathBuf,
    _directory: tempfile::TempDir,
}

impl World {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("node.sock");
        let node = Arc::new(EchoNode::default());
        let listener = socket::listen(&path).unwrap();
        tokio::spawn(server::serve(
            listener,
            Arc::clone(&node) as _,
            std::future::pending(),
        ));
        Self {
            node,
            client: NodeClient::new(&path),
            id: samples::id(),
            socket: path,
            _directory: directory,
        }
    }

    fn will_answer(&self, reply: Result<NodeReply, NodeError>) {
        self.node.replies.lock().unwrap().push_back(reply);
    }
}

#[tokio::test]
async fn every_call_arrives_as_it_was_asked_and_so_does_its_answer() {
    let world = World::start();
    for (call, reply) in sample_calls::calls() {
        if !matches!(call, NodeCall::Hello { .. }) {
            world.will_answer(Ok(reply.clone()));
        }
        assert_eq!(world.client.call(call.clone()).await, Ok(reply));
        assert_eq!(world.node.asked.lock().unwrap().pop(), Some(call));
    }
}

#[tokio::test]
async fn a_refusal_arrives_with_all_its_parts() {
    let world = World::start();
    world.will_answer(Err(full()));
    assert_eq!(world.client.status().await, Err(full()));
    let watch = world.client.watch().await.unwrap();
    let seen: Vec<_> = watch.collect().await;
    assert_eq!(seen[0], Ok(samples::report()));
    let long = seen[1].as_ref().unwrap().reason.as_deref();
    assert_eq!(long, Some("é".repeat(100_000).as_str()));
    assert_eq!(seen[2..], [Err(full())]);
}

#[tokio::test]
async fn an_answer_to_another_question_is_none() {
    let world = World::start();
    world.will_answer(Ok(NodeReply::AcceptDatabase(())));
    let error = world.client.status().await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Internal);
}

#[tokio::test]
async fn the_first_exchange_finds_the_protocol_and_later_ones_go_by_it() {
    let world = World::start();
    let newer = Greeting {
        protocol_oldest: 1,
        protocol_newest: 9,
        ..samples::greeting()
    };
    *world.node.greeting.lock().unwrap() = Some(newer.clone());
    for _ in 0..2 {
        world.will_answer(Err(full()));
        assert_eq!(world.client.status().await, Err(full()));
    }
    let asked = world.node.asked.lock().unwrap().len();
    assert_eq!(asked, 3, "one greeting and two questions");

    let stranger = World::start();
    let strange = Greeting {
        protocol_oldest: 8,
        ..newer
    };
    *stranger.node.greeting.lock().unwrap() = Some(strange);
    let refused = stranger.client.status().await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::NodeUnavailable);
    assert!(
        refused.message.contains("speaks protocols 8 to 9"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_request_that_names_no_protocol_is_refused_unread() {
    let world = World::start();
    // The second is a call of a protocol that this node has never heard of.
    for (path, body) in [
        ("/call", r#"{"accept_database":{}}"#),
        ("/call", r#"{"of_the_future":{}}"#),
        ("/open", "{}"),
        ("/take", "{}"),
        ("/ports/sb-local-x/1", ""),
    ] {
        let mut socket = UnixStream::connect(&world.socket).await.unwrap();
        let method = if path.starts_with("/ports") {
            "GET"
        } else {
            "POST"
        };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: node\r\nconnection: close\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 426 "), "{path}: {answer}");
    }
    assert!(world.node.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn nobody_at_the_socket_is_unavailable() {
    let client = NodeClient::new(Path::new("/nonexistent/node.sock"));
    let error = client.templates().await.unwrap_err();
    assert_eq!(error.code, ErrorCode::NodeUnavailable);
    assert!(error.retry_after_ms.is_some());
}

#[tokio::test]
async fn an_exec_carries_bytes_and_its_end() {
    let world = World::start();
    let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let exec = world.client.exec(&world.id, ensure_exec(&bytes)).await;
    let mut events = exec.unwrap();
    let mut stdout = Vec::new();
    let last = loop {
        match events.next().await.unwrap().unwrap() {
            ExecEvent::Stdout(piece) => stdout.extend_from_slice(&piece),
            ExecEvent::Stderr(piece) => assert!(piece.is_empty()),
            ExecEvent::Gap(gap) => panic!("{gap:?}"),
            ExecEvent::Exited(end) => break end,
        }
    };
    assert!(stdout == bytes);
    assert_eq!(last, end());
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn execs_are_attached_to_and_given_input() {
    let world = World::start();
    let attached = world.client.attach_exec(&world.id, samples::attach()).await;
    let (info, events) = attached.unwrap();
    assert_eq!(info, samples::exec_info());
    let gap = ExecEvent::Gap(OutputGap {
        stream: OutputStream::Stdout,
        bytes: 77,
    });
    let seen: Vec<_> = events.collect().await;
    assert_eq!(seen, [Ok(gap), Ok(ExecEvent::Exited(end()))]);
    let pieces = [Ok(Bytes::from_static(b"abc")), Ok(Bytes::from_static(b"d"))];
    let content = futures::stream::iter(pieces).boxed();
    let write = world
        .client
        .write_stdin(&world.id, samples::stdin(), content);
    assert_eq!(write.await, Ok(8));
}

#[tokio::test]
async fn lines_of_a_context_keep_their_ends() {
    let world = World::start();
    let lines = world.client.context(&world.id, "{}".to_owned()).await;
    let lines: Vec<_> = lines
        .unwrap()
        .map(|line| line.unwrap().len())
        .collect()
        .await;
    assert_eq!(lines, [200_000, 0, 2]);
}

#[tokio::test]
async fn a_stream_that_is_not_read_stands_still() {
    let world = World::start();
    let exec = world.client.exec(&world.id, ensure_exec(b"")).await;
    let mut events = exec.unwrap();
    assert!(events.next().await.is_some());
    let mut before = 0;
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = world.node.pulled.load(Ordering::SeqCst);
        if now == before {
            break;
        }
        before = now;
    }
    assert!(
        before * (64 << 10) < 1 << 20,
        "{before} pieces are in flight"
    );
}

#[tokio::test]
async fn a_file_that_breaks_in_the_middle_is_an_error() {
    let world = World::start();
    let read = async |path: &str| {
        let request = FileRead {
            path: path.to_owned(),
            ..samples::read()
        };
        let opened = world.client.read_file(&world.id, request).await;
        let (opened, content) = opened.unwrap();
        assert_eq!((opened.size, opened.mtime), (9, -1));
        content.collect::<Vec<_>>().await
    };
    let whole: Result<Vec<Bytes>, _> = read("/whole").await.into_iter().collect();
    assert_eq!(whole.unwrap().concat(), b"fourfives");
    assert_eq!(read("/broken").await.last(), Some(&Err(full())));
}

#[tokio::test]
async fn an_upload_is_whole_or_an_error() {
    let world = World::start();
    let write = async |path: &str, pieces: Vec<Result<Bytes, NodeError>>| {
        let request = FileWrite {
            path: path.to_owned(),
            ..samples::write()
        };
        let content = futures::stream::iter(pieces).boxed();
        world.client.write_file(&world.id, request, content).await
    };
    let piece = Ok(Bytes::from(vec![1; 200_000]));
    let two = vec![piece.clone(), piece.clone()];
    assert_eq!(write("/a", two).await, Ok(400_000));
    let broken = vec![piece.clone(), Err(full())];
    assert_eq!(write("/a", broken).await, Err(full()));
    // More than every buffer, so that the answer comes while the client still sends.
    let many = vec![piece; 100];
    assert_eq!(write("/refused", many).await, Err(full()));
}

#[tokio::test]
async fn changes_and_archives_arrive_in_order_and_to_their_end() {
    let world = World::start();
    let watch = async |path: &str| {
        let request = WatchFiles {
            path: path.to_owned(),
            ..samples::watch()
        };
        let changes = world.client.watch_files(&world.id, request).await;
        changes.unwrap().collect::<Vec<_>>().await
    };
    let wanted: Vec<_> = (0..5).map(|number| Ok(samples::change(number))).collect();
    assert_eq!(watch("/").await, wanted);
    assert_eq!(watch("/broken").await.last(), Some(&Err(full())));
    let path = samples::guest_path();
    let archive = world.client.pack_tree(&world.id, path.clone()).await;
    let pieces: Vec<Bytes> = archive.unwrap().map(Result::unwrap).collect().await;
    assert_eq!(
        pieces.concat(),
        [path.path.as_bytes(), &[7; 200_000]].concat()
    );
    let length = pieces.concat().len() as u64;
    let content = futures::stream::iter([Ok(Bytes::from(pieces.concat()))]).boxed();
    let unpacked = world.client.unpack_tree(&world.id, path, content);
    assert_eq!(unpacked.await, Ok(length));
}

#[tokio::test]
async fn bytes_go_through_a_port_and_a_refusal_is_one() {
    let world = World::start();
    let mut stream = world.client.connect_port(&world.id, 8080).await.unwrap();
    let sent: Vec<u8> = (0..=u8::MAX).cycle().take(1_000_000).collect();
    let (mut input, mut output) = tokio::io::split(&mut stream);
    let writing = async {
        output.write_all(&sent).await.unwrap();
        output.shutdown().await.unwrap();
    };
    let mut seen = Vec::new();
    let (_, read) = tokio::join!(writing, input.read_to_end(&mut seen));
    read.unwrap();
    assert!(seen == sent, "other bytes came back");
    let refusal = world.client.connect_port(&world.id, 1).await.err().unwrap();
    assert_eq!(refusal.code, ErrorCode::NotFound);
}

#[test]
fn a_wish_of_before_there_were_policies_reaches_nothing() {
    let text = r#"{"id":"sb-local-x","project":"default","template":"base"}"#;
    let wanted: EnsureSandbox = serde_json::from_str(text).unwrap();
    assert_eq!(wanted.egress, EgressPolicy::deny());
    assert_eq!(wanted.egress_epoch, 0);
}

#[tokio::test]
async fn a_traced_call_is_told_how_long_it_took_and_another_is_not() {
    let world = World::start();
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let parent = TraceParent::parse(parent).unwrap();
    let before = unix_us();
    world.will_answer(Err(full()));
    let (refused, timing) = traced(parent, world.client.status()).await;
    assert_eq!(refused, Err(full()));
    let timing = timing.unwrap();
    assert!(timing.began_us >= before, "{timing:?}");
    assert!(timing.began_us + timing.took_us <= unix_us(), "{timing:?}");
    let (watch, timing) = traced(parent, world.client.watch()).await;
    assert!(watch.is_ok() && timing.is_some());
    // A call outside is not named, so nothing is said of it.
    let client = world.client.clone();
    let outside = tokio::spawn(async move { client.watch().await.is_ok() });
    let (watched, timing) = traced(parent, outside).await;
    assert!(watched.unwrap());
    assert_eq!(timing, None);
}

fn unix_us() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.unwrap().as_micros().try_into().unwrap()
}

//! A guest that does exactly what a test tells it to.

use std::future::Future;
use std::time::Duration;

use dayfly_guest_client::{AgentClient, ConnectError};
use dayfly_guest_proto::{
    Answer, AnswerResult, Call, ChannelId, DataHeader, Event, Frame, FrameEncoder, GuestError,
    GuestErrorCode, GuestMessage, GuestPort, MessageAssembler, PortRole, Received, Response,
    StreamKind,
};
use dayfly_types::ExecId;
use dayfly_types::exec::ExecSpec;
use dayfly_types::exec::{ExecCommand, StdinMode};
use dayfly_types::file::{DirectoryPage, FileMode, FileStat};
use dayfly_types::limits::{CONTROL_MESSAGE_BYTES_MAX, FRAME_PAYLOAD_BYTES_MAX};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future)
        .await
        .expect("within the deadline")
}

pub(crate) fn exec_spec() -> ExecSpec {
    let command = ExecCommand::Shell("anything".to_owned());
    let mut spec = ExecSpec::new(ExecId::parse("ex-test").unwrap(), command);
    spec.stdin = StdinMode::Piped;
    spec
}

pub(crate) fn page_of_one(name: &str) -> Response {
    let entry = FileStat {
        name: name.to_owned(),
        path: format!("/{name}"),
        is_dir: false,
        is_symlink: false,
        size: 0,
        mode: FileMode::of(0o644),
        mtime: 0,
        uid: 0,
        gid: 0,
    };
    Response::Directory(DirectoryPage {
        entries: vec![entry],
        has_more: true,
    })
}

struct Port {
    socket: UnixStream,
    parser: GuestPort,
}

impl Port {
    fn new(role: PortRole, socket: UnixStream) -> Self {
        Self {
            socket,
            parser: GuestPort::new(role),
        }
    }

    async fn next(&mut self) -> Received {
        within(async {
            loop {
                if let Some(received) = self.parser.next() {
                    return received;
                }
                let mut buffer = vec![0; 65_536];
                let count = self.socket.read(&mut buffer).await.unwrap();
                assert!(count > 0, "the host closed its port");
                self.parser.push(&buffer[..count]);
            }
        })
        .await
    }

    async fn acknowledge(&mut self, generation: u16) -> FrameEncoder {
        let Received::Opened(opening) = self.next().await else {
            panic!("no opening")
        };
        let mut ack = opening.answer();
        ack.generation = generation;
        self.socket.write_all(&ack.encode()).await.unwrap();
        FrameEncoder::new(opening.nonce.session_tag())
    }

    /// A host that has hung up is what many tests wait for, so failure to send is fine.
    async fn send(&mut self, bytes: &[u8]) {
        let _ = within(self.socket.write_all(bytes)).await;
    }
}

pub(crate) struct ScriptedGuest {
    control: Port,
    bulk: Port,
    encoder: FrameEncoder,
    assembler: MessageAssembler,
}

impl ScriptedGuest {
    pub(crate) async fn connect() -> (AgentClient, Self) {
        let (client, guest) = Self::open(1).await;
        (client.unwrap(), guest)
    }

    pub(crate) async fn connect_with_generation(
        generation: u16,
    ) -> Result<AgentClient, ConnectError> {
        Self::open(generation).await.0
    }

    async fn open(generation: u16) -> (Result<AgentClient, ConnectError>, Self) {
        let (control, control_guest) = UnixStream::pair().unwrap();
        let (bulk, bulk_guest) = UnixStream::pair().unwrap();
        let mut control_guest = Port::new(PortRole::Control, control_guest);
        let mut bulk_guest = Port::new(PortRole::Bulk, bulk_guest);
        let (client, (encoder, _)) =
            tokio::join!(AgentClient::connect(control, bulk, DEADLINE), async {
                (
                    control_guest.acknowledge(generation).await,
                    bulk_guest.acknowledge(generation).await,
                )
            });
        let assembler = MessageAssembler::default();
        (
            client,
            Self {
                control: control_guest,
                bulk: bulk_guest,
                encoder,
                assembler,
            },
        )
    }

    pub(crate) async fn next_call(&mut self) -> Call {
        loop {
            let Received::Frame(Frame::Control { is_last, bytes }) = self.control.next().await
            else {
                panic!("not a control frame");
            };
            if let Some(message) = self.assembler.push(is_last, bytes).unwrap() {
                return Call::parse(&message).unwrap();
            }
        }
    }

    pub(crate) async fn next_credit(&mut self) -> (ChannelId, StreamKind, u32) {
        let received = self.bulk.next().await;
        let Received::Frame(Frame::Credit {
            channel,
            stream,
            bytes,
        }) = received
        else {
            panic!("not credit: {received:?}");
        };
        (channel, stream, bytes)
    }

    /// Takes data frames until there are this many bytes.
    pub(crate) async fn data_bytes(&mut self, wanted: usize) -> usize {
        let mut total = 0;
        while total < wanted {
            let Received::Frame(Frame::Data { bytes, .. }) = self.bulk.next().await else {
                panic!("not data");
            };
            total += bytes.len();
        }
        total
    }

    pub(crate) async fn raw_control(&mut self, bytes: &[u8]) {
        self.control.send(bytes).await;
    }

    pub(crate) async fn json(&mut self, message: &[u8]) {
        self.flood(message, 1).await;
    }

    pub(crate) async fn flood(&mut self, message: &[u8], times: usize) {
        let mut out = Vec::new();
        for _ in 0..times {
            self.encoder.control(message, &mut out);
        }
        self.control.send(&out).await;
    }

    /// Frames of one message, none of which is the last.
    pub(crate) async fn endless_message(&mut self) {
        let mut out = Vec::new();
        self.encoder.control(
            &vec![b' '; CONTROL_MESSAGE_BYTES_MAX + FRAME_PAYLOAD_BYTES_MAX],
            &mut out,
        );
        self.control.send(&out).await;
    }

    pub(crate) async fn message(&mut self, message: &GuestMessage) {
        self.json(&serde_json::to_vec(message).unwrap()).await;
    }

    pub(crate) async fn answer(&mut self, call: u64, result: Result<Response, GuestError>) {
        let result = AnswerResult::from(result);
        self.message(&GuestMessage::Answer(Answer { call, result }))
            .await;
    }

    pub(crate) async fn refuse(&mut self, call: u64) {
        self.answer(call, Err(GuestError::new(GuestErrorCode::Io, "no")))
            .await;
    }

    pub(crate) async fn fail(&mut self, channel: ChannelId) {
        let error = GuestError::new(GuestErrorCode::NoSpace, "full");
        self.message(&GuestMessage::Event(Event::StreamFailed { channel, error }))
            .await;
    }

    pub(crate) async fn data(&mut self, header: DataHeader, bytes: &[u8]) {
        let mut out = Vec::new();
        self.encoder.data(header, bytes, &mut out);
        self.bulk.send(&out).await;
    }

    pub(crate) async fn credit(&mut self, channel: ChannelId, stream: StreamKind, bytes: u32) {
        let mut out = Vec::new();
        self.encoder.credit(channel, stream, bytes, &mut out);
        self.bulk.send(&out).await;
    }
}

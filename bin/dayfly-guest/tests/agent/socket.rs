//! Unix sockets of the guest, reached over a channel.

use std::io::{Read, Write};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::PathBuf;
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use crate::support::{DEADLINE, Guest, assert_refused, eventually, pattern, run, shell, within};
use bytes::Bytes;
use dayfly_guest_client::{CallError, GuestSocket, QuiesceSpec};
use dayfly_guest_proto::GuestErrorCode;
use tempfile::TempDir;

const MIB: usize = 1 << 20;

struct Service {
    _directory: TempDir,
    path: PathBuf,
    listener: UnixListener,
}

impl Service {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        Self {
            _directory: directory,
            path,
            listener,
        }
    }

    fn path(&self) -> &str {
        self.path.to_str().unwrap()
    }

    /// Serves the next connection in a thread.
    fn serve<T: Send + 'static>(
        &self,
        work: impl FnOnce(UnixStream) -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let listener = self.listener.try_clone().unwrap();
        spawn(move || work(listener.accept().unwrap().0))
    }
}

async fn read_all(socket: &mut GuestSocket) -> Vec<u8> {
    let mut seen = Vec::new();
    while let Some(bytes) = within(socket.next()).await.unwrap() {
        seen.extend_from_slice(&bytes);
    }
    seen
}

#[tokio::test]
async fn bytes_go_both_ways_and_each_direction_ends_by_itself() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let service = Service::new();
    let server = service.serve(|mut stream| {
        let mut first = [0; 5];
        stream.read_exact(&mut first).unwrap();
        stream.write_all(b"pong").unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        // The other direction is still open.
        stream.write_all(&rest).unwrap();
        first
    });
    let mut socket = client.connect_socket(service.path()).await.unwrap();
    socket.send(Bytes::from_static(b"ping!")).await.unwrap();
    assert_eq!(&within(socket.next()).await.unwrap().unwrap()[..], b"pong");
    socket.send(Bytes::from_static(b"the rest")).await.unwrap();
    socket.end().await.unwrap();
    assert_eq!(read_all(&mut socket).await, b"the rest");
    assert_eq!(&server.join().unwrap(), b"ping!");
}

#[tokio::test]
async fn much_is_echoed_exactly_while_the_guest_answers() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let service = Service::new();
    let echo = |stream: UnixStream| {
        let mut output = stream.try_clone().unwrap();
        let mut input = stream;
        std::io::copy(&mut input, &mut output).unwrap();
    };
    let server = service.serve(echo);
    let mut socket = client.connect_socket(service.path()).await.unwrap();
    let bytes = pattern(8 * MIB);
    // In turns: the service stops reading when nobody reads what it says.
    let mut seen = Vec::new();
    for piece in bytes.chunks(100_000) {
        let sent = seen.len() + piece.len();
        within(socket.send(Bytes::copy_from_slice(piece)))
            .await
            .unwrap();
        while seen.len() < sent {
            seen.extend_from_slice(&within(socket.next()).await.unwrap().unwrap());
        }
        client.status().await.unwrap();
    }
    socket.end().await.unwrap();
    seen.extend_from_slice(&read_all(&mut socket).await);
    assert!(seen == bytes, "bytes differ");
    server.join().unwrap();
}

#[tokio::test]
async fn connection_ends_with_its_owner_and_with_its_conversation() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let service = Service::new();
    let until_end = |mut stream: UnixStream| {
        let mut seen = Vec::new();
        stream.read_to_end(&mut seen).unwrap();
        seen
    };
    let server = service.serve(until_end);
    let socket = client.connect_socket(service.path()).await.unwrap();
    drop(socket);
    eventually(|| server.is_finished()).await;
    let server = service.serve(until_end);
    let socket = client.connect_socket(service.path()).await.unwrap();
    drop((socket, client));
    let client = guest.connect().await;
    eventually(|| server.is_finished()).await;
    // A service that goes away ends the channel.
    let server = service.serve(drop);
    let mut socket = client.connect_socket(service.path()).await.unwrap();
    assert_eq!(read_all(&mut socket).await, b"");
    server.join().unwrap();
    assert_eq!(run(&client, shell("echo on")).await.stdout_text(), "on\n");
}

#[tokio::test]
async fn service_that_does_not_read_stalls_nobody_else() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let service = Service::new();
    let mut socket = client.connect_socket(service.path()).await.unwrap();
    let (stream, _) = service.listener.accept().unwrap();
    let sending = socket.send(pattern(4 * MIB));
    let waited = tokio::time::timeout(std::time::Duration::from_millis(300), sending).await;
    assert!(waited.is_err(), "nobody took so much");
    assert_eq!(run(&client, shell("echo on")).await.stdout_text(), "on\n");
    drop(stream);
    assert_eq!(read_all(&mut socket).await, b"");
}

async fn refusal(result: Result<GuestSocket, CallError>, code: GuestErrorCode) {
    assert_refused(result, code);
}

#[tokio::test]
async fn paths_that_lead_to_no_service_are_refused() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let long = format!("/{}", "x".repeat(200));
    for path in ["", "\0name", "/a\0b", &long] {
        refusal(client.connect_socket(path).await, GuestErrorCode::Invalid).await;
    }
    std::fs::write(at("file"), "").unwrap();
    drop(UnixListener::bind(at("dead")).unwrap());
    for name in ["missing", "file", "dead"] {
        let refused = client.connect_socket(&at(name)).await;
        refusal(refused, GuestErrorCode::NotFound).await;
    }
    let _datagrams = UnixDatagram::bind(at("datagrams")).unwrap();
    let refused = client.connect_socket(&at("datagrams")).await;
    refusal(refused, GuestErrorCode::Invalid).await;
}

#[tokio::test]
async fn full_service_is_busy_and_a_guest_has_so_many_connections() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let flags = rustix::net::SocketFlags::CLOEXEC;
    let (family, kind) = (
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::STREAM,
    );
    let full = rustix::net::socket_with(family, kind, flags, None).unwrap();
    let address = rustix::net::SocketAddrUnix::new(&path).unwrap();
    rustix::net::bind(&full, &address).unwrap();
    rustix::net::listen(&full, 0).unwrap();
    let path = path.to_str().unwrap();
    let _first = client.connect_socket(path).await.unwrap();
    refusal(client.connect_socket(path).await, GuestErrorCode::Busy).await;

    let service = Service::new();
    let mut open = Vec::new();
    for _ in 0..127 {
        let socket = client.connect_socket(service.path()).await.unwrap();
        open.push((socket, service.listener.accept().unwrap()));
    }
    let refused = client.connect_socket(service.path()).await;
    refusal(refused, GuestErrorCode::TooMany).await;
}

#[tokio::test]
async fn frozen_guest_connects_after_the_thaw() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let service = Service::new();
    client.quiesce(QuiesceSpec::default()).await.unwrap();
    drop(client);
    let client = guest.connect().await;
    let refused = client.connect_socket(service.path()).await;
    refusal(refused, GuestErrorCode::WrongState).await;
}

#[tokio::test]
async fn a_port_is_waited_for_while_other_calls_are_served() {
    let guest = Guest::start();
    let client = guest.connect().await;
    // Taken and given back, so that nobody else is likely to have it.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    drop(taken);
    let waiting = client.wait_port(address.port(), DEADLINE);
    let listening = async {
        // Served while the other one waits.
        client.list_ports().await.unwrap();
        std::net::TcpListener::bind(address).unwrap()
    };
    let (found, listener) = within(async { tokio::join!(waiting, listening) }).await;
    assert_eq!(found.unwrap().unwrap().port, address.port());
    drop(listener);
    let none = within(client.wait_port(address.port(), Duration::from_millis(20))).await;
    assert_eq!(none.unwrap(), None);
}

#[tokio::test]
async fn a_port_is_listed_reached_and_refused_when_it_is_gone() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let listed = client.list_ports().await.unwrap();
    assert!(listed.iter().any(|found| found.port == port), "{listed:?}");
    let mut socket = client.connect_port(port).await.unwrap();
    let server = spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut seen = Vec::new();
        stream.read_to_end(&mut seen).unwrap();
        stream.write_all(&seen).unwrap();
    });
    let bytes = pattern(MIB);
    for piece in bytes.chunks(100_000) {
        let piece = Bytes::copy_from_slice(piece);
        within(socket.send(piece)).await.unwrap();
    }
    socket.end().await.unwrap();
    assert!(
        read_all(&mut socket).await == bytes,
        "other bytes came back"
    );
    server.join().unwrap();
    assert_refused(
        client.connect_port(port).await.map(|_| ()),
        GuestErrorCode::NotFound,
    );
}

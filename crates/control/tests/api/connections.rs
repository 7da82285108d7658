//! Connections that do nothing, and those that they must not keep out.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use dayfly_control::ConnectionLimits;
use http::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::gateway::{by_host, served, visit, with_key};
use crate::support::{Setup, World, raise_descriptor_limit};

/// How soon somebody else must be served.
const SOON: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(30);

fn few() -> Setup {
    Setup {
        connections: ConnectionLimits {
            all: 64,
            reserved: 16,
            of_one_peer: 24,
            of_one_loopback: 24,
            first_head: Duration::from_secs(5),
        },
        ..Setup::default()
    }
}

/// A connection from an address of the test's choice.
async fn connect(world: &World, from: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    let from: SocketAddr = format!("{from}:0").parse().unwrap();
    socket.bind(from).unwrap();
    socket.connect(world.address).await.unwrap()
}

/// Asks for health on a fresh connection from an address, within the limit.
async fn is_served(world: &World, from: &str) -> bool {
    let asking = async {
        let mut stream = connect(world, from).await;
        let request = b"GET /health HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
        stream.write_all(request).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        answer.starts_with("HTTP/1.1 200").then_some(())
    };
    matches!(tokio::time::timeout(SOON, asking).await, Ok(Some(())))
}

/// Waits for the end of a connection that says nothing.
async fn closes(stream: &mut TcpStream) -> bool {
    let mut buffer = [0; 64];
    let read = tokio::time::timeout(PATIENCE, stream.read(&mut buffer)).await;
    matches!(read, Ok(Ok(0) | Err(_)))
}

#[tokio::test]
async fn idle_connections_of_one_address_leave_others_served() {
    let world = World::with(few()).await;
    let mut idle = Vec::new();
    for _ in 0..200 {
        idle.push(connect(&world, "127.0.0.2").await);
    }
    assert!(is_served(&world, "127.0.0.1").await, "another address");
    assert!(
        is_served(&world, "127.0.0.2").await,
        "the same one: its oldest goes"
    );
    assert!(closes(&mut idle[0]).await, "the oldest");
    let newest = idle.last_mut().unwrap();
    newest
        .write_all(b"GET /health HTTP/1.1\r\nhost: a\r\n\r\n")
        .await
        .unwrap();
    let mut buffer = [0; 12];
    newest.read_exact(&mut buffer).await.unwrap();
    assert_eq!(&buffer, b"HTTP/1.1 200", "the newest is open");
}

#[tokio::test]
async fn strangers_of_many_addresses_leave_places_for_those_with_a_key() {
    let world = World::with(few()).await;
    assert_eq!(
        world.get("/v1/me").await.status,
        StatusCode::OK,
        "127.0.0.1 is known"
    );
    // With a request under way, so that they cannot be closed for another.
    let mut held = Vec::new();
    for stranger in 2..10 {
        for _ in 0..8 {
            let mut stream = connect(&world, &format!("127.0.0.{stranger}")).await;
            let head = "POST /v1/sandboxes HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n";
            stream.write_all(head.as_bytes()).await.unwrap();
            held.push(stream);
        }
    }
    for _ in 0..8 {
        assert!(is_served(&world, "127.0.0.1").await);
    }
    assert_eq!(world.get("/v1/me").await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_visitor_of_a_service_is_served_beside_idle_strangers() {
    let (world, id) = served(few()).await;
    let mut idle = Vec::new();
    for stranger in 2..6 {
        for _ in 0..24 {
            idle.push(connect(&world, &format!("127.0.0.{stranger}")).await);
        }
    }
    let began = Instant::now();
    let answer = visit(&world, with_key(&world, by_host(&world, &id, "/"))).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_first_head_that_does_not_come_ends_its_connection_and_a_later_one_may_wait() {
    let mut setup = few();
    setup.connections.first_head = Duration::from_millis(300);
    let world = World::with(setup).await;
    let mut silent = connect(&world, "127.0.0.2").await;
    let mut half = connect(&world, "127.0.0.2").await;
    half.write_all(b"GET /health HTTP/1.1\r\nho").await.unwrap();
    let mut preface = connect(&world, "127.0.0.2").await;
    preface.write_all(b"PRI * HTTP/2").await.unwrap();
    let mut used = connect(&world, "127.0.0.2").await;
    let request = b"GET /health HTTP/1.1\r\nhost: a\r\n\r\n";
    used.write_all(request).await.unwrap();
    let mut buffer = [0; 1024];
    assert!(used.read(&mut buffer).await.unwrap() > 0);
    let began = Instant::now();
    for stream in [&mut silent, &mut half, &mut preface] {
        assert!(closes(stream).await);
    }
    assert!(
        began.elapsed() < Duration::from_secs(3),
        "{:?}",
        began.elapsed()
    );
    used.write_all(request).await.unwrap();
    assert!(
        used.read(&mut buffer).await.unwrap() > 0,
        "it had shown that it asks"
    );
}

/// Ten thousand connections as they come from one address, against a server of the usual limits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "soak: needs twenty thousand descriptors"]
async fn ten_thousand_idle_connections_of_one_address_leave_others_served() {
    raise_descriptor_limit();
    let world = World::start().await;
    let mut idle = Vec::new();
    let mut slowest = Duration::ZERO;
    for number in 0..10_000 {
        idle.push(connect(&world, "127.0.0.2").await);
        if number % 500 == 499 {
            let began = Instant::now();
            assert!(is_served(&world, "127.0.0.1").await, "after {number}");
            assert_eq!(world.get("/v1/me").await.status, StatusCode::OK);
            slowest = slowest.max(began.elapsed());
        }
    }
    println!("10000 idle connections: the slowest of 20 questions of another took {slowest:?}");
}

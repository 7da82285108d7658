//! Everything that can be open when a key ends, and that it is over within a second.

use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::gateway::{PORT, host};
use crate::support::{Step, World, eventually, service};

/// How long what a key opened may outlive it.
const LIMIT: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(20);
/// Longer than a server and two kernels hold on their way.
const BIG_FILE_BYTES: usize = 48 << 20;
/// How much text a request has that is sent in two parts.
const MARK_BYTES: usize = 40;

/// What a caller can still send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sends {
    Nothing,
    /// A piece of a chunked body, as often as wanted.
    Chunks,
    /// The rest of a body.
    Rest,
    /// The first message of a WebSocket.
    Start,
    /// Messages of a WebSocket.
    Messages,
}

/// One kind of use.
#[derive(Debug, Clone, Copy)]
struct Kind {
    name: &'static str,
    /// Method and path; `ID` and `EXEC` stand for those of the world.
    line: &'static str,
    headers: &'static str,
    first: &'static str,
    /// What is in the answer once it is open.
    is_open: &'static str,
    sends: Sends,
}

const CHUNKED: &str = "transfer-encoding: chunked\r\nexpect: 100-continue\r\n";
const UPGRADE: &str = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
    sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n";
const JSON_WHOLE: &str = "content-type: application/json\r\ncontent-length: 17\r\n";
const JSON_IN_PARTS: &str =
    "content-type: application/json\r\ncontent-length: 50\r\nexpect: 100-continue\r\n";

const fn kind(
    name: &'static str,
    line: &'static str,
    headers: &'static str,
    is_open: &'static str,
    sends: Sends,
) -> Kind {
    Kind {
        name,
        line,
        headers,
        first: "",
        is_open,
        sends,
    }
}

const fn with_first(mut kind: Kind, first: &'static str) -> Kind {
    kind.first = first;
    kind
}

fn kinds() -> Vec<Kind> {
    let mut kinds = commands_and_bodies();
    kinds.extend(answers_and_services());
    kinds
}

fn commands_and_bodies() -> Vec<Kind> {
    use Sends::{Chunks, Messages, Nothing, Rest, Start};
    let exec = "POST /v1/sandboxes/ID/exec";
    let stream = "POST /v1/sandboxes/ID/exec/stream";
    vec![
        with_first(kind("plain exec", exec, JSON_WHOLE, "", Nothing), FOREVER),
        with_first(
            kind("exec stream", stream, JSON_WHOLE, "started", Nothing),
            FOREVER,
        ),
        kind(
            "stdin",
            "POST /v1/sandboxes/ID/processes/EXEC/stdin",
            CHUNKED,
            "100 Continue",
            Chunks,
        ),
        kind(
            "upload",
            "PUT /v1/sandboxes/ID/fs?path=/f",
            CHUNKED,
            "100 Continue",
            Chunks,
        ),
        kind(
            "tree upload",
            "PUT /v1/sandboxes/ID/fs/tar?path=/t",
            CHUNKED,
            "100 Continue",
            Chunks,
        ),
        with_first(
            kind("half a body", exec, JSON_IN_PARTS, "100 Continue", Rest),
            r#"{"cmd":""#,
        ),
        kind(
            "exec socket",
            "GET /v1/sandboxes/ID/exec/socket",
            UPGRADE,
            "101",
            Start,
        ),
        kind(
            "process socket",
            "GET /v1/sandboxes/ID/processes/EXEC/socket",
            UPGRADE,
            "attached",
            Messages,
        ),
        kind(
            "attach",
            "GET /v1/sandboxes/ID/processes/EXEC/attach",
            "",
            "started",
            Nothing,
        ),
    ]
}

fn answers_and_services() -> Vec<Kind> {
    use Sends::{Chunks, Messages, Nothing};
    vec![
        kind(
            "logs",
            "GET /v1/sandboxes/ID/logs?follow=true",
            "",
            "200 OK",
            Nothing,
        ),
        kind(
            "file watch",
            "GET /v1/sandboxes/ID/fs/watch?path=/silent",
            "",
            "ready",
            Nothing,
        ),
        kind("events", "GET /v1/events", "", "200 OK", Nothing),
        kind(
            "network log",
            "GET /v1/sandboxes/ID/network/log",
            "accept: text/event-stream\r\n",
            "200 OK",
            Nothing,
        ),
        kind(
            "download",
            "GET /v1/sandboxes/ID/fs?path=/big",
            "",
            "200 OK",
            Nothing,
        ),
        kind("service's answer", "GET /forever", "HOST", "begin", Nothing),
        kind(
            "service's question",
            "POST /stream",
            "HOST",
            "200 OK",
            Chunks,
        ),
        kind("tunnel", "GET /socket", "HOST", "101", Messages),
    ]
}

const FOREVER: &str = r#"{"cmd":"forever"}"#;

/// A use that is open.
struct Use {
    kind: Kind,
    stream: TcpStream,
    seen: Vec<u8>,
}

/// What the uses are of.
struct Scene {
    world: World,
    id: String,
    exec: String,
}

impl Scene {
    async fn new() -> Self {
        let world = World::start().await;
        let id = world.create().await;
        world.node.listen(&id, PORT, service::start().await);
        let long = Step::Pause(Duration::from_secs(3600));
        world
            .node
            .script("forever", [Step::Stdout("begun\n".into()), long]);
        let wish = json!({"cmd": "forever", "background": true});
        let started = world
            .post(&format!("/v1/sandboxes/{id}/exec"), wish)
            .await
            .json();
        let exec = started["exec_id"].as_str().unwrap().to_owned();
        world.node.put_file(&id, "/big", vec![b'x'; BIG_FILE_BYTES]);
        Self { world, id, exec }
    }

    async fn key(&self, wish: Value) -> Value {
        let made = self.world.post("/v1/me/tokens", wish).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
        made.json()
    }

    async fn open(&self, kind: Kind, key: &str) -> Use {
        let line = kind
            .line
            .replace("ID", &self.id)
            .replace("EXEC", &self.exec);
        let (host, headers) = match kind.headers {
            "HOST" if kind.sends == Sends::Messages => (host(&self.id), UPGRADE),
            "HOST" if kind.sends == Sends::Chunks => (host(&self.id), CHUNKED),
            "HOST" => (host(&self.id), ""),
            headers => (self.world.address.to_string(), headers),
        };
        let close = if headers == UPGRADE {
            ""
        } else {
            "connection: close\r\n"
        };
        let head = format!(
            "{line} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {key}\r\n{headers}{close}\r\n"
        );
        let mut stream = TcpStream::connect(self.world.address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(kind.first.as_bytes()).await.unwrap();
        let seen = Vec::new();
        let mut opened = Use { kind, stream, seen };
        opened.until(kind.is_open).await;
        opened
    }
}

impl Use {
    /// Reads until a text has come.
    async fn until(&mut self, text: &str) {
        let mut buffer = [0; 4096];
        let began = Instant::now();
        while !String::from_utf8_lossy(&self.seen).contains(text) {
            let left = PATIENCE.saturating_sub(began.elapsed());
            let read = tokio::time::timeout(left, self.stream.read(&mut buffer)).await;
            let count = read.unwrap_or(Ok(0)).unwrap_or(0);
            let seen = String::from_utf8_lossy(&self.seen).into_owned();
            assert!(count > 0, "{}: no `{text}` in {seen}", self.kind.name);
            self.seen.extend_from_slice(&buffer[..count]);
        }
    }

    /// Sends a text in the way of its kind. The connection may be gone by now.
    async fn send(&mut self, text: &str) {
        let bytes = match self.kind.sends {
            Sends::Nothing => return,
            Sends::Chunks => format!("{:x}\r\n{text}\r\n", text.len()).into_bytes(),
            Sends::Rest => format!("{text}\"}}").into_bytes(),
            Sends::Start => message(1, &json!({"type": "start", "cmd": text}).to_string()),
            Sends::Messages => message(2, text),
        };
        let _ = self.stream.write_all(&bytes).await;
    }

    /// Reads to the end, and says how much came.
    async fn drain(&mut self) -> usize {
        let mut buffer = vec![0; 256 << 10];
        let mut total = self.seen.len();
        while let Ok(count @ 1..) = self.stream.read(&mut buffer).await {
            total += count;
            if self.seen.len() < 64 << 10 {
                self.seen.extend_from_slice(&buffer[..count]);
            }
        }
        total
    }
}

/// A message of a client, whose mask is of zeros.
fn message(code: u8, text: &str) -> Vec<u8> {
    let length = u8::try_from(text.len()).unwrap();
    assert!(length < 126);
    [&[0x80 | code, 0x80 | length, 0, 0, 0, 0], text.as_bytes()].concat()
}

fn mark(kind: Kind, round: usize, when: &str) -> String {
    let name: String = kind.name.replace([' ', '\''], "-");
    format!(
        "{:x<width$}",
        format!("{name}-{round}-{when}-"),
        width = MARK_BYTES
    )
}

/// Opens every kind with one key, and shows that what they send arrives.
async fn open_all(scene: &Scene, key: &str, round: usize) -> Vec<Use> {
    let mut uses = Vec::new();
    for kind in kinds() {
        let mut opened = scene.open(kind, key).await;
        if kind.sends != Sends::Nothing {
            let before = mark(kind, round, "before");
            // What can be said once only is said by another of its kind.
            let mut twin = match kind.sends {
                Sends::Rest | Sends::Start => Some(scene.open(kind, key).await),
                Sends::Nothing | Sends::Chunks | Sends::Messages => None,
            };
            twin.as_mut().unwrap_or(&mut opened).send(&before).await;
            let node = &scene.world.node;
            eventually(&before, async || node.has_arrived(&before)).await;
        }
        uses.push(opened);
    }
    uses
}

/// Checks that everything ends in time and that nothing arrives any more.
async fn all_end(scene: &Scene, uses: Vec<Use>, round: usize, ended_at: Instant) -> Duration {
    let endings = uses.into_iter().map(async |mut opened| {
        let kind = opened.kind;
        opened.send(&mark(kind, round, "after")).await;
        let total = tokio::time::timeout(PATIENCE, opened.drain()).await;
        let took = ended_at.elapsed();
        let total = total.unwrap_or_else(|_| panic!("{}: it goes on", kind.name));
        assert!(took < LIMIT, "{}: ended after {took:?}", kind.name);
        assert!(total < BIG_FILE_BYTES, "{}: all of it came", kind.name);
        if kind.name == "plain exec" || kind.sends == Sends::Rest {
            let seen = String::from_utf8_lossy(&opened.seen).into_owned();
            assert!(seen.contains("HTTP/1.1 401"), "{}: {seen}", kind.name);
        }
        took
    });
    let times = futures::future::join_all(endings).await;
    scene.world.get("/v1/me").await;
    for kind in kinds() {
        let after = mark(kind, round, "after");
        assert!(!scene.world.node.has_arrived(&after), "{}", kind.name);
    }
    times.into_iter().max().unwrap()
}

fn told(rounds: usize, slowest: Duration) -> String {
    let kinds = kinds().len();
    format!("{rounds} times {kinds} kinds of use, the slowest ended after {slowest:?}")
}

async fn revoked(rounds: usize) -> String {
    let scene = Scene::new().await;
    let mut slowest = Duration::ZERO;
    for round in 0..rounds {
        let made = scene.key(json!({})).await;
        let uses = open_all(&scene, made["token"].as_str().unwrap(), round).await;
        let path = format!("/v1/me/tokens/{}", made["prefix"].as_str().unwrap());
        let began = Instant::now();
        let revoked = scene.world.delete(&path).await;
        assert_eq!(revoked.status, StatusCode::NO_CONTENT);
        slowest = slowest.max(all_end(&scene, uses, round, began).await);
    }
    told(rounds, slowest)
}

async fn expired(rounds: usize) -> String {
    let scene = Scene::new().await;
    let life = Duration::from_secs(3);
    let mut slowest = Duration::ZERO;
    for round in 0..rounds {
        let wish = json!({"expires_in_seconds": life.as_secs()});
        let made = scene.key(wish).await;
        let ends_at = Instant::now() + life;
        let uses = open_all(&scene, made["token"].as_str().unwrap(), round).await;
        tokio::time::sleep_until(ends_at.into()).await;
        slowest = slowest.max(all_end(&scene, uses, round, ends_at).await);
    }
    told(rounds, slowest)
}

#[tokio::test]
async fn every_kind_of_use_ends_with_a_revoked_key() {
    println!("{}", revoked(3).await);
}

#[tokio::test]
async fn every_kind_of_use_ends_with_an_expired_key() {
    println!("{}", expired(1).await);
}

#[tokio::test]
#[ignore = "soak: twenty times each"]
async fn every_kind_of_use_ends_twenty_times_with_its_key() {
    println!("{}", revoked(20).await);
    println!("{}", expired(20).await);
}

#[tokio::test]
async fn a_key_that_ends_itself_is_told_so() {
    let world = World::start().await;
    let made = world.post("/v1/me/tokens", json!({})).await.json();
    let path = format!("/v1/me/tokens/{}", made["prefix"].as_str().unwrap());
    let key = made["token"].as_str().unwrap();
    let done = world.ask(key, Method::DELETE, &path, json!({})).await;
    assert_eq!(done.status, StatusCode::NO_CONTENT);
    let used = world.ask(key, Method::GET, "/v1/me", json!({})).await;
    assert_eq!(used.status, StatusCode::UNAUTHORIZED);
}

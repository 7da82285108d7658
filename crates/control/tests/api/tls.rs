//! The API over TLS: what is shown, what is spoken, and what comes of those who speak neither.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use dayfly_api::CreatePortLink;
use dayfly_client::{ApiKey, Client};
use dayfly_control::{Certificate, ConnectionLimits, InvalidCertificate, ShownCertificate};
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::support::{Setup, World};

const PATIENCE: Duration = Duration::from_secs(30);
const NAME: &str = "box.example.org";
/// Streams that are open while the certificate is replaced.
const STREAMS: usize = 50;

/// A certificate that is its own authority.
struct Identity {
    chain: String,
    key: String,
    der: CertificateDer<'static>,
}

impl Identity {
    fn new() -> Self {
        let made = rcgen::generate_simple_self_signed(vec![NAME.to_owned()]).unwrap();
        Self {
            chain: made.cert.pem(),
            key: made.signing_key.serialize_pem(),
            der: made.cert.der().clone(),
        }
    }

    fn certificate(&self) -> Certificate {
        Certificate::from_pem(self.chain.as_bytes(), self.key.as_bytes()).unwrap()
    }
}

fn shown(identity: &Identity) -> Arc<ShownCertificate> {
    Arc::new(ShownCertificate::new(identity.certificate()))
}

async fn world(shown: &Arc<ShownCertificate>) -> World {
    let setup = Setup {
        tls: Some(Arc::clone(shown)),
        ..Setup::default()
    };
    World::with(setup).await
}

/// Connects as a client that believes one authority.
async fn connect(
    world: &World,
    authority: &Identity,
    protocol: &str,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.der.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = config.with_no_client_auth();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    let stream = TcpStream::connect(world.tls_address.unwrap()).await?;
    let name = ServerName::try_from(NAME).unwrap();
    let connecting = TlsConnector::from(Arc::new(config)).connect(name, stream);
    tokio::time::timeout(PATIENCE, connecting).await.unwrap()
}

/// Asks for something over HTTP/1.1, and reads until the connection ends.
async fn ask(stream: &mut TlsStream<TcpStream>, key: &str, path: &str) -> String {
    let head = format!(
        "GET {path} HTTP/1.1\r\nhost: {NAME}:7443\r\nauthorization: Bearer {key}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let reading = stream.read_to_string(&mut answer);
    tokio::time::timeout(PATIENCE, reading)
        .await
        .unwrap()
        .unwrap();
    answer
}

#[tokio::test]
async fn both_versions_of_http_are_served_to_who_believes_the_authority() {
    let identity = Identity::new();
    let world = world(&shown(&identity)).await;
    let mut stream = connect(&world, &identity, "http/1.1").await.unwrap();
    let answer = ask(&mut stream, &world.key, "/v1/me").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");

    let stream = connect(&world, &identity, "h2").await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let shaken = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, connection) = shaken.await.unwrap();
    tokio::spawn(connection);
    let request = Request::get(format!("https://{NAME}/v1/me"))
        .header("authorization", format!("Bearer {}", world.key))
        .body(Body::empty())
        .unwrap();
    let response = sender.send_request(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);

    let stranger = Identity::new();
    let refused = connect(&world, &stranger, "h2").await;
    assert!(refused.is_err(), "another authority is believed");
    // The plain listener is there beside it.
    assert_eq!(world.get("/v1/me").await.status, StatusCode::OK);
}

#[tokio::test]
async fn addresses_of_ports_are_those_of_the_listener_that_was_asked() {
    let identity = Identity::new();
    let world = world(&shown(&identity)).await;
    let id = world.create().await;
    world
        .post(&format!("/v1/sandboxes/{id}/ports/8000/links"), json!({}))
        .await;
    let path = format!("/v1/sandboxes/{id}/ports/8000/links");
    let mut stream = connect(&world, &identity, "http/1.1").await.unwrap();
    let answer = ask(&mut stream, &world.key, &path).await;
    assert!(
        answer.contains(&format!("https://8000-{id}.localhost:7443/")),
        "{answer}"
    );
    assert!(answer.contains(&format!(
        "https://{NAME}:7443/v1/sandboxes/{id}/ports/8000/http/"
    )));
    assert!(world.get(&path).await.text().contains("http://8000-"));
}

#[tokio::test]
async fn a_client_in_the_process_gets_addresses_as_its_caller_came() {
    let world = World::start().await;
    let id = world.create().await;
    let client = Client::in_process(dayfly_control::router(Arc::clone(&world.control))).unwrap();
    let key = ApiKey::parse(&world.key).unwrap();
    for scheme in ["http", "https"] {
        let caller = client
            .for_caller(&format!("{scheme}://{NAME}:7443"), &key)
            .unwrap();
        let link = caller
            .create_port_link(&id, 8000, &CreatePortLink::default())
            .await;
        let link = link.unwrap();
        assert!(
            link.url.starts_with(&format!("{scheme}://8000-")),
            "{}",
            link.url
        );
        assert!(
            link.path_url
                .starts_with(&format!("{scheme}://{NAME}:7443/"))
        );
    }
}

#[tokio::test]
async fn a_certificate_is_replaced_under_open_streams() {
    let (first, second) = (Identity::new(), Identity::new());
    let shown = shown(&first);
    let world = world(&shown).await;
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        let stream = connect(&world, &first, "http/1.1").await.unwrap();
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .unwrap();
        tokio::spawn(connection);
        let request = Request::get("/v1/events")
            .header("host", NAME)
            .header("authorization", format!("Bearer {}", world.key))
            .body(Body::empty())
            .unwrap();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        streams.push((sender, response.into_body()));
    }
    shown.replace(second.certificate());
    let old = connect(&world, &first, "http/1.1").await;
    assert!(old.is_err(), "the old certificate is shown");
    let mut new = connect(&world, &second, "http/1.1").await.unwrap();
    assert!(
        ask(&mut new, &world.key, "/v1/me")
            .await
            .starts_with("HTTP/1.1 200")
    );
    let id = world.create().await;
    for (_sender, body) in &mut streams {
        let mut text = String::new();
        while !text.contains("running") {
            let frame = tokio::time::timeout(PATIENCE, body.frame()).await;
            let frame = frame.expect("an event in time").unwrap().unwrap();
            text.push_str(&String::from_utf8_lossy(frame.data_ref().unwrap()));
        }
        assert!(text.contains(&id), "{text}");
    }
}

#[tokio::test]
async fn who_speaks_plain_text_is_told_and_who_says_nothing_is_left() {
    let identity = Identity::new();
    let setup = Setup {
        tls: Some(shown(&identity)),
        connections: ConnectionLimits {
            first_head: Duration::from_millis(500),
            ..ConnectionLimits::default()
        },
        ..Setup::default()
    };
    let world = World::with(setup).await;
    let connect_plain = || TcpStream::connect(world.tls_address.unwrap());
    let mut plain = connect_plain().await.unwrap();
    let request = format!(
        "GET /v1/me HTTP/1.1\r\nauthorization: Bearer {}\r\n\r\n",
        world.key
    );
    plain.write_all(request.as_bytes()).await.unwrap();
    let answer = until_closed(&mut plain).await;
    assert!(answer.starts_with(b"HTTP/1.1 400"));
    assert!(String::from_utf8_lossy(&answer).contains("begins with https://"));
    let began = Instant::now();
    // A handshake that stops, one that never begins, and one that is none.
    for beginning in [
        &b"\x16\x03\x01\x02\x00\x01"[..],
        b"",
        b"\x16\x03\x01\x00\x05hello",
    ] {
        let mut stream = connect_plain().await.unwrap();
        stream.write_all(beginning).await.unwrap();
        let answer = until_closed(&mut stream).await;
        assert!(!answer.starts_with(b"HTTP"), "{beginning:?}");
    }
    // Neither does one whose handshake is over, and who asks for nothing then.
    for protocol in ["http/1.1", "h2"] {
        let mut silent = connect(&world, &identity, protocol).await.unwrap();
        let mut end = Vec::new();
        let reading = tokio::time::timeout(PATIENCE, silent.read_to_end(&mut end));
        let _ = reading.await.expect("closed in time");
    }
    // Five of them, half a second each; the time between two requests would be thirty.
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
}

async fn until_closed(stream: &mut TcpStream) -> Vec<u8> {
    let mut answer = Vec::new();
    let reading = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer));
    // A reset is an end, too.
    let _ = reading.await.expect("closed in time");
    answer
}

#[test]
fn what_cannot_be_shown_is_refused() {
    let (one, other) = (Identity::new(), Identity::new());
    let of = |chain: &str, key: &str| Certificate::from_pem(chain.as_bytes(), key.as_bytes());
    assert!(of(&one.chain, &one.key).is_ok());
    assert!(matches!(of("", &one.key), Err(InvalidCertificate::NoChain)));
    assert!(matches!(
        of(&one.key, &one.key),
        Err(InvalidCertificate::NoChain)
    ));
    assert!(matches!(of(&one.chain, ""), Err(InvalidCertificate::Key)));
    assert!(matches!(
        of(&one.chain, &other.key),
        Err(InvalidCertificate::Pair(_))
    ));
    let cut = &one.chain[..one.chain.len() / 2];
    assert!(matches!(of(cut, &one.key), Err(InvalidCertificate::Chain)));
    // A key that has lost its line ends is one line, and in no message.
    let flat = one.key.replace('\n', "\\n");
    let error = of(&one.chain, &flat).unwrap_err();
    assert!(matches!(error, InvalidCertificate::Key), "{error:?}");
    assert!(std::error::Error::source(&error).is_none());
    let error = of(&flat, &one.key).unwrap_err();
    assert!(std::error::Error::source(&error).is_none(), "{error:?}");
}

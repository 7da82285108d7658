//! Services in sandboxes as visitors reach them: addresses, keys, and what is kept from whom.

use axum::body::Body;
use dayfly_control::GatewaySettings;
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Answer, Setup, World, service};

pub(crate) const PORT: u16 = 8080;

/// A world with a sandbox in which a service listens.
pub(crate) async fn served(setup: Setup) -> (World, String) {
    let world = World::with(setup).await;
    let id = world.create().await;
    world.node.listen(&id, PORT, service::start().await);
    (world, id)
}

pub(crate) fn host(id: &str) -> String {
    format!("{PORT}-{id}.localhost:7070")
}

/// A request by host name, without any credential.
pub(crate) fn by_host(world: &World, id: &str, path: &str) -> http::request::Builder {
    Request::builder()
        .uri(format!("http://{}{path}", world.address))
        .header("host", host(id))
}

pub(crate) fn with_key(world: &World, request: http::request::Builder) -> http::request::Builder {
    request.header("authorization", format!("Bearer {}", world.key))
}

/// Sends a request of which the answer may be a service's.
pub(crate) async fn visit(world: &World, request: http::request::Builder) -> Answer {
    answer(world, request.body(Body::empty()).unwrap()).await
}

pub(crate) async fn answer(world: &World, request: Request<Body>) -> Answer {
    let (parts, body) = world.open(request).await.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Answer {
        status: parts.status,
        headers: parts.headers,
        body,
    }
}

fn header<'a>(told: &'a Value, name: &str) -> Option<&'a str> {
    let headers = told["headers"].as_array().unwrap();
    let found = headers.iter().find(|header| header[0] == name);
    found.and_then(|header| header[1].as_str())
}

#[tokio::test]
async fn a_key_opens_a_port_by_host_name_and_by_path() {
    let (world, id) = served(Setup::default()).await;
    let request = with_key(&world, by_host(&world, &id, "/a/b?c=d&e"));
    let told = visit(&world, request).await.json();
    assert_eq!(told["uri"], "/a/b?c=d&e");
    assert_eq!(header(&told, "host"), Some(host(&id).as_str()));
    assert_eq!(header(&told, "x-forwarded-host"), Some(host(&id).as_str()));
    assert_eq!(header(&told, "x-forwarded-proto"), Some("http"));
    assert_eq!(header(&told, "x-forwarded-for"), Some("127.0.0.1"));
    let base = format!("/v1/sandboxes/{id}/ports/{PORT}/http");
    for (rest, expected) in [
        ("", "/"),
        ("/", "/"),
        (
            "/a/../../b//%2e%2e/c%2Fd?x=/../y",
            "/a/../../b//%2e%2e/c%2Fd?x=/../y",
        ),
    ] {
        let told = visit(&world, world.request(Method::GET, &format!("{base}{rest}"))).await;
        assert_eq!(told.status, StatusCode::OK, "{}", told.text());
        assert_eq!(told.json()["uri"], expected);
        let policy = &told.headers["content-security-policy"];
        assert_eq!(policy, "sandbox allow-scripts allow-forms");
    }
    let posted = with_key(&world, by_host(&world, &id, "/").method("PUT"));
    let told = answer(&world, posted.body(Body::from("content")).unwrap()).await;
    assert_eq!(told.json()["method"], "PUT");
    assert_eq!(told.json()["body"], "content");
    // Every other host, and every other path, is the API.
    for name in ["localhost", "x.localhost", "127.0.0.1"] {
        let request = with_key(&world, Request::builder().header("host", name));
        let request = request.uri(format!("http://{}/v1/me", world.address));
        assert_eq!(visit(&world, request).await.json()["project"], "default");
    }
}

#[tokio::test]
async fn a_stranger_learns_nothing_and_never_reaches_the_node() {
    let (world, id) = served(Setup::default()).await;
    let before = world.node.port_calls();
    let unknown = "sb-local-00000000000000000000000000";
    let link = world
        .post(&format!("/v1/sandboxes/{id}/ports/9999/links"), json!({}))
        .await;
    let other_token = link.json()["token"].as_str().unwrap().to_owned();
    let mut bodies = Vec::new();
    for sandbox in [id.as_str(), unknown] {
        let path = format!("/v1/sandboxes/{sandbox}/ports/{PORT}/http/");
        let by_path = || {
            Request::builder()
                .uri(format!("http://{}{path}", world.address))
                .header("host", "localhost")
        };
        let cookie = format!("dayfly_port_{PORT}_{sandbox}=dpt_wrong");
        for request in [
            by_path(),
            by_host(&world, sandbox, "/"),
            by_host(&world, sandbox, "/?dayfly_token=dpt_wrong"),
            by_host(&world, sandbox, "/?dayfly_token="),
            by_host(&world, sandbox, &format!("/?dayfly_token={other_token}")),
            by_path().header("x-dayfly-token", "dpt_wrong"),
            by_path().header("x-dayfly-token", &other_token),
            by_path().header("cookie", &cookie),
            by_path().header("authorization", "Bearer dfk_wrong"),
            by_path().header("authorization", format!("Bearer {}", world.foreign_key)),
            by_path().header("authorization", format!("Bearer {other_token}")),
            by_path().header("x-api-key", &world.key),
            with_key(&world, by_path()).header("authorization", "Bearer other"),
            by_host(&world, sandbox, "/")
                .header("connection", "upgrade")
                .header("upgrade", "websocket"),
        ] {
            let refused = visit(&world, request).await;
            assert_eq!(refused.status, StatusCode::NOT_FOUND);
            assert_eq!(refused.refusal(), "not_found");
            assert!(!refused.headers.contains_key("set-cookie"));
            let mut body = refused.json();
            body["request_id"] = json!(null);
            bodies.push(body);
        }
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "{bodies:?}");
    assert_eq!(world.node.port_calls(), before);
    assert!(world.node.received().is_empty());
}

#[tokio::test]
async fn a_service_never_sees_what_the_visitor_is_known_by() {
    let (world, id) = served(Setup::default()).await;
    let links = format!("/v1/sandboxes/{id}/ports/{PORT}/links");
    let link = world.post(&links, json!({})).await.json();
    let token = link["token"].as_str().unwrap();
    let cookies = format!("keep=this; dayfly_port_{PORT}_{id}={token}; dayfly_port_1_sb-y=canary");
    let dirty = |request: http::request::Builder| {
        request
            .header("cookie", &cookies)
            .header("x-api-key", "canary")
            .header("x-dayfly-token", token)
            .header("x-dayfly-anything", "canary")
            .header("forwarded", "for=canary")
            .header("x-forwarded-for", "canary")
            .header("x_forwarded_for", "canary")
            .header("x-forwarded-host", "canary")
            .header("x-forwarded-user", "canary")
            .header("x-real-ip", "canary")
            .header("via", "canary")
            .header("proxy-authorization", "Basic canary")
            .header("connection", "x-named")
            .header("x-named", "canary")
            .header("referer", format!("http://a/?dayfly_token={token}"))
    };
    let query = format!("/?a=1&dayfly_token={token}&dayfly%5Ftoken={token}&b");
    let path = format!("/v1/sandboxes/{id}/ports/{PORT}/http{query}");
    for request in [
        with_key(&world, by_host(&world, &id, &query)),
        world.request(Method::POST, &path),
        by_host(&world, &id, &query).method("POST"),
        by_host(&world, &id, "/").header("authorization", format!("Bearer {}", world.key)),
        by_host(&world, &id, "/").header("authorization", format!("Bearer {}", world.foreign_key)),
        by_host(&world, &id, "/").header("authorization", format!("Basic {}", world.key)),
        by_host(&world, &id, "/").header("authorization", format!("Bearer {token}")),
    ] {
        let told = visit(&world, dirty(request)).await;
        assert_eq!(told.status, StatusCode::OK, "{}", told.text());
        assert_eq!(header(&told.json(), "cookie"), Some("keep=this"));
        assert_eq!(header(&told.json(), "x-forwarded-for"), Some("127.0.0.1"));
        assert_eq!(header(&told.json(), "authorization"), None);
    }
    let received = String::from_utf8_lossy(&world.node.received()).into_owned();
    assert!(received.contains("POST /?a=1&b HTTP/1.1"), "{received}");
    for canary in ["canary", token, &world.key, &world.foreign_key, "dayfly"] {
        assert!(!received.contains(canary), "{canary} in {received}");
    }
    // What the visitor means for the service reaches it.
    let request = by_host(&world, &id, "/")
        .header("x-dayfly-token", token)
        .header("authorization", "Bearer the-service-s-own");
    let told = visit(&world, request).await.json();
    assert_eq!(
        header(&told, "authorization"),
        Some("Bearer the-service-s-own")
    );
}

#[tokio::test]
async fn a_service_s_answer_is_its_own_but_acts_on_nothing_else() {
    let (world, id) = served(Setup::default()).await;
    let missing = visit(&world, with_key(&world, by_host(&world, &id, "/missing"))).await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
    assert_eq!(missing.text(), "the service's own");
    let path = format!("/v1/sandboxes/{id}/ports/{PORT}/http");
    let by_host = visit(&world, with_key(&world, by_host(&world, &id, "/headers"))).await;
    let by_path = visit(
        &world,
        world.request(Method::GET, &format!("{path}/headers")),
    )
    .await;
    assert_eq!(by_host.headers["set-cookie"], "mine=1; Path=/");
    assert_eq!(
        by_path.headers["set-cookie"],
        format!("mine=1; Path={path}/")
    );
    assert!(by_host.headers.contains_key("clear-site-data"));
    assert!(!by_path.headers.contains_key("clear-site-data"));
    for seen in [by_host, by_path] {
        assert_eq!(seen.headers.get_all("set-cookie").iter().count(), 1);
        assert!(!seen.headers.contains_key("x-private"));
        assert_eq!(seen.headers["x-request-id"], "the service's own");
    }
}

#[tokio::test]
async fn failures_are_told_in_the_envelope() {
    let setup = Setup {
        gateway: GatewaySettings {
            connect_deadline: std::time::Duration::from_millis(50),
            ..GatewaySettings::default()
        },
        ..Setup::default()
    };
    let (world, id) = served(setup).await;
    let at = |port: u16| format!("/v1/sandboxes/{id}/ports/{port}/http/");
    let none = world.get(&at(1)).await;
    assert_eq!(
        (none.status.as_u16(), none.refusal()),
        (502, "nothing_listens".to_owned())
    );
    let nonsense: [&[u8]; 4] = [
        b"nonsense\r\n\r\n",
        b"",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
    ];
    for (port, answer) in (2..).zip(nonsense) {
        world
            .node
            .listen(&id, port, service::start_raw(answer).await);
        let refused = world.get(&at(port)).await;
        let told = (refused.status.as_u16(), refused.refusal());
        assert_eq!(told, (502, "guest_unavailable".to_owned()), "{port}");
    }
    world.node.deafen();
    let late = world.get(&at(PORT)).await;
    assert_eq!(
        (late.status.as_u16(), late.refusal()),
        (504, "timeout".to_owned())
    );
}

#[tokio::test]
async fn what_listens_is_listed_with_its_addresses() {
    let (world, id) = served(Setup::default()).await;
    let path = format!("/v1/sandboxes/{id}/ports");
    let ports = world.get(&path).await.json();
    let port = world.address.port();
    let expected = json!({"ports": [{
        "port": PORT,
        "address": "127.0.0.1",
        "url": format!("http://{PORT}-{id}.localhost:{port}/"),
        "path_url": format!("http://127.0.0.1:{port}/v1/sandboxes/{id}/ports/{PORT}/http/"),
    }]});
    assert_eq!(ports, expected);
    let silent = world.create().await;
    let ports = world.get(&format!("/v1/sandboxes/{silent}/ports")).await;
    assert_eq!(ports.json(), json!({"ports": []}));
    let foreign = world
        .ask(&world.foreign_key, Method::GET, &path, json!({}))
        .await;
    assert_eq!(foreign.status, StatusCode::NOT_FOUND);
}

/// Sends bytes as they are; reads until the server closes.
async fn raw(world: &World, bytes: &str) -> String {
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    stream.write_all(bytes.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    tokio::time::timeout(std::time::Duration::from_secs(10), read)
        .await
        .expect("the server closes")
        .unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn requests_that_can_be_read_in_two_ways_are_refused() {
    let (world, id) = served(Setup::default()).await;
    let (key, host) = (&world.key, host(&id));
    let smuggled = format!("GET /smuggled HTTP/1.1\r\nhost: {host}\r\n\r\n");
    let before = world.node.port_calls();
    for head in [
        format!("GET / HTTP/1.1\r\nhost: {host}\r\nhost: {host}\r\n"),
        format!("GET / HTTP/1.1\r\nhost: localhost\r\nhost: {host}\r\n"),
        format!("GET http://localhost/ HTTP/1.1\r\nhost: {host}\r\n"),
        format!("GET http://{host}/ HTTP/1.1\r\nhost: localhost\r\n"),
        format!("GET /v1/sandboxes/{id}/ports/{PORT}/http/ HTTP/1.0\r\n"),
        format!("POST / HTTP/1.1\r\nhost: {host}\r\ncontent-length: 1\r\ncontent-length: 2\r\n"),
        format!("POST / HTTP/1.1\r\nhost: {host}\r\ntransfer-encoding: chunked, identity\r\n"),
        format!("POST / HTTP/1.1\r\nhost: {host}\r\ncontent-length: +1\r\n"),
        format!("GET / HTTP/1.1\r\nhost: {host}\r\nx-a : b\r\n"),
        format!("GET / HTTP/1.1\r\nhost: {host}\r\nx-a: b\r\n c\r\n"),
        format!("CONNECT {host} HTTP/1.1\r\nhost: {host}\r\n"),
    ] {
        let close = "connection: close\r\n";
        let answer = raw(
            &world,
            &format!("{head}{close}authorization: Bearer {key}\r\n\r\n"),
        )
        .await;
        assert!(
            answer.starts_with("HTTP/1.1 4") || answer.starts_with("HTTP/1.0 4"),
            "{head}: {answer}"
        );
    }
    assert_eq!(world.node.port_calls(), before);
    // Both lengths: one of them is believed, and the connection ends before anything else is read.
    for lengths in [
        "content-length: 4\r\ntransfer-encoding: chunked",
        "transfer-encoding: chunked\r\ncontent-length: 4",
    ] {
        let head = format!("POST /one HTTP/1.1\r\nhost: {host}\r\n{lengths}\r\n");
        let request = format!("{head}authorization: Bearer {key}\r\n\r\n0\r\n\r\n{smuggled}");
        let answer = raw(&world, &request).await;
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
    }
    let received = String::from_utf8_lossy(&world.node.received()).into_owned();
    assert!(!received.contains("/smuggled"), "{received}");
    assert!(!received.contains("content-length"), "{received}");
}

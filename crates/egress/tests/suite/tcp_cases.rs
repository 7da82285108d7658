//! Connections of which only the address counts, and places that nobody reaches.

use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use dayfly_types::egress::{Decision, DenyReason, EgressRecordKind};

use super::certificates::client;
use super::guest::{connect, get, get_tls, hello, read_to_end, say_raw};
use super::internet::{ALLOWED, EVIL, NEVER};
use super::world::{World, allow, p90_of_ten, policy, public};

#[test]
fn b1_the_default_reaches_nothing_and_says_so_at_once() {
    let Some(world) = World::start(&[policy("deny", serde_json::json!([]))]) else {
        return;
    };
    let attacker = world.internet.sink(EVIL, 22);
    let at_once = Duration::from_secs(1);
    let said = p90_of_ten(|| {
        let said = world.guest(|| say_raw(&format!("{EVIL}:22"), b"SSH-2.0-x\r\n"));
        assert!(said.is_empty());
    });
    assert!(said < at_once, "{said:?}");
    let silent = p90_of_ten(|| {
        world.guest(|| read_to_end(&mut connect(&format!("{EVIL}:22")).unwrap()));
    });
    assert!(silent < at_once, "when the guest says nothing: {silent:?}");
    world.kept.wait_denied(DenyReason::ModeDeny);
    attacker.assert_nothing_came();
    world.set_policy(public());
    world.guest(|| {
        connect(&format!("{EVIL}:22"))
            .unwrap()
            .write_all(b"x")
            .unwrap()
    });
    world.kept.wait_decision(Decision::Closed);
    assert_eq!(attacker.text(), "x");
}

#[test]
fn b2_b3_private_and_metadata_addresses_are_reached_in_no_mode() {
    let Some(world) = World::start(&[public()]) else {
        return;
    };
    let canaries = world.internet.canaries();
    let other = NEVER.map(|address| world.internet.sink(address, 8080));
    let everything =
        serde_json::json!([{"id": "all", "network": "0.0.0.0/0", "ports": [80, 443, 8080]}]);
    for policy in [
        public(),
        policy("observe", serde_json::json!([])),
        policy("allowlist", everything),
    ] {
        world.set_policy(policy);
        for address in NEVER {
            for port in [80, 443, 8080] {
                world.guest(move || {
                    say_raw(&format!("{address}:{port}"), b"\x01give me the keys\n")
                });
            }
            let said = world.guest(move || get(&format!("{address}:80"), address, "/"));
            assert!(said.contains("never_address"), "{said}");
        }
    }
    world.kept.wait_denied(DenyReason::NeverAddress);
    for canary in canaries.iter().chain(&other) {
        canary.assert_nothing_came();
    }
    let reached = world.internet.sink(EVIL, 8080);
    world.guest(|| {
        connect(&format!("{EVIL}:8080"))
            .unwrap()
            .write_all(b"x")
            .unwrap()
    });
    world.kept.wait_decision(Decision::Closed);
    assert_eq!(
        reached.text(),
        "x",
        "a public address is reached by the same rule"
    );
}

#[test]
fn b11_quic_is_refused_at_once_and_the_client_falls_back() {
    let Some(world) = World::start(&[allow("allowed.test")]) else {
        return;
    };
    world.internet.https(ALLOWED, 443, &world.internet.allowed);
    let started = Instant::now();
    let refused = world.guest(|| {
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
        socket.set_read_timeout(Some(super::guest::LIMIT)).unwrap();
        socket.connect((ALLOWED, 443)).unwrap();
        socket.send(&[0xc3; 1200]).unwrap();
        socket.recv(&mut [0; 1]).unwrap_err().kind()
    });
    assert!(
        !matches!(refused, ErrorKind::WouldBlock | ErrorKind::TimedOut),
        "{refused}"
    );
    assert!(started.elapsed() < Duration::from_secs(1));
    let config = client(&[&world.internet.allowed]);
    let said = world.guest(move || get_tls(&config, &format!("{ALLOWED}:443"), "allowed.test"));
    assert!(said.unwrap().contains("hello from tls"));
}

#[test]
fn b19_an_allowed_host_on_another_port_is_denied() {
    let Some(world) = World::start(&[allow("allowed.test")]) else {
        return;
    };
    let sinks = [22, 25, 8443, 8080].map(|port| (port, world.internet.sink(ALLOWED, port)));
    let config = client(&[&world.internet.allowed]);
    for (port, _) in &sinks {
        let (port, hello) = (*port, hello(&config, "allowed.test"));
        world.guest(move || say_raw(&format!("{ALLOWED}:{port}"), &hello));
        world.guest(move || get(&format!("{ALLOWED}:{port}"), "allowed.test", "/"));
        world.guest(move || say_raw(&format!("{ALLOWED}:{port}"), b"SSH-2.0-x\r\n"));
    }
    world.kept.wait_denied(DenyReason::Port);
    for (_, sink) in &sinks {
        sink.assert_nothing_came();
    }
    let rules = serde_json::json!([{"id": "a", "host": "allowed.test", "ports": [8443]}]);
    world.set_policy(policy("allowlist", rules));
    let hello = hello(&config, "allowed.test");
    world.guest(move || {
        let mut stream = connect(&format!("{ALLOWED}:8443")).unwrap();
        stream.write_all(&hello).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        read_to_end(&mut stream);
    });
    assert_eq!(sinks[2].1.connections(), 1, "a rule opens it");
}

#[test]
fn b22_mail_is_shut_in_open_modes() {
    let Some(world) = World::start(&[public()]) else {
        return;
    };
    let sinks = [25, 465, 587].map(|port| (port, world.internet.sink(EVIL, port)));
    for (port, _) in &sinks {
        let port = *port;
        world.guest(move || say_raw(&format!("{EVIL}:{port}"), b"EHLO x\r\n"));
    }
    world.kept.wait_denied(DenyReason::AbusePort);
    for (_, sink) in &sinks {
        sink.assert_nothing_came();
    }
    let rules = serde_json::json!([{"id": "mail", "network": "198.41.0.4/32", "ports": [587]}]);
    world.set_policy(policy("observe", rules));
    world.guest(|| {
        connect(&format!("{EVIL}:587"))
            .unwrap()
            .write_all(b"EHLO x\r\n")
            .unwrap()
    });
    world.kept.wait_decision(Decision::Closed);
    assert_eq!(sinks[2].1.text(), "EHLO x\r\n", "a rule opens it");
}

#[test]
fn d16_what_is_spoken_must_fit_the_port_of_a_name_rule() {
    let Some(world) = World::start(&[allow("allowed.test")]) else {
        return;
    };
    let plain = world.internet.sink(ALLOWED, 80);
    let secure = world.internet.sink(ALLOWED, 443);
    let config = client(&[&world.internet.allowed]);
    let tls = hello(&config, "allowed.test");
    let said = world.guest(move || say_raw(&format!("{ALLOWED}:80"), &tls));
    assert_eq!(super::guest::alert(&said), Some(50), "{said:?}");
    let said = world.guest(|| get(&format!("{ALLOWED}:443"), "allowed.test", "/"));
    assert!(
        said.starts_with("HTTP/1.1 400 ") && said.contains("protocol"),
        "{said}"
    );
    for port in [80, 443] {
        let said = world.guest(move || say_raw(&format!("{ALLOWED}:{port}"), b"SSH-2.0-x\r\n"));
        assert!(said.is_empty());
    }
    let denied = world.kept.wait("SSH", |record| {
        record.kind == EgressRecordKind::Tcp && record.reason == Some(DenyReason::Protocol)
    });
    assert_eq!(denied.decision, Decision::Denied);
    plain.assert_nothing_came();
    secure.assert_nothing_came();
    // In an open mode the name is enough.
    world.set_policy(public());
    world.guest(|| {
        let mut stream = connect(&format!("{ALLOWED}:443")).unwrap();
        stream.write_all(b"SSH-2.0-x\r\n").unwrap();
    });
    world.kept.wait_decision(Decision::Closed);
    assert_eq!(secure.text(), "SSH-2.0-x\r\n");
}

#[test]
fn a_range_lets_a_server_speak_first() {
    let rules = serde_json::json!([{"id": "ssh", "network": "93.184.216.0/24", "ports": [22]}]);
    let Some(world) = World::start(&[policy("allowlist", rules)]) else {
        return;
    };
    world.internet.greeter(ALLOWED, 22);
    let greet = || {
        let mut stream = connect(&format!("{ALLOWED}:22")).unwrap();
        let mut greeting = [0; 14];
        stream.read_exact(&mut greeting).map(|()| greeting)
    };
    assert_eq!(&world.guest(greet).unwrap(), b"SSH-2.0-test\r\n");
    let record = world.kept.wait_decision(Decision::Allowed);
    assert_eq!(
        (record.kind, record.rule.as_deref()),
        (EgressRecordKind::Tcp, Some("ssh"))
    );
    world.set_policy(public());
    let started = Instant::now();
    assert!(world.guest(greet).is_ok(), "and so does an open mode");
    assert!(started.elapsed() < Duration::from_secs(1));
    world.set_policy(allow("allowed.test"));
    assert!(world.guest(greet).is_err(), "a name cannot");
}

#[test]
fn observe_lets_through_and_says_what_a_list_would_not() {
    let rules = serde_json::json!([{"id": "a", "host": "allowed.test", "ports": [443, 8443]}]);
    let Some(world) = World::start(&[policy("observe", rules)]) else {
        return;
    };
    world.internet.https(ALLOWED, 8443, &world.internet.allowed);
    world.internet.https(EVIL, 443, &world.internet.evil);
    let config = client(&[&world.internet.allowed, &world.internet.evil]);
    let both = [(ALLOWED, 8443, "allowed.test"), (EVIL, 443, "evil.test")];
    for (address, port, name) in both {
        let config = config.clone();
        let said = world.guest(move || get_tls(&config, &format!("{address}:{port}"), name));
        assert!(said.is_ok(), "{name}");
        let record = world.kept.wait(name, |record| {
            record.decision == Decision::Allowed
                && record
                    .name
                    .as_ref()
                    .is_some_and(|known| known.as_str() == name)
        });
        assert_eq!(record.would_deny, name == "evil.test", "{name}");
    }
}

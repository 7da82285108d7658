//! Policies change while connections are open.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use dayfly_types::egress::{Decision, DenyReason};

use super::certificates::client;
use super::guest::{ask, connect, get, get_tls};
use super::internet::{ALLOWED, EVIL, OTHER};
use super::world::{World, allow, lifecycle, policy, public};

#[test]
fn b16_a_tighter_policy_ends_what_it_does_not_allow_within_a_second() {
    let three = serde_json::json!([
        {"id": "a", "host": "allowed.test"},
        {"id": "o", "host": "other.test"},
        {"id": "n", "network": "198.41.0.4/32", "ports": [7]}]);
    let Some(world) = World::start(&[policy("allowlist", three)]) else {
        return;
    };
    world.internet.http(ALLOWED, 80, "allowed");
    world.internet.http(OTHER, 80, "other");
    let sink = world.internet.sink(EVIL, 7);
    let open = |address: String, host: &'static str| {
        world.guest(move || {
            let mut stream = connect(&address).unwrap();
            let request = format!("GET /endless HTTP/1.1\r\nHost: {host}\r\n\r\n");
            stream.write_all(request.as_bytes()).unwrap();
            let mut some = [0; 4096];
            stream.read_exact(&mut some).unwrap();
            stream
        })
    };
    let mut cut = open(format!("{ALLOWED}:80"), "allowed.test");
    let mut kept = open(format!("{OTHER}:80"), "other.test");
    let mut raw = world.guest(|| {
        let mut stream = connect(&format!("{EVIL}:7")).unwrap();
        stream.write_all(b"before").unwrap();
        stream
    });
    super::world::wait_until("the raw one has arrived", || sink.text() == "before");
    let started = Instant::now();
    assert_eq!(world.set_policy(allow("other.test")), 2);
    let said_after = started.elapsed();
    let mut part = vec![0; 64 << 10];
    let mut bytes_after = 0;
    while let Ok(count @ 1..) = cut.read(&mut part) {
        bytes_after += count;
    }
    assert!(raw.read(&mut part).is_err(), "it is reset");
    assert!(said_after < Duration::from_secs(1), "{said_after:?}");
    assert!(
        started.elapsed() < Duration::from_secs(1),
        "{bytes_after} bytes after"
    );
    let record = world.kept.wait("the cut download", |record| {
        record.decision == Decision::Cut && record.rule.as_deref() == Some("a")
    });
    assert!(record.bytes_down > 4096);
    for _ in 0..64 {
        kept.read_exact(&mut part).unwrap();
    }
    let said = world.guest(|| get(&format!("{ALLOWED}:80"), "allowed.test", "/"));
    assert!(
        said.starts_with("HTTP/1.1 403 "),
        "new ones are denied at once"
    );
    assert_eq!(sink.text(), "before");
}

#[test]
fn a_wider_policy_is_in_force_when_the_answer_comes() {
    let Some(world) = World::start(&[policy("deny", serde_json::json!([]))]) else {
        return;
    };
    world.internet.https(ALLOWED, 443, &world.internet.allowed);
    let config = client(&[&world.internet.allowed]);
    let asking = config.clone();
    let denied = world.guest(move || get_tls(&asking, &format!("{ALLOWED}:443"), "allowed.test"));
    assert!(denied.is_err());
    assert_eq!(world.set_policy(allow("allowed.test")), 0);
    let said = world.guest(move || get_tls(&config, &format!("{ALLOWED}:443"), "allowed.test"));
    assert!(said.is_ok());
}

#[test]
fn d11_an_empty_list_lets_nothing_through_at_any_time() {
    let empty = || policy("allowlist", serde_json::json!([]));
    let Some(world) = World::start(&[empty()]) else {
        return;
    };
    let attacker = world.internet.http(EVIL, 80, "evil");
    let probe = || {
        world.guest(|| {
            (
                ask("evil.test").1,
                get(&format!("{EVIL}:80"), "evil.test", "/"),
            )
        })
    };
    let (addresses, said) = probe();
    assert!(
        addresses.is_empty() && said.starts_with("HTTP/1.1 403 "),
        "{said}"
    );
    world.set_policy(public());
    assert!(probe().1.contains("hello from evil"), "the probe works");
    world.set_policy(empty());
    let before = attacker.connections();
    let (addresses, said) = probe();
    assert!(
        addresses.is_empty() && said.starts_with("HTTP/1.1 403 "),
        "{said}"
    );
    world.open(lifecycle(0, 2), 3, empty()).unwrap();
    let (addresses, said) = probe();
    assert!(
        addresses.is_empty() && said.starts_with("HTTP/1.1 403 "),
        "{said}"
    );
    assert_eq!(attacker.connections(), before);
    world.kept.wait_denied(DenyReason::NoRule);
}

#[test]
fn b15_the_next_holder_of_a_slot_inherits_nothing() {
    let Some(world) = World::start(&[allow("allowed.test")]) else {
        return;
    };
    let server = world.internet.http(ALLOWED, 80, "allowed");
    let mut stream = world.guest(|| {
        let mut stream = connect(&format!("{ALLOWED}:80")).unwrap();
        let request = b"GET /endless HTTP/1.1\r\nHost: allowed.test\r\n\r\n";
        stream.write_all(request).unwrap();
        stream.read_exact(&mut [0; 4096]).unwrap();
        stream
    });
    let mut next = lifecycle(0, 1);
    next.sandbox = "another".parse().unwrap();
    assert_eq!(world.open(next.clone(), 1, allow("other.test")).unwrap(), 1);
    let mut rest = vec![0; 64 << 10];
    while let Ok(1..) = stream.read(&mut rest) {}
    let before = server.connections();
    let said = world.guest(|| get(&format!("{ALLOWED}:80"), "allowed.test", "/"));
    assert!(said.starts_with("HTTP/1.1 403 "), "{said}");
    assert_eq!(server.connections(), before);
    let denied = world.kept.wait_denied(DenyReason::NoRule);
    let whose = world.kept.all();
    let whose = whose.iter().find(|record| record.record == denied).unwrap();
    assert_eq!(whose.lifecycle, next, "it is on the new one's account");
}

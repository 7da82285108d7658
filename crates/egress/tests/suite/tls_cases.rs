//! TLS: the name counts, and the address that the guest dialled does not.

use std::io::Write;
use std::sync::Arc;

use dayfly_types::egress::{Decision, DenyReason, EgressRecordKind, NameSource};
use hickory_proto::op::ResponseCode;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

use super::certificates::client;
use super::guest::{
    alert, ask, connect, get_tls, hello, in_records, raw_hello, read_to_end, say_raw,
};
use super::internet::{ALLOWED, EVIL};
use super::world::{World, allow, public};

const ACCESS_DENIED: u8 = 49;
const UNRECOGNIZED_NAME: u8 = 112;

#[test]
fn d1_sni_allowed_destination_attacker() {
    let Some(world) = World::start(&[allow("allowed.test")]) else {
        return;
    };
    let real = world.internet.https(ALLOWED, 443, &world.internet.allowed);
    let attacker = world.internet.https(EVIL, 443, &world.internet.evil);
    let config = client(&[&world.internet.allowed, &world.internet.evil]);
    let said = world.guest(move || get_tls(&config, &format!("{EVIL}:443"), "allowed.test"));
    assert!(said.unwrap().contains("hello from tls"));
    attacker.assert_nothing_came();
    assert_eq!(real.requests(), 1, "the name's own host was dialled");
    let record = world.kept.wait_decision(Decision::Closed);
    assert_eq!(record.kind, EgressRecordKind::Tls);
    assert_eq!(record.name_source, NameSource::Sni);
    let address = |ip: &str| Some(format!("{ip}:443").parse().unwrap());
    assert_eq!(record.destination, address(EVIL));
    assert_eq!(record.dialed, address(ALLOWED));
    assert_eq!(record.rule.as_deref(), Some("allowed.test"));
    assert!(record.bytes_up > 100 && record.bytes_down > 100);
}

#[test]
fn a_name_without_a_rule_is_refused_by_an_alert() {
    let Some(world) = World::start(&[allow("allowed.test")]) else {
        return;
    };
    let attacker = world.internet.https(EVIL, 443, &world.internet.evil);
    let config = client(&[&world.internet.evil]);
    let (hello, trusting) = (hello(&config, "evil.test"), Arc::clone(&config));
    let said = world.guest(move || say_raw(&format!("{EVIL}:443"), &hello));
    assert_eq!(alert(&said), Some(ACCESS_DENIED), "{said:?}");
    let told = world.guest(move || get_tls(&trusting, &format!("{EVIL}:443"), "evil.test"));
    assert!(format!("{:?}", told.unwrap_err()).contains("AccessDenied"));
    let record = world.kept.wait_denied(DenyReason::NoRule);
    assert_eq!(record.name.unwrap().as_str(), "evil.test");
    attacker.assert_nothing_came();
    world.set_policy(allow("evil.test"));
    let said = world.guest(move || get_tls(&config, &format!("{EVIL}:443"), "evil.test"));
    assert!(said.is_ok(), "the same probe gets through where it may");
}

#[test]
fn d2_a_hello_without_one_name_is_denied() {
    let Some(world) = World::start(&[allow("allowed.test")]) else {
        return;
    };
    let allowed = world.internet.sink(ALLOWED, 443);
    let attacker = world.internet.sink(EVIL, 443);
    let mut silent = ClientConfig::clone(&client(&[&world.internet.allowed]));
    silent.enable_sni = false;
    let cases = [
        (
            hello(&Arc::new(silent), "allowed.test"),
            Some(UNRECOGNIZED_NAME),
        ),
        (raw_hello(&[], 0), Some(UNRECOGNIZED_NAME)),
        (raw_hello(&[b"198.41.0.4"], 0), Some(UNRECOGNIZED_NAME)),
        (raw_hello(&[b"allowed.test", b"evil.test"], 0), None),
        (raw_hello(&[b"evil.test", b"allowed.test"], 0), None),
        (raw_hello(&[b"allowed.test", b"allowed.test"], 0), None),
    ];
    for (index, (hello, expected)) in cases.into_iter().enumerate() {
        let said = world.guest(move || say_raw(&format!("{EVIL}:443"), &hello));
        let told = alert(&said);
        assert!(told.is_some(), "case {index}: {said:?}");
        assert!(
            expected.is_none() || told == expected,
            "case {index}: {told:?}"
        );
    }
    attacker.assert_nothing_came();
    allowed.assert_nothing_came();
    let hello = raw_hello(&[b"allowed.test"], 0);
    let length = hello.len();
    world.guest(move || {
        let mut stream = connect(&format!("{EVIL}:443")).unwrap();
        stream.write_all(&hello).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        // The sink says nothing and closes with us.
        assert!(read_to_end(&mut stream).is_empty());
    });
    assert_eq!(
        allowed.bytes().len(),
        length,
        "one name is let through as it is"
    );
}

/// Sends a hello in pieces and finishes the handshake.
fn shake_hands_in_pieces(
    config: &Arc<ClientConfig>,
    address: &str,
    record: usize,
    segment: usize,
) -> bool {
    let name = ServerName::try_from("allowed.test").unwrap();
    let mut connection = ClientConnection::new(Arc::clone(config), name).unwrap();
    let mut hello = Vec::new();
    connection.write_tls(&mut hello).unwrap();
    let pieces = in_records(&hello[5..], record);
    let mut stream = connect(address).unwrap();
    for piece in pieces.chunks(segment) {
        stream.write_all(piece).unwrap();
    }
    while connection.is_handshaking() {
        if connection.complete_io(&mut stream).is_err() {
            return false;
        }
    }
    true
}

#[test]
fn d3_a_hello_in_pieces_is_read_or_refused() {
    let Some(world) = World::start(&[allow("allowed.test")]) else {
        return;
    };
    let allowed = world.internet.https(ALLOWED, 443, &world.internet.allowed);
    let attacker = world.internet.sink(EVIL, 443);
    let config = client(&[&world.internet.allowed]);
    for (record, segment) in [(1000, 4096), (120, 4096), (13, 4096), (16384, 1), (40, 7)] {
        let config = Arc::clone(&config);
        let done = world
            .guest(move || shake_hands_in_pieces(&config, &format!("{EVIL}:443"), record, segment));
        assert!(done, "records of {record} in segments of {segment}");
    }
    let before = allowed.connections();
    let large = raw_hello(&[b"allowed.test"], 16 << 10);
    let too_large = raw_hello(&[b"allowed.test"], 65_430);
    let endless = in_records(&[1, 0xff, 0xff, 0xff].repeat(40_000), 16 << 10);
    for hello in [large, too_large, endless] {
        let length = hello.len();
        let said = world.guest(move || say_raw(&format!("{EVIL}:443"), &hello));
        // A server that does not like it answers with an alert of its own, at once.
        assert_eq!(said.first(), Some(&21), "{length} bytes: {said:?}");
    }
    assert_eq!(
        allowed.connections() - before,
        1,
        "the large one and no other"
    );
    attacker.assert_nothing_came();
}

#[test]
fn d12_b7_names_that_are_none_are_denied_in_every_mode() {
    let Some(world) = World::start(&[allow("**.allowed.test")]) else {
        return;
    };
    let attacker = world.internet.sink(EVIL, 443);
    let canaries = world.internet.canaries();
    let names: [&[u8]; 10] = [
        b"evil.test\0.allowed.test",
        b"evil.test .allowed.test",
        b"evil.test#.allowed.test",
        b"user@www.allowed.test",
        b"evil.test\x01.allowed.test",
        b"-.allowed.test",
        b"2852039166",
        b"0xa9fea9fe",
        b"0251.0376.0251.0376",
        b"::ffff:169.254.169.254",
    ];
    for mode in ["allowlist", "public"] {
        if mode == "public" {
            world.set_policy(public());
        }
        for name in names {
            let hello = raw_hello(&[name], 0);
            let said = world.guest(move || say_raw("169.254.169.254:443", &hello));
            assert!(alert(&said).is_some(), "{mode} {name:?}: {said:?}");
        }
    }
    attacker.assert_nothing_came();
    for canary in &canaries {
        canary.assert_nothing_came();
    }
    let hello = raw_hello(&[b"www.allowed.test"], 0);
    let allowed = world.internet.sink(ALLOWED, 443);
    world.guest(move || {
        let mut stream = connect("169.254.169.254:443").unwrap();
        stream.write_all(&hello).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        read_to_end(&mut stream);
    });
    assert_eq!(allowed.connections(), 1, "a good name goes to its own host");
}

#[test]
fn d10_a_wildcard_has_edges() {
    let Some(world) = World::start(&[allow("*.allowed.test")]) else {
        return;
    };
    let attacker = world.internet.sink(EVIL, 443);
    let allowed = world.internet.sink(ALLOWED, 443);
    for name in [
        "allowed.test",
        "evilallowed.test",
        "www.allowed.test.evil.test",
        "a.www.allowed.test",
    ] {
        world.internet.names.set_addresses(name, &[EVIL]);
        let hello = raw_hello(&[name.as_bytes()], 0);
        let said = world.guest(move || say_raw(&format!("{EVIL}:443"), &hello));
        assert_eq!(alert(&said), Some(ACCESS_DENIED), "{name}");
        let (code, _) = world.guest(move || ask(name));
        assert_eq!(code, ResponseCode::NXDomain, "{name}");
    }
    attacker.assert_nothing_came();
    assert!(world.internet.names.questions().is_empty());
    let hello = raw_hello(&[b"WWW.allowed.test."], 0);
    world.guest(move || {
        let mut stream = connect(&format!("{EVIL}:443")).unwrap();
        stream.write_all(&hello).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        read_to_end(&mut stream);
    });
    assert_eq!(allowed.connections(), 1);
    assert_eq!(world.internet.names.questions(), ["www.allowed.test"]);
}

//! Names: nothing is asked upstream but what the policy lets through.

use std::time::{Duration, Instant};

use dayfly_types::egress::{Decision, DenyReason};
use hickory_proto::op::{Edns, MessageType, ResponseCode};
use hickory_proto::rr::rdata::opt::EdnsOption;
use hickory_proto::rr::{DNSClass, RecordType};

use super::certificates::client;
use super::guest::{
    addresses, ask, ask_kind, ask_raw, ask_tcp, connect, get_tls, hello, question, say_raw,
};
use super::internet::{ALLOWED, EVIL, OTHER};
use super::name_server::Entry;
use super::world::{World, allow, policy, wait_until};

#[test]
fn c1_a_name_without_a_rule_is_not_asked_for() {
    let Some(world) = World::start(&[allow("allowed.test")]) else {
        return;
    };
    for server in ["8.8.8.8", "1.1.1.1", "9.9.9.9", "10.11.0.1"] {
        let packet = question("evil.test", RecordType::A).to_vec().unwrap();
        let replies = world.guest(move || {
            let by_udp = ask_kind(server, "evil.test", RecordType::A);
            let by_tcp = ask_tcp(server, &[packet]).remove(0);
            [by_udp, by_tcp]
        });
        for reply in replies {
            assert_eq!(
                reply.metadata.response_code,
                ResponseCode::NXDomain,
                "{server}"
            );
        }
    }
    assert!(world.internet.names.questions().is_empty());
    let record = world.kept.wait_denied(DenyReason::NoRule);
    assert_eq!(record.name.unwrap().as_str(), "evil.test");
    let (code, found) = world.guest(|| ask("allowed.test"));
    assert_eq!(
        (code, found),
        (ResponseCode::NoError, vec![ALLOWED.parse().unwrap()])
    );
    assert_eq!(world.internet.names.questions(), ["allowed.test"]);
    let record = world.kept.wait_decision(Decision::Allowed);
    assert_eq!(
        record.answers,
        [ALLOWED.parse::<std::net::Ipv4Addr>().unwrap()]
    );
}

#[test]
fn c2_a_tunnel_of_labels_carries_nothing() {
    let Some(world) = World::start(&[allow("allowed.test")]) else {
        return;
    };
    world.guest(|| {
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
        socket.connect(("8.8.8.8", 53)).unwrap();
        for number in 0..1000 {
            let name = format!("{number:0>60}.evil.test");
            let packet = question(&name, RecordType::A).to_vec().unwrap();
            socket.send(&packet).unwrap();
        }
    });
    world.kept.wait_denied(DenyReason::NoRule);
    let flooded = world.kept.wait("what was held back", |record| {
        record.decision == Decision::Denied && record.reason == Some(DenyReason::Limit)
    });
    assert!(flooded.name.is_none());
    assert!(world.internet.names.questions().is_empty());
}

#[test]
fn c3_a_wildcard_is_no_tunnel_either() {
    let Some(world) = World::start(&[allow("*.allowed.test")]) else {
        return;
    };
    let codes = world.guest(|| {
        let ask_one = |number: u32| ask(&format!("x{number:0>50}.allowed.test")).0;
        (0..90).map(ask_one).collect::<Vec<_>>()
    });
    assert_eq!(world.internet.names.questions().len(), 60);
    let refused = codes.iter().filter(|code| **code == ResponseCode::Refused);
    assert_eq!(refused.count(), 30);
    let record = world.kept.wait_denied(DenyReason::Limit);
    assert_eq!(record.rule.as_deref(), Some("*.allowed.test"));
    let (config, before) = (client(&[&world.internet.allowed]), 60);
    let hello = hello(&config, "another.allowed.test");
    world.guest(move || say_raw(&format!("{ALLOWED}:443"), &hello));
    assert_eq!(
        world.internet.names.questions().len(),
        before,
        "nor by a connection"
    );
}

#[test]
fn c4_only_addresses_are_answered() {
    let Some(world) = World::start(&[allow("allowed.test")]) else {
        return;
    };
    for kind in [
        RecordType::AAAA,
        RecordType::TXT,
        RecordType::NULL,
        RecordType::ANY,
        RecordType::MX,
        RecordType::SRV,
        RecordType::HTTPS,
        RecordType::SVCB,
        RecordType::DNSKEY,
        RecordType::CNAME,
        RecordType::NS,
        RecordType::Unknown(65_280),
    ] {
        let reply = world.guest(move || ask_kind("10.11.0.1", "allowed.test", kind));
        assert_eq!(
            reply.metadata.response_code,
            ResponseCode::NoError,
            "{kind}"
        );
        assert!(
            reply.answers.is_empty() && reply.authorities.is_empty(),
            "{kind}"
        );
    }
    let transfer = world.guest(|| ask_kind("10.11.0.1", "allowed.test", RecordType::AXFR));
    let chaos = world.guest(|| {
        let mut message = question("version.bind", RecordType::TXT);
        message.queries[0].query_class = DNSClass::CH;
        ask_raw("10.11.0.1", &message.to_vec().unwrap(), super::guest::LIMIT).unwrap()
    });
    for reply in [transfer, chaos] {
        assert_eq!(reply.metadata.response_code, ResponseCode::Refused);
    }
    assert!(world.internet.names.questions().is_empty());
    world.kept.wait_denied(DenyReason::QuestionType);
    assert_eq!(world.guest(|| ask("allowed.test")).1.len(), 1);
}

#[test]
fn c5_other_ways_to_ask_are_shut() {
    let Some(world) = World::start(&[allow("allowed.test")]) else {
        return;
    };
    let dot = world.internet.sink("9.9.9.9", 853);
    let doh = world.internet.sink("8.8.8.8", 443);
    let config = client(&[&world.internet.allowed]);
    for (address, name) in [
        ("9.9.9.9:853", "dns.quad9.net"),
        ("8.8.8.8:443", "dns.google"),
    ] {
        let hello = hello(&config, name);
        world.guest(move || say_raw(address, &hello));
    }
    let refused = world.guest(|| {
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
        socket.set_read_timeout(Some(super::guest::LIMIT)).unwrap();
        socket.connect(("9.9.9.9", 853)).unwrap();
        socket.send(b"quic").unwrap();
        socket.recv(&mut [0; 16]).unwrap_err().kind()
    });
    assert!(
        !matches!(
            refused,
            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
        ),
        "it is told at once: {refused}"
    );
    dot.assert_nothing_came();
    doh.assert_nothing_came();
    let rules = serde_json::json!([{"id": "dot", "network": "9.9.9.9/32", "ports": [853]}]);
    world.set_policy(policy("allowlist", rules));
    world.guest(|| {
        let mut stream = connect("9.9.9.9:853").unwrap();
        std::io::Write::write_all(&mut stream, b"hello").unwrap();
        drop(stream);
    });
    world.kept.wait_decision(Decision::Closed);
    assert_eq!(dot.text(), "hello", "a rule opens it");
}

#[test]
fn c6_an_allowed_name_that_stands_for_a_private_address_is_not_dialled() {
    let Some(world) = World::start(&[allow("*.allowed.test")]) else {
        return;
    };
    let canaries = world.internet.canaries();
    let config = client(&[&world.internet.allowed]);
    let names = &world.internet.names;
    names.set_addresses("meta.allowed.test", &["169.254.169.254", "10.0.0.5"]);
    names.set_addresses("mixed.allowed.test", &["169.254.169.254", ALLOWED]);
    let turns = [ALLOWED, "169.254.169.254"].map(|text| vec![text.parse().unwrap()]);
    names.set("turns.allowed.test", Entry::InTurn(turns.to_vec()));
    let (code, found) = world.guest(|| ask("meta.allowed.test"));
    assert_eq!((code, found.len()), (ResponseCode::NoError, 0));
    let record = world.kept.wait_denied(DenyReason::NeverAddress);
    assert_eq!(record.name.unwrap().as_str(), "meta.allowed.test");
    let direct = hello(&config, "meta.allowed.test");
    let said = world.guest(move || say_raw("169.254.169.254:443", &direct));
    assert_eq!(super::guest::alert(&said), Some(49));
    let (_, found) = world.guest(|| ask("mixed.allowed.test"));
    assert_eq!(found, [ALLOWED.parse::<std::net::Ipv4Addr>().unwrap()]);
    // The name changes its mind when its time to live is over.
    assert_eq!(world.guest(|| ask("turns.allowed.test")).1.len(), 1);
    wait_until("the first answer is over", || {
        world.guest(|| ask("turns.allowed.test")).1.is_empty()
    });
    let flipped = hello(&config, "turns.allowed.test");
    let said = world.guest(move || say_raw(&format!("{ALLOWED}:443"), &flipped));
    assert_eq!(super::guest::alert(&said), Some(49));
    for canary in &canaries {
        canary.assert_nothing_came();
    }
}

#[test]
fn c7_an_alias_is_followed_and_pinned_to_the_name_that_was_asked_for() {
    let Some(world) = World::start(&[allow("*.allowed.test")]) else {
        return;
    };
    let names = &world.internet.names;
    let alias =
        |address: &str| Entry::Alias("evil.test".to_owned(), vec![address.parse().unwrap()]);
    names.set("good.allowed.test", alias(OTHER));
    names.set("bad.allowed.test", alias("10.0.0.5"));
    let canary = world.internet.sink("10.0.0.5", 443);
    let reply = world.guest(|| ask_kind("10.11.0.1", "good.allowed.test", RecordType::A));
    assert_eq!(
        addresses(&reply),
        [OTHER.parse::<std::net::Ipv4Addr>().unwrap()]
    );
    assert_eq!(reply.answers.len(), 1, "the guest does not see the alias");
    assert_eq!(reply.answers[0].name.to_ascii(), "good.allowed.test.");
    assert!((1..=60).contains(&reply.answers[0].ttl));
    let (code, found) = world.guest(|| ask("bad.allowed.test"));
    assert_eq!((code, found.len()), (ResponseCode::NoError, 0));
    let (code, _) = world.guest(|| ask("evil.test"));
    assert_eq!(
        code,
        ResponseCode::NXDomain,
        "the alias opens nothing by itself"
    );
    canary.assert_nothing_came();
}

#[test]
fn c8_answers_of_one_sandbox_do_not_show_in_another() {
    let both = [allow("allowed.test"), allow("allowed.test")];
    let Some(world) = World::start(&both) else {
        return;
    };
    let first = world.guest_of(0, || ask("allowed.test").1);
    world.internet.names.set_addresses("allowed.test", &[OTHER]);
    let second = world.guest_of(1, || ask("allowed.test").1);
    let again = world.guest_of(0, || ask("allowed.test").1);
    assert_eq!(first, [ALLOWED.parse::<std::net::Ipv4Addr>().unwrap()]);
    assert_eq!(second, [OTHER.parse::<std::net::Ipv4Addr>().unwrap()]);
    assert_eq!(again, first);
    assert_eq!(world.internet.names.questions().len(), 2);
}

#[test]
fn c9_a_name_goes_upstream_in_its_one_form() {
    let Some(world) = World::start(&[allow("allowed.test")]) else {
        return;
    };
    let reply = world.guest(|| ask_kind("10.11.0.1", "aLLoWeD.TEst", RecordType::A));
    assert_eq!(reply.answers[0].name.to_ascii(), "aLLoWeD.TEst.");
    for name in [
        "xn--allowed-x.test",
        "_allowed.test",
        "allowed.test.evil.test",
    ] {
        let (code, _) = world.guest(move || ask(name));
        assert_eq!(code, ResponseCode::NXDomain, "{name}");
    }
    assert_eq!(world.internet.names.questions(), ["allowed.test"]);
}

#[test]
fn c10_a_hosts_file_of_the_guest_changes_nothing() {
    let Some(world) = World::start(&[allow("allowed.test")]) else {
        return;
    };
    let real = world.internet.http(ALLOWED, 80, "allowed");
    let attacker = world.internet.http(EVIL, 80, "evil");
    let address = format!("{EVIL}:80");
    let said = world.guest(move || super::guest::get(&address, "allowed.test", "/"));
    assert!(said.contains("hello from allowed"), "{said}");
    assert_eq!(real.requests(), 1);
    attacker.assert_nothing_came();
}

#[test]
fn c11_nothing_of_a_packet_goes_on_but_the_name() {
    let Some(world) = World::start(&[allow("*.allowed.test")]) else {
        return;
    };
    let marker = b"exfiltrated-secret";
    let mut with_options = question("www.allowed.test", RecordType::A);
    let mut options = Edns::new();
    for code in [10, 12, 65_001] {
        let option = EdnsOption::Unknown(code, marker.to_vec());
        options.options_mut().insert(option);
    }
    with_options.set_edns(options);
    let packet = with_options.to_vec().unwrap();
    assert!(packet.windows(marker.len()).any(|part| part == marker));
    let mut two = question("www.allowed.test", RecordType::A);
    two.add_query(two.queries[0].clone());
    let mut response = question("www.allowed.test", RecordType::A);
    response.metadata.message_type = MessageType::Response;
    let bad = [two, response].map(|message| message.to_vec().unwrap());
    let reply = world.guest(move || ask_raw("10.11.0.1", &packet, super::guest::LIMIT).unwrap());
    assert_eq!(addresses(&reply).len(), 1);
    assert!(reply.edns.is_none());
    for packet in bad {
        let reply =
            world.guest(move || ask_raw("10.11.0.1", &packet, super::guest::LIMIT).unwrap());
        assert_eq!(reply.metadata.response_code, ResponseCode::FormErr);
    }
    let ahead = vec![
        question("www.allowed.test", RecordType::A)
            .to_vec()
            .unwrap();
        5
    ];
    let replies = world.guest(move || ask_tcp("8.8.8.8", &ahead));
    assert!(replies.iter().all(|reply| addresses(reply).len() == 1));
    let packets = world.internet.names.packets();
    assert_eq!(
        packets.len(),
        1,
        "the rest came from the cache or was refused"
    );
    assert!(!packets[0].windows(marker.len()).any(|part| part == marker));
}

#[test]
fn n15_a_dead_resolver_is_an_error_and_not_a_wait() {
    let Some(world) = World::start(&[allow("*.allowed.test")]) else {
        return;
    };
    world
        .internet
        .names
        .set("mute.allowed.test", Entry::Silence);
    let asked = Instant::now();
    let (code, _) = world.guest(|| ask("mute.allowed.test"));
    assert_eq!(code, ResponseCode::ServFail);
    assert!(asked.elapsed() < Duration::from_millis(2500));
    let record = world.kept.wait_decision(Decision::Failed);
    assert_eq!(record.reason, Some(DenyReason::Unresolvable));
    let config = client(&[&world.internet.allowed]);
    let failed =
        world.guest(move || get_tls(&config, &format!("{ALLOWED}:443"), "mute.allowed.test"));
    assert!(failed.is_err());
    assert_eq!(
        world.guest(|| ask("absent.allowed.test")).0,
        ResponseCode::NXDomain
    );
}

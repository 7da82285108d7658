//! Names: nothing is asked upstream but what the policy lets through.

use std::net::Ipv4Addr;

use anyhow::{Result, ensure};
use dayfly_attacker::{Outcome, Probe};
use dayfly_e2e::setting_or_skip;
use dayfly_netlab::certificates::client;
use dayfly_netlab::internet::ALLOWED;
use dayfly_netlab::wire::{
    addresses, from_tcp, hello, over_tcp, question as message, question_packet,
};
use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::{DNSClass, RecordType};

use super::guest::{GATEWAY, Guest, answer, question, say, tcp, udp};
use super::lab::{Lab, allow};

pub(crate) fn ip(text: &str) -> Ipv4Addr {
    text.parse().unwrap()
}

/// Questions over TCP, any number ahead of the answers.
pub(crate) fn by_tcp(server: &str, packets: &[Vec<u8>]) -> Probe {
    let bytes: Vec<u8> = packets.iter().flat_map(|packet| over_tcp(packet)).collect();
    say(&format!("{server}:53"), &bytes)
}

pub(crate) const fn code(message: &Message) -> ResponseCode {
    message.metadata.response_code
}

async fn c1(guest: &Guest<'_>) -> Result<()> {
    let packet = question_packet("evil.test", RecordType::A);
    let mut probes = Vec::new();
    for server in ["8.8.8.8", "1.1.1.1", "9.9.9.9", GATEWAY] {
        probes.push(question(server, &packet));
        probes.push(by_tcp(server, std::slice::from_ref(&packet)));
    }
    for (probe, pair) in probes.chunks(2).zip(guest.probe(&probes).await?.chunks(2)) {
        let replies = from_tcp(&pair[1].bytes.0);
        ensure!(replies.len() == 1, "{probe:?}: {:?}", pair[1]);
        for reply in [&answer(&pair[0])?, &replies[0]] {
            ensure!(code(reply) == ResponseCode::NXDomain, "{probe:?}: {reply}");
        }
    }
    let denied = guest.denied("no_rule").await?;
    ensure!(denied.name.as_deref() == Some("evil.test"), "{denied:?}");
    Ok(())
}

async fn c4(guest: &Guest<'_>) -> Result<()> {
    let kinds = [
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
    ];
    let mut probes: Vec<Probe> = kinds
        .iter()
        .map(|kind| question(GATEWAY, &question_packet("allowed.test", *kind)))
        .collect();
    probes.push(question(
        GATEWAY,
        &question_packet("allowed.test", RecordType::AXFR),
    ));
    let mut chaos = message("version.bind", RecordType::TXT);
    chaos.queries[0].query_class = DNSClass::CH;
    probes.push(question(GATEWAY, &chaos.to_vec()?));
    let reports = guest.probe(&probes).await?;
    for (index, report) in reports.iter().enumerate() {
        let reply = answer(report)?;
        let expected = match kinds.get(index) {
            Some(_) => ResponseCode::NoError,
            None => ResponseCode::Refused,
        };
        ensure!(code(&reply) == expected, "{index}: {reply}");
        ensure!(
            reply.answers.is_empty() && reply.authorities.is_empty(),
            "{index}: {reply}"
        );
    }
    guest.denied("question_type").await.map(drop)
}

async fn c5(guest: &Guest<'_>) -> Result<()> {
    let internet = &guest.lab.internet;
    let sinks = [internet.sink("9.9.9.9", 853), internet.sink("8.8.8.8", 443)];
    let doq = internet.udp_sink("9.9.9.9", 853);
    let config = client(&[&internet.allowed]);
    let reports = guest
        .probe(&[
            tcp("9.9.9.9:853", &hello(&config, "dns.quad9.net")),
            tcp("8.8.8.8:443", &hello(&config, "dns.google")),
            tcp("1.1.1.1:443", &hello(&config, "cloudflare-dns.com")),
            udp("9.9.9.9:853", &[0xc3; 1200]),
        ])
        .await?;
    ensure!(
        reports[3].outcome == Outcome::Unreachable,
        "{:?}",
        reports[3]
    );
    for sink in sinks.iter().chain([&doq]) {
        sink.assert_nothing_came();
    }
    Ok(())
}

/// One form or none.
async fn c9(guest: &Guest<'_>) -> Result<()> {
    let long = "a".repeat(63);
    let longest = [long.as_str(); 3].join(".") + ".allowed.test";
    let names = [
        "xn--allowed-x.test",
        "_allowed.test",
        "allowed.test.evil.test",
        &longest,
    ];
    for name in names {
        let reply = guest.ask(&[name]).await?;
        ensure!(
            code(&reply[0]) == ResponseCode::NXDomain,
            "{name}: {}",
            reply[0]
        );
    }
    // A label with a byte of zero, one with a dot inside, and one that is too long for itself.
    let mut odd: Vec<Vec<u8>> = Vec::new();
    for label in [
        &b"allowed\0"[..],
        b"www.allowed",
        b"%00allowed",
        b"allowed ",
    ] {
        let mut packet = vec![0x12, 0x67, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        packet.push(u8::try_from(label.len())?);
        packet.extend(label);
        packet.extend([4, b't', b'e', b's', b't', 0, 0, 1, 0, 1]);
        odd.push(packet);
    }
    odd.push(
        [
            &[0x12, 0x67, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 64][..],
            &[b'a'; 64],
            &[0, 0, 1, 0, 1],
        ]
        .concat(),
    );
    let probes: Vec<Probe> = odd.iter().map(|packet| question(GATEWAY, packet)).collect();
    for report in guest.probe(&probes).await? {
        if report.outcome == Outcome::Reply {
            ensure!(
                code(&answer(&report)?) != ResponseCode::NoError,
                "{report:?}"
            );
        }
    }
    Ok(())
}

#[tokio::test]
async fn c1_c4_c5_c9_only_names_of_the_policy_are_asked_for() -> Result<()> {
    let setting = setting_or_skip!();
    let lab = Lab::start(&setting).await?;
    let guest = lab.guest(allow(&["allowed.test"])).await?;
    let before = lab.internet.arrivals();
    c1(&guest).await?;
    c4(&guest).await?;
    c5(&guest).await?;
    c9(&guest).await?;
    lab.ensure_nothing_left_since(before)?;
    ensure!(lab.internet.names.questions().is_empty());
    let reply = guest.ask(&["aLLoWeD.TEst"]).await?;
    ensure!(
        reply[0].answers[0].name.to_ascii() == "aLLoWeD.TEst.",
        "{}",
        reply[0]
    );
    ensure!(addresses(&reply[0]) == [ip(ALLOWED)]);
    ensure!(
        lab.internet.names.questions() == ["allowed.test"],
        "in its one form"
    );
    lab.finish().await
}

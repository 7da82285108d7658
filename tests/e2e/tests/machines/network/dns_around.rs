//! Names that are allowed, and what somebody may try to make of them.

use std::time::Duration;

use anyhow::{Result, ensure};
use dayfly_e2e::{figure, setting_or_skip, until};
use dayfly_netlab::certificates::client;
use dayfly_netlab::internet::{ALLOWED, EVIL, OTHER};
use dayfly_netlab::name_server::Entry;
use dayfly_netlab::wire::{
    ACCESS_DENIED, addresses, alert, from_tcp, hello, question as message, question_packet,
};
use hickory_proto::op::{Edns, MessageType, ResponseCode};
use hickory_proto::rr::RecordType;
use hickory_proto::rr::rdata::opt::EdnsOption;

use super::dns::{by_tcp, code, ip};
use super::guest::{GATEWAY, Guest, answer, get, question, say, tcp};
use super::lab::{Lab, allow, until_came};

/// An allowed name that leads to a private place, at once or later.
async fn c6(guest: &Guest<'_>) -> Result<()> {
    let internet = &guest.lab.internet;
    let canaries = internet.canaries();
    let config = client(&[&internet.allowed]);
    internet
        .names
        .set_addresses("meta.allowed.test", &["169.254.169.254", "10.0.0.5"]);
    internet
        .names
        .set_addresses("loop.allowed.test", &["127.0.0.1"]);
    internet
        .names
        .set_addresses("mixed.allowed.test", &["169.254.169.254", ALLOWED]);
    let turns = [ALLOWED, "169.254.169.254"].map(|text| vec![ip(text)]);
    internet
        .names
        .set("turns.allowed.test", Entry::InTurn(turns.to_vec()));
    let replies = guest
        .ask(&[
            "meta.allowed.test",
            "loop.allowed.test",
            "mixed.allowed.test",
            "turns.allowed.test",
        ])
        .await?;
    let found: Vec<_> = replies.iter().map(addresses).collect();
    ensure!(
        found == [vec![], vec![], vec![ip(ALLOWED)], vec![ip(ALLOWED)]],
        "{found:?}"
    );
    guest.denied("never_address").await?;
    until(
        "the first answer is over",
        Duration::from_secs(20),
        || async {
            let reply = guest.ask(&["turns.allowed.test"]).await.ok()?;
            addresses(&reply[0]).is_empty().then_some(())
        },
    )
    .await?;
    for (to, name) in [
        ("169.254.169.254:443", "meta.allowed.test"),
        ("198.41.0.4:443", "loop.allowed.test"),
        ("93.184.216.34:443", "turns.allowed.test"),
    ] {
        let report = guest.probe_one(tcp(to, &hello(&config, name))).await?;
        ensure!(
            alert(&report.bytes.0) == Some(ACCESS_DENIED),
            "{name}: {report:?}"
        );
    }
    for canary in &canaries {
        canary.assert_nothing_came();
    }
    Ok(())
}

async fn c7(guest: &Guest<'_>) -> Result<()> {
    let names = &guest.lab.internet.names;
    let alias = |address: &str| Entry::Alias("evil.test".to_owned(), vec![ip(address)]);
    names.set("good.allowed.test", alias(OTHER));
    names.set("bad.allowed.test", alias("10.0.0.5"));
    let replies = guest
        .ask(&["good.allowed.test", "bad.allowed.test", "evil.test"])
        .await?;
    ensure!(
        addresses(&replies[0]) == [ip(OTHER)] && replies[0].answers.len() == 1,
        "{}",
        replies[0]
    );
    ensure!(replies[0].answers[0].name.to_ascii() == "good.allowed.test.");
    ensure!(code(&replies[1]) == ResponseCode::NoError && replies[1].answers.is_empty());
    ensure!(
        code(&replies[2]) == ResponseCode::NXDomain,
        "the alias opens nothing by itself"
    );
    Ok(())
}

async fn c10(guest: &Guest<'_>) -> Result<()> {
    let internet = &guest.lab.internet;
    let real = internet.http(ALLOWED, 80, "allowed");
    let attacker = internet.http(EVIL, 80, "evil");
    guest
        .output(&format!("echo '{EVIL} www.allowed.test' >> /etc/hosts"))
        .await?;
    let said = guest
        .output("curl -sS --max-time 20 http://www.allowed.test/hosts")
        .await?;
    ensure!(said.contains("hello from allowed at /hosts"), "{said}");
    ensure!(real.requests() == 1);
    attacker.assert_nothing_came();
    Ok(())
}

async fn c11(guest: &Guest<'_>) -> Result<()> {
    let marker = b"exfiltrated-secret";
    let mut with_options = message("www.allowed.test", RecordType::A);
    let mut options = Edns::new();
    for code in [8, 10, 12, 65_001] {
        options
            .options_mut()
            .insert(EdnsOption::Unknown(code, marker.to_vec()));
    }
    with_options.set_edns(options);
    let mut two = message("www.allowed.test", RecordType::A);
    two.add_query(two.queries[0].clone());
    let mut response = message("www.allowed.test", RecordType::A);
    response.metadata.message_type = MessageType::Response;
    let ahead = vec![question_packet("www.allowed.test", RecordType::A); 5];
    let asked = guest.lab.internet.names.packets().len();
    let reports = guest
        .probe(&[
            question(GATEWAY, &with_options.to_vec()?),
            question(GATEWAY, &two.to_vec()?),
            question(GATEWAY, &response.to_vec()?),
            by_tcp("8.8.8.8", &ahead),
        ])
        .await?;
    ensure!(answer(&reports[0])?.edns.is_none());
    for report in &reports[1..3] {
        ensure!(
            code(&answer(report)?) == ResponseCode::FormErr,
            "{report:?}"
        );
    }
    let replies = from_tcp(&reports[3].bytes.0);
    ensure!(replies.len() == 5 && replies.iter().all(|reply| addresses(reply).len() == 1));
    let packets = guest.lab.internet.names.packets();
    ensure!(
        packets.len() - asked <= 1,
        "the rest came from the cache or was refused"
    );
    let leaked = packets
        .iter()
        .any(|packet| packet.windows(marker.len()).any(|part| part == marker));
    ensure!(!leaked, "something of the packet went on");
    Ok(())
}

async fn c3(guest: &Guest<'_>) -> Result<()> {
    let before = guest.lab.internet.arrivals().questions;
    let names: Vec<String> = (0..90)
        .map(|number| format!("x{number:0>50}.allowed.test"))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let replies = guest.ask(&names).await?;
    let refused = replies
        .iter()
        .filter(|reply| code(reply) == ResponseCode::Refused)
        .count();
    let asked = guest.lab.internet.arrivals().questions - before;
    figure!("90 names under a wildcard: {asked} asked for, {refused} refused");
    // Names that were asked for a moment ago count as well.
    ensure!(asked <= 60 && refused >= 30, "{asked} {refused}");
    guest.denied("limit").await.map(drop)
}

#[tokio::test]
async fn c3_c6_c7_c8_c10_c11_an_allowed_name_is_no_way_around() -> Result<()> {
    let setting = setting_or_skip!();
    let lab = Lab::start(&setting).await?;
    let guest = lab
        .guest(allow(&["*.allowed.test", "allowed.test"]))
        .await?;
    let other = lab.guest(allow(&["allowed.test"])).await?;
    // Answers of one sandbox do not show in another.
    let first = guest.ask(&["allowed.test"]).await?;
    lab.internet.names.set_addresses("allowed.test", &[OTHER]);
    let (second, again) = (
        other.ask(&["allowed.test"]).await?,
        guest.ask(&["allowed.test"]).await?,
    );
    lab.internet.names.set_addresses("allowed.test", &[ALLOWED]);
    let found: Vec<_> = [&first, &second, &again]
        .map(|replies| addresses(&replies[0]))
        .into();
    ensure!(
        found == [vec![ip(ALLOWED)], vec![ip(OTHER)], vec![ip(ALLOWED)]],
        "{found:?}"
    );
    c11(&guest).await?;
    c10(&guest).await?;
    c7(&guest).await?;
    c6(&guest).await?;
    c3(&guest).await?;
    let asked = lab.internet.names.questions();
    ensure!(
        asked.iter().all(|name| name.ends_with("allowed.test")),
        "{asked:?}"
    );
    let sink = lab.internet.sink(ALLOWED, 443);
    let config = client(&[&lab.internet.allowed]);
    guest
        .probe_one(say(
            &format!("{EVIL}:443"),
            &hello(&config, "www.allowed.test"),
        ))
        .await?;
    ensure!(sink.connections() == 1, "a known name still gets through");
    let gone = get(&format!("{ALLOWED}:80"), "www.allowed.test", "/last");
    ensure!(guest.probe_one(gone).await?.text().contains("/last"));
    until_came("a hello", &sink, "allowed.test").await?;
    lab.finish().await
}

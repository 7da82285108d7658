//! TLS: the name counts, and the address that the guest dialled does not.

use std::sync::Arc;

use anyhow::{Result, ensure};
use dayfly_attacker::probe::Tcp;
use dayfly_attacker::{Bytes, Probe, Report};
use dayfly_e2e::{figure, setting_or_skip};
use dayfly_netlab::certificates::client;
use dayfly_netlab::internet::{ALLOWED, EVIL};
use dayfly_netlab::wire::{
    ACCESS_DENIED, DECODE_ERROR, UNRECOGNIZED_NAME, alert, hello, in_records, raw_hello,
};

use super::guest::{Guest, connection, ensure_shut, get, say, status, tcp};
use super::lab::{Lab, allow, public, until_came};

/// First byte of a record of a handshake, and of an alert.
const HANDSHAKE: u8 = 22;
const ALERT: u8 = 21;

fn to_evil() -> String {
    format!("{EVIL}:443")
}

async fn d1(guest: &Guest<'_>) -> Result<()> {
    let internet = &guest.lab.internet;
    let pem = internet.allowed.pem.clone() + &internet.evil.pem;
    guest.upload("/tmp/ca.pem", pem.into()).await?;
    let command = format!(
        "curl -sS --max-time 20 --cacert /tmp/ca.pem --resolve allowed.test:443:{EVIL} \
         https://allowed.test/d1"
    );
    let said = guest.output(&command).await?;
    ensure!(said.contains("hello from tls at /d1"), "{said}");
    let record = guest
        .record("the connection", |r| {
            r.kind == "tls" && r.decision == "closed"
        })
        .await?;
    ensure!(
        record.destination.as_deref() == Some(&to_evil()),
        "{record:?}"
    );
    ensure!(
        record.dialed.as_deref() == Some(&format!("{ALLOWED}:443")),
        "{record:?}"
    );
    let command = format!(
        "curl -sS --max-time 20 --cacert /tmp/ca.pem --resolve evil.test:443:{EVIL} https://evil.test/"
    );
    let refused = guest.run(&command).await?;
    ensure!(
        refused.exit_code != 0 && refused.stderr.contains("alert"),
        "{refused:?}"
    );
    figure!("a client is told: {}", refused.stderr.trim());
    Ok(())
}

async fn d2(guest: &Guest<'_>) -> Result<()> {
    let mut silent = rustls_config(guest);
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
    let probes: Vec<Probe> = cases
        .iter()
        .map(|(hello, _)| tcp(&to_evil(), hello))
        .collect();
    for ((_, expected), report) in cases.iter().zip(guest.probe(&probes).await?) {
        let told = alert(&report.bytes.0);
        ensure!(
            told.is_some() && (expected.is_none() || told == *expected),
            "{report:?}"
        );
    }
    Ok(())
}

fn rustls_config(guest: &Guest<'_>) -> rustls::ClientConfig {
    rustls::ClientConfig::clone(&client(&[&guest.lab.internet.allowed]))
}

/// A hello in records and segments of these sizes, until the first bytes of an answer.
fn in_pieces(hello: &[u8], record: usize, segment: usize) -> Probe {
    let bytes = in_records(&hello[5..], record);
    Probe::Tcp(Tcp {
        pieces: bytes.chunks(segment).map(Bytes::from).collect(),
        bytes_max: 5,
        ..connection(&to_evil(), b"")
    })
}

async fn d3(guest: &Guest<'_>) -> Result<()> {
    let config = client(&[&guest.lab.internet.allowed]);
    let good = hello(&config, "allowed.test");
    let sizes = [(1000, 4096), (120, 4096), (13, 4096), (16_384, 1), (40, 7)];
    let mut probes: Vec<Probe> = sizes
        .iter()
        .map(|(record, segment)| in_pieces(&good, *record, *segment))
        .collect();
    probes.push(in_pieces(&hello(&config, "evil.test"), 20, 3));
    probes.push(tcp(&to_evil(), &raw_hello(&[b"allowed.test"], 65_430)));
    probes.push(tcp(
        &to_evil(),
        &in_records(&[1, 0xff, 0xff, 0xff].repeat(40_000), 16 << 10),
    ));
    // Large, and good: its server sees it, and does not like it.
    probes.push(tcp(&to_evil(), &raw_hello(&[b"allowed.test"], 16 << 10)));
    let reports = guest.probe(&probes).await?;
    let first = |report: &Report| report.bytes.0.first().copied();
    for (size, report) in sizes.iter().zip(&reports) {
        ensure!(first(report) == Some(HANDSHAKE), "{size:?}: {report:?}");
    }
    for report in &reports[sizes.len()..] {
        ensure!(first(report) == Some(ALERT), "{report:?}");
    }
    Ok(())
}

async fn d10(guest: &Guest<'_>) -> Result<()> {
    guest.set(allow(&["*.allowed.test"])).await?;
    let names = [
        "allowed.test",
        "evilallowed.test",
        "www.allowed.test.evil.test",
        "a.www.allowed.test",
    ];
    for name in &names[1..] {
        guest.lab.internet.names.set_addresses(name, &[EVIL]);
    }
    let before = guest.lab.internet.arrivals();
    let probes: Vec<Probe> = names
        .iter()
        .map(|name| tcp(&to_evil(), &raw_hello(&[name.as_bytes()], 0)))
        .collect();
    for (name, report) in names.iter().zip(guest.probe(&probes).await?) {
        ensure!(
            alert(&report.bytes.0) == Some(ACCESS_DENIED),
            "{name}: {report:?}"
        );
    }
    guest.lab.ensure_nothing_left_since(before)?;
    for rule in ["*", "*.com", "*.co.uk", "**.github.io"] {
        let outcome = guest
            .lab
            .client
            .set_network(&guest.id, &allow(&[rule]))
            .await;
        dayfly_e2e::refusal(outcome, "invalid_request")?;
    }
    Ok(())
}

#[tokio::test]
async fn d1_d2_d3_d10_a_hello_goes_to_the_host_that_it_names_or_nowhere() -> Result<()> {
    let setting = setting_or_skip!();
    let lab = Lab::start(&setting).await?;
    let guest = lab.guest(allow(&["allowed.test"])).await?;
    let attacker = lab.internet.https(EVIL, 443, &lab.internet.evil);
    let allowed = lab.internet.https(ALLOWED, 443, &lab.internet.allowed);
    d1(&guest).await?;
    let before = allowed.connections();
    d2(&guest).await?;
    ensure!(
        allowed.connections() == before,
        "none of them was let through"
    );
    d3(&guest).await?;
    ensure!(
        allowed.connections() == before + 6,
        "those with one good name and no other"
    );
    d10(&guest).await?;
    attacker.assert_nothing_came();
    let good = raw_hello(&[b"WWW.allowed.test."], 0);
    guest.probe_one(say(&to_evil(), &good)).await?;
    ensure!(
        allowed.connections() == before + 7,
        "a name under the wildcard gets through"
    );
    lab.finish().await
}

#[tokio::test]
async fn d16_what_is_spoken_must_fit_the_port_of_a_name() -> Result<()> {
    let setting = setting_or_skip!();
    let lab = Lab::start(&setting).await?;
    let guest = lab.guest(allow(&["allowed.test"])).await?;
    let [plain, secure] = [80, 443].map(|port| lab.internet.sink(ALLOWED, port));
    let config = client(&[&lab.internet.allowed]);
    let before = lab.internet.arrivals();
    let ssh = b"SSH-2.0-x\r\n";
    let reports = guest
        .probe(&[
            tcp(&format!("{ALLOWED}:80"), &hello(&config, "allowed.test")),
            get(&format!("{ALLOWED}:443"), "allowed.test", "/"),
            tcp(&format!("{ALLOWED}:80"), ssh),
            tcp(&format!("{ALLOWED}:443"), ssh),
        ])
        .await?;
    ensure!(
        alert(&reports[0].bytes.0) == Some(DECODE_ERROR),
        "{:?}",
        reports[0]
    );
    ensure!(
        status(&reports[1]) == "400" && reports[1].text().contains("protocol"),
        "{:?}",
        reports[1]
    );
    ensure_shut("SSH on 80", &reports[2])?;
    ensure_shut("SSH on 443", &reports[3])?;
    lab.ensure_nothing_left_since(before)?;
    guest.denied("protocol").await?;
    guest.set(public()).await?;
    guest.probe_one(say(&format!("{ALLOWED}:443"), ssh)).await?;
    until_came("an open mode asks for no name", &secure, "SSH-2.0-x").await?;
    plain.assert_nothing_came();
    lab.finish().await
}

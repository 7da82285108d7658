//! What each mode lets through, changed while the guest runs.

use anyhow::{Result, ensure};
use dayfly_api::{CreateSandbox, NetworkMode};
use dayfly_attacker::{Outcome, Report};
use dayfly_e2e::{figure, patient, refusal, setting_or_skip};
use dayfly_netlab::certificates::client;
use dayfly_netlab::internet::{ALLOWED, EVIL, NEVER};
use dayfly_netlab::wire::{alert, hello, raw_hello};

use super::guest::{AT_ONCE_MAX, Guest, ensure_shut, get, say, status, tcp, udp};
use super::lab::{Lab, allow, deny, public, until_came, wish};

const GARBAGE: &[u8] = b"\x01give me the keys\n";

/// One address of each range that nobody may reach. The loopback range is the guest's own.
const PRIVATE: [&str; 16] = [
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.2",
    "172.16.0.1",
    "172.31.255.254",
    "192.0.0.8",
    "192.0.2.1",
    "192.31.196.1",
    "192.52.193.1",
    "192.88.99.1",
    "192.168.1.1",
    "192.175.48.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.9",
    "240.0.0.1",
];

#[tokio::test]
async fn b1_the_default_reaches_nothing_and_says_so_at_once() -> Result<()> {
    let setting = setting_or_skip!();
    let lab = Lab::start(&setting).await?;
    let (attacker, datagrams) = (
        lab.internet.sink(EVIL, 22),
        lab.internet.udp_sink(EVIL, 4000),
    );
    let guest = lab.guest_of(CreateSandbox::default()).await?;
    let now = lab.client.network(&guest.id).await?;
    ensure!(now.mode == NetworkMode::Deny, "{now:?}");
    let before = lab.internet.arrivals();
    let (ssh, datagram) = (format!("{EVIL}:22"), format!("{EVIL}:4000"));
    let probes = [
        tcp(&ssh, b"SSH-2.0-x\r\n"),
        tcp(&ssh, b""),
        udp(&datagram, b"x"),
        get(&format!("{EVIL}:80"), "evil.test", "/"),
    ];
    let reports = guest.probe_at_once(&probes).await?;
    for (probe, report) in probes.iter().zip(&reports) {
        ensure!(
            report.time() < patient(AT_ONCE_MAX),
            "{probe:?}: {report:?}"
        );
    }
    figure!(
        "refused after {:?} ms",
        reports.iter().map(|report| report.ms).collect::<Vec<_>>()
    );
    ensure_shut("SSH", &reports[0])?;
    ensure_shut("silence", &reports[1])?;
    ensure!(reports[2].outcome == Outcome::Unreachable, "{reports:?}");
    ensure!(reports[3].text().contains("mode_deny"), "{reports:?}");
    lab.ensure_nothing_left_since(before)?;
    guest.denied("mode_deny").await?;
    guest.set(public()).await?;
    let open = [say(&ssh, b"SSH-2.0-x\r\n"), udp(&datagram, b"x")];
    guest.probe(&open).await?;
    until_came("an open mode lets it through", &attacker, "SSH-2.0-x\r\n").await?;
    datagrams.assert_nothing_came();
    attacker_of_datagrams_listens(&lab, &datagrams).await?;
    guest.set(deny()).await?;
    let before = lab.internet.arrivals();
    guest.probe(&probes).await?;
    lab.ensure_nothing_left_since(before)?;
    lab.finish().await
}

/// The counter of datagrams counts, when one really comes.
async fn attacker_of_datagrams_listens(
    lab: &Lab,
    seen: &std::sync::Arc<dayfly_netlab::http_server::Seen>,
) -> Result<()> {
    let sent = dayfly_host::netns::in_namespace(&lab.internet.outside, || {
        let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
        socket.send_to(b"control", (EVIL, 4000))
    });
    sent??;
    until_came("a datagram from outside", seen, "control").await
}

#[tokio::test]
async fn b19_b22_a_port_that_no_rule_names_stays_shut() -> Result<()> {
    let setting = setting_or_skip!();
    let lab = Lab::start(&setting).await?;
    let guest = lab.guest(allow(&["allowed.test"])).await?;
    let ports = [22, 25, 8443, 8080];
    let sinks = ports.map(|port| lab.internet.sink(ALLOWED, port));
    let mail = [25, 465, 587].map(|port| (port, lab.internet.sink(EVIL, port)));
    let config = client(&[&lab.internet.allowed]);
    let hello = hello(&config, "allowed.test");
    let mut probes = Vec::new();
    for port in ports {
        let to = format!("{ALLOWED}:{port}");
        probes.push(tcp(&to, &hello));
        probes.push(get(&to, "allowed.test", "/"));
        probes.push(tcp(&to, b"SSH-2.0-x\r\n"));
    }
    let before = lab.internet.arrivals();
    guest.probe(&probes).await?;
    lab.ensure_nothing_left_since(before)?;
    guest.denied("port").await?;
    guest.set(allow(&["allowed.test:8443"])).await?;
    let opened = say(&format!("{ALLOWED}:8443"), &hello);
    guest.probe_one(opened).await?;
    ensure!(sinks[2].connections() == 1, "a rule opens it");

    guest.set(public()).await?;
    let before = lab.internet.arrivals();
    let letters: Vec<_> = mail
        .iter()
        .map(|(port, _)| tcp(&format!("{EVIL}:{port}"), b"EHLO x\r\n"))
        .collect();
    for report in guest.probe(&letters).await? {
        ensure_shut("mail", &report)?;
    }
    lab.ensure_nothing_left_since(before)?;
    guest.denied("abuse_port").await?;
    let rule = format!("{EVIL}/32:587");
    guest.set(wish(NetworkMode::Observe, &[&rule])).await?;
    let letter = say(&format!("{EVIL}:587"), b"EHLO x\r\n");
    guest.probe_one(letter).await?;
    until_came("a rule opens it", &mail[2].1, "EHLO x\r\n").await?;
    lab.finish().await
}

/// Nobody may be reached there, in this mode.
async fn reaches_nobody(guest: &Guest<'_>, mode: &str) -> Result<()> {
    let before = guest.lab.internet.arrivals();
    let mut probes = Vec::new();
    for address in NEVER.iter().chain(&PRIVATE) {
        probes.push(get(&format!("{address}:80"), address, "/latest/"));
        probes.push(tcp(&format!("{address}:443"), &raw_hello(&[], 0)));
        probes.push(tcp(&format!("{address}:8080"), GARBAGE));
        probes.push(udp(&format!("{address}:123"), GARBAGE));
    }
    for address in [
        "[fd00:ec2::254]:80",
        "[::ffff:169.254.169.254]:80",
        "[64:ff9b::a9fe:a9fe]:80",
        "[2002:a9fe:a9fe::]:80",
        "[2001:0:1:2:3:4:5601:5601]:80",
    ] {
        probes.push(tcp(
            address,
            &dayfly_netlab::wire::get("169.254.169.254", "/"),
        ));
    }
    let reports = guest.probe(&probes).await?;
    guest.lab.ensure_nothing_left_since(before)?;
    let first = &reports[0];
    ensure!(status(first) == "403", "{mode}: {}", first.text());
    let told = first.text();
    let is_told = told.contains("never_address") || mode == "deny" && told.contains("mode_deny");
    ensure!(is_told, "{mode}: {told}");
    let hung: Vec<&Report> = reports
        .iter()
        .filter(|report| report.outcome == Outcome::Timeout)
        .collect();
    ensure!(hung.is_empty(), "{mode}: these hung: {hung:?}");
    Ok(())
}

#[tokio::test]
async fn b2_b3_b21_no_mode_and_no_rule_reaches_a_private_address() -> Result<()> {
    let setting = setting_or_skip!();
    let lab = Lab::start(&setting).await?;
    let canaries = lab.internet.canaries();
    let guest = lab.guest(deny()).await?;
    let names = &lab.internet.names;
    names.set_addresses("metadata.google.internal", &["169.254.169.254"]);
    for mode in ["deny", "allowlist", "public", "observe"] {
        match mode {
            "allowlist" => guest.set(allow(&["allowed.test"])).await?,
            "public" => guest.set(public()).await?,
            "observe" => guest.set(wish(NetworkMode::Observe, &[])).await?,
            _ => {}
        }
        reaches_nobody(&guest, mode).await?;
    }
    // A name for it is asked for in an open mode, and leads nowhere.
    let replies = guest.ask(&["metadata.google.internal"]).await?;
    ensure!(replies[0].answers.is_empty(), "{:?}", replies[0]);
    let by_name = get("169.254.169.254:80", "metadata.google.internal", "/");
    let report = guest.probe_one(by_name).await?;
    ensure!(report.text().contains("never_address"), "{}", report.text());
    for rule in [
        "0.0.0.0/0",
        "10.0.0.0/8",
        "169.254.169.254/32",
        "168.0.0.0/8",
    ] {
        let outcome = lab.client.set_network(&guest.id, &allow(&[rule])).await;
        let told = refusal(outcome, "invalid_request")?;
        figure!("{rule}: {}", told.message);
    }
    ensure!(lab.client.network(&guest.id).await?.mode == NetworkMode::Observe);
    for canary in &canaries {
        canary.assert_nothing_came();
    }
    let reached = lab.internet.sink(EVIL, 8080);
    guest
        .probe_one(say(&format!("{EVIL}:8080"), GARBAGE))
        .await?;
    until_came("a public address", &reached, "give me the keys").await?;
    lab.finish().await
}

#[tokio::test]
async fn b7_d12_names_that_are_none_are_refused_in_every_mode() -> Result<()> {
    let setting = setting_or_skip!();
    let lab = Lab::start(&setting).await?;
    let canaries = lab.internet.canaries();
    let guest = lab.guest(allow(&["**.allowed.test"])).await?;
    let names: [&[u8]; 14] = [
        b"evil.test\0.allowed.test",
        b"evil.test .allowed.test",
        b"evil.test#.allowed.test",
        b"evil.test\t.allowed.test",
        b"user@www.allowed.test",
        b"169.254.169.254@www.allowed.test",
        b"evil.test\x01.allowed.test",
        b"2852039166",
        b"0xa9fea9fe",
        b"0251.0376.0251.0376",
        b"169.254.43518",
        b"::ffff:169.254.169.254",
        b"[::ffff:169.254.169.254]",
        b"[64:ff9b::a9fe:a9fe]",
    ];
    let mut probes = Vec::new();
    for name in names {
        let request = [b"GET / HTTP/1.1\r\nHost: ", name, b"\r\n\r\n"].concat();
        probes.push(say("169.254.169.254:80", &request));
        probes.push(tcp("169.254.169.254:443", &raw_hello(&[name], 0)));
    }
    for mode in ["allowlist", "public"] {
        if mode == "public" {
            guest.set(public()).await?;
        }
        let before = lab.internet.arrivals();
        let reports = guest.probe(&probes).await?;
        for (name, pair) in names.iter().zip(reports.chunks(2)) {
            let name = name.escape_ascii();
            ensure!(status(&pair[0]) == "400", "{mode} {name}: {:?}", pair[0]);
            ensure!(
                alert(&pair[1].bytes.0).is_some(),
                "{mode} {name}: {:?}",
                pair[1]
            );
        }
        lab.ensure_nothing_left_since(before)?;
    }
    for canary in &canaries {
        canary.assert_nothing_came();
    }
    guest.set(allow(&["**.allowed.test"])).await?;
    let allowed = lab.internet.sink(ALLOWED, 443);
    let good = say("169.254.169.254:443", &raw_hello(&[b"www.allowed.test"], 0));
    guest.probe_one(good).await?;
    ensure!(
        allowed.connections() == 1,
        "a good name goes to its own host"
    );
    lab.finish().await
}

//! Two sandboxes look for each other, for the host and for the gateway.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use dayfly_attacker::probe::{Scan, Udp};
use dayfly_attacker::{Bytes, Outcome, Probe};
use dayfly_e2e::{Setting, figure, patience, setting_or_skip, until};
use dayfly_host::net::{DNS_PORT, TCP_PORT};
use dayfly_netlab::HostCanary;
use dayfly_netlab::internet::EVIL;
use dayfly_netlab::wire::question_packet;
use hickory_proto::rr::RecordType;

use super::frames::{Sniffer, send};
use super::guest::{GATEWAY, Guest, ensure_shut, get, place, say, status, tcp, udp};
use super::lab::{Lab, allow, public, until_came};

/// Neither TLS nor HTTP: whoever decides says no without waiting for more.
const KNOCK: &[u8] = b"\x01";
const OTHER_PORTS: u16 = 300;
const AT_ONCE: usize = 48;
const KNOCK_LIMIT_MS: u64 = 4000;
/// One call takes less than a minute.
const PORTS_OF_A_CALL: usize = 4096;

/// Ports that something on this host listens on, from the kernel's own table.
fn listening_ports() -> Result<BTreeSet<u16>> {
    let mut ports = BTreeSet::new();
    for (file, state) in [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")] {
        let table = std::fs::read_to_string(format!("/proc/self/net/{file}"))?;
        for line in table.lines().skip(1) {
            let mut words = line.split_whitespace().skip(1);
            let local = words.next().context("no address")?;
            if words.nth(1) == Some(state) {
                let (_, port) = local.rsplit_once(':').context("no port")?;
                ports.insert(u16::from_str_radix(port, 16)?);
            }
        }
    }
    Ok(ports)
}

/// The host's own addresses, by the routes that the kernel keeps for them.
fn host_addresses() -> Result<BTreeSet<Ipv4Addr>> {
    let table = std::fs::read_to_string("/proc/self/net/fib_trie")?;
    let mut found = BTreeSet::new();
    let mut last = None;
    for line in table.lines() {
        let line = line.trim();
        if let Some(text) = line.strip_prefix("|-- ") {
            last = text.parse::<Ipv4Addr>().ok();
        } else if line.contains("/32 host LOCAL") {
            found.extend(last.filter(|address| !address.is_loopback()));
        }
    }
    Ok(found)
}

fn knock(to: Ipv4Addr, ports: &[u16]) -> Probe {
    Probe::Scan(Scan {
        to,
        ports: ports.to_vec(),
        at_once: AT_ONCE,
        send: Bytes::from(KNOCK),
        limit_ms: KNOCK_LIMIT_MS * u64::from(patience()),
    })
}

/// Every port of a place: nobody speaks.
async fn scan(guest: &Guest<'_>, place: Ipv4Addr, ports: &[u16]) -> Result<()> {
    for ports in ports.chunks(PORTS_OF_A_CALL) {
        let report = guest.probe_one(knock(place, ports)).await?;
        ensure!(report.spoke.is_empty(), "{place}: {:?}", report.spoke);
        // Each one is told at once, and nobody waits.
        let told = report.number(Outcome::Reset)
            + report.number(Outcome::Refused)
            + report.number(Outcome::Connected);
        // One in a thousand may be told late, on a busy host some; that nobody speaks holds for all.
        let late = report.number(Outcome::Timeout);
        ensure!(
            told + late == ports.len() && late * 1000 <= ports.len() * patience() as usize,
            "{place}: {:?}",
            report.outcomes
        );
        figure!(
            "{place}: {} ports in {} ms, {:?}",
            ports.len(),
            report.ms,
            report.outcomes
        );
    }
    Ok(())
}

/// Whoever decides has sockets in the guest's reach; they serve nobody who dials them directly.
async fn ensure_own_ports_are_shut(guest: &Guest<'_>) -> Result<()> {
    let request = dayfly_netlab::wire::get("allowed.test", "/");
    let question = question_packet("allowed.test", RecordType::A);
    let reports = guest
        .probe(&[
            tcp(&format!("{GATEWAY}:{TCP_PORT}"), &request),
            udp(&format!("{GATEWAY}:{DNS_PORT}"), &question),
        ])
        .await?;
    ensure!(reports[0].outcome == Outcome::Refused, "{reports:?}");
    ensure!(reports[1].outcome == Outcome::Unreachable, "{reports:?}");
    Ok(())
}

async fn scan_all(setting: &Setting, ports: Vec<u16>) -> Result<()> {
    let lab = Lab::start(setting).await?;
    let canary = HostCanary::listen();
    let first = lab.guest(allow(&["allowed.test"])).await?;
    let second = lab.guest(public()).await?;
    let mut ports: BTreeSet<u16> = ports.into_iter().collect();
    ports.extend(listening_ports()?);
    ports.extend([canary.port, lab.daemon.port(), TCP_PORT, DNS_PORT]);
    // DNS is served there, and only there.
    ports.remove(&53);
    let ports: Vec<u16> = ports.into_iter().collect();
    let mut places: Vec<Ipv4Addr> = host_addresses()?.into_iter().collect();
    places.push(GATEWAY.parse()?);
    figure!("the host is at {places:?}, {} ports", ports.len());
    let before = lab.internet.arrivals();
    for place in &places {
        scan(&first, *place, &ports).await?;
    }
    // A public address of the host would be dialled in an open mode, where nobody has it.
    scan(&second, GATEWAY.parse()?, &ports).await?;
    ensure_own_ports_are_shut(&first).await?;
    let datagrams: Vec<Probe> = places
        .iter()
        .map(|place| udp(&format!("{place}:{}", canary.port), KNOCK))
        .collect();
    for report in first.probe(&datagrams).await? {
        ensure!(report.outcome == Outcome::Unreachable, "{report:?}");
    }
    lab.ensure_nothing_left_since(before)?;
    ensure!(canary.came() == 0, "the host was reached");
    let local = std::net::TcpStream::connect(("127.0.0.1", canary.port));
    drop(local?);
    until(
        "the canary sings when it is touched",
        Duration::from_secs(5),
        || async { (canary.came() == 1).then_some(()) },
    )
    .await?;
    lab.finish().await
}

#[tokio::test]
async fn b4_b12_no_port_of_the_host_or_the_gateway_answers() -> Result<()> {
    let setting = setting_or_skip!();
    // Spread over the whole range.
    let sample = (0..OTHER_PORTS).map(|number| 1 + number * 217).collect();
    scan_all(&setting, sample).await
}

#[tokio::test]
#[ignore = "soak: every port, at the rate that a slot allows"]
async fn b4_every_port_of_the_host_and_the_gateway() -> Result<()> {
    let setting = setting_or_skip!();
    scan_all(&setting, (1..=u16::MAX).collect()).await
}

/// What one sandbox sends that another might hear: to its address, to everybody, to groups.
fn shouts() -> Vec<Vec<u8>> {
    use dayfly_netlab::frame::Frame;
    let marker = b"from-the-other-one";
    let mut frames = Vec::new();
    for (to, hardware) in [
        ("10.11.0.255", [0xff; 6]),
        ("255.255.255.255", [0xff; 6]),
        ("224.0.0.251", [1, 0, 0x5e, 0, 0, 0xfb]),
        ("239.255.255.250", [1, 0, 0x5e, 0x7f, 0xff, 0xfa]),
        ("10.11.0.2", [2, 0xdf, 0, 0, 0, 1]),
        ("10.11.0.3", [2, 0xdf, 0, 0, 0, 2]),
        ("127.0.0.1", [2, 0xdf, 0, 0, 0, 2]),
    ] {
        for port in [5353, 7777, 1900] {
            let mut frame = Frame::udp(to.parse().unwrap(), 4000, port, marker);
            frame.to_hardware = hardware;
            frames.push(frame.bytes());
        }
        let mut frame = Frame::syn(to.parse().unwrap(), 4001, 7777);
        frame.to_hardware = hardware;
        frames.push(frame.bytes());
    }
    frames
}

#[tokio::test]
async fn b5_b20_a_sandbox_is_heard_by_nobody_and_reached_by_nobody() -> Result<()> {
    let setting = setting_or_skip!();
    let lab = Lab::start(&setting).await?;
    let first = lab.guest(public()).await?;
    let second = lab.guest(allow(&["allowed.test"])).await?;
    let sniffer = Sniffer::start(&second).await?;
    let before = lab.internet.arrivals();
    send(&first, &shouts()).await?;
    let hurried = |to: &str| {
        Probe::Udp(Udp {
            to: place(to),
            send: Bytes::from(&b"from-the-other-one"[..]),
            limit_ms: 1000,
        })
    };
    let reports = first
        .probe(&[
            tcp("10.11.0.3:22", KNOCK),
            hurried("10.11.0.255:7777"),
            hurried("255.255.255.255:7777"),
            hurried("224.0.0.251:5353"),
        ])
        .await?;
    lab.ensure_nothing_left_since(before)?;
    // Nor by its name: that is a name like any other, which nobody outside knows.
    let name = second.output("hostname").await?;
    let by_name = get(&format!("{GATEWAY}:80"), &name, "/");
    let report = first.probe_one(by_name).await?;
    ensure!(status(&report) != "200", "{}", report.text());
    ensure!(lab.internet.arrivals().connections == before.connections);
    // From the host and from outside there is no way to a guest: it has no address there.
    for (what, namespace) in [
        ("egress", &lab.internet.egress),
        ("outside", &lab.internet.outside),
    ] {
        let dialled = dayfly_host::netns::in_namespace(namespace, || {
            let guest = "10.11.0.2:22".parse().unwrap();
            std::net::TcpStream::connect_timeout(&guest, Duration::from_secs(1)).is_ok()
        });
        ensure!(!dialled?, "{what} reached a guest");
    }
    // The control: what is meant for the second one does arrive there.
    let reply = second.ask(&["allowed.test"]).await?;
    ensure!(reply[0].answers.len() == 1, "{reply:?}");
    let heard = sniffer.stop().await?;
    ensure!(!heard.is_empty(), "the sniffer heard nothing at all");
    let gateway = [2, 0xdf, 0, 0, 0, 2];
    for frame in &heard {
        let is_foreign = frame.windows(18).any(|part| part == b"from-the-other-one");
        ensure!(!is_foreign, "heard from the other: {frame:02x?}");
        ensure!(
            frame.len() > 12 && frame[6..12] == gateway,
            "a stranger: {frame:02x?}"
        );
    }
    figure!("{} frames heard, all from the gateway", heard.len());
    let open = lab.internet.sink(EVIL, 7777);
    first
        .probe_one(say(&format!("{EVIL}:7777"), b"from-the-other-one"))
        .await?;
    until_came(
        "the sender can be heard where it may",
        &open,
        "from-the-other-one",
    )
    .await?;
    ensure_shut("a guest", &reports[0])?;
    lab.finish().await
}

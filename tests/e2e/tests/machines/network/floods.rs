//! A guest that takes all it can get, or takes its time, and its neighbour.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dayfly_attacker::probe::{Flood, Hold};
use dayfly_attacker::{Bytes, Outcome, Probe};
use dayfly_e2e::{figure, patience, patient, setting_or_skip, until};
use dayfly_netlab::frame::Frame;
use dayfly_netlab::internet::{ALLOWED, EVIL};
use dayfly_netlab::wire::question_packet;
use dayfly_types::limits::{EGRESS_CONNECTIONS_MAX, EGRESS_PEEK_DEADLINE};
use hickory_proto::rr::RecordType;

use super::frames::send;
use super::guest::{AT_ONCE_MAX, GATEWAY, Guest, place, say, udp};
use super::lab::{Lab, allow, until_came};

const BEYOND: usize = 40;
/// SYNs that are sent as fast as a guest can.
const SYNS: u16 = 3000;
/// What 500 new ones a second leave behind in the ten seconds that the kernel keeps them.
const TRACKED_MAX: usize = 6300;
/// Twice what a neighbour had before, and what one emulated exec may vary by.
const SLACK: Duration = Duration::from_millis(1500);

fn hold(to: &str, count: usize, send: &[u8], drip_ms: u64, watch_ms: u64) -> Probe {
    Probe::Hold(Hold {
        to: place(to),
        count,
        send: Bytes::from(send),
        drip_ms,
        watch_ms,
    })
}

/// How long a name that was never asked for takes a guest, the whole call included.
async fn ask_time(guest: &Guest<'_>, name: &str) -> Result<Duration> {
    let began = Instant::now();
    let replies = guest.ask(&[name]).await?;
    ensure!(replies[0].answers.len() == 1, "{replies:?}");
    Ok(began.elapsed())
}

/// The rules of a neighbour, and what it takes to ask when nobody disturbs.
const NEIGHBOUR: [&str; 3] = ["allowed.test", "www.allowed.test", "other.test"];

async fn calm_time(neighbour: &Guest<'_>) -> Result<Duration> {
    // The first call of a guest reads its programs from disk.
    ask_time(neighbour, NEIGHBOUR[0]).await?;
    ask_time(neighbour, NEIGHBOUR[1]).await
}

/// Entries in the kernel's table of connections of the guest's namespace.
fn tracked(guest: &Guest<'_>) -> Result<usize> {
    let counted = dayfly_host::netns::in_namespace(&guest.namespace()?, || {
        std::fs::read_to_string("/proc/sys/net/netfilter/nf_conntrack_count")
    })??;
    Ok(counted.trim().parse()?)
}

#[tokio::test]
async fn b11_quic_is_refused_at_once_and_the_client_falls_back() -> Result<()> {
    let setting = setting_or_skip!();
    let lab = Lab::start(&setting).await?;
    lab.internet.https(ALLOWED, 443, &lab.internet.allowed);
    let quic = lab.internet.udp_sink(ALLOWED, 443);
    let guest = lab.guest(allow(&["allowed.test"])).await?;
    let report = guest
        .probe_one(udp(&format!("{ALLOWED}:443"), &[0xc3; 1200]))
        .await?;
    ensure!(
        report.outcome == Outcome::Unreachable && report.time() < patient(AT_ONCE_MAX),
        "{report:?}"
    );
    quic.assert_nothing_came();
    guest
        .upload("/tmp/ca.pem", lab.internet.allowed.pem.clone().into())
        .await?;
    let said = guest
        .output("curl -sS --max-time 20 --cacert /tmp/ca.pem https://allowed.test/quic")
        .await?;
    ensure!(said.contains("hello from tls at /quic"), "{said}");
    lab.finish().await
}

#[tokio::test]
async fn b13_a_sandbox_has_so_many_connections_and_its_neighbour_has_its_own() -> Result<()> {
    let setting = setting_or_skip!();
    let lab = Lab::start(&setting).await?;
    let rule = format!("{EVIL}/32:7");
    let guest = lab.guest(allow(&[&rule])).await?;
    let rules = [&NEIGHBOUR[..], &[&rule]].concat();
    let neighbour = lab.guest(allow(&rules)).await?;
    let sink = lab.internet.sink(EVIL, 7);
    let calm = calm_time(&neighbour).await?;
    let to = format!("{EVIL}:7");
    let holding = [hold(&to, EGRESS_CONNECTIONS_MAX + BEYOND, b"x", 0, 4000)];
    let while_held = async {
        until("all are held", Duration::from_secs(30), || async {
            (sink.bytes().len() == EGRESS_CONNECTIONS_MAX).then_some(())
        })
        .await?;
        ask_time(&neighbour, NEIGHBOUR[2]).await
    };
    let (report, busy) = tokio::join!(guest.probe(&holding), while_held);
    let (report, busy) = (report?.remove(0), busy?);
    figure!("a neighbour's question took {calm:?} before and {busy:?} during");
    ensure!(busy <= 2 * calm + patient(SLACK), "{calm:?} {busy:?}");
    let kept = report.number(Outcome::Timeout);
    figure!("{kept} connections held, the rest: {:?}", report.outcomes);
    ensure!(kept == EGRESS_CONNECTIONS_MAX, "{:?}", report.outcomes);
    ensure!(report.number(Outcome::Reset) + report.number(Outcome::Refused) == BEYOND);
    ensure!(
        sink.bytes().len() == EGRESS_CONNECTIONS_MAX,
        "{}",
        sink.bytes().len()
    );

    let syns: Vec<Vec<u8>> = (0..SYNS)
        .map(|number| Frame::syn(EVIL.parse().unwrap(), 20_000 + number, 7).bytes())
        .collect();
    let connections = sink.connections();
    send(&guest, &syns).await?;
    let entries = tracked(&guest)?;
    let came = sink.connections() - connections;
    figure!("{SYNS} SYNs: {entries} entries in the table, {came} connections outside");
    ensure!(entries <= TRACKED_MAX, "{entries}");
    // Nobody finished a handshake, so nobody was dialled for.
    ensure!(came == 0, "{came} half-open connections went out");
    neighbour.probe_one(say(&to, b"neighbour")).await?;
    until_came("the neighbour is served", &sink, "neighbour").await?;
    until(
        "what was given back can be taken again",
        Duration::from_secs(30),
        || async {
            guest.probe_one(say(&to, b"again")).await.ok()?;
            sink.text().contains("again").then_some(())
        },
    )
    .await?;
    lab.finish().await
}

#[tokio::test]
async fn b14_connections_that_take_their_time_are_closed_at_the_deadline() -> Result<()> {
    let setting = setting_or_skip!();
    let lab = Lab::start(&setting).await?;
    let sinks = [80, 443].map(|port| lab.internet.sink(ALLOWED, port));
    let guest = lab.guest(allow(&["allowed.test"])).await?;
    let before = lab.internet.arrivals();
    let hello = dayfly_netlab::wire::raw_hello(&[b"allowed.test"], 0);
    let request = b"GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n";
    let watch = 30_000;
    // A byte every two seconds would take minutes to say what it wants.
    let probes = [
        hold(&format!("{ALLOWED}:443"), 250, b"", 0, watch),
        hold(&format!("{ALLOWED}:443"), 20, &hello, 2000, watch),
        hold(&format!("{ALLOWED}:80"), 20, request, 2000, watch),
    ];
    let limit = u64::try_from(EGRESS_PEEK_DEADLINE.as_millis())?;
    for report in guest.probe(&probes).await? {
        let ended: Vec<u64> = report.ended_ms.iter().flatten().copied().collect();
        ensure!(
            ended.len() == report.ended_ms.len(),
            "some stayed: {:?}",
            report.outcomes
        );
        let (first, last) = (ended.iter().min(), ended.iter().max());
        let (first, last) = (*first.context("none")?, *last.context("none")?);
        figure!(
            "{} connections closed after {first} to {last} ms",
            ended.len()
        );
        // A slow guest looks late at those that it opened first.
        let most = limit + 3000 * u64::from(patience());
        ensure!(
            first + 500 >= limit && first < limit + 3000 && last < most,
            "{first} to {last} ms: {ended:?}"
        );
    }
    lab.ensure_nothing_left_since(before)?;
    guest.denied("timeout").await?;
    let quick = say(&format!("{ALLOWED}:443"), &hello);
    guest.probe_one(quick).await?;
    ensure!(
        sinks[1].connections() == 1,
        "the same hello at once gets through"
    );
    lab.finish().await
}

#[tokio::test]
async fn c2_c12_a_flood_of_questions_is_answered_slowly_and_the_neighbour_is_served() -> Result<()>
{
    let setting = setting_or_skip!();
    let lab = Lab::start(&setting).await?;
    let guest = lab.guest(allow(&["allowed.test"])).await?;
    let neighbour = lab.guest(allow(&NEIGHBOUR)).await?;
    let calm = calm_time(&neighbour).await?;
    let before = lab.internet.arrivals();
    let tunnel: Vec<Bytes> = (0..1000)
        .map(|number| format!("{number:0>60}.evil.test"))
        .map(|name| Bytes(question_packet(&name, RecordType::A)))
        .collect();
    let flood = |packets: Vec<Bytes>, times| {
        Probe::Flood(Flood {
            to: place(&format!("{GATEWAY}:53")),
            packets,
            times,
            quiet_ms: 1000,
        })
    };
    let report = guest.probe_one(flood(tunnel, 1)).await?;
    figure!(
        "a tunnel of 1000 names: {} answers in {} ms",
        report.count,
        report.ms
    );
    let one = vec![Bytes(question_packet("evil.test", RecordType::A))];
    let flooding = [flood(one, 10_000)];
    let (flooded, busy) = tokio::join!(guest.probe(&flooding), ask_time(&neighbour, NEIGHBOUR[2]));
    let (flooded, busy) = (flooded?.remove(0), busy?);
    let most = 200 + flooded.ms / 10;
    figure!(
        "10000 questions: {} answers in {} ms; the neighbour's took {calm:?}, then {busy:?}",
        flooded.count,
        flooded.ms
    );
    ensure!(
        (50..=most + 20).contains(&flooded.count),
        "{} in {} ms",
        flooded.count,
        flooded.ms
    );
    ensure!(busy <= 2 * calm + patient(SLACK), "{calm:?} {busy:?}");
    let now = lab.internet.arrivals();
    let asked = now.questions - before.questions;
    ensure!(asked == 1, "{asked} questions, and one was the neighbour's");
    guest.denied("no_rule").await?;
    guest
        .record("a count of the rest", |record| record.suppressed > 0)
        .await?;
    lab.finish().await
}

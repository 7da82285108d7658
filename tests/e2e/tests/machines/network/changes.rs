//! Policies and holders of slots change while bytes flow.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use dayfly_api::NetworkRecord;
use dayfly_attacker::probe::Tcp;
use dayfly_attacker::{Outcome, Probe};
use dayfly_e2e::{engine, figure, patient, setting_or_skip, until};
use dayfly_netlab::http_server::Seen;
use dayfly_netlab::internet::{ALLOWED, EVIL, OTHER};

use super::frames::Sniffer;
use super::guest::{Guest, connection, ensure_says, get, tcp};
use super::lab::{Lab, allow};

const CUT_MAX: Duration = Duration::from_secs(1);
/// Until bytes flow in an emulated guest.
const FLOW_MAX: Duration = Duration::from_secs(30);

/// Reads for ever, and only counts.
fn download(address: &str, host: &str, limit_ms: u64) -> Probe {
    let request = format!("GET /endless HTTP/1.1\r\nHost: {host}\r\n\r\n");
    Probe::Tcp(Tcp {
        limit_ms,
        drain: true,
        bytes_max: 64,
        ..connection(&format!("{address}:80"), request.as_bytes())
    })
}

/// When a change was asked for, answered, and seen by the servers.
struct Times {
    asked: Instant,
    answered: Duration,
    noticed: Duration,
}

/// Waits until bytes flow to all three, and leaves one of them.
async fn tighten(guest: &Guest<'_>, cut: [&Arc<Seen>; 2], kept: &Arc<Seen>) -> Result<Times> {
    until("bytes flow", FLOW_MAX, || async {
        let flow = [cut[0], cut[1], kept].map(|seen| seen.bytes().is_empty());
        (!flow.contains(&true)).then_some(())
    })
    .await?;
    let asked = Instant::now();
    guest.set(allow(&["other.test"])).await?;
    let answered = asked.elapsed();
    until("the servers notice", CUT_MAX, || async {
        cut.iter().all(|seen| seen.open() == 0).then_some(())
    })
    .await?;
    Ok(Times {
        asked,
        answered,
        noticed: asked.elapsed(),
    })
}

#[tokio::test]
async fn b16_a_tighter_policy_cuts_a_download_within_a_second() -> Result<()> {
    let setting = setting_or_skip!();
    let lab = Lab::start(&setting).await?;
    let server = lab.internet.http(ALLOWED, 80, "allowed");
    let other = lab.internet.http(OTHER, 80, "other");
    let raw = lab.internet.sink(EVIL, 7);
    let rule = format!("{EVIL}/32:7");
    let rules = ["allowed.test", "other.test", &rule];
    let guest = lab.guest(allow(&rules)).await?;
    let cut = [download(ALLOWED, "allowed.test", 60_000)];
    let kept = [download(OTHER, "other.test", 15_000)];
    let silent = [Probe::Tcp(Tcp {
        limit_ms: 60_000,
        ..connection(&format!("{EVIL}:7"), b"before")
    })];
    let ended = async {
        let reports = guest.probe(&cut).await?;
        anyhow::Ok((reports, Instant::now()))
    };
    let (cut, silent, kept, times) = tokio::join!(
        ended,
        guest.probe(&silent),
        guest.probe(&kept),
        tighten(&guest, [&server, &raw], &other)
    );
    let ((cut, at_guest), times) = (cut?, times?);
    let at_guest = at_guest.duration_since(times.asked);
    figure!(
        "cut: answered after {:?}, seen by the server after {:?}, by the guest after {at_guest:?}",
        times.answered,
        times.noticed
    );
    let cut = &cut[0];
    ensure!(cut.outcome == Outcome::Reset && cut.count > 0, "{cut:?}");
    let slowest = times.answered.max(times.noticed).max(at_guest);
    ensure!(slowest < patient(CUT_MAX), "{slowest:?}");
    ensure!(silent?[0].outcome == Outcome::Reset, "it stays");
    let kept = &kept?[0];
    ensure!(kept.outcome == Outcome::Timeout, "it is cut: {kept:?}");
    let is_meant = |record: &NetworkRecord| {
        record.decision == "cut" && record.rule.as_deref() == Some("allowed.test")
    };
    guest.record("the cut download", is_meant).await?;
    let before = lab.internet.arrivals();
    let again = [
        get(&format!("{ALLOWED}:80"), "allowed.test", "/"),
        tcp(&format!("{EVIL}:7"), b"after"),
    ];
    let reports = guest.probe(&again).await?;
    ensure_says(&reports[0], "403")?;
    lab.ensure_nothing_left_since(before)?;
    ensure!(raw.text() == "before");
    lab.finish().await
}

#[tokio::test]
async fn b15_the_next_holder_of_a_slot_inherits_nothing() -> Result<()> {
    let setting = setting_or_skip!();
    // Nothing is made ahead of time, so the first free slot is the one that was just left.
    let none = ["--parked-engines", "0", "--parked-slots", "0"];
    let lab = Lab::start_with(&setting, &none).await?;
    let server = lab.internet.http(ALLOWED, 80, "allowed");
    lab.internet.http(OTHER, 80, "other");
    let first = lab.guest(allow(&["allowed.test"])).await?;
    let slot = engine::slot(&lab.daemon, &first.id)?;
    let download = [download(ALLOWED, "allowed.test", 60_000)];
    let replace = async {
        until("bytes flow", FLOW_MAX, || async {
            (server.open() == 1).then_some(())
        })
        .await?;
        let asked = Instant::now();
        lab.client.delete_sandbox(&first.id).await?;
        let deleted = asked.elapsed();
        let second = lab.guest(allow(&["other.test"])).await?;
        figure!(
            "deleted after {deleted:?}, the next one was there after {:?}",
            asked.elapsed()
        );
        anyhow::Ok(second)
    };
    // The download ends with its machine, and so does the call.
    let (_, second) = tokio::join!(first.probe(&download), replace);
    let second = second?;
    let same = engine::slot(&lab.daemon, &second.id)? == slot;
    ensure!(same, "another slot");
    ensure!(server.open() == 0, "the connection is still open");
    let sniffer = Sniffer::start(&second).await?;
    let connections = server.connections();
    let reports = second
        .probe(&[
            get(&format!("{ALLOWED}:80"), "allowed.test", "/"),
            get(&format!("{OTHER}:80"), "other.test", "/"),
        ])
        .await?;
    ensure_says(&reports[0], "403")?;
    ensure_says(&reports[1], "hello from other")?;
    ensure!(server.connections() == connections);
    let heard = sniffer.stop().await?;
    let strange = heard
        .iter()
        .filter(|frame| frame.windows(64).any(|part| part == [b'x'; 64]));
    ensure!(
        strange.count() == 0,
        "bytes of the first one came to the second"
    );
    ensure!(!heard.is_empty(), "the sniffer heard nothing at all");
    let own = ["allowed.test", "other.test"];
    for record in second.records().await? {
        let is_own = record.name.is_none_or(|name| own.contains(&name.as_str()));
        ensure!(is_own, "a record of the first one");
    }
    let denied = second.denied("no_rule").await?;
    ensure!(denied.name.as_deref() == Some("allowed.test"), "{denied:?}");
    lab.finish().await
}

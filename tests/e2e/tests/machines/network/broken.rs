//! Parts of the way out are taken away under traffic: nothing leaves, and it comes back.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dayfly_attacker::probe::Tcp;
use dayfly_attacker::{Outcome, Probe};
use dayfly_e2e::{Daemon, figure, patient, setting_or_skip, until};
use dayfly_host::net::slot_rules_hold;
use dayfly_host::netns;
use dayfly_netlab::internet::{ALLOWED, EVIL};
use dayfly_netlab::namespace::{run_in, try_run_in};
use dayfly_netlab::wire;
use hickory_proto::op::ResponseCode;
use rustix::process::{Pid, Signal, kill_process};

use super::guest::{AT_ONCE_MAX, GATEWAY, Guest, answer, connection, get, question, status};
use super::lab::{Lab, allow};

/// From a question to the word that nobody knows.
const RESOLVER_MAX: Duration = Duration::from_millis(2500);
const RESTORED_MAX: Duration = Duration::from_secs(10);
/// From the death of the process to the same policy in force in a new one.
const BACK_MAX: Duration = Duration::from_secs(2);
const SERVED_MAX: Duration = Duration::from_secs(20);
/// Packets that a guest sends in vain before we believe that it tried.
const TRIED_PACKETS: u64 = 20;

/// The processes that dial from the test's own namespace.
fn egress_pids(lab: &Lab) -> Result<Vec<i32>> {
    let ours = fs::metadata(&lab.internet.egress)?.ino();
    let mut found = Vec::new();
    for pid in dayfly_host::process::all_pids()? {
        let namespace = fs::metadata(format!("/proc/{pid}/ns/net"));
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        if namespace.is_ok_and(|found| found.ino() == ours) && name.starts_with("dayfly-egress") {
            found.push(pid);
        }
    }
    Ok(found)
}

fn egress_pid(lab: &Lab) -> Result<i32> {
    egress_pids(lab)?.pop().context("no egress process")
}

fn signal(pid: i32, signal: Signal) -> Result<()> {
    Ok(kill_process(Pid::from_raw(pid).context("no pid")?, signal)?)
}

/// Packets that came from the guest so far.
fn packets_of(guest: &Guest<'_>) -> Result<u64> {
    let table = netns::in_namespace(&guest.namespace()?, || {
        fs::read_to_string("/proc/thread-self/net/dev")
    })??;
    let line = table.lines().find(|line| line.trim().starts_with("tap0:"));
    let mut words = line.context("no tap")?.split_whitespace();
    Ok(words.nth(2).context("no count")?.parse()?)
}

/// Tries for ever to get something out, to a place that is allowed and to one that is not.
async fn keep_trying(guest: &Guest<'_>) -> Result<()> {
    let text = "setsid sh -c 'while ! test -e /tmp/enough; do \
                curl -s --max-time 1 http://allowed.test/ >/dev/null; \
                curl -s --max-time 1 http://evil.test/ >/dev/null; \
                curl -s --max-time 1 http://198.41.0.4/ >/dev/null; done' >/dev/null 2>&1 &";
    guest.output(text).await?;
    Ok(())
}

/// Everything that rules would have led somewhere. They are back before a guest gives up, so it
/// must not be patient.
async fn try_without_rules(guest: &Guest<'_>) -> Result<()> {
    let hurried = |to: &str, bytes: &[u8]| {
        Probe::Tcp(Tcp {
            limit_ms: 500,
            ..connection(to, bytes)
        })
    };
    let direct = wire::get("allowed.test", "/direct");
    let reports = guest
        .probe(&[
            hurried("169.254.169.254:80", b"\x01"),
            // The sockets are in reach now, and know no destination.
            hurried(&format!("{GATEWAY}:5017"), &direct),
            hurried(&format!("{EVIL}:80"), &wire::get("evil.test", "/")),
        ])
        .await?;
    let outcomes: Vec<Outcome> = reports.iter().map(|report| report.outcome).collect();
    figure!("without rules: {outcomes:?}");
    ensure!(!reports[1].text().contains("200 OK"), "{reports:?}");
    Ok(())
}

#[tokio::test]
async fn b17_lost_rules_let_nothing_out_and_come_back() -> Result<()> {
    let setting = setting_or_skip!();
    let lab = Lab::start(&setting).await?;
    let allowed = lab.internet.http(ALLOWED, 80, "allowed");
    let attacker = lab.internet.http(EVIL, 80, "evil");
    let guest = lab.guest(allow(&["allowed.test"])).await?;
    let namespace = guest.namespace()?;
    let (good, bad) = (
        get(&format!("{ALLOWED}:80"), "allowed.test", "/"),
        get(&format!("{EVIL}:80"), "evil.test", "/"),
    );
    let report = guest.probe_one(good.clone()).await?;
    ensure!(
        report.text().contains("hello from allowed"),
        "{}",
        report.text()
    );
    let before = lab.internet.arrivals();
    let lost = Instant::now();
    for table in ["inet", "netdev"] {
        run_in(&namespace, "nft", &["delete", "table", table, "dayfly"], "");
    }
    let (tried, restored) = tokio::join!(
        try_without_rules(&guest),
        until("the rules are back", RESTORED_MAX, || async {
            slot_rules_hold(&namespace).ok()?.then_some(())
        })
    );
    tried?;
    restored?;
    figure!("rules of a slot were back after {:?}", lost.elapsed());
    lab.ensure_nothing_left_since(before)?;
    let log = fs::read_to_string(lab.daemon.path().join("daemon.log"))?;
    ensure!(
        log.contains("somebody changed the rules of a slot"),
        "no alarm"
    );
    let reports = guest.probe(&[good.clone(), bad.clone()]).await?;
    ensure!(
        status(&reports[0]) == "200" && status(&reports[1]) == "403",
        "{reports:?}"
    );

    attacker.assert_nothing_came();
    ensure!(allowed.requests() == 2);
    lab.finish().await
}

#[tokio::test]
async fn b17_the_rules_behind_the_process_come_back_too() -> Result<()> {
    let setting = setting_or_skip!();
    let lab = Lab::start(&setting).await?;
    lab.internet.http(ALLOWED, 80, "allowed");
    let canaries = lab.internet.canaries();
    let guest = lab.guest(allow(&["allowed.test"])).await?;
    let egress = &lab.internet.egress;
    let table = ["table", "inet", "dayfly_egress"];
    let lost = Instant::now();
    run_in(egress, "nft", &[&["delete"], &table[..]].concat(), "");
    let before = lab.internet.arrivals();
    let reports = guest
        .probe(&[
            get(&format!("{EVIL}:80"), "evil.test", "/"),
            get("169.254.169.254:80", "169.254.169.254", "/"),
        ])
        .await?;
    ensure!(
        reports.iter().all(|report| status(report) == "403"),
        "{reports:?}"
    );
    lab.ensure_nothing_left_since(before)?;
    until("they are back", RESTORED_MAX, || async {
        let listed = try_run_in(egress, "nft", &[&["list"], &table[..]].concat(), "");
        listed.status.success().then_some(())
    })
    .await?;
    figure!(
        "rules of the egress namespace were back after {:?}",
        lost.elapsed()
    );
    for canary in &canaries {
        canary.assert_nothing_came();
    }
    let good = get(&format!("{ALLOWED}:80"), "allowed.test", "/");
    ensure!(status(&guest.probe_one(good).await?) == "200");
    lab.finish().await
}

#[tokio::test]
async fn n14_a_killed_process_lets_nothing_out_and_comes_back_with_the_same_policy() -> Result<()> {
    let setting = setting_or_skip!();
    let lab = Lab::start(&setting).await?;
    let allowed = lab.internet.http(ALLOWED, 80, "allowed");
    let attacker = lab.internet.http(EVIL, 80, "evil");
    let guest = lab.guest(allow(&["allowed.test"])).await?;
    keep_trying(&guest).await?;
    until("bytes go through", SERVED_MAX, || async {
        (allowed.requests() > 2).then_some(())
    })
    .await?;
    // The node must not start another one before we have looked.
    let (node, old) = (lab.daemon.role_pid("node")?, egress_pid(&lab)?);
    signal(node, Signal::STOP)?;
    Daemon::kill(old)?;
    let down = stay_down(&guest, old).await;
    signal(node, Signal::CONT)?;
    let back = Instant::now();
    down?;
    until("a new one decides by the same policy", BACK_MAX, || async {
        egress_pid(&lab).ok().filter(|pid| *pid != old)?;
        let now = lab.client.network(&guest.id).await.ok()?;
        now.enforced.then_some(())
    })
    .await?;
    let in_force = back.elapsed();
    let requests = allowed.requests();
    until("bytes go through again", SERVED_MAX, || async {
        (allowed.requests() > requests).then_some(())
    })
    .await?;
    figure!(
        "in force again after {in_force:?}, served after {:?}",
        back.elapsed()
    );
    // Once more, with nobody held back.
    let (old, killed) = (egress_pid(&lab)?, Instant::now());
    Daemon::kill(old)?;
    until("a new one", BACK_MAX, || async {
        egress_pid(&lab).ok().filter(|pid| *pid != old)?;
        let now = lab.client.network(&guest.id).await.ok()?;
        now.enforced.then_some(())
    })
    .await?;
    figure!("killed, and in force again after {:?}", killed.elapsed());
    guest.output("touch /tmp/enough").await?;
    let reports = guest
        .probe(&[
            get(&format!("{ALLOWED}:80"), "allowed.test", "/"),
            get(&format!("{EVIL}:80"), "evil.test", "/"),
        ])
        .await?;
    ensure!(
        status(&reports[0]) == "200" && status(&reports[1]) == "403",
        "{reports:?}"
    );
    attacker.assert_nothing_came();
    let asked = lab.internet.names.questions();
    ensure!(asked.iter().all(|name| name == "allowed.test"), "{asked:?}");
    lab.finish().await
}

/// With nobody to decide, a guest that goes on trying gets nothing out.
async fn stay_down(guest: &Guest<'_>, old: i32) -> Result<()> {
    let lab = guest.lab;
    until("it is gone", Duration::from_secs(5), || async {
        egress_pids(lab)
            .ok()
            .filter(|pids| !pids.contains(&old))
            .map(drop)
    })
    .await?;
    let (before, packets) = (lab.internet.arrivals(), packets_of(guest)?);
    until(
        "the guest goes on trying",
        Duration::from_secs(30),
        || async { (packets_of(guest).ok()? > packets + TRIED_PACKETS).then_some(()) },
    )
    .await?;
    lab.ensure_nothing_left_since(before)
}

#[tokio::test]
async fn n15_a_dead_resolver_is_an_error_and_not_a_wait() -> Result<()> {
    let setting = setting_or_skip!();
    let lab = Lab::start(&setting).await?;
    lab.internet.http(ALLOWED, 80, "allowed");
    let guest = lab
        .guest(allow(&["allowed.test", "www.allowed.test"]))
        .await?;
    lab.internet.names.set_dead(true);
    let ask = |name: &str| {
        question(
            GATEWAY,
            &wire::question_packet(name, hickory_proto::rr::RecordType::A),
        )
    };
    let reports = guest
        .probe(&[ask("allowed.test"), ask("evil.test")])
        .await?;
    ensure!(answer(&reports[0])?.metadata.response_code == ResponseCode::ServFail);
    ensure!(
        reports[0].time() < patient(RESOLVER_MAX),
        "{} ms",
        reports[0].ms
    );
    ensure!(answer(&reports[1])?.metadata.response_code == ResponseCode::NXDomain);
    ensure!(
        reports[1].time() < patient(AT_ONCE_MAX),
        "{} ms",
        reports[1].ms
    );
    let report = guest
        .probe_one(get(&format!("{ALLOWED}:80"), "www.allowed.test", "/"))
        .await?;
    ensure!(
        status(&report) == "502" && report.outcome != Outcome::Timeout,
        "{report:?}"
    );
    figure!(
        "a dead resolver: SERVFAIL after {} ms, 502 after {} ms",
        reports[0].ms,
        report.ms
    );
    guest
        .record("unresolvable", |record| {
            record.reason.as_deref() == Some("unresolvable")
        })
        .await?;
    ensure!(
        !lab.internet
            .names
            .questions()
            .contains(&"evil.test".to_owned())
    );
    lab.internet.names.set_dead(false);
    let report = guest
        .probe_one(get(&format!("{ALLOWED}:80"), "allowed.test", "/"))
        .await?;
    ensure!(
        report.text().contains("hello from allowed"),
        "{}",
        report.text()
    );
    lab.finish().await
}

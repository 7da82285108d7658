//! Forks, sleeps and wakes, with connections open.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use dayfly_api::{ForkOptions, ForkSandbox, NetworkRecord, NetworkWish};
use dayfly_e2e::{figure, refusal, setting_or_skip, until};
use dayfly_netlab::internet::{ALLOWED, EVIL};

use super::guest::{Guest, get, status};
use super::lab::{Lab, allow, public};

/// Writes numbers to one connection until it breaks, and says how it ended.
const WRITER: &str = r#"
import socket, time
s = socket.create_connection(("198.41.0.4", 7), timeout=10)
s.settimeout(10)
number = 0
try:
    while True:
        number += 1
        s.sendall(b"%d\n" % number)
        open("/tmp/number", "w").write(str(number))
        time.sleep(0.05)
except OSError as error:
    open("/tmp/ended", "w").write(type(error).__name__)
"#;

async fn write_for_ever(guest: &Guest<'_>) -> Result<()> {
    guest.upload("/tmp/writer.py", WRITER.into()).await?;
    guest
        .output("setsid python3 /tmp/writer.py >/dev/null 2>&1 &")
        .await?;
    Ok(())
}

async fn fork(guest: &Guest<'_>, network: Option<NetworkWish>) -> Result<String> {
    let request = ForkSandbox {
        count: Some(1),
        options: ForkOptions {
            network,
            ..ForkOptions::default()
        },
    };
    let forked = guest.lab.client.fork_sandbox(&guest.id, &request).await?;
    Ok(forked.children.first().context("no child")?.id.clone())
}

/// Every number once, in order: one writer.
fn ensure_counts_up(stream: &[u8]) -> Result<usize> {
    let text = String::from_utf8_lossy(stream);
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    for (index, line) in whole.lines().enumerate() {
        ensure!(
            line.parse() == Ok(index + 1),
            "line {}: {line:?}",
            index + 1
        );
    }
    Ok(whole.lines().count())
}

#[tokio::test]
async fn a_fork_leaves_the_connection_with_its_source_and_resets_the_child() -> Result<()> {
    let setting = setting_or_skip!();
    let lab = Lab::start(&setting).await?;
    let sink = lab.internet.sink(EVIL, 7);
    let rule = format!("{EVIL}/32:7");
    let parent = lab.guest(allow(&[&rule])).await?;
    write_for_ever(&parent).await?;
    until("numbers come", Duration::from_secs(30), || async {
        (sink.bytes().len() > 40).then_some(())
    })
    .await?;
    let child = Guest {
        lab: &lab,
        id: fork(&parent, None).await?,
    };
    child.wait_for_file("/tmp/ended").await?;
    let ended = child.output("cat /tmp/ended").await?;
    ensure!(
        ended == "ConnectionResetError" || ended == "BrokenPipeError",
        "{ended}"
    );
    let after_fork = sink.bytes().len();
    until("the source goes on", Duration::from_secs(30), || async {
        (sink.bytes().len() > after_fork + 40).then_some(())
    })
    .await?;
    ensure!(
        parent.run("test -e /tmp/ended").await?.exit_code != 0,
        "the source was cut"
    );
    ensure!(
        sink.connections() == 1,
        "there were {} connections",
        sink.connections()
    );
    let lines = ensure_counts_up(&sink.streams()[0])?;
    figure!("{lines} numbers by one connection, one writer; the child's ended with {ended}");
    // The child can make connections of its own.
    child.output("rm /tmp/ended").await?;
    write_for_ever(&child).await?;
    until("the child has its own", Duration::from_secs(30), || async {
        (sink.connections() == 2 && sink.streams()[1].len() > 10).then_some(())
    })
    .await?;
    for stream in sink.streams() {
        ensure_counts_up(&stream)?;
    }
    lab.finish().await
}

#[tokio::test]
async fn a_policy_that_changed_in_its_sleep_holds_from_the_first_packet() -> Result<()> {
    let setting = setting_or_skip!();
    let lab = Lab::start(&setting).await?;
    let sink = lab.internet.sink(EVIL, 7);
    let allowed = lab.internet.http(ALLOWED, 80, "allowed");
    let rule = format!("{EVIL}/32:7");
    let guest = lab.guest(allow(&[&rule, "allowed.test"])).await?;
    // Dials again and again, from before the sleep to behind the wake.
    let text = "setsid sh -c 'while ! test -e /tmp/enough; do \
                timeout 2 /tmp/attacker /tmp/dial >/dev/null 2>&1; done' >/dev/null 2>&1 &";
    let dial = [super::guest::say(&format!("{EVIL}:7"), b"again\n")];
    guest
        .upload("/tmp/dial", serde_json::to_vec(&dial)?)
        .await?;
    guest.output(text).await?;
    until("it dials", Duration::from_secs(30), || async {
        (sink.connections() > 2).then_some(())
    })
    .await?;
    lab.client.hibernate_sandbox(&guest.id).await?;
    until(
        "its connections are over",
        Duration::from_secs(5),
        || async { (sink.open() == 0).then_some(()) },
    )
    .await?;
    let asleep = lab
        .client
        .set_network(&guest.id, &allow(&["allowed.test"]))
        .await?;
    ensure!(
        !asleep.enforced,
        "nothing is enforced on a sleeper: {asleep:?}"
    );
    let connections = sink.connections();
    lab.client.wake_sandbox(&guest.id).await?;
    let report = guest
        .probe_one(get(&format!("{ALLOWED}:80"), "allowed.test", "/woken"))
        .await?;
    ensure!(report.text().contains("/woken"), "{}", report.text());
    let place = format!("{EVIL}:7");
    let is_meant = |record: &NetworkRecord| {
        record.decision == "denied" && record.destination.as_ref() == Some(&place)
    };
    let denied = guest.record("its first try is denied", is_meant).await?;
    figure!("awake, and told no: {:?}", denied.reason);
    ensure!(
        sink.connections() == connections,
        "the old policy held for a moment"
    );
    ensure!(lab.client.network(&guest.id).await?.enforced);
    guest.output("touch /tmp/enough").await?;
    ensure!(allowed.requests() == 1);
    lab.finish().await
}

#[tokio::test]
async fn a_fork_may_lose_rights_and_gain_none() -> Result<()> {
    let setting = setting_or_skip!();
    let lab = Lab::start(&setting).await?;
    lab.internet.http(ALLOWED, 80, "allowed");
    let attacker = lab.internet.http(EVIL, 80, "evil");
    let parent = lab.guest(allow(&["allowed.test", "other.test"])).await?;
    for more in [
        public(),
        allow(&["evil.test"]),
        allow(&["allowed.test:22"]),
        allow(&["*.allowed.test"]),
    ] {
        let request = ForkSandbox {
            count: Some(1),
            options: ForkOptions {
                network: Some(more),
                ..ForkOptions::default()
            },
        };
        refusal(
            lab.client.fork_sandbox(&parent.id, &request).await,
            "forbidden",
        )?;
    }
    let less = Guest {
        lab: &lab,
        id: fork(&parent, Some(allow(&["other.test"]))).await?,
    };
    let same = Guest {
        lab: &lab,
        id: fork(&parent, None).await?,
    };
    let probes = [
        get(&format!("{ALLOWED}:80"), "allowed.test", "/"),
        get(&format!("{EVIL}:80"), "evil.test", "/"),
    ];
    for (guest, expected) in [
        (&less, ["403", "403"]),
        (&same, ["200", "403"]),
        (&parent, ["200", "403"]),
    ] {
        let statuses: Vec<String> = guest.probe(&probes).await?.iter().map(status).collect();
        ensure!(statuses == expected, "{}: {statuses:?}", guest.id);
    }
    attacker.assert_nothing_came();
    lab.finish().await
}

//! Children of a fork share no identity, and their hooks run before user code does.

use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, ensure};
use dayfly_api::{ForkOptions, ForkSandbox, Forked, Sandbox};
use dayfly_client::{Client, FileBody};
use dayfly_e2e::{
    Daemon, DaemonOptions, create, engine, figure, output, output_of_root, setting_or_skip, until,
};

const CLOCK_ERROR_MAX: f64 = 2.0;

/// Busy from before the fork to behind it: each look notes the host name and what the hook wrote.
/// The first look under a new name must find what the hook wrote for that name.
const SPY: &str = r#"
import os
first = os.uname().nodename
seen = first
while seen == first:
    try:
        hook = open("/run/hook").read().strip()
    except FileNotFoundError:
        hook = "nothing"
    seen = os.uname().nodename
    if seen != first:
        # The look was cut in two by the freeze: this one is whole.
        try:
            hook = open("/run/hook").read().strip()
        except FileNotFoundError:
            hook = "nothing"
with open("/dev/shm/spy.new", "w") as out:
    out.write(seen + " saw " + hook)
os.rename("/dev/shm/spy.new", "/dev/shm/spy")
"#;

const HOOK: &str = "#!/bin/sh\nsleep 0.3\necho \"$DAYFLY_EVENT $DAYFLY_SANDBOX_ID $DAYFLY_RESEED\" \
                    > /run/hook.new\nmv /run/hook.new /run/hook\n";

/// The clock, then one line for each thing that no two may share. By the shell: an interpreter that
/// starts takes a second under emulation.
const IDENTITY: &str = "date +%s.%N; head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \\n'; echo; \
                        cat /proc/sys/kernel/random/uuid /etc/machine-id /etc/hostname \
                        /proc/sys/kernel/random/boot_id";

const PARTS: [&str; 5] = ["randomness", "uuid", "machine-id", "hostname", "boot_id"];

async fn prepare(client: &Client, id: &str) -> Result<()> {
    client
        .write_file(id, "/workspace/spy.py", FileBody::from_bytes(SPY))
        .await?;
    client
        .write_file(id, "/workspace/hook", FileBody::from_bytes(HOOK))
        .await?;
    let install = "mkdir -p -m 0755 /etc/dayfly/hooks.d && \
                   install -o root -g root -m 0755 /workspace/hook /etc/dayfly/hooks.d/50-test";
    output_of_root(client, id, install).await?;
    let start =
        "setsid nohup python3 -I -S /workspace/spy.py >/workspace/spy.out 2>&1 </dev/null &";
    output(client, id, start).await?;
    until("the spy looks", Duration::from_secs(20), || async {
        let text = "pgrep -f spy.py && [ $(cut -d' ' -f14 /proc/$(pgrep -of spy.py)/stat) -gt 20 ]";
        output(client, id, text).await.ok()
    })
    .await?;
    Ok(())
}

/// The hook had run for this very sandbox when its user's process first ran.
async fn hook_was_first(client: &Client, child: &Sandbox) -> Result<()> {
    let told = until("the spy has written", Duration::from_secs(20), || async {
        output(client, &child.id, "cat /dev/shm/spy").await.ok()
    })
    .await?;
    let wanted = format!("{0} saw fork {0} 1", child.id);
    ensure!(told == wanted, "the spy wrote {told:?}, not {wanted:?}");
    Ok(())
}

fn lists_are_right(forked: &Forked) -> Result<()> {
    let has = |list: &[String], word: &str| list.iter().any(|entry| entry == word);
    for word in [
        "kernel_randomness",
        "hostname",
        "machine_id",
        "boot_id",
        "agent_token",
        "wall_clock",
    ] {
        ensure!(has(&forked.renewed, word), "{:?}", forked.renewed);
        ensure!(!has(&forked.not_renewed, word), "{:?}", forked.not_renewed);
    }
    for word in ["open_connections", "process_ids"] {
        ensure!(has(&forked.not_renewed, word), "{:?}", forked.not_renewed);
    }
    Ok(())
}

/// What was seen so far of each part.
#[derive(Default)]
struct Seen([BTreeSet<String>; PARTS.len()]);

impl Seen {
    /// Asks for everything in one exec, and answers how far the guest's clock is from the host's
    /// around it, in seconds.
    async fn add(&mut self, client: &Client, id: &str) -> Result<f64> {
        let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let before = now()?.as_secs_f64();
        let told = output(client, id, IDENTITY).await?;
        let after = now()?.as_secs_f64();
        let mut lines = told.lines();
        let guest: f64 = lines.next().unwrap_or_default().parse()?;
        for (part, seen) in PARTS.iter().zip(&mut self.0) {
            let line = lines.next().with_context(|| format!("no {part}: {told}"))?;
            ensure!(seen.insert(line.to_owned()), "{part} {line} came twice");
        }
        Ok((before - guest).max(guest - after).max(0.0))
    }
}

/// What the node shares with the agent of this guest, and with nobody else.
fn agent_token(daemon: &Daemon, id: &str) -> Result<String> {
    let record = engine::record(daemon, id)?;
    let token = record["agent_token"].as_str().context("no token")?;
    Ok(token.to_owned())
}

async fn hygiene(count: u64, at_once: u64) -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let source = create(&client, "base").await?.id;
    prepare(&client, &source).await?;
    let mut seen = Seen::default();
    seen.add(&client, &source).await?;
    let mut tokens = BTreeSet::from([agent_token(&daemon, &source)?]);
    let mut worst: f64 = 0.0;
    let mut made = 0;
    while made < count {
        let request = ForkSandbox {
            count: Some(at_once.min(count - made)),
            options: ForkOptions {
                reseed_user_space: Some(true),
                ..ForkOptions::default()
            },
        };
        let start = Instant::now();
        let forked = client.fork_sandbox(&source, &request).await?;
        figure!("{at_once} children after {:?}", start.elapsed());
        ensure!(forked.failures.is_empty(), "{:?}", forked.failures);
        lists_are_right(&forked)?;
        for child in &forked.children {
            worst = worst.max(seen.add(&client, &child.id).await?);
            let is_new = tokens.insert(agent_token(&daemon, &child.id)?);
            ensure!(is_new, "{} has the token of another", child.id);
            hook_was_first(&client, child).await?;
            client.delete_sandbox(&child.id).await?;
            made += 1;
        }
    }
    // The positive control of the hook: it did not run in the source, which did not become anyone.
    let spy = output(
        &client,
        &source,
        "ls /dev/shm/spy /run/hook 2>/dev/null; true",
    )
    .await?;
    ensure!(spy.is_empty(), "the source has {spy:?}");
    figure!("{count} children, all distinct; largest clock error {worst:.3} s");
    ensure!(worst < CLOCK_ERROR_MAX, "a clock is {worst} s off");
    daemon.finish().await
}

#[tokio::test]
async fn four_children_share_no_identity() -> Result<()> {
    hygiene(4, 2).await
}

#[tokio::test]
#[ignore = "soak: fifty children"]
async fn fifty_children_share_no_identity() -> Result<()> {
    hygiene(50, 5).await
}

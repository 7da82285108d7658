//! What root of a guest tries on its way out: devices, the template's disk, the agent's channel,
//! the clock. Names begin with the case that they show.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dayfly_api::{CreateSandbox, Sandbox};
use dayfly_client::Client;
use dayfly_e2e::{
    Daemon, DaemonOptions, create, engine, exec_as_root, figure, output, output_of_root,
    setting_or_skip, until,
};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Nodes tell the time that is left in whole seconds.
const EXPIRY_ROUNDING: Duration = Duration::from_secs(2);

struct Rig {
    daemon: Daemon,
    client: Client,
}

impl Rig {
    async fn new(setting: &dayfly_e2e::Setting) -> Result<Self> {
        let (daemon, client) = Daemon::ready(setting, DaemonOptions::default()).await?;
        Ok(Self { daemon, client })
    }

    async fn root(&self, id: &str, text: &str) -> Result<String> {
        output_of_root(&self.client, id, text).await
    }
}

/// Everything that the machine is made of, by what its kernel found.
const DEVICES: &str = "for d in /sys/bus/virtio/devices/*; do cat $d/device; done | sort | uniq -c | \
     awk '{print $2 \" \" $1}'";

#[tokio::test]
async fn a5_h5_h6_the_machine_has_what_is_listed_and_one_way_to_the_host() -> Result<()> {
    let setting = setting_or_skip!();
    let rig = Rig::new(&setting).await?;
    let id = create(&rig.client, "base").await?.id;
    // Network 1, disks 2 (the template, one to write, three to spare), console 3, random 4.
    let devices = rig.root(&id, DEVICES).await?;
    let found: BTreeSet<&str> = devices.lines().map(str::trim).collect();
    figure!("devices: {found:?}");
    let kinds: BTreeSet<&str> = found
        .iter()
        .filter_map(|line| line.split(' ').next())
        .collect();
    let listed = BTreeSet::from(["0x0001", "0x0002", "0x0003", "0x0004"]);
    ensure!(
        kinds.is_subset(&listed),
        "devices beyond the list: {found:?}"
    );
    ensure!(
        kinds.contains("0x0002"),
        "the list shows nothing: {found:?}"
    );
    for absent in [
        "/sys/bus/pci/devices/*",
        "/sys/bus/usb/devices/*",
        "/sys/class/scsi_host/*",
        "/sys/class/drm/card*",
        "/dev/kvm",
        "/dev/vsock",
        "/dev/vhost-vsock",
        "/dev/fuse-host",
        "/sys/fs/virtiofs/*",
    ] {
        let seen = rig
            .root(&id, &format!("ls -d {absent} 2>/dev/null || true"))
            .await?;
        ensure!(seen.is_empty(), "the guest has {seen}");
    }
    only_the_agents_ports(&rig, &id).await?;
    rig.daemon.finish().await
}

async fn only_the_agents_ports(rig: &Rig, id: &str) -> Result<()> {
    let names = rig.root(id, "cat /sys/class/virtio-ports/*/name").await?;
    let names: BTreeSet<&str> = names.split_whitespace().collect();
    figure!("ports: {names:?}");
    ensure!(
        !names.is_empty() && names.iter().all(|name| name.starts_with("dayfly.")),
        "ports that are not the agent's: {names:?}"
    );
    // A port that its agent has open cannot be opened again, and not by a user in any case.
    let opened = "for p in /dev/vport*; do (exec 3<>$p) 2>/dev/null && echo $p; done; true";
    let by_user = output(&rig.client, id, opened).await?;
    ensure!(by_user.is_empty(), "a user opened {by_user}");
    let count = rig.root(id, "ls /dev/vport* | wc -l").await?;
    ensure!(
        count == names.len().to_string(),
        "{count} nodes for {names:?}"
    );
    // No way by another family of sockets: 40 is vsock.
    let text = "python3 - <<'E'\nimport socket\nreached = 0\ntry:\n  for cid in range(0, 16):\n    for port in (1, 22, 1024, 5000, 52):\n      s = socket.socket(40, socket.SOCK_STREAM)\n      s.settimeout(0.2)\n      try:\n        s.connect((cid, port)); reached += 1\n      except OSError: pass\n      s.close()\nexcept OSError: pass\nprint(reached)\nE";
    let reached = rig.root(id, text).await?;
    ensure!(reached == "0", "{reached} places were reached");
    Ok(())
}

/// Off the runtime, which has connections to look after.
async fn digests(template: &Path) -> Result<Vec<(String, String)>> {
    let template = template.to_owned();
    tokio::task::spawn_blocking(move || digests_here(&template)).await?
}

fn digests_here(template: &Path) -> Result<Vec<(String, String)>> {
    let mut digests = Vec::new();
    for entry in std::fs::read_dir(template)? {
        let path = entry?.path();
        let name = path.display().to_string();
        if name.ends_with(".img") || name.ends_with(".raw") {
            let sum = std::process::Command::new("b2sum").arg(&path).output()?;
            ensure!(sum.status.success(), "no digest of {name}");
            digests.push((name, String::from_utf8(sum.stdout)?));
        }
    }
    digests.sort();
    ensure!(!digests.is_empty(), "the template has no disks");
    Ok(digests)
}

#[tokio::test]
async fn a14_the_template_cannot_be_written_to() -> Result<()> {
    let setting = setting_or_skip!();
    let rig = Rig::new(&setting).await?;
    let id = create(&rig.client, "base").await?.id;
    let version = engine::record(&rig.daemon, &id)?["template_version"]
        .as_str()
        .context("no version")?
        .to_owned();
    let template = rig.daemon.path().join("node/templates/base").join(version);
    let before = digests(&template).await?;
    let text = "for d in /dev/vd?; do blockdev --setrw $d 2>/dev/null; \
         if [ \"$(cat /sys/block/${d#/dev/}/ro)\" = 1 ] || ! grep -q \"^$d \" /proc/mounts; then \
         echo canary-of-a14 | dd of=$d bs=512 seek=8 conv=notrunc oflag=direct,sync 2>&1; fi; done; true";
    let said = rig.root(&id, text).await?;
    figure!("writes to every disk: {}", said.replace('\n', " | "));
    ensure!(
        digests(&template).await? == before,
        "the template has changed"
    );
    let second = create(&rig.client, "base").await?.id;
    let found = rig
        .root(
            &second,
            "cat /dev/vd? | head -c 200000000 | grep -c -a canary-of-a14 || true",
        )
        .await?;
    ensure!(found == "0", "the next sandbox sees what was written");
    rig.daemon.finish().await
}

#[tokio::test]
async fn a8_h7_a_guest_that_kills_itself_is_reported_and_its_agent_cannot_be_killed() -> Result<()>
{
    let setting = setting_or_skip!();
    let rig = Rig::new(&setting).await?;
    let first = create(&rig.client, "base").await?.id;
    // The agent is the first process: the kernel keeps signals from it.
    exec_as_root(
        &rig.client,
        &first,
        "kill -9 1; kill -STOP 1; kill -SEGV 1; true",
    )
    .await?;
    let answer = output(&rig.client, &first, "echo here").await?;
    ensure!(answer == "here", "{answer:?}");
    let endings = [
        (
            "panic",
            "echo 1 > /proc/sys/kernel/sysrq; echo c > /proc/sysrq-trigger",
            "Kernel panic - not syncing",
        ),
        (
            "power off",
            "echo 1 > /proc/sys/kernel/sysrq; echo o > /proc/sysrq-trigger",
            "switched its machine off",
        ),
        (
            "reset",
            "echo 1 > /proc/sys/kernel/sysrq; echo b > /proc/sysrq-trigger",
            "switched its machine off",
        ),
    ];
    for (what, text, reason) in endings {
        let id = create(&rig.client, "base").await?.id;
        let pid = engine::engine_pid(&rig.daemon, &id)?;
        let limit = Duration::from_secs(5);
        let _ = tokio::time::timeout(limit, exec_as_root(&rig.client, &id, text)).await;
        let told = until(
            &format!("{what} is reported"),
            Duration::from_secs(15),
            || async {
                let now = rig.client.get_sandbox(&id).await.ok()?;
                now.reason.filter(|_| now.status == "failed")
            },
        )
        .await?;
        ensure!(told.contains(reason), "{what}: {told}");
        ensure!(
            engine::is_gone(pid) || engine::is_zombie(pid),
            "{what}: the engine goes on"
        );
        rig.client.delete_sandbox(&id).await?;
    }
    rig.daemon.finish().await
}

#[tokio::test]
async fn a10_nobody_else_reaches_the_engines_sockets() -> Result<()> {
    let setting = setting_or_skip!();
    let rig = Rig::new(&setting).await?;
    let (first, second) = (
        create(&rig.client, "base").await?.id,
        create(&rig.client, "base").await?.id,
    );
    let run = engine::run_directory(&rig.daemon, &first)?;
    let other = engine::engine_pid(&rig.daemon, &second)?;
    let uid = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(format!("/proc/{other}"))?);
    ensure!(uid != 0, "an engine runs as root");
    let script = "import os, socket, sys\n\
         os.setgroups([]); os.setgid(int(sys.argv[1])); os.setuid(int(sys.argv[1]))\n\
         s = socket.socket(socket.AF_UNIX)\n\
         try:\n  s.connect(sys.argv[2]); print('reached')\nexcept PermissionError: print('refused')";
    let mut looked = 0;
    for entry in std::fs::read_dir(&run)? {
        let path = entry?.path();
        if path.extension().is_none_or(|end| end != "sock") {
            continue;
        }
        looked += 1;
        let tried = std::process::Command::new("python3")
            .args(["-c", script, &uid.to_string()])
            .arg(&path)
            .output()?;
        let said = String::from_utf8_lossy(&tried.stdout).trim().to_owned();
        ensure!(said == "refused", "{}: {said} {tried:?}", path.display());
    }
    ensure!(looked > 0, "there are no sockets in {}", run.display());
    rig.daemon.finish().await
}

/// Long enough for what is done before, also on a busy host.
const TTL_SECONDS: u64 = 60;

#[tokio::test]
async fn f5_f17_a_guests_inodes_and_clock_are_its_own() -> Result<()> {
    let setting = setting_or_skip!();
    let rig = Rig::new(&setting).await?;
    let request = CreateSandbox {
        ttl_seconds: Some(TTL_SECONDS),
        ..CreateSandbox::default()
    };
    let start = Instant::now();
    let sandbox = rig.client.create_sandbox(&request).await?;
    let before = inodes(rig.daemon.path())?;
    rig.root(
        &sandbox.id,
        "mkdir -p /workspace/many && cd /workspace/many && seq 5000 | xargs touch && sync",
    )
    .await?;
    let grown = inodes(rig.daemon.path())?.saturating_sub(before);
    ensure!(grown < 100, "{grown} inodes of the host");
    for clock in ["+10 years", "-20 years"] {
        rig.root(&sandbox.id, &format!("date -s '{clock}'")).await?;
        let now = rig.client.get_sandbox(&sandbox.id).await?;
        ensure!(
            moved(&sandbox, &now)? <= EXPIRY_ROUNDING && now.status == "running",
            "{now:?}, {sandbox:?}"
        );
    }
    let record = rig.daemon.path().join("node/sandboxes").join(&sandbox.id);
    let gone = until(
        "it is gone in time",
        Duration::from_secs(TTL_SECONDS + 10),
        || async { (!record.exists()).then(|| start.elapsed()) },
    )
    .await?;
    ensure!(gone >= Duration::from_secs(TTL_SECONDS), "early: {gone:?}");
    rig.daemon.finish().await
}

/// By how much a sandbox ends sooner or later than it was said to.
fn moved(first: &Sandbox, now: &Sandbox) -> Result<Duration> {
    let end = |sandbox: &Sandbox| -> Result<OffsetDateTime> {
        let end = sandbox.expires_at.as_deref().context("it has no end")?;
        Ok(OffsetDateTime::parse(end, &Rfc3339)?)
    };
    Ok((end(now)? - end(first)?).unsigned_abs())
}

/// Files and directories of the daemon: the file system is shared with whoever else works here.
fn inodes(path: &Path) -> Result<usize> {
    let mut count = 0;
    let mut waiting = vec![path.to_owned()];
    while let Some(directory) = waiting.pop() {
        // Something may go while it is looked at.
        let Ok(entries) = std::fs::read_dir(&directory) else {
            continue;
        };
        for entry in entries {
            let entry = entry?;
            count += 1;
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push(entry.path());
            }
        }
    }
    Ok(count)
}

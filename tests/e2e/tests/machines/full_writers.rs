//! A disk of the host that is filled while guests write to their disks and volumes: writers stand
//! still and lose nothing, the project that takes too much is the one that is refused, and what was
//! acknowledged stays so.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use dayfly_api::{
    CreateProject, CreateSandbox, CreateSnapshot, CreateToken, CreateVolume, VolumeMount,
};
use dayfly_client::{ApiKey, Client, ClientConfig, ClientError};
use dayfly_e2e::small_disk::SmallDisk;
use dayfly_e2e::{
    Daemon, DaemonOptions, Setting, exec, figure, output, output_of_root, refusal, setting_or_skip,
    until,
};

/// Two disks of the template's size, its files, a volume, the reserve, and little beside them.
const DISK_MIB: u64 = 6400;
const RESERVE_MIB: u64 = 200;
const VOLUME_MIB: u64 = 64;
/// More snapshots than there can be room for.
const SNAPSHOTS_MAX: usize = 40;
/// Room beside the promises for some snapshots.
const SPARE_MIB: u64 = 350;
/// What the writer may have written while the greedy one was at work.
const WRITTEN_MIB: u64 = 256;
const SOON: Duration = Duration::from_secs(20);

/// Appends a number to a file of each disk, and says so only when both are written for good. What
/// it writes beside them needs room of the host.
const WRITER: &str = "n=0; while [ -e /dev/shm/write ]; do n=$((n+1)); \
    head -c 64K /dev/zero >> /workspace/bulk && sync /workspace/bulk && \
    echo $n >> /workspace/log && sync /workspace/log && \
    echo $n >> /volumes/data/log && sync /volumes/data/log && \
    echo $n > /dev/shm/said || { echo $n > /dev/shm/failed; exit 1; }; sleep 0.05; done; \
    touch /dev/shm/ended";

struct World {
    daemon: Daemon,
    operator: Client,
    greedy: Client,
    victim: Client,
}

impl World {
    async fn new(setting: &Setting, disk: &SmallDisk) -> Result<Self> {
        let reserve = RESERVE_MIB.to_string();
        let arguments = [
            "--disk-reserve",
            &reserve,
            "--parked-engines",
            "0",
            "--parked-slots",
            "0",
            "--allow-shared-emulation",
        ];
        let options = DaemonOptions {
            arguments: arguments.map(str::to_owned).to_vec(),
            parent: Some(disk.path()),
            ..DaemonOptions::default()
        };
        let (daemon, _) = Daemon::ready(setting, options).await?;
        let operator = daemon.client()?;
        Ok(Self {
            greedy: project(&daemon, &operator, "greedy").await?,
            victim: project(&daemon, &operator, "victim").await?,
            operator,
            daemon,
        })
    }

    fn volume(&self) -> PathBuf {
        let path = "node/volumes/victim/data/disk.img";
        self.daemon.path().join(path)
    }
}

fn with_key(daemon: &Daemon, key: &str) -> Result<Client> {
    Ok(Client::new(ClientConfig {
        url: daemon.url(),
        key: Some(ApiKey::parse(key)?),
    })?)
}

async fn project(daemon: &Daemon, operator: &Client, name: &str) -> Result<Client> {
    let project = CreateProject {
        id: name.to_owned(),
        limits: None,
    };
    operator.create_project(&project).await?;
    let token = CreateToken {
        scopes: Some(vec!["admin".to_owned()]),
        ..CreateToken::default()
    };
    let token = operator.create_token(Some(name), &token).await?;
    with_key(daemon, &token.token)
}

/// A sandbox with a volume whose writer is at work.
async fn begin_writing(victim: &Client) -> Result<String> {
    let volume = CreateVolume {
        name: "data".to_owned(),
        size_mb: Some(VOLUME_MIB),
        size_gb: None,
    };
    victim.create_volume(&volume).await?;
    let request = CreateSandbox {
        volumes: Some(vec![VolumeMount {
            name: "data".to_owned(),
            path: None,
            read_only: None,
        }]),
        ..CreateSandbox::default()
    };
    let id = victim.create_sandbox(&request).await?.id;
    output_of_root(victim, &id, "chmod 777 /volumes/data").await?;
    let script = format!("cat > /dev/shm/writer <<'END'\n{WRITER}\nEND");
    output(victim, &id, &script).await?;
    let start =
        "touch /dev/shm/write; setsid nohup sh /dev/shm/writer >/dev/null 2>&1 </dev/null &";
    output(victim, &id, start).await?;
    until("it writes", SOON, || async { said(victim, &id).await.ok() }).await?;
    Ok(id)
}

/// The last number that was written for good.
async fn said(client: &Client, id: &str) -> Result<u64> {
    Ok(output(client, id, "cat /dev/shm/said").await?.parse()?)
}

/// Takes snapshots until it is refused. Answers how many were taken.
async fn take_too_much(greedy: &Client, id: &str) -> Result<usize> {
    for taken in 0..SNAPSHOTS_MAX {
        // Something to keep in each of them.
        let junk = "head -c 32M /dev/urandom > /workspace/junk; sync /workspace/junk";
        output(greedy, id, junk).await?;
        let snapshot = greedy.create_snapshot(id, &CreateSnapshot::default()).await;
        if snapshot.is_err() {
            let error = refusal(snapshot, "storage_full")?;
            figure!("refused after {taken} snapshots: {}", error.message);
            return Ok(taken);
        }
    }
    bail!("{SNAPSHOTS_MAX} snapshots were taken and none was refused");
}

async fn condition(client: &Client, id: &str, wanted: Option<&str>) -> Result<()> {
    until(
        &format!("its condition is {wanted:?}"),
        SOON * 3,
        || async {
            let sandbox = client.get_sandbox(id).await.ok()?;
            (sandbox.condition.as_deref() == wanted).then_some(())
        },
    )
    .await
}

/// Fills the disk, and frees it when the writer stands still.
async fn fill_and_free(world: &World, disk: &SmallDisk, id: &str) -> Result<()> {
    let victim = &world.victim;
    // It may still stand from the disk that was filled before.
    let before = until("it can be asked", SOON * 3, || async {
        said(victim, id).await.ok()
    })
    .await?;
    disk.fill(8)?;
    disk.fill_up()?;
    until("its condition is disk_full", SOON * 3, || async {
        // What was deleted before may give its room back only now.
        if disk.left_mib().ok()? > 0 {
            disk.fill_up().ok()?;
        }
        let sandbox = victim.get_sandbox(id).await.ok()?;
        (sandbox.condition.as_deref() == Some("disk_full")).then_some(())
    })
    .await?;
    let sandbox = victim.get_sandbox(id).await?;
    ensure!(sandbox.status == "running", "{sandbox:?}");
    let call = victim.exec(id, &dayfly_e2e::shell("true")).await;
    refusal(call, "storage_full").context("an exec")?;
    snapshot_is_refused(victim, id).await?;
    disk.empty()?;
    condition(victim, id, None).await?;
    until("it writes again", SOON, || async {
        let now = said(victim, id).await.ok()?;
        (now > before + 5).then_some(())
    })
    .await
}

/// A snapshot of who stands still is refused for want of room. Until the database has got its part
/// of what is held for it, which the writer may have taken first, nothing can be changed at all.
async fn snapshot_is_refused(victim: &Client, id: &str) -> Result<()> {
    let refused = until("the database has room", SOON * 2, || async {
        let snapshot = victim.create_snapshot(id, &CreateSnapshot::default()).await;
        let is_early = |error: &ClientError| matches!(error, ClientError::Api(error) if error.code == "store_unavailable");
        (!snapshot.as_ref().is_err_and(is_early)).then_some(snapshot)
    });
    refusal(refused.await?, "storage_full").context("a snapshot of who stands still")?;
    Ok(())
}

/// Everything that the writer said is there, on both disks, and their file systems are whole.
async fn nothing_is_lost(world: &World, id: &str) -> Result<u64> {
    let victim = &world.victim;
    let end = "rm /dev/shm/write; while [ ! -e /dev/shm/ended ]; do sleep 0.1; done";
    output(victim, id, end).await?;
    let failed = exec(victim, id, "cat /dev/shm/failed").await?;
    ensure!(failed.exit_code != 0, "a write failed: {failed:?}");
    let said = said(victim, id).await?;
    for log in ["/workspace/log", "/volumes/data/log"] {
        let expected = format!("seq 1 {said} | cmp - {log}");
        output(victim, id, &expected).await.context(log)?;
    }
    let kernel = output_of_root(victim, id, "dmesg").await?;
    for word in [
        "Aborting journal",
        "I/O error",
        "EXT4-fs error",
        "Remounting",
    ] {
        ensure!(
            !kernel.contains(word),
            "the guest's kernel said {word}: {kernel}"
        );
    }
    victim.delete_sandbox(id).await?;
    let check = Command::new("e2fsck")
        .args(["-f", "-n"])
        .arg(world.volume())
        .output()?;
    let report = String::from_utf8_lossy(&check.stdout).into_owned();
    ensure!(check.status.code() == Some(0), "{report}");
    Ok(said)
}

/// A greedy project first: it is refused while there is still all that the others were promised.
async fn greedy_is_refused(world: &World, disk: &SmallDisk, victim: &str) -> Result<()> {
    let greedy = &world.greedy;
    let id = greedy.create_sandbox(&CreateSandbox::default()).await?.id;
    let node = world.operator.node().await?;
    // Little more than what is promised and kept, so that it does not take long.
    disk.fill(node.disk_committed_mb + RESERVE_MIB + SPARE_MIB)?;
    let taken = take_too_much(greedy, &id).await?;
    ensure!(taken > 0, "the control: with room a snapshot is taken");
    let left = disk.left_mib()?;
    figure!("{left} MiB left, {} MiB promised", node.disk_committed_mb);
    let unwritten = node.disk_committed_mb.saturating_sub(WRITTEN_MIB);
    ensure!(
        left >= unwritten + RESERVE_MIB,
        "{left} MiB left of {unwritten}"
    );
    let sandbox = world.victim.get_sandbox(victim).await?;
    ensure!(sandbox.condition.is_none(), "{sandbox:?}");
    for snapshot in greedy.list_snapshots(None).await? {
        greedy.delete_snapshot(&snapshot.id).await?;
    }
    greedy.delete_sandbox(&id).await?;
    disk.empty()?;
    // Collected after the answer. What comes back later would let a writer go on that is to stand.
    let captures = world.daemon.path().join("node/captures");
    until("its snapshots are collected", SOON * 3, || async {
        let is_empty = std::fs::read_dir(&captures).ok()?.next().is_none();
        is_empty.then_some(())
    })
    .await
}

async fn rounds(setting: &Setting, disk: &SmallDisk, rounds: usize) -> Result<()> {
    let world = World::new(setting, disk).await?;
    let id = begin_writing(&world.victim).await?;
    greedy_is_refused(&world, disk, &id).await?;
    for round in 0..rounds {
        let outcome = fill_and_free(&world, disk, &id).await;
        outcome.with_context(|| format!("round {round}"))?;
        // What was acknowledged is done, and stays done.
        if rounds > 1 {
            keys_keep_their_word(&world, disk)
                .await
                .with_context(|| format!("keys, round {round}"))?;
        }
    }
    let written = nothing_is_lost(&world, &id).await?;
    figure!("{rounds} rounds, {written} writes, none lost");
    world.daemon.finish().await
}

/// Keys that are made and revoked while the disk is full: whatever was acknowledged holds when
/// there is room again.
async fn keys_keep_their_word(world: &World, disk: &SmallDisk) -> Result<()> {
    let wish = CreateToken {
        scopes: Some(vec!["read".to_owned()]),
        ..CreateToken::default()
    };
    let old = world.victim.create_token(None, &wish).await?;
    disk.fill(8)?;
    disk.fill_up()?;
    let new = world.victim.create_token(None, &wish).await;
    let revoked = world.victim.revoke_token(&old.token_info.prefix).await;
    disk.empty()?;
    let works = async |key: &str| -> Result<bool> {
        Ok(with_key(&world.daemon, key)?.usage().await.is_ok())
    };
    if let Ok(new) = &new {
        ensure!(
            works(&new.token).await?,
            "an acknowledged key does not work"
        );
    }
    if revoked.is_ok() {
        ensure!(!works(&old.token).await?, "a revoked key works");
    }
    figure!(
        "key made: {}, key revoked: {}",
        new.is_ok(),
        revoked.is_ok()
    );
    Ok(())
}

async fn on_a_small_disk(count: usize) -> Result<()> {
    let setting = setting_or_skip!();
    let beside = setting.templates.parent().context("no parent directory")?;
    let disk = SmallDisk::new(beside, DISK_MIB)?;
    let outcome = rounds(&setting, &disk, count).await;
    if outcome.is_err() {
        figure!("{} MiB left on the disk", disk.left_mib()?);
        disk.empty()?;
    }
    outcome
}

#[tokio::test]
async fn a_writer_without_room_waits_and_loses_nothing() -> Result<()> {
    on_a_small_disk(1).await
}

#[tokio::test]
#[ignore = "soak: twenty times, with keys that change"]
async fn twenty_full_disks_lose_nothing() -> Result<()> {
    on_a_small_disk(20).await
}

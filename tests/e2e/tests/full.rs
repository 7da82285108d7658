//! A full disk of the host: what needs room is refused with a reason, what gives room works, and
//! who runs goes on.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use dayfly_api::{ChangeLifecycle, CreateSandbox, CreateSnapshot, ForkSandbox};
use dayfly_client::Client;
use dayfly_e2e::{Daemon, DaemonOptions, create, figure, output, refusal, setting_or_skip, until};

/// A disk of the template's size must be free for a create, and two are made here.
const DISK_MIB: u64 = 5400;
/// Less than a capture of what the guest holds needs, and enough for the small files of an answer.
const LEFT_MIB: u64 = 12;
const HELD_MIB: u64 = 48;

/// A small file system on a loop device, unmounted when this goes out of scope.
struct SmallDisk {
    directory: tempfile::TempDir,
}

impl SmallDisk {
    fn new(beside: &Path) -> Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix("e2e-full-")
            .tempdir_in(beside)?;
        std::fs::create_dir(directory.path().join("mount"))?;
        let disk = Self { directory };
        let image = disk.directory.path().join("image");
        std::fs::File::create_new(&image)?.set_len(DISK_MIB << 20)?;
        run(Command::new("mkfs.ext4")
            .args(["-q", "-m", "0"])
            .arg(&image))?;
        run(Command::new("mount")
            .args(["-o", "loop"])
            .arg(&image)
            .arg(disk.path()))?;
        // Engines run as users of their own and must get to their files.
        for path in [disk.directory.path(), &disk.path()] {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(path, mode)?;
        }
        Ok(disk)
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("mount")
    }

    fn left_mib(&self) -> Result<u64> {
        let space = rustix::fs::statvfs(self.path())?;
        Ok((space.f_bavail * space.f_frsize) >> 20)
    }

    /// Takes room until so much is left.
    fn fill(&self, left_mib: u64) -> Result<()> {
        let wanted = self.left_mib()?.saturating_sub(left_mib);
        let file = self.path().join(format!("fill-{left_mib}"));
        let length = format!("{wanted}M");
        run(Command::new("fallocate").args(["-l", &length]).arg(file))?;
        ensure!(
            self.left_mib()? <= left_mib,
            "{} MiB left",
            self.left_mib()?
        );
        Ok(())
    }

    /// Takes the last byte.
    fn fill_up(&self) -> Result<()> {
        let zeros = std::fs::read("/proc/self/exe")?;
        for number in 0.. {
            let file = self.path().join(format!("last-{number}"));
            if std::fs::write(&file, &zeros).is_err() {
                break;
            }
        }
        // Blocks are given out later than they are asked for.
        rustix::fs::sync();
        let mut number = 0;
        while std::fs::write(self.path().join(format!("block-{number}")), b"x").is_ok() {
            number += 1;
        }
        Ok(())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let mount = self.path();
        if run(Command::new("umount").arg(&mount)).is_err() {
            // Something still uses it: away from the tree at least, and gone with its last user.
            let _ = run(Command::new("umount").arg("--lazy").arg(&mount));
        }
    }
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output()?;
    if !output.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

async fn everything_is_refused(client: &Client, id: &str) -> Result<()> {
    let snapshot = client.create_snapshot(id, &CreateSnapshot::default()).await;
    let error = refusal(snapshot, "storage_full").context("a snapshot")?;
    figure!("a snapshot on a full disk: {}", error.message);
    let fork = client.fork_sandbox(id, &ForkSandbox::default()).await;
    refusal(fork, "storage_full").context("a fork")?;
    refusal(client.hibernate_sandbox(id).await, "storage_full").context("a sleep")?;
    let created = client.create_sandbox(&CreateSandbox::default()).await;
    refusal(created, "no_capacity").context("a create")?;
    ensure!(client.get_sandbox(id).await?.status == "running");
    ensure!(output(client, id, "cat /dev/shm/mark").await? == "here");
    Ok(())
}

async fn full(setting: &dayfly_e2e::Setting, disk: &SmallDisk) -> Result<()> {
    let options = DaemonOptions {
        arguments: [
            "--disk-reserve",
            "0",
            "--parked-engines",
            "0",
            "--parked-slots",
            "0",
        ]
        .map(str::to_owned)
        .to_vec(),
        parent: Some(disk.path()),
        ..DaemonOptions::default()
    };
    let daemon = Daemon::start(setting, options).await?;
    daemon.wait_for_templates(Duration::from_secs(60)).await?;
    let client = daemon.client()?;
    let id = create(&client, "base").await?.id;
    let dying = create(&client, "base").await?.id;
    let text =
        format!("echo here > /dev/shm/mark; head -c {HELD_MIB}M /dev/urandom > /dev/shm/held");
    output(&client, &id, &text).await?;
    // The positive control: with room it works.
    let taken = client
        .create_snapshot(&id, &CreateSnapshot::default())
        .await?;
    client.delete_snapshot(&taken.id).await?;

    disk.fill(LEFT_MIB)?;
    everything_is_refused(&client, &id).await?;
    let soon = ChangeLifecycle {
        ttl_seconds: Some(Some(6)),
        ..ChangeLifecycle::default()
    };
    client.set_lifecycle(&dying, &soon).await?;
    disk.fill_up()?;
    ensure!(output(&client, &id, "cat /dev/shm/mark").await? == "here");
    let record = daemon.path().join("node/sandboxes").join(&dying);
    until("its time is up", Duration::from_secs(12), || async {
        (!record.exists()).then_some(())
    })
    .await?;
    client
        .delete_sandbox(&id)
        .await
        .context("a delete on a full disk")?;
    let record = daemon.path().join("node/sandboxes").join(&id);
    ensure!(!record.exists(), "the node still has it");
    daemon.finish().await
}

#[tokio::test]
async fn a_full_disk_is_a_refusal_and_no_end() -> Result<()> {
    let setting = setting_or_skip!();
    let beside = setting.templates.parent().context("no parent directory")?;
    let disk = SmallDisk::new(beside)?;
    let outcome = full(&setting, &disk).await;
    if outcome.is_err() {
        figure!("{} MiB left on the disk", disk.left_mib()?);
    }
    outcome
}

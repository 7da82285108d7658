//! A snapshot whose files are not those that were written is refused, and nothing else suffers.

use std::fs::{File, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use dayfly_api::{CreateSandbox, CreateSnapshot, Sandbox};
use dayfly_client::{Client, ClientError};
use dayfly_e2e::{Daemon, DaemonOptions, create, figure, output, refusal, setting_or_skip, until};

const FILES: [&str; 4] = [
    "device.state",
    "memory.layer",
    "disk.layer",
    "manifest.json",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Damage {
    Flip,
    Cut,
    Swap,
    Remove,
}

/// Exchanges two files.
fn exchange(one: &Path, other: &Path) -> Result<()> {
    let aside = one.with_extension("aside");
    std::fs::rename(one, &aside)?;
    std::fs::rename(other, one)?;
    std::fs::rename(&aside, other)?;
    Ok(())
}

fn spoil(damage: Damage, path: &Path, other: &Path) -> Result<()> {
    match damage {
        Damage::Swap => return exchange(path, other),
        Damage::Remove => return Ok(std::fs::remove_file(path)?),
        Damage::Flip | Damage::Cut => {}
    }
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    let file = File::options().read(true).write(true).open(path)?;
    let length = file.metadata()?.len();
    if damage == Damage::Cut {
        return Ok(file.set_len(length - 1)?);
    }
    // In the middle of what is there: a layer is mostly holes, and a hole has no bytes to lose.
    let at = rustix::fs::seek(&file, rustix::fs::SeekFrom::Data(0))?;
    let mut byte = [0];
    file.read_exact_at(&mut byte, at)?;
    file.write_all_at(&[byte[0] ^ 1], at)?;
    Ok(())
}

struct World {
    daemon: Daemon,
    client: Client,
    /// Of another sandbox: what its snapshots lie on is its own.
    spare: String,
    control: String,
}

impl World {
    async fn new(setting: &dayfly_e2e::Setting) -> Result<Self> {
        let (daemon, client) = Daemon::ready(setting, DaemonOptions::default()).await?;
        let other = create(&client, "base").await?.id;
        output(&client, &other, "echo unharmed > mark && sync").await?;
        let control = snapshot(&client, &other).await?;
        let spare = snapshot(&client, &other).await?;
        Ok(Self {
            daemon,
            client,
            spare,
            control,
        })
    }

    fn file(&self, snapshot: &str, name: &str) -> PathBuf {
        let captures = self.daemon.path().join("node/captures");
        captures.join(snapshot).join(name)
    }

    async fn create_from(&self, snapshot: &str) -> Result<Sandbox, ClientError> {
        let request = CreateSandbox {
            from_snapshot: Some(snapshot.to_owned()),
            ..CreateSandbox::default()
        };
        self.client.create_sandbox(&request).await
    }

    /// A snapshot of somebody else can still be restored.
    async fn others_are_fine(&self) -> Result<()> {
        let restored = self.create_from(&self.control).await?;
        ensure!(output(&self.client, &restored.id, "cat mark").await? == "unharmed");
        self.client.delete_sandbox(&restored.id).await?;
        Ok(())
    }

    /// Damages each file of a snapshot of its own, the newest first: nothing lies on it.
    async fn try_damage(&self, damage: Damage) -> Result<()> {
        let id = create(&self.client, "base").await?.id;
        let mut snapshots = Vec::new();
        for name in FILES {
            let text = format!("echo {name} > mark && sync");
            output(&self.client, &id, &text).await?;
            snapshots.push((name, snapshot(&self.client, &id).await?));
        }
        let pids = [
            self.daemon.role_pid("node")?,
            self.daemon.role_pid("control")?,
        ];
        while let Some((name, hurt)) = snapshots.pop() {
            if damage == Damage::Flip {
                // The positive control: as long as nothing is damaged it is restored.
                let whole = self.create_from(&hurt).await?;
                ensure!(output(&self.client, &whole.id, "cat mark").await? == name);
                self.client.delete_sandbox(&whole.id).await?;
            }
            let (path, other) = (self.file(&hurt, name), self.file(&self.spare, name));
            spoil(damage, &path, &other).with_context(|| format!("{damage:?} {name}"))?;
            let context = || format!("{damage:?} of {name}");
            refusal(self.create_from(&hurt).await, "snapshot_corrupt").with_context(context)?;
            let back = self.client.rollback_sandbox(&id, &hurt).await;
            refusal(back, "snapshot_corrupt").with_context(context)?;
            if damage == Damage::Swap {
                refusal(self.create_from(&self.spare).await, "snapshot_corrupt")
                    .with_context(context)?;
                exchange(&path, &other)?;
            }
            // The sandbox whose snapshot it was goes on.
            ensure!(output(&self.client, &id, "cat mark").await? == FILES[3]);
        }
        let now = [
            self.daemon.role_pid("node")?,
            self.daemon.role_pid("control")?,
        ];
        ensure!(now == pids, "a process of the daemon was replaced");
        self.client.delete_sandbox(&id).await?;
        Ok(())
    }
}

async fn snapshot(client: &Client, id: &str) -> Result<String> {
    let taken = client
        .create_snapshot(id, &CreateSnapshot::default())
        .await?;
    Ok(taken.id)
}

/// Also damaged snapshots can be deleted, and their bytes come back.
async fn all_goes(world: World) -> Result<()> {
    let client = &world.client;
    for sandbox in client.list_sandboxes().await? {
        client.delete_sandbox(&sandbox.id).await?;
    }
    for snapshot in client.list_snapshots(None).await? {
        client.delete_snapshot(&snapshot.id).await?;
    }
    let captures = world.daemon.path().join("node/captures");
    let emptied = until("all captures are gone", Duration::from_secs(60), || async {
        let left = std::fs::read_dir(&captures).ok()?.count();
        (left == 0).then_some(())
    })
    .await;
    if emptied.is_err() {
        for entry in std::fs::read_dir(&captures)? {
            figure!("left: {}", entry?.path().display());
        }
    }
    emptied?;
    world.daemon.finish().await
}

#[tokio::test]
async fn a_damaged_snapshot_is_refused_and_harms_nobody() -> Result<()> {
    let setting = setting_or_skip!();
    let world = World::new(&setting).await?;
    for damage in [Damage::Flip, Damage::Cut, Damage::Swap, Damage::Remove] {
        world.try_damage(damage).await?;
        world.others_are_fine().await?;
    }
    all_goes(world).await
}

//! With nothing going on any more, everything that was acknowledged is held against what is there.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use dayfly_api::{CreateSandbox, VolumeMount};
use dayfly_client::Client;
use dayfly_e2e::{Daemon, output, until};

use crate::chaos::workers::{READ, VOLUME, World, check_key, holds_everything, is_whole, restores};

/// No state that leads to another one lasts longer, once nothing is hurt.
const SETTLED_WITHIN: Duration = Duration::from_secs(150);
const ON_THE_WAY: [&str; 6] = [
    "creating",
    "pausing",
    "resuming",
    "hibernating",
    "waking",
    "deleting",
];

pub(crate) async fn everything(daemon: &Daemon, world: &World) -> Result<()> {
    let client = &world.client;
    until("the daemon answers", SETTLED_WITHIN, || async {
        client.node().await.ok()
    })
    .await?;
    // What was never acknowledged is nobody's; the daemon itself gives a lost fork up only late.
    world.delete_lost().await;
    none_is_stuck(client, world).await?;
    sleepers(client, world).await?;
    deleted(daemon, client, world).await?;
    snapshots(client, world).await?;
    let (kept, revoked) = {
        let book = world.ledger.book();
        (book.keys.clone(), book.revoked_keys.clone())
    };
    for key in kept.values() {
        check_key(world, key, true).await;
    }
    for key in revoked.values() {
        check_key(world, key, false).await;
    }
    volume(daemon, client, world).await?;
    doctor(daemon).await
}

async fn none_is_stuck(client: &Client, world: &World) -> Result<()> {
    let settled = until("every sandbox has settled", SETTLED_WITHIN, || async {
        let all = client.list_sandboxes().await.ok()?;
        let is_settled = |status: &String| !ON_THE_WAY.contains(&status.as_str());
        let is_settled = all.iter().all(|sandbox| is_settled(&sandbox.status));
        is_settled.then_some(())
    });
    if let Err(error) = settled.await {
        bail!("{error}: {:#?}", client.list_sandboxes().await?);
    }
    world.ledger.check("none is stuck", true, String::new);
    Ok(())
}

async fn sleepers(client: &Client, world: &World) -> Result<()> {
    let asleep = world.ledger.book().asleep.clone();
    for (id, mark) in asleep {
        let promise = "an acknowledged hibernation wakes with its content";
        let status = client.get_sandbox(&id).await?.status;
        let printed = output(client, &id, READ).await;
        let is_kept = printed.as_ref().is_ok_and(|text| is_whole(text, mark));
        world.ledger.check(promise, is_kept, || {
            format!("{id}, {status}, has not {mark}: {printed:?}")
        });
    }
    Ok(())
}

async fn deleted(daemon: &Daemon, client: &Client, world: &World) -> Result<()> {
    let listed = client.list_sandboxes().await?;
    let gone = world.ledger.book().deleted.clone();
    for id in gone {
        let record = daemon.path().join("node/sandboxes").join(&id);
        let is_back = record.exists() || listed.iter().any(|found| found.id == id);
        world
            .ledger
            .check("a deleted sandbox stays away", !is_back, || id.clone());
    }
    Ok(())
}

async fn snapshots(client: &Client, world: &World) -> Result<()> {
    let (kept, gone) = {
        let book = world.ledger.book();
        (book.snapshots.clone(), book.deleted_snapshots.clone())
    };
    for (id, mark) in kept {
        let outcome = restores(client, &id, mark).await;
        world
            .ledger
            .check("an acknowledged snapshot restores", outcome.is_ok(), || {
                format!("{id}: {outcome:?}")
            });
    }
    let listed = client.list_snapshots(None).await?;
    for id in gone {
        let is_back = listed.iter().any(|found| found.id == id);
        world
            .ledger
            .check("a deleted snapshot stays away", !is_back, || id.clone());
    }
    for snapshot in listed {
        client.delete_snapshot(&snapshot.id).await?;
    }
    Ok(())
}

/// Everything is deleted, and then the volume is looked at by another machine and by e2fsck.
async fn volume(daemon: &Daemon, client: &Client, world: &World) -> Result<()> {
    for sandbox in client.list_sandboxes().await? {
        client.delete_sandbox(&sandbox.id).await?;
    }
    let request = CreateSandbox {
        volumes: Some(vec![VolumeMount {
            name: VOLUME.to_owned(),
            path: None,
            read_only: Some(false),
        }]),
        ..CreateSandbox::default()
    };
    let id = client.create_sandbox(&request).await?.id;
    let printed = output(client, &id, &format!("cat /volumes/{VOLUME}/marks")).await?;
    let lost = holds_everything(world, &printed);
    let promise = "a synced write is on the volume";
    world.ledger.check(promise, lost.is_empty(), || {
        format!("{lost:?} are not there")
    });
    client.delete_sandbox(&id).await?;
    let disk = format!("node/volumes/default/{VOLUME}/disk.img");
    let check = std::process::Command::new("e2fsck")
        .args(["-f", "-n"])
        .arg(daemon.path().join(disk))
        .output()?;
    ensure!(
        check.status.code() == Some(0),
        "the volume is damaged: {}",
        String::from_utf8_lossy(&check.stdout)
    );
    client.delete_volume(VOLUME).await?;
    Ok(())
}

/// Nothing is left over, also of what was never acknowledged.
async fn doctor(daemon: &Daemon) -> Result<()> {
    until("nothing is left over", SETTLED_WITHIN, || async {
        let left = daemon.leftovers().await.ok()?;
        left.is_empty().then_some(())
    })
    .await
    .with_context(|| "doctor is not content")?;
    let captures = daemon.path().join("node/captures");
    until(
        "unneeded captures are collected",
        SETTLED_WITHIN,
        || async {
            let mut entries = std::fs::read_dir(&captures).ok()?;
            entries.next().is_none().then_some(())
        },
    )
    .await
}

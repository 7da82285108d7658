//! Snapshots and forks: each that was acknowledged has what was there before.

use anyhow::{Result, ensure};
use dayfly_api::{CreateSandbox, CreateSnapshot, ForkOptions, ForkSandbox};
use dayfly_client::Client;
use dayfly_e2e::output;

use super::sleeper::{READ, is_whole};
use super::{Owned, World};
use crate::chaos::generator::Generator;

const RESTORES: &str = "an acknowledged snapshot restores";
const FORKS: &str = "an acknowledged child has what its parent had";
/// Older ones are deleted.
const KEPT_MAX: usize = 5;

pub(super) async fn run(world: World, mut generator: Generator) {
    let mut owned = None;
    while world.goes_on() {
        let Some(mine) = &owned else {
            owned = world.create("create", CreateSandbox::default()).await;
            continue;
        };
        let mark = world.mark();
        let text = format!("echo {mark} >> /dev/shm/marks && echo {mark} >> marks && sync");
        if world
            .insist("a running sandbox answers", mine, &text)
            .await
            .is_none()
        {
            world.delete(&mine.id).await;
            owned = None;
            continue;
        }
        match generator.below(4) {
            0 => fork(&world, mine, mark).await,
            1 => restore_one(&world, &mut generator).await,
            _ => {
                let request = CreateSnapshot::default();
                let taking = world.client.create_snapshot(&mine.id, &request);
                if let Some(snapshot) = world.call("snapshot", taking).await {
                    world.ledger.book().snapshots.insert(snapshot.id, mark);
                }
                delete_oldest(&world).await;
            }
        }
    }
}

async fn fork(world: &World, parent: &Owned, mark: u64) {
    let label = world.mark().to_string();
    let request = ForkSandbox {
        count: Some(2),
        options: ForkOptions {
            metadata: Some(world.label(&label)),
            ..ForkOptions::default()
        },
    };
    let since = std::time::Instant::now();
    let forking = world.client.fork_sandbox(&parent.id, &request);
    let Some(forked) = world.call("fork", forking).await else {
        world.ledger.book().lost.insert(label);
        return;
    };
    for child in forked.children {
        let child = Owned {
            id: child.id,
            since,
        };
        if let Some(printed) = world.insist(FORKS, &child, READ).await {
            world.ledger.check(FORKS, is_whole(&printed, mark), || {
                format!("{} has not {mark}: {printed:?}", child.id)
            });
        }
        world.delete(&child.id).await;
    }
}

async fn restore_one(world: &World, generator: &mut Generator) {
    let all: Vec<(String, u64)> = world.ledger.book().snapshots.clone().into_iter().collect();
    let Some((snapshot, mark)) = generator.pick(&all) else {
        return;
    };
    let request = CreateSandbox {
        from_snapshot: Some(snapshot.clone()),
        ..CreateSandbox::default()
    };
    let Some(copy) = world.create("restore", request).await else {
        return;
    };
    if let Some(printed) = world.insist(RESTORES, &copy, READ).await {
        world.ledger.check(RESTORES, is_whole(&printed, *mark), || {
            format!("{snapshot} has not {mark}: {printed:?}")
        });
    }
    world.delete(&copy.id).await;
}

async fn delete_oldest(world: &World) {
    let oldest = {
        let book = world.ledger.book();
        let by_mark = book.snapshots.iter().min_by_key(|(_, mark)| **mark);
        let oldest = by_mark.map(|(id, _)| id.clone());
        oldest.filter(|_| book.snapshots.len() > KEPT_MAX)
    };
    let Some(id) = oldest else {
        return;
    };
    // Whether or not the answer comes, nobody counts on it any more.
    world.ledger.book().snapshots.remove(&id);
    let deleting = world.client.delete_snapshot(&id);
    if world.call("delete snapshot", deleting).await.is_some() {
        world.ledger.book().deleted_snapshots.insert(id);
    }
}

/// With nothing going on any more: the snapshot is there and has the mark.
pub(crate) async fn restores(client: &Client, snapshot: &str, mark: u64) -> Result<()> {
    let request = CreateSandbox {
        from_snapshot: Some(snapshot.to_owned()),
        ..CreateSandbox::default()
    };
    let id = client.create_sandbox(&request).await?.id;
    let printed = output(client, &id, READ).await?;
    ensure!(is_whole(&printed, mark), "it has not {mark}: {printed:?}");
    client.delete_sandbox(&id).await?;
    Ok(())
}

//! A volume: what was synced is there, whatever became of the machine that wrote it.

use dayfly_api::{CreateSandbox, CreateVolume, VolumeMount};

use super::{Owned, World, has_mark};

pub(crate) const VOLUME: &str = "chaos";
const PROMISE: &str = "a synced write is on the volume";
const LIST: &str = "/volumes/chaos/marks";
/// Looked at after so many writes, and whenever another machine has it.
const WRITES_BETWEEN: u64 = 8;

pub(super) async fn run(world: World) {
    let request = CreateVolume {
        name: VOLUME.to_owned(),
        size_mb: Some(64),
        size_gb: None,
    };
    while world.goes_on() {
        let making = world.client.create_volume(&request);
        if world.call("create volume", making).await.is_some() {
            break;
        }
    }
    let mut owned = None;
    let mut writes = 0;
    while world.goes_on() {
        let Some(mine) = &owned else {
            owned = attach(&world).await;
            writes = 0;
            continue;
        };
        if writes % WRITES_BETWEEN == 0 {
            match world
                .insist("a running sandbox answers", mine, &read())
                .await
            {
                Some(printed) => compare(&world, &printed),
                None => {
                    world.delete(&mine.id).await;
                    owned = None;
                    continue;
                }
            }
        }
        writes += 1;
        let mark = world.mark();
        let text = format!("echo {mark} >> {LIST} && sync {LIST}");
        if world.run("volume write", &mine.id, &text).await.is_some() {
            world.ledger.book().synced.insert(mark);
        } else {
            // The next round looks at the machine.
            writes = 0;
        }
    }
}

fn read() -> String {
    format!("touch {LIST} && cat {LIST}")
}

async fn attach(world: &World) -> Option<Owned> {
    let request = CreateSandbox {
        volumes: Some(vec![VolumeMount {
            name: VOLUME.to_owned(),
            path: None,
            read_only: None,
        }]),
        ..CreateSandbox::default()
    };
    // Somebody whose creation was not acknowledged may have it.
    world.delete_lost().await;
    world.create("create with volume", request).await
}

fn compare(world: &World, printed: &str) {
    let lost = holds_everything(world, printed);
    world.ledger.check(PROMISE, lost.is_empty(), || {
        format!("{lost:?} are not there")
    });
}

/// The marks that should be in a list and are not.
pub(crate) fn holds_everything(world: &World, printed: &str) -> Vec<u64> {
    let synced = world.ledger.book().synced.clone();
    let lost = synced.into_iter().filter(|mark| !has_mark(printed, *mark));
    lost.collect()
}

//! Hibernations: each that was acknowledged wakes with its memory and its disk.

use std::time::{Duration, Instant};

use dayfly_api::CreateSandbox;

use super::{World, has_mark};
use crate::chaos::generator::Generator;

const PROMISE: &str = "an acknowledged hibernation wakes with its content";
/// Whoever sleeps does so through some faults.
const NAP: std::ops::Range<Duration> = Duration::ZERO..Duration::from_secs(12);
/// From memory and from disk, with something between them.
pub(crate) const READ: &str = "cat /dev/shm/marks && echo and && cat marks";

pub(super) async fn run(world: World, mut generator: Generator) {
    let mut owned = None;
    while world.goes_on() {
        let Some(mine) = &mut owned else {
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
        let slept = world.call("hibernate", world.client.hibernate_sandbox(&mine.id));
        if slept.await.is_none() {
            continue;
        }
        let id = mine.id.clone();
        world.ledger.book().asleep.insert(id.clone(), mark);
        world.nap(generator.time(NAP)).await;
        if !world.goes_on() {
            // It sleeps until the checks at the end.
            return;
        }
        world.ledger.book().asleep.remove(&id);
        // Until now it had no engine that could have been hurt.
        mine.since = Instant::now();
        if generator.below(2) == 0 {
            let _ = world.call("wake", world.client.wake_sandbox(&id)).await;
        }
        match world.insist(PROMISE, mine, READ).await {
            Some(printed) => world.ledger.check(PROMISE, is_whole(&printed, mark), || {
                format!("{id} has not {mark}: {printed:?}")
            }),
            None => {
                world.delete(&id).await;
                owned = None;
            }
        }
    }
}

/// Whether both lists have the mark.
pub(crate) fn is_whole(printed: &str, mark: u64) -> bool {
    let halves = printed.split_once("and\n");
    halves.is_some_and(|(memory, disk)| has_mark(memory, mark) && has_mark(disk, mark))
}

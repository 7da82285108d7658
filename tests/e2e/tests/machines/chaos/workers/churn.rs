//! Sandboxes that come and go: one that was deleted never comes back.

use dayfly_api::CreateSandbox;
use dayfly_client::ClientError;

use super::{THERE_WITHIN, World};
use crate::chaos::generator::Generator;

const PROMISE: &str = "a deleted sandbox stays away";

pub(super) async fn run(world: World, mut generator: Generator) {
    while world.goes_on() {
        let Some(mine) = world.create("create", CreateSandbox::default()).await else {
            continue;
        };
        if generator.below(3) > 0 {
            let _ = world
                .insist("a running sandbox answers", &mine, "echo here")
                .await;
        }
        // A delete without an answer is asked for again: it must be possible in time.
        let end = std::time::Instant::now() + dayfly_e2e::patient(THERE_WITHIN);
        while world.goes_on() {
            world.delete(&mine.id).await;
            if world.ledger.book().deleted.contains(&mine.id) {
                break;
            }
            let is_late = std::time::Instant::now() > end;
            if is_late {
                world
                    .ledger
                    .check("a delete is answered in time", false, || mine.id.clone());
            }
        }
        world.delete_lost().await;
        let deleted: Vec<String> = world.ledger.book().deleted.iter().cloned().collect();
        if let Some(id) = generator.pick(&deleted) {
            is_away(&world, id).await;
        }
    }
}

async fn is_away(world: &World, id: &str) {
    match world.client.get_sandbox(id).await {
        Ok(found) => {
            let is_gone = matches!(found.status.as_str(), "deleting" | "deleted");
            world
                .ledger
                .check(PROMISE, is_gone, || format!("{found:?}"));
        }
        Err(ClientError::Api(error)) if error.code == "not_found" => {
            world.ledger.check(PROMISE, true, String::new);
        }
        // Nobody answers at the moment.
        Err(_) => {}
    }
}

//! Keys: one that was made works, one that was revoked is dead.

use dayfly_api::CreateToken;
use dayfly_client::{ApiKey, Client, ClientConfig, ClientError};

use super::World;
use crate::chaos::generator::Generator;

const WORKS: &str = "an acknowledged key works";
const DEAD: &str = "a revoked key is dead";
const KEPT_MAX: usize = 4;

pub(super) async fn run(world: World, mut generator: Generator) {
    while world.goes_on() {
        let request = CreateToken {
            label: Some("chaos".to_owned()),
            scopes: Some(vec!["read".to_owned()]),
            ..CreateToken::default()
        };
        let making = world.client.create_token(None, &request);
        if let Some(key) = world.call("create key", making).await {
            world
                .ledger
                .book()
                .keys
                .insert(key.token_info.prefix, key.token);
        }
        let kept: Vec<String> = world.ledger.book().keys.keys().cloned().collect();
        if kept.len() > KEPT_MAX
            && let Some(prefix) = generator.pick(&kept)
        {
            revoke(&world, prefix).await;
        }
        let (kept, revoked) = {
            let book = world.ledger.book();
            let all = |keys: &std::collections::BTreeMap<String, String>| {
                keys.values().cloned().collect::<Vec<_>>()
            };
            (all(&book.keys), all(&book.revoked_keys))
        };
        for (keys, is_wanted) in [(&kept, true), (&revoked, false)] {
            if let Some(key) = generator.pick(keys) {
                check(&world, key, is_wanted).await;
            }
        }
        world
            .nap(generator.time(super::PAUSE..super::PAUSE * 5))
            .await;
    }
}

async fn revoke(world: &World, prefix: &str) {
    // Whether or not the answer comes, nobody counts on it any more.
    let Some(key) = world.ledger.book().keys.remove(prefix) else {
        return;
    };
    let revoking = world.client.revoke_token(prefix);
    if world.call("revoke key", revoking).await.is_some() {
        world
            .ledger
            .book()
            .revoked_keys
            .insert(prefix.to_owned(), key);
    }
}

/// Looks at one key, if anybody answers.
pub(crate) async fn check(world: &World, key: &str, is_wanted: bool) {
    let promise = if is_wanted { WORKS } else { DEAD };
    let Some(works) = works(&world.url, key).await else {
        return;
    };
    world.ledger.check(promise, works == is_wanted, || {
        key.chars().take(12).collect()
    });
}

async fn works(url: &str, key: &str) -> Option<bool> {
    let config = ClientConfig {
        url: url.to_owned(),
        key: ApiKey::parse(key).ok(),
    };
    let client = Client::new(config).ok()?;
    match client.me().await {
        Ok(_) => Some(true),
        Err(ClientError::Api(error)) if error.code == "unauthorized" => Some(false),
        Err(_) => None,
    }
}

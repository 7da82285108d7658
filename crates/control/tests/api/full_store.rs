//! The disk of the database is full, and has room again: what was acknowledged is kept, and
//! nothing else was done.

use std::collections::BTreeSet;

use dayfly_control::KeyHash;
use dayfly_control::store::Store;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::small_disk::{Kind, SmallDisk};
use crate::support::{Answer, Setup, World, eventually};

const DISK_MIB: u64 = 12;
/// A full disk leaves room in files that are there already; so many changes take that as well.
const CHANGES_MAX: usize = 3000;

const ADMIN_HASH: &str = "00";

/// What the server said that it did.
#[derive(Debug, Default)]
struct Told {
    projects: BTreeSet<String>,
    refused: BTreeSet<String>,
    keys: Vec<String>,
    revoked: Vec<String>,
}

fn is_refusal(answer: &Answer) -> bool {
    if answer.status != StatusCode::SERVICE_UNAVAILABLE {
        return false;
    }
    let code = answer.refusal();
    assert!(
        ["store_unavailable", "audit_unavailable"].contains(&code.as_str()),
        "{code}"
    );
    assert!(answer.headers.contains_key("retry-after"));
    true
}

async fn status(world: &World, key: &str) -> StatusCode {
    world
        .ask(key, Method::GET, "/v1/me", Value::Null)
        .await
        .status
}

fn prefix(key: &str) -> &str {
    &key[..12]
}

async fn new_key(world: &World) -> String {
    let made = world
        .post("/v1/me/tokens", json!({"scopes": ["read"]}))
        .await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    made.json()["token"].as_str().unwrap().to_owned()
}

/// Changes things until the disk is really full for every kind of change.
async fn change_until_refused(world: &World, told: &mut Told, round: usize, victim: &str) {
    let mut refusals = 0;
    for number in 0..CHANGES_MAX {
        let id = format!("full-{round}-{number}");
        let made = world.post("/v1/projects", json!({"id": id})).await;
        if made.status == StatusCode::CREATED {
            told.projects.insert(id);
            continue;
        }
        assert!(is_refusal(&made), "{}", made.text());
        told.refused.insert(id);
        let made = world.post("/v1/me/tokens", json!({})).await;
        if made.status == StatusCode::CREATED {
            let token = made.json()["token"].as_str().unwrap().to_owned();
            told.keys.push(token);
            continue;
        }
        assert!(is_refusal(&made), "{}", made.text());
        let created = world.post("/v1/sandboxes", json!({})).await;
        assert!(created.status == StatusCode::CREATED || is_refusal(&created));
        let revoked = world
            .delete(&format!("/v1/me/tokens/{}", prefix(victim)))
            .await;
        if revoked.status == StatusCode::NO_CONTENT {
            assert_eq!(status(world, victim).await, StatusCode::UNAUTHORIZED);
            told.revoked.push(victim.to_owned());
            return;
        }
        assert!(is_refusal(&revoked), "{}", revoked.text());
        assert_eq!(status(world, victim).await, StatusCode::OK);
        refusals += 1;
        if refusals == 5 {
            return;
        }
    }
    panic!("the disk was never full");
}

async fn round(world: &World, disk: &SmallDisk, told: &mut Told, number: usize) {
    let victim = new_key(world).await;
    assert_eq!(status(world, &victim).await, StatusCode::OK);
    disk.fill();
    change_until_refused(world, told, number, &victim).await;
    // Another process can start on it.
    let store = Store::open(&disk.path().join("control.db")).await.unwrap();
    store.ensure_admin_key(ADMIN_HASH, 2).await.unwrap();
    store.close().await;
    disk.free();
    eventually("it can be changed again", async || {
        world.get("/health").await.status == StatusCode::OK
    })
    .await;
    // Everything that the attack found acknowledged and never done.
    if !told.revoked.contains(&victim) {
        let revoked = world
            .delete(&format!("/v1/me/tokens/{}", prefix(&victim)))
            .await;
        assert_eq!(revoked.status, StatusCode::NO_CONTENT, "{}", revoked.text());
        told.revoked.push(victim.clone());
    }
    assert_eq!(status(world, &victim).await, StatusCode::UNAUTHORIZED);
    let key = new_key(world).await;
    assert_eq!(status(world, &key).await, StatusCode::OK);
    told.keys.push(key);
    let id = format!("after-{number}");
    let made = world.post("/v1/projects", json!({"id": id})).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    let found = world.get(&format!("/v1/projects/{id}")).await;
    assert_eq!(found.status, StatusCode::OK);
    told.projects.insert(id);
    world.create().await;
}

/// Another process reads what this one left.
async fn check_what_is_kept(database: &std::path::Path, told: &Told) {
    let store = Store::open(database).await.unwrap();
    let projects = store.projects().await.unwrap();
    let kept: BTreeSet<String> = projects.into_iter().map(|row| row.id.to_string()).collect();
    let mut expected = told.projects.clone();
    expected.extend(["default".to_owned(), "other".to_owned()]);
    assert_eq!(kept, expected);
    assert!(kept.is_disjoint(&told.refused));
    for (keys, is_revoked) in [(&told.keys, false), (&told.revoked, true)] {
        for key in keys {
            let hash = KeyHash::of(key).unwrap().to_hex();
            let known = store.key_by_hash(&hash).await.unwrap().unwrap();
            assert_eq!(known.key.revoked_at_ms.is_some(), is_revoked);
        }
    }
    store.close().await;
}

async fn fill_and_free(disk: SmallDisk, rounds: usize) {
    let setup = Setup {
        database: Some(disk.path()),
        ..Setup::default()
    };
    let world = World::with(setup).await;
    let store = &world.control.store;
    store.ensure_admin_key(ADMIN_HASH, 1).await.unwrap();
    let mut told = Told::default();
    for number in 0..rounds {
        round(&world, &disk, &mut told, number).await;
    }
    assert!(!told.refused.is_empty(), "the disk was never full");
    let database = disk.path().join("control.db");
    // As after a kill: nothing is closed first.
    check_what_is_kept(&database, &told).await;
    drop(world);
    check_what_is_kept(&database, &told).await;
}

#[tokio::test]
async fn what_is_acknowledged_around_a_full_disk_is_kept_and_nothing_else_is() {
    if let Some(disk) = SmallDisk::new(Kind::Memory, DISK_MIB) {
        fill_and_free(disk, 2).await;
    }
}

#[tokio::test]
#[ignore = "soak"]
async fn a_disk_that_is_filled_and_freed_twenty_times_loses_nothing() {
    for kind in [Kind::Ext4, Kind::Memory] {
        if let Some(disk) = SmallDisk::new(kind, 2 * DISK_MIB) {
            fill_and_free(disk, 20).await;
        }
    }
}

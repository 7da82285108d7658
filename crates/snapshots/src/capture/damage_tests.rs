//! Every way in which the disk can spoil a capture is found, and no other capture minds.

use std::collections::HashSet;
use std::fs::{File, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::Path;

use super::document::{self, DocumentError};
use super::store::tests::{World, draft, id};
use dayfly_types::SnapshotId;
use dayfly_types::capture::MachineOrigin;

use super::*;

const FILES: [&str; 4] = [
    file_names::MANIFEST,
    file_names::DEVICE_STATE,
    file_names::MEMORY_LAYER,
    file_names::DISK_LAYER,
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Damage {
    Flip,
    Cut,
    Grow,
    Missing,
    Link,
    SwapWithin,
    SwapAcross,
}

const DAMAGES: [Damage; 7] = [
    Damage::Flip,
    Damage::Cut,
    Damage::Grow,
    Damage::Missing,
    Damage::Link,
    Damage::SwapWithin,
    Damage::SwapAcross,
];

/// Spoils a file. `within` is another file of the same capture, `across` the same file of another.
fn spoil(damage: Damage, path: &Path, within: &Path, across: &Path) {
    let swap = |other: &Path| {
        let aside = path.with_extension("aside");
        std::fs::rename(path, &aside).unwrap();
        std::fs::rename(other, path).unwrap();
        std::fs::rename(&aside, other).unwrap();
    };
    match damage {
        Damage::SwapWithin => return swap(within),
        Damage::SwapAcross => return swap(across),
        Damage::Missing => return std::fs::remove_file(path).unwrap(),
        Damage::Link => {
            let aside = path.with_extension("aside");
            std::fs::rename(path, &aside).unwrap();
            return symlink(&aside, path).unwrap();
        }
        Damage::Flip | Damage::Cut | Damage::Grow => {}
    }
    std::fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
    let file = File::options().read(true).write(true).open(path).unwrap();
    let length = file.metadata().unwrap().len();
    match damage {
        Damage::Cut => file.set_len(length - 1).unwrap(),
        Damage::Grow => file.set_len(length + 1).unwrap(),
        Damage::Flip | Damage::Missing | Damage::Link | Damage::SwapWithin | Damage::SwapAcross => {
            let mut byte = [0];
            file.read_exact_at(&mut byte, length / 2).unwrap();
            file.write_all_at(&[byte[0] ^ 1], length / 2).unwrap();
        }
    }
}

fn damaged_id(store: &CaptureStore, id: &SnapshotId) -> SnapshotId {
    match store.stack(id) {
        Err(CaptureError::Damaged { id, .. }) => id,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_damage_of_every_file_is_found_and_hurts_no_other() {
    for damage in DAMAGES {
        for (index, name) in FILES.iter().enumerate() {
            let mut world = World::new();
            let hurt = world.publish("a", &[]);
            let (spare, other) = (world.publish("b", &[]), world.publish("c", &[]));
            world.store.stack(&hurt).unwrap();
            let at = |id: &SnapshotId, name: &str| world.store.path(id).join(name);
            spoil(
                damage,
                &at(&hurt, name),
                &at(&hurt, FILES[(index + 1) % FILES.len()]),
                &at(&spare, name),
            );
            assert_eq!(damaged_id(&world.store, &hurt), hurt, "{damage:?} {name}");
            world.store.stack(&other).unwrap();
            world.reopen();
            assert_eq!(damaged_id(&world.store, &hurt), hurt, "{damage:?} {name}");
            world.store.stack(&other).unwrap();
            if damage != Damage::SwapAcross {
                world.store.stack(&spare).unwrap();
            }
        }
    }
}

#[test]
fn damage_below_is_found_where_it_matters() {
    // The device state of a lower capture is no part of what lies on it.
    for (name, matters) in FILES.into_iter().zip([true, false, true, true]) {
        let mut world = World::new();
        let (low, top) = (world.publish("a", &[]), world.publish("b", &["a"]));
        let path = world.store.path(&low).join(name);
        spoil(Damage::Flip, &path, &path, &path);
        for _ in 0..2 {
            assert_eq!(damaged_id(&world.store, &low), low, "{name}");
            if matters {
                assert_eq!(damaged_id(&world.store, &top), low, "{name}");
            } else {
                world.store.stack(&top).unwrap();
            }
            world.reopen();
        }
    }
}

#[test]
fn every_flipped_bit_of_a_manifest_is_found() {
    let world = World::new();
    let id = world.publish("a", &[]);
    let text = document::read(&world.store.path(&id)).unwrap();
    assert!(document::decode(&text, &id).is_ok());
    for position in 0..text.len() {
        for bit in 0..8 {
            let mut text = text.clone();
            text[position] ^= 1 << bit;
            assert!(document::decode(&text, &id).is_err(), "{position} {bit}");
        }
    }
    for length in 0..text.len() {
        assert!(document::decode(&text[..length], &id).is_err());
    }
    let mut longer = text.clone();
    longer.push(b'\n');
    assert!(document::decode(&longer, &id).is_err());
    assert!(document::decode(&text, &SnapshotId::parse("other").unwrap()).is_err());
}

#[test]
fn damaged_capture_stops_the_collector_until_it_is_deleted() {
    let mut world = World::new();
    let (low, hurt, free) = (
        world.publish("a", &[]),
        world.publish("b", &["a"]),
        world.publish("c", &[]),
    );
    let path = world.store.path(&hurt).join(file_names::MANIFEST);
    spoil(Damage::Flip, &path, &path, &path);
    for id in [&low, &free] {
        world.store.hide(id).unwrap();
    }
    world.reopen();
    assert_eq!(world.store.damaged(), std::slice::from_ref(&hurt));
    assert!(world.store.get(&hurt).is_none());
    let collector = Collector::default();
    let pass = |world: &World| collector.pass(&world.store, &HashSet::new()).unwrap();
    for _ in 0..3 {
        assert!(pass(&world).is_empty());
    }
    world.store.hide(&hurt).unwrap();
    world.store.hide(&hurt).unwrap();
    // It was deleted also after a restart.
    world.reopen();
    assert_eq!(world.store.damaged(), std::slice::from_ref(&hurt));
    assert!(pass(&world).is_empty());
    assert_eq!(pass(&world), [hurt]);
    assert!(world.store.damaged().is_empty());
    pass(&world);
    let mut rest = pass(&world);
    rest.sort();
    assert_eq!(rest, [low, free]);
}

#[test]
fn deleted_damaged_capture_stays_while_a_visible_one_names_it() {
    let mut world = World::new();
    let (low, top) = (world.publish("a", &[]), world.publish("b", &["a"]));
    let path = world.store.path(&low).join(file_names::MANIFEST);
    let good = std::fs::read(&path).unwrap();
    spoil(Damage::Flip, &path, &path, &path);
    world.reopen();
    world.store.hide(&low).unwrap();
    let collector = Collector::default();
    for _ in 0..3 {
        let removed = collector.pass(&world.store, &HashSet::new()).unwrap();
        assert!(removed.is_empty());
    }
    // Somebody repairs it: it is a capture again, and a deleted one.
    std::fs::write(&path, good).unwrap();
    world.reopen();
    world.store.stack(&top).unwrap();
    assert!(world.store.get(&low).unwrap().deleted);
    assert!(world.store.damaged().is_empty());
}

#[test]
fn capture_on_a_damaged_one_is_not_published() {
    let mut world = World::new();
    let low = world.publish("a", &[]);
    let path = world.store.path(&low).join(file_names::MANIFEST);
    std::fs::remove_file(path).unwrap();
    world.reopen();
    world.fill(&id("b"), &store::tests::Layer::default());
    let error = world.store.publish(draft("b", &["a"])).unwrap_err();
    assert!(matches!(error, CaptureError::Damaged { .. }), "{error}");
    let on_low = MachineOrigin::Capture(low);
    assert!(world.store.below(&on_low, &[]).is_err());
}

#[test]
fn manifest_of_a_later_format_is_left_alone() {
    let mut world = World::new();
    let (low, later) = (world.publish("a", &[]), world.publish("b", &["a"]));
    let mut manifest = (*world.store.get(&later).unwrap()).clone();
    manifest.format = CAPTURE_FORMAT + 1;
    let path = world.store.path(&later).join(file_names::MANIFEST);
    let text = document::encode(&manifest).unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, &text).unwrap();
    std::fs::write(world.store.path(&later).join("of-a-later-format"), "x").unwrap();
    world.store.hide(&low).unwrap();
    world.reopen();
    let collector = Collector::default();
    for _ in 0..3 {
        let removed = collector.pass(&world.store, &HashSet::new()).unwrap();
        assert!(removed.is_empty());
    }
    assert!(world.store.path(&later).join("of-a-later-format").exists());
    assert_eq!(std::fs::read(&path).unwrap(), text);
}

/// Manifests of released versions must stay readable. When this fails, either undo the change or
/// raise the format; `DAYFLY_BLESS=1` rewrites the file after a change that only adds.
#[test]
fn manifest_has_not_drifted() {
    let world = World::new();
    world.publish("a", &[]);
    let id = world.publish("b", &["a"]);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/capture-1.json");
    let text = document::read(&world.store.path(&id)).unwrap();
    if std::env::var_os("DAYFLY_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let frozen = std::fs::read(&path).unwrap();
    assert_eq!(
        String::from_utf8(frozen.clone()).unwrap(),
        String::from_utf8(text).unwrap()
    );
    assert_eq!(
        document::decode(&frozen, &id).unwrap(),
        *world.store.get(&id).unwrap()
    );
}

/// A reader of before refuses it by its number, and nobody may leave the number out.
#[test]
fn memory_that_lies_on_zeros_has_a_format_of_its_own() {
    let world = World::new();
    world.publish("a", &[]);
    let draft = CaptureDraft {
        memory_base: MemoryBase::Zeros,
        memory_below: Vec::new(),
        ..draft("b", &["a"])
    };
    let id = world.publish_layer(draft, &store::tests::Layer::example("b"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/capture-2.json");
    let text = document::read(&world.store.path(&id)).unwrap();
    if std::env::var_os("DAYFLY_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let frozen = std::fs::read(&path).unwrap();
    assert_eq!(
        String::from_utf8(frozen).unwrap(),
        String::from_utf8(text).unwrap()
    );
    let mut manifest = (*world.store.get(&id).unwrap()).clone();
    assert_eq!(
        (manifest.format, manifest.memory_base),
        (2, MemoryBase::Zeros)
    );
    manifest.format = 1;
    let text = document::encode(&manifest).unwrap();
    let refused = document::decode(&text, &manifest.id).unwrap_err();
    assert!(
        matches!(refused, DocumentError::FormatTooOld { found: 1 }),
        "{refused}"
    );
}

/// What changed since a capture is counted from the freeze; an older manifest is told late rather
/// than early, so that no change is missed.
#[test]
fn moment_of_a_capture_is_never_after_its_freeze() {
    let frozen =
        std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_millis(1_749_999_999_500);
    let mut told = draft("a", &[]);
    told.frozen_at = Some(frozen);
    let told = told.finish(Vec::new());
    assert_eq!(told.frozen_unix_nanos(), 1_749_999_999_500_000_000);
    let text = serde_json::to_string(&told).unwrap();
    assert_eq!(
        serde_json::from_str::<CaptureManifest>(&text).unwrap(),
        told
    );
    let mut older = draft("a", &[]);
    older.cost.total_us = 2_000_000;
    let older = older.finish(Vec::new());
    assert_eq!(older.frozen_unix_nanos(), 1_749_999_998_000_000_000);
}

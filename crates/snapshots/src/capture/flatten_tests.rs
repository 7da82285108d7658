//! A flattened capture is the same machine, and what it lay on can go.

use std::collections::{BTreeMap, HashSet};
use std::os::unix::fs::MetadataExt;

use dayfly_types::capture::MachineOrigin;
use dayfly_vmm::PAGE_BYTES;
use proptest::prelude::*;

use super::super::store::tests::{Layer, MEMORY_PAGES, World, draft, id};
use super::*;
use crate::capture::{CaptureDraft, CapturePurpose, Collector, StackedFiles, file_names};
use crate::qcow2::{merge_tests as qemu, sketch};

/// What a machine that is restored from these files would see above the template.
#[derive(Debug, Clone, PartialEq, Eq)]
struct View {
    memory: Vec<Option<u8>>,
    disk: Vec<Option<u8>>,
}

fn view(stacked: &StackedFiles) -> View {
    let mut memory = vec![None; usize::try_from(MEMORY_PAGES).unwrap()];
    for layer in &stacked.memory {
        let file = File::open(&layer.file).unwrap();
        for extent in &layer.extents {
            for page in extent.first..extent.end() {
                let mut byte = [0];
                file.read_exact_at(&mut byte, page * PAGE_BYTES + 99)
                    .unwrap();
                memory[usize::try_from(page).unwrap()] = Some(byte[0]);
            }
        }
    }
    let disks: Vec<File> = stacked
        .disks
        .iter()
        .map(|path| File::open(path).unwrap())
        .collect();
    View {
        memory,
        disk: sketch::seen_through(&disks),
    }
}

fn seen(world: &World, id: &SnapshotId) -> View {
    view(&world.store.stack(id).unwrap())
}

/// What layers that lie on each other should show.
fn model(layers: &[Layer]) -> View {
    let mut memory = vec![None; usize::try_from(MEMORY_PAGES).unwrap()];
    let mut disk = vec![None; usize::try_from(sketch::SKETCH_CLUSTERS).unwrap()];
    for layer in layers {
        for (page, byte) in &layer.pages {
            memory[usize::try_from(*page).unwrap()] = Some(*byte);
        }
        for (cluster, byte) in &layer.clusters {
            disk[usize::try_from(*cluster).unwrap()] = Some(*byte);
        }
    }
    View { memory, disk }
}

fn collect(world: &World) -> Vec<SnapshotId> {
    let collector = Collector::default();
    collector.pass(&world.store, &HashSet::new()).unwrap();
    collector.pass(&world.store, &HashSet::new()).unwrap()
}

fn files_of(world: &World, id: &SnapshotId) -> usize {
    std::fs::read_dir(world.store.path(id)).unwrap().count()
}

#[test]
fn flattened_capture_shows_the_same_and_needs_nothing() {
    let mut world = World::new();
    world.publish("a", &[]);
    world.publish("b", &["a"]);
    let top = world.publish("c", &["a", "b"]);
    let before = seen(&world, &top);
    assert!(world.store.flatten(&top).unwrap());
    let manifest = world.store.get(&top).unwrap();
    assert!(manifest.is_lowest() && manifest.flattened);
    assert_eq!(manifest.extents.len(), 1, "three neighbours are one range");
    assert_eq!(seen(&world, &top), before);
    // It is so after a restart, and once is enough.
    world.reopen();
    assert_eq!(world.store.get(&top), Some(manifest));
    assert_eq!(seen(&world, &top), before);
    assert!(!world.store.flatten(&top).unwrap());
    for name in ["a", "b"] {
        world.store.hide(&id(name)).unwrap();
    }
    assert_eq!(collect(&world).len(), 2);
    assert_eq!(seen(&world, &top), before);
}

#[test]
fn deleted_ancestor_keeps_its_bytes_until_all_above_it_are_flattened() {
    let world = World::new();
    let low = world.publish("a", &[]);
    let (middle, top) = (world.publish("b", &["a"]), world.publish("c", &["a", "b"]));
    assert!(world.store.needs_flatten().is_empty());
    world.store.hide(&low).unwrap();
    assert!(collect(&world).is_empty());
    let before = (seen(&world, &middle), seen(&world, &top));
    // Those below first: what they become is enough for those above.
    let wanted = world.store.needs_flatten();
    assert_eq!(wanted, [middle.clone(), top.clone()]);
    for id in wanted {
        assert!(world.store.flatten(&id).unwrap());
    }
    assert_eq!(
        world.store.get(&top).unwrap().memory_below,
        std::slice::from_ref(&middle)
    );
    assert_eq!(world.store.superseded(), std::slice::from_ref(&middle));
    assert!(world.store.needs_flatten().is_empty());
    assert_eq!(collect(&world), std::slice::from_ref(&low));
    assert!(!world.store.path(&low).exists());
    assert_eq!((seen(&world, &middle), seen(&world, &top)), before);
    // Then the next one is deleted.
    world.store.hide(&middle).unwrap();
    assert_eq!(world.store.needs_flatten(), std::slice::from_ref(&top));
    assert!(world.store.flatten(&top).unwrap());
    assert_eq!(collect(&world), [middle]);
    assert_eq!(seen(&world, &top), before.1);
}

#[test]
fn superseded_files_stay_until_they_are_dropped() {
    let world = World::new();
    world.publish("a", &[]);
    let top = world.publish("b", &["a"]);
    let told = world.store.stack(&top).unwrap();
    let before = view(&told);
    assert!(world.store.flatten(&top).unwrap());
    // A restore that was told the paths before can still link them.
    assert_eq!(view(&told), before);
    assert_eq!(files_of(&world, &top), 6);
    let running = File::open(&told.disks[1]).unwrap();
    assert_eq!(world.store.drop_superseded(&top).unwrap(), 2);
    assert_eq!(world.store.drop_superseded(&top).unwrap(), 0);
    assert!(world.store.superseded().is_empty());
    assert_eq!(files_of(&world, &top), 4);
    assert_eq!(seen(&world, &top), before);
    // A machine that runs on them does not mind.
    assert!(sketch::seen_through(&[running]).iter().any(Option::is_some));
    assert_eq!(world.store.drop_superseded(&id("absent")).unwrap(), 0);
}

#[test]
fn leftovers_of_a_crash_go_at_the_next_start_or_merge() {
    let mut world = World::new();
    world.publish("a", &[]);
    let top = world.publish("b", &["a"]);
    let before = seen(&world, &top);
    let leave = |world: &World| {
        for name in ["memory-1.layer", ".manifest.json.1-2.tmp"] {
            std::fs::write(world.store.path(&top).join(name), "half").unwrap();
        }
    };
    leave(&world);
    world.reopen();
    assert_eq!(files_of(&world, &top), 4);
    leave(&world);
    assert!(world.store.flatten(&top).unwrap());
    assert_eq!(seen(&world, &top), before);
    // The crash comes between the new manifest and the end of the old files.
    world.reopen();
    assert_eq!(files_of(&world, &top), 4);
    assert_eq!(seen(&world, &top), before);
}

#[test]
fn capture_without_memory_is_flattened() {
    let world = World::new();
    world.publish("a", &[]);
    let layer = CaptureDraft {
        purpose: CapturePurpose::Layer,
        memory_below: Vec::new(),
        ..draft("b", &["a"])
    };
    let clusters = vec![(3, 7)];
    let layer = world.publish_layer(
        layer,
        &Layer {
            pages: Vec::new(),
            clusters,
        },
    );
    assert!(world.store.needs_flatten().is_empty());
    assert!(world.store.flatten(&layer).unwrap());
    let manifest = world.store.get(&layer).unwrap();
    assert!(manifest.is_lowest() && manifest.extents.is_empty());
    assert_eq!(manifest.memory_file, file_names::MEMORY_LAYER);
    let disk = world
        .store
        .verified(&manifest, &manifest.disk_file)
        .unwrap();
    let seen = sketch::seen_through(&[File::open(disk).unwrap()]);
    assert_eq!((seen[1], seen[3]), (Some(b'a'), Some(7)));
    // What was sealed later needs nothing that the layer covers.
    let origin = MachineOrigin::Capture(id("a"));
    let below = world.store.below(&origin, &[id("b"), id("c")]).unwrap();
    assert_eq!(below.disks, [id("b"), id("c")]);
}

#[test]
fn draft_from_before_a_merge_is_laid_on_what_was_merged() {
    let world = World::new();
    let low = world.publish("a", &[]);
    let middle = world.publish("b", &["a"]);
    // The machine was asked what it lies on, then its origin was flattened and the rest collected.
    let late = draft("c", &["a", "b"]);
    assert!(world.store.flatten(&middle).unwrap());
    world.store.hide(&low).unwrap();
    assert_eq!(collect(&world), [low]);
    let below = seen(&world, &middle);
    let top = world.publish_layer(late, &Layer::default());
    assert_eq!(world.store.get(&top).unwrap().memory_below, [middle]);
    assert_eq!(seen(&world, &top), below);
}

#[test]
fn long_chains_are_found() {
    let world = World::new();
    let names: Vec<String> = (0..6).map(|number| format!("n{number}")).collect();
    for (number, name) in names.iter().enumerate() {
        let below: Vec<&str> = names[..number].iter().map(String::as_str).collect();
        let purpose = if number == 5 {
            CapturePurpose::Fork
        } else {
            CapturePurpose::Hibernation
        };
        let draft = CaptureDraft {
            purpose,
            ..draft(name, &below)
        };
        world.publish_layer(draft, &Layer::default());
    }
    assert_eq!(world.store.needs_flatten(), [id("n4"), id("n5")]);
    assert!(world.store.flatten(&id("n4")).unwrap());
    // What it covers is left out of the list of the other, and that is all that it takes.
    assert!(world.store.flatten(&id("n5")).unwrap());
    assert_eq!(world.store.get(&id("n5")).unwrap().disk_below, [id("n4")]);
    assert!(world.store.needs_flatten().is_empty());
}

#[test]
fn map_with_too_many_ranges_stays_as_it_is() {
    let world = World::new();
    // Every fourth page each, so that no two are neighbours.
    let count = u64::try_from(MEMORY_EXTENTS_MAX).unwrap() / 2 + 1;
    let ranges = |start: u64| -> Vec<PageRange> {
        let pages = (0..count).map(|index| start + index * 4);
        pages.map(|page| PageRange::from((page, 1))).collect()
    };
    for (name, below, start) in [("a", &[][..], 0), ("b", &["a"][..], 2)] {
        world.fill(&id(name), &Layer::default());
        let path = world
            .store
            .unfinished(&id(name))
            .join(file_names::MEMORY_LAYER);
        let file = File::options().write(true).open(path).unwrap();
        file.set_len((count + 1) * 4 * PAGE_BYTES).unwrap();
        let draft = CaptureDraft {
            extents: ranges(start),
            ..draft(name, below)
        };
        world.store.publish(draft).unwrap();
    }
    let before = world.store.get(&id("b")).unwrap();
    world.store.hide(&id("a")).unwrap();
    assert_eq!(world.store.needs_flatten(), [id("b")]);
    assert!(!world.store.flatten(&id("b")).unwrap());
    assert_eq!(world.store.get(&id("b")).unwrap(), before);
    assert_eq!(files_of(&world, &id("b")), 4);
    assert!(
        world.store.needs_flatten().is_empty(),
        "it would be tried for ever"
    );
    world.store.stack(&id("b")).unwrap();
}

#[test]
fn hostile_disk_is_refused_once_and_leaves_nothing_behind() {
    let world = World::new();
    let low = world.publish("a", &[]);
    world.fill(&id("b"), &Layer::default());
    let path = world
        .store
        .unfinished(&id("b"))
        .join(file_names::DISK_LAYER);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[72] = 1;
    std::fs::write(&path, bytes).unwrap();
    let top = world.store.publish(draft("b", &["a"])).unwrap().id.clone();
    world.store.hide(&low).unwrap();
    assert_eq!(world.store.needs_flatten(), std::slice::from_ref(&top));
    let error = world.store.flatten(&top).unwrap_err();
    assert!(
        matches!(
            &error,
            FlattenError::Disk(MergeError::Layer { index: 1, .. })
        ),
        "{error}"
    );
    assert!(!error.is_disk_full());
    assert_eq!(files_of(&world, &top), 4);
    assert!(world.store.needs_flatten().is_empty());
    assert!(collect(&world).is_empty());
    world.store.stack(&top).unwrap();
}

#[test]
fn damage_below_is_not_merged_into_a_capture_that_looks_right() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let (low, top) = (world.publish("a", &[]), world.publish("b", &["a"]));
    let path = world.store.path(&low).join(file_names::MEMORY_LAYER);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    file.write_all_at(b"x", PAGE_BYTES).unwrap();
    let error = world.store.flatten(&top).unwrap_err();
    assert!(
        matches!(&error, FlattenError::Source(CaptureError::Damaged { id, .. }) if *id == low),
        "{error}"
    );
    assert_eq!(files_of(&world, &top), 4);
    assert!(!world.store.get(&top).unwrap().flattened);
}

#[test]
fn hiding_and_merging_at_the_same_time_lose_neither() {
    for _ in 0..8 {
        let world = World::new();
        world.publish("a", &[]);
        let top = world.publish("b", &["a"]);
        let before = seen(&world, &top);
        std::thread::scope(|scope| {
            let merging = scope.spawn(|| world.store.flatten(&top));
            let stacking =
                scope.spawn(|| (0..20).map(|_| world.store.stack(&top)).collect::<Vec<_>>());
            world.store.hide(&top).unwrap();
            assert!(merging.join().unwrap().unwrap());
            for stacked in stacking.join().unwrap() {
                assert_eq!(view(&stacked.unwrap()), before);
            }
        });
        let manifest = world.store.get(&top).unwrap();
        assert!(manifest.deleted && manifest.flattened);
        world.store.drop_superseded(&top).unwrap();
        assert_eq!(seen(&world, &top), before);
    }
}

#[test]
fn zeros_take_no_space_after_a_merge() {
    let world = World::new();
    let all = |byte: u8| -> Layer {
        Layer {
            pages: (0..MEMORY_PAGES).map(|page| (page, byte)).collect(),
            clusters: (0..sketch::SKETCH_CLUSTERS).map(|it| (it, byte)).collect(),
        }
    };
    world.publish_layer(draft("a", &[]), &all(5));
    let top = world.publish_layer(draft("b", &["a"]), &all(0));
    assert!(world.store.flatten(&top).unwrap());
    let stacked = world.store.stack(&top).unwrap();
    assert_eq!(view(&stacked), model(&[all(0)]));
    let blocks = |path: &Path| path.metadata().unwrap().blocks() * 512;
    assert_eq!(blocks(&stacked.memory[0].file), 0);
    assert!(blocks(&stacked.disks[0]) <= 6 * 65536);
}

/// The same with layers that QEMU wrote, and with what QEMU sees in them.
#[test]
fn disks_of_a_real_engine_are_flattened() {
    if qemu::tools_are_missing() {
        return;
    }
    let world = World::new();
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().join("base");
    let size = 6 << 20;
    qemu::base_of(&base, 0x77, size);
    let mut disks = Vec::new();
    for (number, commands) in [
        ["write -q -P 1 0 3M", "write -q -P 2 5M 100k"],
        ["write -q -z 64k 1M", "discard -q 2M 256k"],
        ["write -q -P 3 100k 4k", "write -q -P 4 4M 1M"],
    ]
    .iter()
    .enumerate()
    {
        let names = ["a", "b", "c"];
        world.fill(&id(names[number]), &Layer::default());
        let unfinished = world
            .store
            .unfinished(&id(names[number]))
            .join(file_names::DISK_LAYER);
        std::fs::remove_file(&unfinished).unwrap();
        qemu::create(&unfinished, size);
        disks.push(unfinished);
        qemu::write(Some(&base), &disks, &commands.map(str::to_owned));
        let draft = draft(names[number], &names[..number]);
        let top = world.store.publish(draft).unwrap();
        disks = world.store.stack(&top.id).unwrap().disks;
    }
    let before = qemu::seen(Some(&base), &disks);
    assert!(world.store.flatten(&id("c")).unwrap());
    let stacked = world.store.stack(&id("c")).unwrap();
    assert_eq!(stacked.disks.len(), 1);
    assert!(qemu::seen(Some(&base), &stacked.disks) == before);
    qemu::assert_sound(&stacked.disks[0]);
}

fn layer() -> impl Strategy<Value = Layer> {
    let bytes = || prop_oneof![Just(0u8), 1u8..=255];
    let pages = proptest::collection::btree_map(0..MEMORY_PAGES, bytes(), 0..20);
    let clusters = proptest::collection::btree_map(0..sketch::SKETCH_CLUSTERS, bytes(), 0..10);
    (pages, clusters).prop_map(
        |(pages, clusters): (BTreeMap<u64, u8>, BTreeMap<u64, u8>)| Layer {
            pages: pages.into_iter().collect(),
            clusters: clusters.into_iter().collect(),
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 100, ..ProptestConfig::default() })]

    #[test]
    fn stacks_show_what_a_plain_model_shows_whichever_is_flattened(
        layers in proptest::collection::vec(layer(), 1..5),
        flattened in proptest::collection::vec(0usize..5, 0..5),
        hidden in 0usize..5,
    ) {
        let mut world = World::new();
        let names: Vec<String> = (0..layers.len()).map(|number| format!("n{number}")).collect();
        for (number, layer) in layers.iter().enumerate() {
            let below: Vec<&str> = names[..number].iter().map(String::as_str).collect();
            world.publish_layer(draft(&names[number], &below), layer);
        }
        let all_are_right = |world: &World| {
            names.iter().enumerate().all(|(number, name)| {
                world.store.get(&id(name)).is_none_or(|manifest| manifest.deleted)
                    || seen(world, &id(name)) == model(&layers[..=number])
            })
        };
        prop_assert!(all_are_right(&world));
        for number in flattened.into_iter().filter(|number| *number < names.len()) {
            world.store.flatten(&id(&names[number])).unwrap();
            prop_assert!(all_are_right(&world));
        }
        world.store.hide(&id(&format!("n{hidden}"))).unwrap();
        for wanted in world.store.needs_flatten() {
            world.store.flatten(&wanted).unwrap();
        }
        let removed = collect(&world);
        prop_assert_eq!(removed.len(), usize::from(hidden < names.len()));
        prop_assert!(all_are_right(&world));
        world.reopen();
        prop_assert!(all_are_right(&world));
        for name in &names {
            prop_assert_eq!(world.store.drop_superseded(&id(name)).unwrap(), 0);
        }
    }
}

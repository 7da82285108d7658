//! What is visible in the store after publishing, hiding, collecting and crashing.

use std::collections::HashSet;
use std::os::unix::fs::FileExt;
use std::time::{Duration, SystemTime};

use dayfly_types::{DiskMib, MemoryMib, ProjectId, SandboxId, TemplateName, Vcpus};
use dayfly_vmm::{Accelerator, EngineKind, MachineSpec, PAGE_BYTES, PageRange};

use super::*;
use crate::capture::{Collector, MemoryBase, StackedFiles};
use crate::manifest::EngineIdentity;
use crate::qcow2::sketch;
use dayfly_types::capture::{CaptureCost, MachineOrigin};

/// Guest memory of the captures that are made here. Nobody looks at that of their machine.
pub(crate) const MEMORY_PAGES: u64 = 64;

/// A store in a directory of its own.
pub(crate) struct World {
    root: tempfile::TempDir,
    pub(crate) store: CaptureStore,
}

impl World {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let store = CaptureStore::open(root.path().join("captures")).unwrap();
        Self { root, store }
    }

    /// As after the end of the process.
    pub(crate) fn reopen(&mut self) {
        self.store = CaptureStore::open(self.root.path().join("captures")).unwrap();
    }

    /// A capture that lies on others, with a page of memory and a cluster of disk of its own.
    pub(crate) fn publish(&self, name: &str, below: &[&str]) -> SnapshotId {
        let layer = Layer::example(name);
        self.publish_layer(draft(name, below), &layer)
    }

    pub(crate) fn publish_layer(&self, draft: CaptureDraft, layer: &Layer) -> SnapshotId {
        self.fill(&draft.id, layer);
        let draft = CaptureDraft {
            extents: layer.extents(),
            ..draft
        };
        self.store.publish(draft).unwrap().id.clone()
    }

    /// Makes the files of a capture.
    pub(crate) fn fill(&self, id: &SnapshotId, layer: &Layer) {
        let directory = self.store.begin(id).unwrap();
        let memory = std::fs::File::options()
            .write(true)
            .open(directory.join(file_names::MEMORY_LAYER))
            .unwrap();
        memory.set_len(MEMORY_PAGES * PAGE_BYTES).unwrap();
        for (page, byte) in &layer.pages {
            let bytes = vec![*byte; usize::try_from(PAGE_BYTES).unwrap()];
            memory.write_all_at(&bytes, page * PAGE_BYTES).unwrap();
        }
        let disk = sketch::layer_of(&layer.clusters);
        std::fs::write(self.root.path().join("disk"), disk).unwrap();
        let taken = self.root.path().join("disk");
        self.store.take(id, &taken, file_names::DISK_LAYER).unwrap();
        let state = format!("device state of {id}");
        std::fs::write(directory.join(file_names::DEVICE_STATE), state).unwrap();
    }

    /// Removes what is unneeded now and in the last pass.
    fn collect(&self, collector: &Collector, roots: &[&SnapshotId]) -> Vec<SnapshotId> {
        let roots: HashSet<SnapshotId> = roots.iter().copied().cloned().collect();
        collector.pass(&self.store, &roots).unwrap()
    }
}

/// What a capture adds: one byte all over each page and each cluster.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layer {
    /// In order, without repeats.
    pub(crate) pages: Vec<(u64, u8)>,
    pub(crate) clusters: Vec<(u64, u8)>,
}

impl Layer {
    pub(crate) fn example(name: &str) -> Self {
        let byte = name.bytes().last().unwrap();
        let place = u64::from(byte % 32);
        Self {
            pages: vec![(place, byte)],
            clusters: vec![(place, byte)],
        }
    }

    fn extents(&self) -> Vec<PageRange> {
        let pages = self.pages.iter();
        pages.map(|(page, _)| PageRange::from((*page, 1))).collect()
    }
}

pub(crate) fn id(name: &str) -> SnapshotId {
    SnapshotId::parse(&format!("snap-local-{name}")).unwrap()
}

/// A snapshot that lies on others with memory and disk.
pub(crate) fn draft(name: &str, below: &[&str]) -> CaptureDraft {
    let below: Vec<SnapshotId> = below.iter().map(|name| id(name)).collect();
    CaptureDraft {
        id: id(name),
        purpose: CapturePurpose::Snapshot,
        project: ProjectId::parse("default").unwrap(),
        sandbox: SandboxId::parse("sb-local-1").unwrap(),
        template: TemplateName::parse("base").unwrap(),
        template_version: "00000001-0123abcd".to_owned(),
        name: Some("before the upgrade".to_owned()),
        created_at: SystemTime::UNIX_EPOCH + Duration::from_secs(1_750_000_000),
        frozen_at: None,
        expires_at: None,
        machine: MachineSpec {
            memory: MemoryMib::new(512).unwrap(),
            vcpus: Vcpus::new(1).unwrap(),
            disk: DiskMib::new(8192).unwrap(),
            spare_disks: 3,
        },
        disk_mib: 8192,
        engine: EngineIdentity {
            kind: EngineKind::Qemu,
            version: "10.0.2".to_owned(),
            accelerator: Accelerator::Tcg,
            cpu_model: "max".to_owned(),
            build: None,
        },
        memory_base: MemoryBase::Template,
        memory_below: below.clone(),
        disk_below: below,
        extents: Vec::new(),
        cost: CaptureCost::default(),
    }
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn assert_stack(stacked: &StackedFiles, store: &CaptureStore, chain: &[&SnapshotId]) {
    let of = |name: &str| -> Vec<PathBuf> {
        let chain = chain.iter();
        chain.map(|id| store.path(id).join(name)).collect()
    };
    let memory: Vec<PathBuf> = stacked.memory.iter().map(|it| it.file.clone()).collect();
    assert_eq!(memory, of(file_names::MEMORY_LAYER));
    assert_eq!(stacked.disks, of(file_names::DISK_LAYER));
    assert_eq!(
        Some(&stacked.device_state),
        of(file_names::DEVICE_STATE).last()
    );
}

#[test]
fn published_capture_is_read_only_and_found_after_a_restart() {
    use std::os::unix::fs::MetadataExt;
    let mut world = World::new();
    let (low, top) = (world.publish("a", &[]), world.publish("b", &["a"]));
    let manifest = world.store.get(&top).unwrap();
    for name in names_in(&world.store.path(&top)) {
        let mode = world.store.path(&top).join(name).metadata().unwrap().mode();
        assert_eq!(mode & 0o777, 0o444);
    }
    assert!(!world.store.unfinished(&top).exists());
    world.reopen();
    assert_eq!(world.store.get(&top), Some(manifest));
    assert_eq!(world.store.all().len(), 2);
    let stacked = world.store.stack(&top).unwrap();
    assert_stack(&stacked, &world.store, &[&low, &top]);
}

#[test]
fn publishing_again_finds_the_first() {
    let world = World::new();
    world.publish("a", &[]);
    let first = world.store.get(&id("a")).unwrap();
    let again = world.store.publish(draft("a", &[])).unwrap();
    assert!(Arc::ptr_eq(&first, &again));
}

#[test]
fn draft_that_cannot_be_restored_is_refused_and_can_be_repeated() {
    let world = World::new();
    world.fill(&id("b"), &Layer::example("b"));
    let error = world.store.publish(draft("b", &["gone"])).unwrap_err();
    assert!(
        matches!(&error, CaptureError::Incomplete { below, .. } if *below == id("gone")),
        "{error}"
    );
    assert!(world.store.get(&id("b")).is_none());
    // One that is being made may never be there.
    world.fill(&id("gone"), &Layer::default());
    assert!(world.store.publish(draft("b", &["gone"])).is_err());
    world.store.publish(draft("gone", &[])).unwrap();
    world.store.publish(draft("b", &["gone"])).unwrap();
    // A layer alone is never restored.
    world.fill(&id("c"), &Layer::default());
    let layer = CaptureDraft {
        purpose: CapturePurpose::Layer,
        ..draft("c", &["nowhere"])
    };
    world.store.publish(layer).unwrap();
    let error = world.store.stack(&id("c")).unwrap_err();
    assert!(matches!(error, CaptureError::Absent(_)), "{error}");
}

#[test]
fn map_of_memory_that_does_not_fit_its_file_is_refused() {
    let world = World::new();
    for extents in [
        vec![(MEMORY_PAGES, 1)],
        vec![(0, MEMORY_PAGES + 1)],
        vec![(u64::MAX, 2)],
        vec![(3, 0)],
        vec![(3, 2), (4, 1)],
        vec![(4, 1), (3, 1)],
    ] {
        world.fill(&id("a"), &Layer::default());
        let draft = CaptureDraft {
            extents: extents.iter().copied().map(PageRange::from).collect(),
            ..draft("a", &[])
        };
        let error = world.store.publish(draft).unwrap_err();
        assert!(
            matches!(error, CaptureError::File { .. }),
            "{extents:?}: {error}"
        );
    }
    world.publish("a", &[]);
}

#[test]
fn hidden_capture_goes_in_the_second_pass_and_not_before() {
    let mut world = World::new();
    let (one, two) = (world.publish("a", &[]), world.publish("b", &[]));
    let collector = Collector::default();
    assert!(world.collect(&collector, &[]).is_empty());
    world.store.hide(&one).unwrap();
    world.store.hide(&one).unwrap();
    world.reopen();
    assert!(!world.store.get(&one).unwrap().is_snapshot());
    assert!(world.collect(&collector, &[]).is_empty());
    assert!(world.store.path(&one).exists());
    assert_eq!(world.collect(&collector, &[]), std::slice::from_ref(&one));
    assert!(!world.store.path(&one).exists() && world.store.get(&one).is_none());
    world.store.hide(&one).unwrap();
    world.store.stack(&two).unwrap();
}

#[test]
fn what_a_machine_or_another_capture_needs_is_not_collected() {
    let world = World::new();
    let (low, top) = (world.publish("a", &[]), world.publish("b", &["a"]));
    let free = world.publish("c", &[]);
    for id in [&low, &free] {
        world.store.hide(id).unwrap();
    }
    let collector = Collector::default();
    world.collect(&collector, &[&free]);
    assert!(world.collect(&collector, &[&free]).is_empty());
    // A machine that runs on a hidden capture keeps what that one lies on.
    world.store.hide(&top).unwrap();
    world.collect(&collector, &[&top]);
    assert_eq!(world.collect(&collector, &[&top]), [free]);
    world.collect(&collector, &[]);
    assert_eq!(world.collect(&collector, &[]), [top, low]);
}

#[test]
fn capture_that_appears_between_two_passes_keeps_what_it_lies_on() {
    let world = World::new();
    let low = world.publish("a", &[]);
    world.store.hide(&low).unwrap();
    let collector = Collector::default();
    world.collect(&collector, &[]);
    let top = world.publish("b", &["a"]);
    assert!(world.collect(&collector, &[]).is_empty());
    assert!(world.collect(&collector, &[]).is_empty());
    world.store.stack(&top).unwrap();
    // Also when it appears within a pass, behind the look.
    assert!(!world.store.remove(&low).unwrap());
    world.store.stack(&top).unwrap();
}

#[test]
fn sweep_removes_what_a_crash_left_and_spares_what_is_needed() {
    let mut world = World::new();
    let published = world.publish("a", &[]);
    for name in ["half", "needed"] {
        world.fill(&id(name), &Layer::default());
    }
    let doomed = world.root.path().join("captures/snap-local-b.old");
    std::fs::create_dir(&doomed).unwrap();
    std::fs::write(doomed.join("memory.layer"), "x").unwrap();
    world.reopen();
    let removed = world.store.sweep(|it| *it == id("needed")).unwrap();
    assert_eq!(removed, 2);
    assert!(!doomed.exists() && !world.store.unfinished(&id("half")).exists());
    assert_eq!(names_in(&world.store.unfinished(&id("needed"))).len(), 3);
    world.store.stack(&published).unwrap();
    world.store.abandon(&id("needed")).unwrap();
    world.store.abandon(&id("needed")).unwrap();
    assert!(!world.store.unfinished(&id("needed")).exists());
}

#[test]
fn removal_that_was_cut_short_can_be_repeated() {
    let world = World::new();
    let one = world.publish("a", &[]);
    let doomed = world.root.path().join("captures/snap-local-a.old");
    std::fs::create_dir(&doomed).unwrap();
    std::fs::write(doomed.join("memory.layer"), "x").unwrap();
    assert!(world.store.remove(&one).unwrap());
    assert!(world.store.remove(&one).unwrap());
    assert_eq!(names_in(&world.store.directory), Vec::<String>::new());
}

#[test]
fn absent_captures_are_told_from_incomplete_ones() {
    let world = World::new();
    let error = world.store.stack(&id("a")).unwrap_err();
    assert!(matches!(error, CaptureError::Absent(_)), "{error}");
    world.publish("a", &[]);
    world.publish("b", &["a"]);
    std::fs::remove_dir_all(world.store.path(&id("a"))).unwrap();
    let world = {
        let mut world = world;
        world.reopen();
        world
    };
    let error = world.store.stack(&id("b")).unwrap_err();
    assert!(
        matches!(&error, CaptureError::Incomplete { below, .. } if *below == id("a")),
        "{error}"
    );
}

#[test]
fn machine_lies_on_its_origin_and_what_it_sealed_since() {
    let world = World::new();
    world.publish("a", &[]);
    let origin = world.publish("b", &["a"]);
    let sealed = [id("c")];
    let restored = MachineOrigin::Capture(origin.clone());
    let below = world.store.below(&restored, &sealed).unwrap();
    assert_eq!(below.memory_base, MemoryBase::Template);
    assert_eq!(below.memory, [id("a"), id("b")]);
    assert_eq!(below.disks, [id("a"), id("b"), id("c")]);
    let booted = MachineOrigin::DiskOf(origin);
    let below = world.store.below(&booted, &sealed).unwrap();
    assert_eq!(below.memory_base, MemoryBase::Zeros);
    assert_eq!(below.memory, []);
    assert_eq!(below.disks, [id("a"), id("b"), id("c")]);
    let below = world.store.below(&MachineOrigin::Template, &sealed);
    let below = below.unwrap();
    assert_eq!((below.memory, below.disks), (vec![], vec![id("c")]));
    assert!(
        world
            .store
            .below(&MachineOrigin::Capture(id("x")), &[])
            .is_err()
    );
}

/// What lies on a capture of such a machine lies on no template's memory either, also after the
/// chain was merged and read again.
#[test]
fn captures_of_a_booted_machine_lie_on_zeros_for_ever() {
    let mut world = World::new();
    world.publish("a", &[]);
    let booted = CaptureDraft {
        memory_base: MemoryBase::Zeros,
        memory_below: Vec::new(),
        ..draft("b", &["a"])
    };
    let booted = world.publish_layer(booted, &Layer::example("b"));
    let below = world.store.below(&MachineOrigin::Capture(booted), &[]);
    let below = below.unwrap();
    assert_eq!(below.memory_base, MemoryBase::Zeros);
    assert_eq!(below.memory, [id("b")]);
    let later = CaptureDraft {
        memory_base: below.memory_base,
        memory_below: below.memory,
        disk_below: below.disks,
        ..draft("c", &[])
    };
    let later = world.publish_layer(later, &Layer::example("c"));
    world.store.hide(&id("a")).unwrap();
    assert!(world.store.flatten(&later).unwrap());
    world.reopen();
    let read = world.store.get(&later).unwrap();
    assert_eq!((read.format, read.memory_base), (2, MemoryBase::Zeros));
    assert!(read.is_lowest());
    assert_eq!(world.store.get(&id("a")).unwrap().format, 1);
    let stacked = world.store.stack(&later).unwrap();
    assert_eq!((stacked.memory.len(), stacked.disks.len()), (1, 1));
}

#[test]
fn disks_are_stacked_whatever_became_of_memory() {
    let mut world = World::new();
    world.publish("a", &[]);
    let top = world.publish("b", &["a"]);
    for name in ["a", "b"] {
        let directory = world.store.path(&id(name));
        std::fs::remove_file(directory.join(file_names::MEMORY_LAYER)).unwrap();
        std::fs::remove_file(directory.join(file_names::DEVICE_STATE)).unwrap();
    }
    world.reopen();
    assert!(world.store.stack(&top).is_err());
    let disks = world.store.stack_disks(&top).unwrap();
    let expected = ["a", "b"].map(|name| world.store.path(&id(name)).join(file_names::DISK_LAYER));
    assert_eq!(disks, expected);
    // Of the disks every byte counts.
    std::fs::remove_file(&disks[0]).unwrap();
    std::fs::write(&disks[0], "other bytes").unwrap();
    let damaged = world.store.stack_disks(&top).unwrap_err();
    assert!(matches!(damaged, CaptureError::Damaged { .. }), "{damaged}");
    assert!(world.store.stack_disks(&id("x")).is_err());
}

//! Tests of which builds are needed.

use std::collections::HashSet;
use std::time::SystemTime;

use dayfly_snapshots::EngineIdentity;
use dayfly_types::{CellName, SandboxId, SnapshotId};
use dayfly_vmm::EngineKind;

use super::*;

/// A store with roots as the node makes them, of programs that this host has.
struct Store {
    builds: EngineBuilds,
    _directory: tempfile::TempDir,
}

impl Store {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let builds = EngineBuilds {
            store: directory.path().canonicalize().unwrap(),
        };
        Self {
            builds,
            _directory: directory,
        }
    }

    fn add(&self, version: &str, distinction: &str) -> String {
        let file = self.builds.store.join("distinction");
        std::fs::write(&file, distinction).unwrap();
        let spec = EngineRootSpec {
            label: format!("QEMU emulator version {version} (test)"),
            program: PathBuf::from("/bin/sleep"),
            files: vec![RootFile {
                source: file,
                target: PathBuf::from("/distinction"),
            }],
            mount_directories: Vec::new(),
            mount_files: Vec::new(),
        };
        ensure_engine_root(&spec, &self.builds.store).unwrap().id
    }

    fn install(&self, id: &str) {
        std::fs::write(self.builds.store.join(INSTALLED_FILE), id).unwrap();
    }

    fn left(&self) -> HashSet<String> {
        let all = self.builds.all().unwrap();
        all.into_iter().map(|build| build.root.id).collect()
    }
}

fn user(version: &str, build: Option<&str>, what: EngineUse) -> EngineUser {
    EngineUser {
        engine: EngineIdentity {
            kind: EngineKind::Qemu,
            version: version.to_owned(),
            accelerator: Accelerator::Tcg,
            cpu_model: "max".to_owned(),
            build: build.map(EngineBuild::new),
        },
        what,
    }
}

fn snapshot() -> EngineUse {
    EngineUse::Snapshot(SnapshotId::parse("snap-a").unwrap())
}

fn set<const N: usize>(ids: [&String; N]) -> HashSet<String> {
    ids.into_iter().cloned().collect()
}

#[test]
fn a_build_goes_when_nothing_needs_it_and_not_before() {
    let store = Store::new();
    let (old, new) = (store.add("9.2.0", "a"), store.add("10.0.2", "b"));
    store.install(&new);
    let needed = [user("9.2.0", Some(&old), snapshot())];
    store.builds.remove_unneeded(&needed);
    assert_eq!(store.left(), set([&old, &new]));
    store.builds.remove_unneeded(&[]);
    assert_eq!(store.left(), set([&new]), "the installed one stays");
}

#[test]
fn what_names_no_build_keeps_every_build_of_its_version() {
    let store = Store::new();
    let (first, second) = (store.add("9.2.0", "a"), store.add("9.2.0", "b"));
    let (other, new) = (store.add("9.1.0", "c"), store.add("10.0.2", "d"));
    store.install(&new);
    store
        .builds
        .remove_unneeded(&[user("9.2.0", None, snapshot())]);
    assert_eq!(store.left(), set([&first, &second, &new]));
    assert!(!store.left().contains(&other));
    // One that is not here any more is stood in for.
    let gone = user("9.2.0", Some("gone"), snapshot());
    store.builds.remove_unneeded(&[gone]);
    assert_eq!(store.left(), set([&first, &second, &new]));
}

#[test]
fn a_retired_build_goes_as_soon_as_nothing_runs_in_it() {
    let store = Store::new();
    let (old, new) = (store.add("9.2.0", "a"), store.add("10.0.2", "b"));
    store.install(&new);
    std::fs::write(store.builds.retired_mark(&old), "").unwrap();
    let sandbox = SandboxId::from_random(&CellName::local(), [7; 17]);
    let running = user("9.2.0", Some(&old), EngineUse::Running(sandbox));
    let captured = user("9.2.0", Some(&old), snapshot());
    store.builds.remove_unneeded(&[running, captured.clone()]);
    assert_eq!(store.left(), set([&old, &new]));
    store.builds.remove_unneeded(&[captured]);
    assert_eq!(store.left(), set([&new]));
}

#[test]
fn a_damaged_build_is_not_offered() {
    let store = Store::new();
    let (old, new) = (store.add("9.2.0", "a"), store.add("10.0.2", "b"));
    store.install(&new);
    let offered = |store: &Store| {
        let kept = store.builds.kept(Accelerator::Tcg).unwrap();
        let ids = kept.into_iter().filter_map(|one| one.config.build);
        ids.map(|build| build.as_str().to_owned())
            .collect::<HashSet<String>>()
    };
    assert_eq!(offered(&store), set([&old]));
    let root = store.builds.store.join(&old);
    std::fs::write(root.join("distinction"), "changed").unwrap();
    assert!(offered(&store).is_empty());
    assert!(store.left().contains(&old), "what is damaged is kept");
}

#[test]
fn builds_are_listed_oldest_first_with_their_versions() {
    let store = Store::new();
    let id = store.add("9.2.0", "a");
    let all = store.builds.all().unwrap();
    assert_eq!(all[0].root.id, id);
    assert_eq!(all[0].version.to_string(), "9.2.0");
    assert!(!all[0].is_installed && !all[0].is_retired);
    assert!(all[0].root.made_at <= SystemTime::now());
}

#[test]
fn what_stands_in_for_a_damaged_build_is_kept() {
    let store = Store::new();
    let (damaged, whole) = (store.add("9.2.0", "a"), store.add("9.2.0", "b"));
    let new = store.add("10.0.2", "c");
    store.install(&new);
    let root = store.builds.store.join(&damaged);
    std::fs::write(root.join("distinction"), "changed").unwrap();
    let needed = [user("9.2.0", Some(&damaged), snapshot())];
    store.builds.remove_unneeded(&needed);
    assert_eq!(store.left(), set([&damaged, &whole, &new]));
}

#[test]
fn a_root_of_an_older_program_stays_while_somebody_may_need_it() {
    let store = Store::new();
    let new = store.add("10.0.2", "a");
    store.install(&new);
    let old = store.builds.store.join("of-an-older-program");
    std::fs::create_dir(&old).unwrap();
    store
        .builds
        .remove_unneeded(&[user("9.2.0", None, snapshot())]);
    assert!(old.exists());
    store
        .builds
        .remove_unneeded(&[user("10.0.2", Some(&new), snapshot())]);
    assert!(!old.exists());
}

//! What is visible in the store after publishing, crashing and removing.

use std::fs::File;

use dayfly_types::ProjectId;

use super::*;
use crate::manifest::tests::{draft, example};

/// A store with one published template of small files.
pub(crate) fn published() -> (tempfile::TempDir, BakedTemplate) {
    let root = tempfile::tempdir().unwrap();
    let store = TemplateStore::new(root.path().join("templates"));
    let template = publish(&store, "x");
    (root, template)
}

pub(crate) fn publish_draft(store: &TemplateStore, draft: ManifestDraft) -> BakedTemplate {
    store.publish(stage(store, "z"), draft).unwrap()
}

fn publish(store: &TemplateStore, content: &str) -> BakedTemplate {
    let staging = stage(store, content);
    store.publish(staging, shared()).unwrap()
}

pub(crate) fn shared() -> ManifestDraft {
    ManifestDraft {
        project: None,
        ..draft()
    }
}

fn stage(store: &TemplateStore, content: &str) -> Staging {
    let manifest = example();
    let staging = store.begin(&manifest.name).unwrap();
    for entry in &manifest.files {
        let text = format!("{} {content}", entry.name);
        // Equal lengths, so that only the content tells two files apart.
        std::fs::write(staging.path(&entry.name), format!("{text:>40}")).unwrap();
    }
    staging
}

pub(crate) fn wanted() -> Fingerprint {
    let manifest = example();
    Fingerprint {
        host: HostFingerprint {
            engine: manifest.engine,
            agent_hash: manifest.agent.hash,
        },
        recipe_hash: manifest.recipe.hash,
    }
}

fn store_of(root: &tempfile::TempDir) -> TemplateStore {
    TemplateStore::new(root.path().join("templates"))
}

#[test]
fn published_template_is_found_and_read_only() {
    use std::os::unix::fs::MetadataExt;
    let (root, template) = published();
    let store = store_of(&root);
    let found = store.open_current(&example().name, &wanted()).unwrap();
    assert_eq!(found.as_ref(), Some(&template));
    for entry in std::fs::read_dir(template.directory()).unwrap() {
        let mode = entry.unwrap().metadata().unwrap().mode();
        assert_eq!(mode & 0o777, 0o444);
    }
    let spec = template.restore_spec();
    assert_eq!(spec.disks.sealed.len(), 2);
    assert!(spec.disks.sealed.iter().all(|path| path.exists()));
    let memory = spec.memory_image.file().unwrap();
    assert!(memory.exists() && spec.disks.base.exists());
}

#[test]
fn newest_fitting_version_wins() {
    let (root, first) = published();
    let store = store_of(&root);
    let second = publish(&store, "y");
    assert!(first.version() < second.version());
    let found = store
        .open_current(&example().name, &wanted())
        .unwrap()
        .unwrap();
    assert_eq!(found.version(), second.version());
    let mut other = wanted();
    other.host.engine.version = "later".to_owned();
    assert_eq!(store.open_current(&example().name, &other).unwrap(), None);
}

#[test]
fn unfinished_and_damaged_versions_are_passed_over() {
    let (root, template) = published();
    let store = store_of(&root);
    let parent = template.directory().parent().unwrap();
    std::fs::create_dir(parent.join("00000002-00000000")).unwrap();
    let damaged = publish(&store, "y");
    std::fs::remove_file(damaged.path(file_names::MEMORY_IMAGE)).unwrap();
    let found = store.open_current(&example().name, &wanted()).unwrap();
    assert_eq!(found, Some(template));
}

#[test]
fn nothing_is_visible_before_publish_and_nothing_is_left_after_drop() {
    let root = tempfile::tempdir().unwrap();
    let store = store_of(&root);
    let staging = stage(&store, "x");
    assert_eq!(store.versions(&example().name).unwrap(), []);
    assert_eq!(store.sweep().unwrap(), 0);
    let path = staging.directory().to_owned();
    drop(staging);
    assert!(!path.exists());
}

#[test]
fn incomplete_template_is_not_published() {
    let root = tempfile::tempdir().unwrap();
    let store = store_of(&root);
    let staging = stage(&store, "x");
    std::fs::remove_file(staging.path(file_names::KERNEL)).unwrap();
    let error = store.publish(staging, shared()).unwrap_err();
    assert!(matches!(error, PublishError::Manifest(_)), "{error}");
    assert_eq!(store.versions(&example().name).unwrap(), []);
}

#[test]
fn linked_files_are_not_published() {
    let root = tempfile::tempdir().unwrap();
    let store = store_of(&root);
    let staging = stage(&store, "x");
    std::os::unix::fs::symlink("/etc/hostname", staging.path("extra")).unwrap();
    let error = store.publish(staging, shared()).unwrap_err();
    assert!(
        matches!(&error, PublishError::Seal(SealFilesError::Seal { name, .. }) if name == "extra"),
        "{error}"
    );
}

#[test]
fn versions_in_use_survive_removal() {
    let (root, first) = published();
    let store = store_of(&root);
    let second = publish(&store, "y");
    let third = publish(&store, "z");
    let keep = HashSet::from([first.version().clone(), third.version().clone()]);
    let removed = store.remove_old_versions(&example().name, &keep).unwrap();
    assert_eq!(removed, [second.version().clone()]);
    assert!(first.directory().exists() && third.directory().exists());
    assert!(!second.directory().exists());
    assert_eq!(
        store.remove_old_versions(&example().name, &keep).unwrap(),
        []
    );
}

#[test]
fn memory_is_taken_with_holes() {
    use std::os::unix::fs::{FileExt, MetadataExt};
    let root = tempfile::tempdir().unwrap();
    let store = store_of(&root);
    let staging = store.begin(&example().name).unwrap();
    let source = root.path().join("memory");
    let file = File::create_new(&source).unwrap();
    file.write_all_at(&vec![0; 8 << 20], 0).unwrap();
    file.write_all_at(b"page", 5 << 20).unwrap();
    staging.take_memory(&source).unwrap();
    let metadata = staging.path(file_names::MEMORY_IMAGE).metadata().unwrap();
    assert_eq!(metadata.len(), 8 << 20);
    assert!(
        metadata.blocks() * 512 <= 256 << 10,
        "{} blocks",
        metadata.blocks()
    );
    assert!(!source.exists());
}

#[test]
fn the_disk_of_a_version_is_opened_without_its_memory() {
    let (root, template) = published();
    let store = store_of(&root);
    let name = &example().name;
    for memory in [file_names::MEMORY_IMAGE, file_names::DEVICE_STATE] {
        std::fs::remove_file(template.path(memory)).unwrap();
    }
    assert!(store.open_version(name, template.version()).is_err());
    let disk = store.open_disk(name, template.version()).unwrap();
    let verifier = crate::Verifier::new();
    verifier.verify_disk(&disk).unwrap();
    let spec = disk.restore_spec();
    assert_eq!(spec.memory_image, dayfly_vmm::MemoryImage::Zeros);
    assert!(spec.kernel.exists() && spec.initial_ram_disk.exists());
    assert_eq!(spec.disks, template.restore_spec().disks);
    // What a machine boots from must be what was published.
    std::fs::remove_file(&spec.kernel).unwrap();
    std::fs::write(&spec.kernel, format!("{:>40}", "another kernel")).unwrap();
    assert!(verifier.verify_disk(&disk).is_err());
    std::fs::remove_file(&spec.kernel).unwrap();
    assert!(store.open_disk(name, template.version()).is_err());
}

#[test]
fn a_version_of_one_project_is_nobody_elses_template() {
    let (root, everybodys) = published();
    let store = store_of(&root);
    let owned = ManifestDraft {
        project: Some(ProjectId::default_project()),
        ..shared()
    };
    let own = store.publish(stage(&store, "own"), owned).unwrap();
    let current = store.open_current(&example().name, &wanted()).unwrap();
    assert_eq!(current.as_ref(), Some(&everybodys));
    // Who knows it finds it.
    let found = store.open_version(&example().name, own.version());
    assert_eq!(found.unwrap(), own);
    assert_eq!(store.names().unwrap(), [example().name]);
}

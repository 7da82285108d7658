use std::os::unix::fs::PermissionsExt;

use super::*;

/// A directory with an empty store of roots in it.
struct Place {
    base: PathBuf,
    store: PathBuf,
    _directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        let store = base.join("roots");
        fs::create_dir(&store).unwrap();
        Self {
            base,
            store,
            _directory: directory,
        }
    }
}

fn spec(directory: &Path) -> EngineRootSpec {
    let firmware = directory.join("firmware.bin");
    fs::write(&firmware, "firmware").unwrap();
    EngineRootSpec {
        label: "sleep of this host".to_owned(),
        program: PathBuf::from("/bin/sleep"),
        files: vec![RootFile {
            source: firmware,
            target: PathBuf::from("/usr/share/firmware.bin"),
        }],
        mount_directories: vec![PathBuf::from("/run"), PathBuf::from("/template")],
        mount_files: vec![PathBuf::from("/disks/base")],
    }
}

#[test]
fn a_root_is_built_once_and_again_only_when_a_source_changes() {
    let Place { base, store, .. } = &Place::new();
    let spec = spec(base);
    let first = ensure_engine_root(&spec, store).unwrap();
    let second = ensure_engine_root(&spec, store).unwrap();
    assert!(first.was_built && !second.was_built);
    assert_eq!(first.path, second.path);
    fs::write(base.join("firmware.bin"), "newer firmware").unwrap();
    let third = ensure_engine_root(&spec, store).unwrap();
    assert!(third.was_built);
    assert_ne!(third.path, first.path);
    assert!(
        first.path.is_dir(),
        "an engine may still run in the older one"
    );
    assert_eq!(
        fs::read_dir(store).unwrap().count(),
        4,
        "two roots with a record each, and nothing unfinished"
    );
}

#[test]
fn a_root_holds_the_program_its_libraries_and_places_to_mount_on() {
    let Place { base, store, .. } = &Place::new();
    let spec = spec(base);
    let root = ensure_engine_root(&spec, store).unwrap().path;
    let program = root.join("bin/sleep").canonicalize().unwrap();
    assert!(program.starts_with(&root), "links stay inside the root");
    assert_eq!(
        fs::metadata(&program).unwrap().permissions().mode() & 0o7777,
        0o711
    );
    assert_eq!(
        fs::read_to_string(root.join("usr/share/firmware.bin")).unwrap(),
        "firmware"
    );
    for library in
        libraries::libraries_of(&spec.program, std::slice::from_ref(&spec.program)).unwrap()
    {
        let inside = root.join(library.strip_prefix("/").unwrap());
        assert_eq!(
            fs::metadata(inside).unwrap().len(),
            fs::metadata(&library).unwrap().len()
        );
    }
    for place in ["dev", "run", "template"] {
        assert_eq!(fs::read_dir(root.join(place)).unwrap().count(), 0);
    }
    assert_eq!(fs::metadata(root.join("disks/base")).unwrap().len(), 0);
}

#[test]
fn a_failed_build_leaves_nothing_and_names_the_file() {
    let Place { base, store, .. } = &Place::new();
    let mut absent = spec(base);
    absent.files.push(RootFile::same("/no/such/file"));
    assert!(matches!(
        ensure_engine_root(&absent, store),
        Err(EngineRootError::Read { path, .. }) if path == Path::new("/no/such/file")
    ));
    let mut blocked = spec(base);
    // A file where a directory has to be, found out only while building.
    blocked
        .mount_directories
        .push(PathBuf::from("/usr/share/firmware.bin"));
    assert!(matches!(
        ensure_engine_root(&blocked, store),
        Err(EngineRootError::Write { .. })
    ));
    let mut escaping = spec(base);
    escaping
        .mount_directories
        .push(PathBuf::from("/run/../../etc"));
    assert!(matches!(
        ensure_engine_root(&escaping, store),
        Err(EngineRootError::Path { .. })
    ));
    assert_eq!(fs::read_dir(store).unwrap().count(), 0);
}

#[test]
fn every_directory_of_a_root_lets_the_engine_pass() {
    let Place { base, store, .. } = &Place::new();
    let root = ensure_engine_root(&spec(base), store).unwrap().path;
    for place in ["", "usr", "usr/share", "disks"] {
        let mode = fs::metadata(root.join(place)).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode, 0o755, "{place:?}");
    }
}

#[test]
fn a_root_is_named_by_what_is_in_it() {
    let Place { base, store, .. } = &Place::new();
    let spec = spec(base);
    let first = ensure_engine_root(&spec, store).unwrap();
    // The same bytes in another file, as when a package is installed again.
    fs::remove_file(base.join("firmware.bin")).unwrap();
    fs::write(base.join("firmware.bin"), "firmware").unwrap();
    let again = ensure_engine_root(&spec, store).unwrap();
    assert!(!again.was_built);
    assert_eq!(again.id, first.id);
}

#[test]
fn kept_roots_are_told_apart_checked_and_removed() {
    let Place { base, store, .. } = &Place::new();
    let mut spec = spec(base);
    let first = ensure_engine_root(&spec, store).unwrap();
    fs::write(base.join("firmware.bin"), "newer firmware").unwrap();
    spec.label = "a later sleep".to_owned();
    let second = ensure_engine_root(&spec, store).unwrap();
    let labels = |store: &Path| {
        let roots = kept_roots(store).unwrap();
        let mut labels: Vec<String> = roots.into_iter().map(|root| root.label).collect();
        labels.sort();
        labels
    };
    assert_eq!(labels(store), ["a later sleep", "sleep of this host"]);
    check_root(store, &first.id).unwrap();
    let changed = first.path.join("usr/share/firmware.bin");
    fs::write(&changed, "FIRMWARE").unwrap();
    assert!(matches!(
        check_root(store, &first.id),
        Err(RootDamage::Changed { path }) if path == Path::new("/usr/share/firmware.bin")
    ));
    check_root(store, &second.id).unwrap();
    fs::write(retired_mark(store, &first.id), "").unwrap();
    remove_root(store, &first.id).unwrap();
    remove_root(store, &first.id).unwrap();
    assert_eq!(labels(store), ["a later sleep"]);
    assert_eq!(fs::read_dir(store).unwrap().count(), 2);
}

#[test]
fn what_a_crash_left_is_swept_and_a_root_without_its_record_is_built_anew() {
    let Place { base, store, .. } = &Place::new();
    let spec = spec(base);
    let root = ensure_engine_root(&spec, store).unwrap();
    for name in [".building-abc-1", ".removed-abc"] {
        fs::create_dir_all(store.join(name).join("usr")).unwrap();
    }
    sweep_roots(store).unwrap();
    assert_eq!(fs::read_dir(store).unwrap().count(), 2);
    // A record whose root never came.
    fs::remove_dir_all(&root.path).unwrap();
    assert!(kept_roots(store).unwrap().is_empty());
    assert!(ensure_engine_root(&spec, store).unwrap().was_built);
    // A root of an older program has no record, and gets one.
    fs::remove_file(root.path.with_extension("json")).unwrap();
    assert!(kept_roots(store).unwrap().is_empty());
    assert_eq!(roots_without_record(store).unwrap(), [root.id]);
    ensure_engine_root(&spec, store).unwrap();
    assert_eq!(kept_roots(store).unwrap().len(), 1);
}

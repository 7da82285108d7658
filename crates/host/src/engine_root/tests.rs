use std::os::unix::fs::PermissionsExt;

use super::*;

fn spec(directory: &Path) -> EngineRootSpec {
    let firmware = directory.join("firmware.bin");
    fs::write(&firmware, "firmware").unwrap();
    EngineRootSpec {
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
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().canonicalize().unwrap();
    let store = base.join("roots");
    fs::create_dir(&store).unwrap();
    let spec = spec(&base);
    let first = ensure_engine_root(&spec, &store).unwrap();
    let second = ensure_engine_root(&spec, &store).unwrap();
    assert!(first.was_built && !second.was_built);
    assert_eq!(first.path, second.path);
    fs::write(base.join("firmware.bin"), "newer firmware").unwrap();
    let third = ensure_engine_root(&spec, &store).unwrap();
    assert!(third.was_built);
    assert_ne!(third.path, first.path);
    assert!(
        first.path.is_dir(),
        "an engine may still run in the older one"
    );
    assert_eq!(
        fs::read_dir(&store).unwrap().count(),
        2,
        "nothing unfinished is left"
    );
}

#[test]
fn a_root_holds_the_program_its_libraries_and_places_to_mount_on() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().canonicalize().unwrap();
    let spec = spec(&base);
    let root = ensure_engine_root(&spec, &base).unwrap().path;
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
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().canonicalize().unwrap();
    let store = base.join("roots");
    fs::create_dir(&store).unwrap();
    let mut absent = spec(&base);
    absent.files.push(RootFile::same("/no/such/file"));
    assert!(matches!(
        ensure_engine_root(&absent, &store),
        Err(EngineRootError::Read { path, .. }) if path == Path::new("/no/such/file")
    ));
    let mut blocked = spec(&base);
    // A file where a directory has to be, found out only while building.
    blocked
        .mount_directories
        .push(PathBuf::from("/usr/share/firmware.bin"));
    assert!(matches!(
        ensure_engine_root(&blocked, &store),
        Err(EngineRootError::Write { .. })
    ));
    let mut escaping = spec(&base);
    escaping
        .mount_directories
        .push(PathBuf::from("/run/../../etc"));
    assert!(matches!(
        ensure_engine_root(&escaping, &store),
        Err(EngineRootError::Path { .. })
    ));
    assert_eq!(fs::read_dir(&store).unwrap().count(), 0);
}

#[test]
fn every_directory_of_a_root_lets_the_engine_pass() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().canonicalize().unwrap();
    let root = ensure_engine_root(&spec(&base), &base).unwrap().path;
    for place in ["", "usr", "usr/share", "disks"] {
        let mode = fs::metadata(root.join(place)).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode, 0o755, "{place:?}");
    }
}

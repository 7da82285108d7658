//! What is written is read back, and what was changed in between is refused.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use super::*;

fn path(text: &str) -> BackupPath {
    BackupPath::parse(text).unwrap()
}

/// Keeps what is written to it.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn sparse(directory: &Path) -> File {
    let mut options = File::options();
    let options = options.create_new(true).read(true).write(true);
    let file = options.open(directory.join("sparse")).unwrap();
    file.set_len(8 << 20).unwrap();
    file.write_all_at(b"in the middle", 4 << 20).unwrap();
    file
}

fn write(place: &Path, destination: BackupDestination) -> BackupManifest {
    let mut writer = BackupWriter::begin(destination).unwrap();
    writer.directory(path("node"), 0o700).unwrap();
    writer.directory(path("node/empty"), 0o755).unwrap();
    writer.bytes(path("admin.key"), 0o600, b"secret").unwrap();
    let long = format!("node/{}", "long-".repeat(40));
    writer.bytes(path(&long), 0o444, b"").unwrap();
    let source = sparse(place);
    writer
        .file(path("node/disk.img"), 0o444, &source, &mut |_| true)
        .unwrap();
    writer.link(path("node/link"), path("empty")).unwrap();
    let fill = &mut |mut file: &File| file.write_all(b"filled");
    writer
        .filled(path("node/late"), 0o640, fill, &mut |_| true)
        .unwrap();
    let contents = serde_json::json!({"snapshots": 1});
    writer.finish(SystemTime::now(), "0.1.0", contents).unwrap()
}

fn to_directory(place: &Path) -> (PathBuf, BackupManifest) {
    let backup = place.join("backup");
    let manifest = write(place, BackupDestination::Directory(backup.clone()));
    (backup, manifest)
}

fn to_stream(place: &Path) -> (Vec<u8>, BackupManifest) {
    let kept = Kept::default();
    let scratch = place.join("scratch");
    fs::create_dir(&scratch).unwrap();
    let destination = BackupDestination::Stream {
        stream: Box::new(kept.clone()),
        scratch: scratch.clone(),
    };
    let manifest = write(place, destination);
    assert_eq!(fs::read_dir(scratch).unwrap().count(), 0);
    let bytes = kept.0.lock().unwrap().clone();
    (bytes, manifest)
}

fn stream(bytes: Vec<u8>) -> BackupSource {
    BackupSource::Stream(Box::new(std::io::Cursor::new(bytes)))
}

fn check(source: BackupSource) -> Result<BackupManifest, ReadBackupError> {
    read(source, None, &mut |_| true)
}

fn is_whole(top: &Path) {
    let mode = |name: &str| fs::metadata(top.join(name)).unwrap().permissions().mode() & 0o7777;
    assert_eq!(fs::read(top.join("admin.key")).unwrap(), b"secret");
    assert_eq!(fs::read(top.join("node/late")).unwrap(), b"filled");
    assert_eq!(
        [mode("admin.key"), mode("node"), mode("node/empty")],
        [0o600, 0o700, 0o755]
    );
    assert_eq!([mode("node/disk.img"), mode("node/late")], [0o444, 0o640]);
    let disk = top.join("node/disk.img");
    let bytes = fs::read(&disk).unwrap();
    assert_eq!(
        (bytes.len(), &bytes[4 << 20..][..13]),
        (8 << 20, &b"in the middle"[..])
    );
    assert!(
        fs::metadata(disk).unwrap().blocks() * 512 < 1 << 20,
        "holes are filled"
    );
    assert_eq!(
        fs::read_link(top.join("node/link")).unwrap(),
        Path::new("empty")
    );
}

#[test]
fn a_directory_and_a_stream_give_back_the_same() {
    let place = tempfile::tempdir().unwrap();
    let (backup, in_directory) = to_directory(place.path());
    let other = tempfile::tempdir().unwrap();
    let (bytes, in_stream) = to_stream(other.path());
    assert_eq!(in_directory.entries, in_stream.entries);
    assert!(
        bytes.len() < 1 << 20,
        "holes are in the stream: {}",
        bytes.len()
    );
    assert_eq!(
        check(BackupSource::Directory(backup.clone())).unwrap(),
        in_directory
    );
    assert_eq!(check(stream(bytes.clone())).unwrap(), in_stream);
    for (name, source) in [
        ("one", BackupSource::Directory(backup)),
        ("two", stream(bytes)),
    ] {
        let target = BackupTarget::make(&place.path().join(name)).unwrap();
        read(source, Some(&target), &mut |_| true).unwrap();
        is_whole(target.path());
    }
}

#[test]
fn a_byte_that_was_changed_is_found_wherever_it_is() {
    let place = tempfile::tempdir().unwrap();
    let (backup, _) = to_directory(place.path());
    for name in ["data/admin.key", "data/node/disk.img", "manifest.json"] {
        let file = backup.join(name);
        let right = fs::read(&file).unwrap();
        let mut wrong = right.clone();
        wrong[right.len() / 2] ^= 1;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&file, wrong).unwrap();
        let error = check(BackupSource::Directory(backup.clone())).unwrap_err();
        let is_found = matches!(
            error,
            ReadBackupError::Differs { .. } | ReadBackupError::Manifest(ManifestRefusal::Checksum)
        );
        assert!(is_found, "{name}: {error}");
        fs::write(&file, right).unwrap();
    }
    check(BackupSource::Directory(backup)).unwrap();
}

#[test]
fn a_stream_that_was_cut_or_changed_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let (bytes, _) = to_stream(place.path());
    for length in [0, 512, bytes.len() / 2, bytes.len() - 2048] {
        assert!(
            check(stream(bytes[..length].to_vec())).is_err(),
            "cut at {length}"
        );
    }
    let at = bytes.windows(6).position(|part| part == b"secret").unwrap();
    let mut wrong = bytes;
    wrong[at] = b'S';
    let error = check(stream(wrong)).unwrap_err();
    assert!(matches!(error, ReadBackupError::Differs { .. }), "{error}");
}

#[test]
fn what_is_missing_short_or_beside_the_list_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let (backup, _) = to_directory(place.path());
    let refusal = || check(BackupSource::Directory(backup.clone())).unwrap_err();
    let extra = backup.join("data/extra");
    fs::write(&extra, "").unwrap();
    assert!(matches!(refusal(), ReadBackupError::Unlisted { .. }));
    fs::remove_file(extra).unwrap();
    let key = backup.join("data/admin.key");
    fs::write(&key, "secre").unwrap();
    assert!(matches!(refusal(), ReadBackupError::Differs { .. }));
    fs::remove_file(&key).unwrap();
    assert!(matches!(refusal(), ReadBackupError::Missing { .. }));
    std::os::unix::fs::symlink("/etc/hostname", &key).unwrap();
    assert!(matches!(refusal(), ReadBackupError::Differs { .. }));
    fs::remove_file(backup.join("manifest.json")).unwrap();
    assert!(matches!(refusal(), ReadBackupError::NoManifest));
}

#[test]
fn a_later_format_is_refused_by_its_number_alone() {
    let place = tempfile::tempdir().unwrap();
    let (backup, manifest) = to_directory(place.path());
    let mut value = serde_json::to_value(&manifest).unwrap();
    value["format"] = (BACKUP_FORMAT + 1).into();
    value["entries"] = "of another kind".into();
    let mut text = serde_json::to_vec(&value).unwrap();
    let checksum = blake3::hash(&text).to_hex();
    text.pop();
    text.extend(format!(",\"checksum\":\"{checksum}\"}}\n").bytes());
    fs::write(backup.join("manifest.json"), text).unwrap();
    let error = check(BackupSource::Directory(backup)).unwrap_err();
    let newer = ManifestRefusal::Newer {
        found: BACKUP_FORMAT + 1,
    };
    let ReadBackupError::Manifest(found) = error else {
        panic!("{error}");
    };
    assert_eq!(found.to_string(), newer.to_string());
}

#[test]
fn nothing_stays_of_a_backup_that_was_not_finished() {
    let place = tempfile::tempdir().unwrap();
    let backup = place.path().join("backup");
    let begin = || BackupWriter::begin(BackupDestination::Directory(backup.clone()));
    let mut writer = begin().unwrap();
    writer.bytes(path("a"), 0o600, b"x").unwrap();
    let source = sparse(place.path());
    let stopped = writer.file(path("b"), 0o600, &source, &mut |_| false);
    assert!(stopped.unwrap_err().is_stopped());
    drop(writer);
    assert!(!backup.exists());
    // A directory of somebody else's is left, and one with something in it is refused.
    fs::create_dir(&backup).unwrap();
    drop(begin().unwrap());
    assert_eq!(fs::read_dir(&backup).unwrap().count(), 0);
    fs::write(backup.join("theirs"), "").unwrap();
    assert!(matches!(begin(), Err(WriteBackupError::NotEmpty { .. })));
    assert!(backup.join("theirs").exists());
}

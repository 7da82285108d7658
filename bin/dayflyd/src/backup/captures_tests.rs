//! A backup has the captures that somebody needs, with all that they lie on.

use std::fs::File;
use std::path::Path;
use std::time::SystemTime;

use dayfly_backup::{BackupDestination, BackupWriter};
use dayfly_snapshots::capture::{MemoryBase, survey};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::backup::progress::Progress;

/// The frozen format of a capture of a sandbox that was booted on the disk of another capture.
const OVER_ZEROS: &[u8] = include_bytes!("../../../../crates/snapshots/schema/capture-2.json");

/// Publishes a capture whose files have holes alone.
fn publish(captures: &Path, manifest: &CaptureManifest) {
    let directory = captures.join(manifest.id.as_str());
    fs::create_dir_all(&directory).unwrap();
    for file in &manifest.files {
        let made = File::create(directory.join(&file.name)).unwrap();
        made.set_len(file.bytes).unwrap();
    }
    let text = document::encode(manifest).unwrap();
    fs::write(directory.join(file_names::MANIFEST), text).unwrap();
}

fn back_up(held: &HeldCaptures, needed: &BTreeSet<&SnapshotId>, to: &Path) {
    let mut progress = Progress::new("backed up", CancellationToken::new());
    let writer = BackupWriter::begin(BackupDestination::Directory(to.to_owned())).unwrap();
    let mut output = Output::new(writer, &mut progress);
    for directory in ["node", "node/captures"] {
        output.directory_of_mode(directory, 0o700).unwrap();
    }
    held.add_to(&mut output, needed).unwrap();
    let writer = output.into_writer();
    let contents = serde_json::json!({});
    writer.finish(SystemTime::now(), "0.1.0", contents).unwrap();
}

#[test]
fn a_capture_over_zeros_is_kept_with_the_disk_that_it_lies_on() {
    let place = tempfile::tempdir().unwrap();
    let [source, stage, backup] = ["captures", "stage", "backup"].map(|it| place.path().join(it));
    let id = SnapshotId::parse("snap-local-b").unwrap();
    let over_zeros = document::decode(OVER_ZEROS, &id).unwrap();
    assert_eq!(over_zeros.memory_base, MemoryBase::Zeros);
    let below = over_zeros.disk_below[0].clone();
    // Nobody sees the one below any more, and nobody needs a third one.
    let hidden = |id: &SnapshotId| CaptureManifest {
        format: 1,
        id: id.clone(),
        deleted: true,
        memory_base: MemoryBase::Template,
        disk_below: Vec::new(),
        ..over_zeros.clone()
    };
    publish(&source, &over_zeros);
    publish(&source, &hidden(&below));
    publish(
        &source,
        &hidden(&SnapshotId::parse("snap-local-c").unwrap()),
    );

    let mut held = HeldCaptures::new(source, stage);
    held.hold_new().unwrap();
    let needed = held.needed(std::iter::empty(), false);
    assert_eq!(needed, BTreeSet::from([&below, &id]));
    assert!(held.incomplete(&needed).is_empty());
    assert_eq!(held.snapshots(), 1);
    let version = over_zeros.template_version.clone();
    let versions = held.template_versions(&needed);
    assert_eq!(versions, Some(vec![version; 2]), "its disk lies on that");
    back_up(&held, &needed, &backup);

    let captures = backup.join("data/node/captures");
    let (mut found, damaged) = survey(&captures).unwrap();
    found.sort_by(|one, other| one.id.cmp(&other.id));
    assert_eq!(found, [hidden(&below), over_zeros.clone()]);
    assert!(damaged.is_empty(), "{damaged:?}");
    for file in &over_zeros.files {
        let copied = fs::metadata(captures.join(id.as_str()).join(&file.name));
        assert_eq!(copied.unwrap().len(), file.bytes, "{}", file.name);
    }
}

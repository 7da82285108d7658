//! Archives that want to write where they should not.

use std::fs;
use std::path::Path;

use super::*;

/// An archive with these members: kind, name and link target.
fn archive(members: &[(tar::EntryType, &str, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (kind, name, target) in members {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_mode(0o644);
        header.set_size(0);
        // By hand: the library refuses to write such names.
        header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
        header.as_gnu_mut().unwrap().linkname[..target.len()].copy_from_slice(target.as_bytes());
        header.set_cksum();
        builder.append(&header, std::io::empty()).unwrap();
    }
    builder.into_inner().unwrap()
}

fn unpack(place: &Path, bytes: Vec<u8>) -> ReadBackupError {
    let target = place.join("target");
    let made = BackupTarget::make(&target).unwrap();
    let source = BackupSource::Stream(Box::new(std::io::Cursor::new(bytes)));
    let error = read(source, Some(&made), &mut |_| true).unwrap_err();
    fs::remove_dir_all(target).unwrap();
    let left = fs::read_dir(place).unwrap().count();
    assert_eq!(left, 1, "only what was there before");
    assert_eq!(fs::read_dir(place.join("victim")).unwrap().count(), 0);
    error
}

#[test]
fn no_name_leads_out_of_the_target() {
    use tar::EntryType::{Directory, Regular};
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("victim")).unwrap();
    let outside = format!("{}/victim/x", place.path().display());
    for name in [
        "data/../../victim/x",
        "../victim/x",
        "data/..",
        "data/a/../../../victim/x",
    ] {
        let error = unpack(place.path(), archive(&[(Regular, name, "")]));
        assert!(matches!(error, ReadBackupError::Path(_)), "{name}: {error}");
    }
    let error = unpack(place.path(), archive(&[(Regular, &outside, "")]));
    assert!(matches!(error, ReadBackupError::Path(_)), "{error}");
    for name in ["victim/x", "data", "database/x"] {
        let error = unpack(place.path(), archive(&[(Directory, name, "")]));
        assert!(
            matches!(error, ReadBackupError::Unlisted { .. }),
            "{name}: {error}"
        );
    }
}

#[test]
fn nothing_is_written_through_a_link() {
    use tar::EntryType::{Regular, Symlink};
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("victim")).unwrap();
    for target in ["../victim", "/etc", "."] {
        let members = [(Symlink, "data/way", target), (Regular, "data/way/x", "")];
        let error = unpack(place.path(), archive(&members));
        // The link is not there when the file is made, so there is no such directory.
        assert!(
            matches!(error, ReadBackupError::Unpack { .. }),
            "{target}: {error}"
        );
    }
}

#[test]
fn devices_pipes_and_second_names_are_refused() {
    use tar::EntryType::{Block, Char, Fifo, Link};
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("victim")).unwrap();
    for kind in [Block, Char, Fifo, Link] {
        let error = unpack(place.path(), archive(&[(kind, "data/x", "data/y")]));
        assert!(
            matches!(error, ReadBackupError::Kind { .. }),
            "{kind:?}: {error}"
        );
    }
}

#[test]
fn a_name_comes_once_and_without_a_list_there_is_no_backup() {
    use tar::EntryType::{Directory, Regular};
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("victim")).unwrap();
    let twice = [(Regular, "data/x", ""), (Regular, "data/x", "")];
    let error = unpack(place.path(), archive(&twice));
    assert!(matches!(error, ReadBackupError::Unpack { .. }), "{error}");
    let error = unpack(place.path(), archive(&[(Directory, "data/x", "")]));
    assert!(matches!(error, ReadBackupError::NoManifest), "{error}");
}

/// A list that names what no list should.
#[test]
fn a_list_cannot_name_what_leads_out_either() {
    let entry = |text: &str| serde_json::from_str::<BackupEntry>(text);
    for text in [
        r#"{"kind":"directory","path":"../x","mode":448}"#,
        r#"{"kind":"link","path":"x","target":"../y"}"#,
        r#"{"kind":"link","path":"x","target":"/etc"}"#,
        r#"{"kind":"device","path":"x"}"#,
        r#"{"kind":"directory","path":"x","mode":448,"owner":0}"#,
    ] {
        assert!(entry(text).is_err(), "{text}");
    }
    let manifest = |entries: &[&str]| BackupManifest {
        format: BACKUP_FORMAT,
        created_at: time::OffsetDateTime::UNIX_EPOCH,
        program: String::new(),
        contents: serde_json::Value::Null,
        entries: entries.iter().map(|text| entry(text).unwrap()).collect(),
    };
    let directory = r#"{"kind":"directory","path":"x","mode":448}"#;
    let link = r#"{"kind":"link","path":"x","target":"y"}"#;
    let below = r#"{"kind":"directory","path":"x/y","mode":448}"#;
    let special = r#"{"kind":"directory","path":"z","mode":2541}"#;
    manifest(&[directory, below]).encode().unwrap();
    let refused = |entries: &[&str]| manifest(entries).encode().unwrap_err();
    assert!(matches!(
        refused(&[link, below]),
        ManifestRefusal::Nowhere { .. }
    ));
    assert!(matches!(refused(&[below]), ManifestRefusal::Nowhere { .. }));
    assert!(matches!(
        refused(&[directory, link]),
        ManifestRefusal::Twice { .. }
    ));
    assert!(matches!(refused(&[special]), ManifestRefusal::Odd { .. }));
}

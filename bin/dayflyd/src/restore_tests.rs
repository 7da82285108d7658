//! A restore makes all of a directory or nothing, and writes over nothing.

use std::time::SystemTime;

use dayfly_backup::{BackupDestination, BackupPath, BackupWriter};
use dayfly_control::store::Store;

use super::*;

/// A backup of an installation that has nothing.
async fn backup(place: &Path, database: &Path) -> PathBuf {
    let path = place.join("backup");
    let mut writer = BackupWriter::begin(BackupDestination::Directory(path.clone())).unwrap();
    let at = |text: &str| BackupPath::parse(text).unwrap();
    let instance = br#"{"instance": "0badcafe", "first_uid": 1000}"#;
    writer.bytes(at("instance.json"), 0o644, instance).unwrap();
    writer.directory(at("control"), 0o700).unwrap();
    let database = fs::File::open(database).unwrap();
    writer
        .file(at("control/dayfly.db"), 0o600, &database, &mut |_| true)
        .unwrap();
    let contents = serde_json::json!({
        "instance": "0badcafe", "snapshots": 0, "sleepers": [], "unreadable": [],
        "volumes": [], "left_out": [],
    });
    writer.finish(SystemTime::now(), "0.1.0", contents).unwrap();
    path
}

async fn database(place: &Path) -> PathBuf {
    let path = place.join("database/dayfly.db");
    fs::create_dir(place.join("database")).unwrap();
    Store::open(&path).await.unwrap().close().await;
    path
}

fn arguments(place: &Path, from: PathBuf) -> RestoreArguments {
    RestoreArguments {
        data_dir: place.join("data"),
        from,
        json: false,
    }
}

/// What is beside the backup and the database.
fn others(place: &Path) -> Vec<String> {
    let items = fs::read_dir(place).unwrap().flatten();
    let names = items.map(|item| item.file_name().to_string_lossy().into_owned());
    names
        .filter(|name| !["backup", "database"].contains(&name.as_str()))
        .collect()
}

#[tokio::test]
async fn a_directory_is_made_where_there_is_none_or_an_empty_one() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let from = backup(place, &database(place).await).await;
    let arguments = arguments(place, from);
    // Left by one that was killed; no process has this number.
    fs::create_dir_all(place.join(".data.restoring-4194999/half")).unwrap();
    for _ in 0..2 {
        let restored = run(&arguments).await.unwrap();
        assert_eq!(
            restored.data_dir,
            place.join("data").canonicalize().unwrap()
        );
        assert_eq!(others(place), ["data"]);
        let mode = fs::metadata(place.join("data"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o7777, ROOT_MODE);
        let owner = fs::metadata(place.join("data/control/dayfly.db"))
            .unwrap()
            .uid();
        assert_eq!(owner, 1000, "the control process cannot write it");
        fs::remove_dir_all(place.join("data")).unwrap();
        fs::create_dir(place.join("data")).unwrap();
    }
}

#[tokio::test]
async fn what_is_there_is_never_written_over() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let from = backup(place, &database(place).await).await;
    let arguments = arguments(place, from);
    fs::create_dir(place.join("data")).unwrap();
    fs::write(place.join("data/file"), "theirs").unwrap();
    let error = run(&arguments).await.unwrap_err().to_string();
    assert!(
        error.contains("not empty") && error.contains("purge"),
        "{error}"
    );
    assert_eq!(others(place), ["data"]);
    assert_eq!(fs::read(place.join("data/file")).unwrap(), b"theirs");
    fs::remove_dir_all(place.join("data")).unwrap();
    fs::write(place.join("data"), "").unwrap();
    run(&arguments).await.unwrap_err();
}

#[tokio::test]
async fn a_backup_that_is_not_right_makes_nothing() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let from = backup(place, &database(place).await).await;
    let arguments = arguments(place, from.clone());
    let file = from.join("data/instance.json");
    let right = fs::read(&file).unwrap();
    fs::write(&file, b"another").unwrap();
    run(&arguments).await.unwrap_err();
    assert!(others(place).is_empty(), "{:?}", others(place));
    fs::write(&file, right).unwrap();
    fs::remove_file(from.join("manifest.json")).unwrap();
    run(&arguments).await.unwrap_err();
    assert!(others(place).is_empty(), "{:?}", others(place));
}

#[tokio::test]
async fn a_database_that_is_no_database_is_refused_before_it_takes_its_place() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    fs::write(
        place.join("database"),
        "its digest is right, and it is no database",
    )
    .unwrap();
    let from = backup(place, &place.join("database")).await;
    let error = run(&arguments(place, from)).await.unwrap_err();
    assert!(format!("{error:#}").contains("database"), "{error:#}");
    assert!(others(place).is_empty(), "{:?}", others(place));
}

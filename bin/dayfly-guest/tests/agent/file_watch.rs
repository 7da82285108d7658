//! What a watch promises: everything is told, or it is told that something was not.

use std::collections::BTreeSet;
use std::path::Path;

use dayfly_guest_client::{AgentClient, WatchLines};
use dayfly_guest_proto::GuestErrorCode;
use dayfly_types::file::{WatchEvent, WatchKind};
use dayfly_types::limits::{WATCH_DIRECTORIES_MAX, WATCHES_MAX};

use crate::files::{ROOT, code};
use crate::support::{Guest, within};

async fn watch(client: &AgentClient, path: &Path, recursive: bool) -> WatchLines {
    let path = path.to_str().unwrap();
    let mut lines = client.watch_directory(path, ROOT, recursive).await.unwrap();
    assert_eq!(next(&mut lines).await.kind, WatchKind::Ready);
    lines
}

async fn next(lines: &mut WatchLines) -> WatchEvent {
    within(lines.next())
        .await
        .unwrap()
        .expect("the watch goes on")
}

/// Everything up to the creation of a file that comes last.
async fn until_created(lines: &mut WatchLines, last: &str) -> Vec<WatchEvent> {
    let mut events = Vec::new();
    loop {
        let event = next(lines).await;
        if event.kind == WatchKind::Created && event.path == last {
            return events;
        }
        events.push(event);
    }
}

fn words(events: &[WatchEvent], root: &Path) -> Vec<String> {
    let root = root.to_str().unwrap();
    let short = |path: &str| path.replace(root, "");
    let word = |event: &WatchEvent| {
        let from = event.from.as_deref().map(short).unwrap_or_default();
        let kind = format!("{:?}", event.kind).to_lowercase();
        format!("{kind} {}{from}", short(&event.path))
    };
    events.iter().map(word).collect()
}

#[tokio::test]
async fn changes_are_told_in_their_order() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let directory = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let root = directory.path();
    let mut lines = watch(&client, root, false).await;
    std::fs::write(root.join("a"), "x").unwrap();
    std::fs::rename(root.join("a"), root.join("b")).unwrap();
    std::fs::rename(root.join("b"), elsewhere.path().join("b")).unwrap();
    std::fs::rename(elsewhere.path().join("b"), root.join("c")).unwrap();
    std::fs::remove_file(root.join("c")).unwrap();
    std::fs::create_dir(root.join("d")).unwrap();
    std::fs::write(root.join("d/inner"), "not told").unwrap();
    let last = root.join("last");
    std::fs::write(&last, "").unwrap();
    let events = until_created(&mut lines, last.to_str().unwrap()).await;
    assert_eq!(
        words(&events, root),
        [
            "created /a",
            "modified /a",
            "moved /b/a",
            "removed /b",
            "moved /c",
            "removed /c",
            "created /d",
        ]
    );
    assert!(events[6].is_dir && !events[0].is_dir);
}

#[tokio::test]
async fn directories_that_come_later_are_watched_with_what_is_in_them() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    std::fs::create_dir_all(root.join("old/deep")).unwrap();
    let mut lines = watch(&client, root, true).await;
    let mut wanted = BTreeSet::new();
    for number in 0..50 {
        let place = root.join(format!("new-{number}/b/c"));
        std::fs::create_dir_all(&place).unwrap();
        for (file, place) in [("f", place.as_path()), ("g", place.parent().unwrap())] {
            std::fs::write(place.join(file), "x").unwrap();
            wanted.insert(place.join(file).to_str().unwrap().to_owned());
        }
    }
    std::fs::write(root.join("old/deep/file"), "x").unwrap();
    wanted.insert(root.join("old/deep/file").to_str().unwrap().to_owned());
    let last = root.join("last");
    std::fs::write(&last, "").unwrap();
    let events = until_created(&mut lines, last.to_str().unwrap()).await;
    let created: Vec<&str> = events
        .iter()
        .filter(|event| event.kind == WatchKind::Created && !event.is_dir)
        .map(|event| event.path.as_str())
        .collect();
    let once: BTreeSet<String> = created.iter().map(|path| (*path).to_owned()).collect();
    assert_eq!(once, wanted);
    assert_eq!(created.len(), wanted.len(), "something was told twice");
}

#[tokio::test]
async fn a_moved_directory_is_told_under_its_new_path_and_one_outside_not_at_all() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let directory = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let root = directory.path();
    std::fs::create_dir_all(root.join("a/deep")).unwrap();
    let mut lines = watch(&client, root, true).await;
    std::fs::rename(root.join("a"), root.join("b")).unwrap();
    std::fs::write(root.join("b/deep/file"), "x").unwrap();
    let first = next(&mut lines).await;
    let second = next(&mut lines).await;
    assert_eq!(
        words(&[first, second], root),
        ["moved /b/a", "created /b/deep/file"]
    );
    assert_eq!(next(&mut lines).await.kind, WatchKind::Modified);
    std::fs::rename(root.join("b"), elsewhere.path().join("b")).unwrap();
    assert_eq!(words(&[next(&mut lines).await], root), ["removed /b"]);
    std::fs::write(elsewhere.path().join("b/deep/other"), "x").unwrap();
    std::fs::rename(elsewhere.path().join("b"), root.join("c")).unwrap();
    let last = root.join("last");
    std::fs::write(&last, "").unwrap();
    let events = until_created(&mut lines, last.to_str().unwrap()).await;
    let mut told = words(&events, root);
    told.sort();
    assert_eq!(
        told,
        [
            "created /c/deep",
            "created /c/deep/file",
            "created /c/deep/other",
            "moved /c",
        ]
    );
}

#[tokio::test]
async fn ten_thousand_events_come_through_or_leave_a_mark() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().to_owned();
    let mut lines = watch(&client, &root, false).await;
    let maker = std::thread::spawn({
        let root = root.clone();
        move || {
            for number in 0..10_000 {
                std::fs::write(root.join(format!("file-{number}")), "").unwrap();
            }
            std::fs::write(root.join("last"), "").unwrap();
        }
    });
    let last = root.join("last");
    let events = until_created(&mut lines, last.to_str().unwrap()).await;
    maker.join().unwrap();
    let created = |event: &&WatchEvent| event.kind == WatchKind::Created;
    let overflows = |event: &&WatchEvent| event.kind == WatchKind::Overflow;
    let created = events.iter().filter(created).count();
    if events.iter().filter(overflows).count() == 0 {
        assert_eq!(created, 10_000);
    }
}

#[tokio::test]
async fn a_reader_that_sleeps_finds_a_mark_and_the_watch_goes_on() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let mut lines = watch(&client, root, true).await;
    // More than the queues on the way hold together. Nobody reads meanwhile.
    for number in 0..30_000 {
        let path = root.join(format!("a-name-of-some-length-{number}"));
        std::fs::write(path, "").unwrap();
    }
    let mut told = 0;
    while next(&mut lines).await.kind != WatchKind::Overflow {
        told += 1;
    }
    assert!(told >= 16_384, "only {told} came before the mark");
    // What comes from now on is told again, in new directories, too.
    std::fs::create_dir(root.join("new")).unwrap();
    let last = root.join("new/last");
    std::fs::write(&last, "").unwrap();
    until_created(&mut lines, last.to_str().unwrap()).await;
}

#[tokio::test]
async fn the_end_of_the_directory_is_the_end_of_the_watch() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("watched");
    std::fs::create_dir(&root).unwrap();
    let mut lines = watch(&client, &root, true).await;
    std::fs::remove_dir(&root).unwrap();
    let event = next(&mut lines).await;
    assert_eq!(event.kind, WatchKind::Removed);
    assert_eq!(event.path, root.to_str().unwrap());
    assert!(within(lines.next()).await.unwrap().is_none());
}

#[tokio::test]
async fn watches_have_a_limit_and_end_with_their_reader() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    let refused = client
        .watch_directory(file.to_str().unwrap(), ROOT, false)
        .await;
    assert_eq!(code(refused), GuestErrorCode::NotDirectory);
    let mut open = Vec::new();
    for _ in 0..WATCHES_MAX {
        open.push(watch(&client, directory.path(), false).await);
    }
    let path = directory.path().to_str().unwrap();
    let refused = client.watch_directory(path, ROOT, false).await;
    assert_eq!(code(refused), GuestErrorCode::TooMany);
    drop(open);
    within(async {
        while client.watch_directory(path, ROOT, false).await.is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn more_directories_than_a_watch_holds_are_refused_or_marked() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    for number in 0..WATCH_DIRECTORIES_MAX - 1 {
        std::fs::create_dir(root.join(format!("d{number}"))).unwrap();
    }
    let mut lines = watch(&client, root, true).await;
    std::fs::create_dir(root.join("one-too-many")).unwrap();
    let first = next(&mut lines).await;
    let second = next(&mut lines).await;
    assert_eq!(
        (first.kind, second.kind),
        (WatchKind::Created, WatchKind::Overflow)
    );
    let refused = client
        .watch_directory(root.to_str().unwrap(), ROOT, true)
        .await;
    assert_eq!(code(refused), GuestErrorCode::TooMany);
    // The directory alone can be watched.
    watch(&client, root, false).await;
}

//! Writing in place, listings with depth and pages, moves, permissions, and names of any kind.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use bytes::Bytes;
use dayfly_guest_client::{AgentClient, ListSpec, ReadRange, WriteSpec};
use dayfly_guest_proto::GuestErrorCode;

use crate::files::{ROOT, as_root, code, read_all, write};
use crate::support::{Guest, within};

fn at(offset: u64) -> WriteSpec {
    WriteSpec {
        offset: Some(offset),
        ..as_root()
    }
}

fn pages(limit: usize, depth: u32) -> ListSpec {
    ListSpec {
        user: Some("root".to_owned()),
        limit,
        depth,
        ..ListSpec::default()
    }
}

fn names(listing: &dayfly_types::file::DirectoryPage) -> Vec<&str> {
    let entries = listing.entries.iter();
    entries.map(|entry| entry.name.as_str()).collect()
}

/// Every entry, page by page.
async fn list_all(client: &AgentClient, path: &str, mut options: ListSpec) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    loop {
        let page = within(client.list_directory(path, &options)).await.unwrap();
        assert!(page.entries.len() <= options.limit);
        all.extend(names(&page).into_iter().map(str::to_owned));
        if !page.has_more {
            return all;
        }
        options.after = all.last().cloned();
    }
}

#[tokio::test]
async fn write_at_an_offset_leaves_the_rest_of_the_file() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let directory = tempfile::tempdir().unwrap();
    let path = format!("{}/file", directory.path().display());
    std::fs::write(&path, "0123456789").unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
    assert_eq!(
        write(&client, &path, Bytes::from_static(b"ab"), at(3)).await,
        2
    );
    assert_eq!(std::fs::read(&path).unwrap(), b"012ab56789");
    write(&client, &path, Bytes::from_static(b"end"), at(12)).await;
    assert_eq!(std::fs::read(&path).unwrap(), b"012ab56789\0\0end");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o640);

    let made = format!("{}/made", directory.path().display());
    write(&client, &made, Bytes::from_static(b"x"), at(2)).await;
    assert_eq!(std::fs::read(&made).unwrap(), b"\0\0x");
    let mode = std::fs::metadata(&made).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o644);

    let both = WriteSpec {
        append: true,
        ..at(1)
    };
    let refused = client.write_file(&path, both).await;
    assert_eq!(code(refused), GuestErrorCode::Invalid);
    let far = client.write_file(&path, at(u64::MAX)).await;
    assert_eq!(code(far), GuestErrorCode::Invalid);
}

#[tokio::test]
async fn listing_with_depth_is_the_same_in_pages_of_any_size() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    for path in ["a/b/c", "a/d", "a-b", "e/f", "g"] {
        std::fs::create_dir_all(root.join(path)).unwrap();
    }
    std::fs::write(root.join("a/b/file"), "x").unwrap();
    // A link to a directory is an entry, and nothing below it is.
    symlink(root, root.join("e/up")).unwrap();
    let path = root.to_str().unwrap();
    let whole = [
        "a", "a/b", "a/b/c", "a/b/file", "a/d", "a-b", "e", "e/f", "e/up", "g",
    ];
    for limit in 1..12 {
        assert_eq!(list_all(&client, path, pages(limit, 64)).await, whole);
    }
    let two = ["a", "a/b", "a/d", "a-b", "e", "e/f", "e/up", "g"];
    assert_eq!(list_all(&client, path, pages(3, 2)).await, two);
    let one = ["a", "a-b", "e", "g"];
    assert_eq!(list_all(&client, path, pages(3, 1)).await, one);
    // Depth 0 is as 1, and a place that is gone does not stop the listing.
    let mut behind = pages(10, 64);
    behind.after = Some("a/b/vanished/deep".to_owned());
    let listing = client.list_directory(path, &behind).await.unwrap();
    assert_eq!(names(&listing), whole[4..]);
    behind.after = Some("../x".to_owned());
    let listing = client.list_directory(path, &behind).await.unwrap();
    assert_eq!(names(&listing), whole);
    let entry = client.list_directory(path, &pages(3, 2)).await.unwrap();
    assert_eq!(entry.entries[1].path, format!("{path}/a/b"));
}

#[tokio::test]
async fn every_name_is_listed_once_and_can_be_used_as_it_is_listed() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let directory = tempfile::tempdir().unwrap();
    let long = "ä".repeat(127) + "x";
    let hostile: Vec<Vec<u8>> = vec![
        b"new\nline".to_vec(),
        b"quote\"and\\slash".to_vec(),
        b"\xFF\xFE".to_vec(),
        b"\xFF\xFD".to_vec(),
        b"half \xC3".to_vec(),
        "\u{EFFF}\u{EFFE}".as_bytes().to_vec(),
        b" ".to_vec(),
        b"-rf".to_vec(),
        b"$(reboot)".to_vec(),
        b"\x1b[2J".to_vec(),
        long.into_bytes(),
        b"x".repeat(255),
    ];
    for name in &hostile {
        std::fs::write(directory.path().join(OsStr::from_bytes(name)), name).unwrap();
    }
    let path = directory.path().to_str().unwrap();
    for limit in [1, 5, 100] {
        let mut listed = list_all(&client, path, pages(limit, 1)).await;
        assert_eq!(listed.len(), hostile.len());
        listed.dedup();
        assert_eq!(listed.len(), hostile.len());
    }
    let listing = client.list_directory(path, &pages(100, 1)).await.unwrap();
    for entry in &listing.entries {
        let read = client
            .read_file(&entry.path, ROOT, ReadRange::default())
            .await
            .unwrap();
        let name = read_all(read).await;
        assert!(hostile.contains(&name), "{entry:?}");
        assert_eq!(
            client.stat(&entry.path, ROOT).await.unwrap().path,
            entry.path
        );
        client.remove(&entry.path, ROOT, false).await.unwrap();
        let place = directory.path().join(OsStr::from_bytes(&name));
        assert!(!place.exists(), "{entry:?}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn move_replaces_only_when_it_may() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| format!("{}/{name}", directory.path().display());
    std::fs::write(place("a"), "a").unwrap();
    std::fs::write(place("b"), "b").unwrap();
    let refused = client
        .move_entry(&place("a"), &place("b"), ROOT, false)
        .await;
    assert_eq!(code(refused), GuestErrorCode::Exists);
    assert_eq!(std::fs::read(place("b")).unwrap(), b"b");
    client
        .move_entry(&place("a"), &place("b"), ROOT, true)
        .await
        .unwrap();
    assert_eq!(std::fs::read(place("b")).unwrap(), b"a");
    std::fs::create_dir(place("d")).unwrap();
    client
        .move_entry(&place("d"), &place("e"), ROOT, false)
        .await
        .unwrap();
    let into_itself = client
        .move_entry(&place("e"), &place("e/f"), ROOT, false)
        .await;
    assert_eq!(code(into_itself), GuestErrorCode::Invalid);
    let missing = client
        .move_entry(&place("x"), &place("y"), ROOT, true)
        .await;
    assert_eq!(code(missing), GuestErrorCode::NotFound);
    let empty = client.move_entry(&place("b"), "", ROOT, true).await;
    assert_eq!(code(empty), GuestErrorCode::Invalid);
}

#[tokio::test]
async fn permissions_change_and_never_through_a_link() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| format!("{}/{name}", directory.path().display());
    std::fs::write(place("file"), "").unwrap();
    symlink(place("file"), place("link")).unwrap();
    client
        .change_mode(&place("file"), 0o4751, ROOT)
        .await
        .unwrap();
    let mode = || {
        std::fs::metadata(place("file"))
            .unwrap()
            .permissions()
            .mode()
            & 0o7777
    };
    assert_eq!(mode(), 0o4751);
    let refused = client.change_mode(&place("link"), 0o600, ROOT).await;
    assert_eq!(code(refused), GuestErrorCode::Invalid);
    assert_eq!(mode(), 0o4751);
    let missing = client.change_mode(&place("none"), 0o600, ROOT).await;
    assert_eq!(code(missing), GuestErrorCode::NotFound);
}

//! Trees as archives, out of a guest and into it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};

use bytes::Bytes;
use dayfly_guest_client::{AgentClient, StreamError};
use dayfly_guest_proto::GuestErrorCode;

use crate::files::{ROOT, code};
use crate::support::{Guest, pattern, within};

pub(crate) async fn pack(client: &AgentClient, path: &Path) -> Vec<u8> {
    let path = path.to_str().unwrap();
    let mut stream = client.pack_tree(path, ROOT).await.unwrap();
    let mut archive = Vec::new();
    while let Some(piece) = within(stream.next()).await.unwrap() {
        archive.extend_from_slice(&piece);
    }
    archive
}

pub(crate) async fn unpack(
    client: &AgentClient,
    path: &Path,
    archive: Vec<u8>,
) -> Result<u64, StreamError> {
    let path = path.to_str().unwrap();
    let mut file = client.unpack_tree(path, ROOT).await.unwrap();
    within(async {
        file.write(archive.into()).await?;
        file.finish().await
    })
    .await
}

/// What the tar of this machine says of an archive.
fn gnu_tar(arguments: &[&str], archive: &[u8], directory: &Path) -> String {
    let mut child = Command::new("tar")
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), archive).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn make_tree(root: &Path) {
    std::fs::create_dir_all(root.join("src/deep")).unwrap();
    std::fs::create_dir(root.join("empty")).unwrap();
    std::fs::write(root.join("src/main.rs"), "fn main() {}").unwrap();
    std::fs::write(root.join("src/deep/data"), pattern(1_234_567)).unwrap();
    std::fs::write(root.join("nothing"), "").unwrap();
    std::fs::write(root.join("new\nline"), "1").unwrap();
    std::fs::write(root.join(OsStr::from_bytes(b"bytes \xFF\xFE")), "2").unwrap();
    let long = "n".repeat(200);
    std::fs::create_dir(root.join(&long)).unwrap();
    std::fs::write(root.join(&long).join(&long), "3").unwrap();
    symlink("../outside", root.join("link")).unwrap();
    symlink("x".repeat(300), root.join("long-link")).unwrap();
    std::fs::write(root.join("run"), "#!/bin/sh").unwrap();
    let mode = PermissionsExt::from_mode(0o4755);
    std::fs::set_permissions(root.join("run"), mode).unwrap();
}

fn same_trees(one: &Path, other: &Path) {
    let status = Command::new("diff")
        .args(["--recursive", "--no-dereference"])
        .args([one, other])
        .status()
        .unwrap();
    assert!(status.success(), "the trees differ");
}

#[tokio::test]
async fn a_tree_survives_the_round_trip_and_pipes_and_sockets_stay_behind() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let directory = tempfile::tempdir().unwrap();
    let (from, to) = (directory.path().join("from"), directory.path().join("to"));
    make_tree(&from);
    let archive = pack(&client, &from).await;
    let length = archive.len() as u64;
    assert_eq!(unpack(&client, &to, archive.clone()).await.unwrap(), length);
    same_trees(&from, &to);
    let mode = std::fs::metadata(to.join("run")).unwrap().mode();
    assert_eq!(mode & 0o7777, 0o755, "special bits are dropped");
    let time = |root: &Path| std::fs::metadata(root.join("run")).unwrap().mtime();
    assert_eq!(time(&from), time(&to));

    let pipe = from.join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let _socket = UnixListener::bind(from.join("socket")).unwrap();
    assert_eq!(pack(&client, &from).await.len(), archive.len());
    // Once more over what is there: files are replaced, directories stay.
    unpack(&client, &to, archive).await.unwrap();
}

#[tokio::test]
async fn other_programs_read_and_write_the_same_archives() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let directory = tempfile::tempdir().unwrap();
    let from = directory.path().join("from");
    make_tree(&from);
    let theirs = directory.path().join("theirs");
    std::fs::create_dir(&theirs).unwrap();
    gnu_tar(&["-xf", "-"], &pack(&client, &from).await, &theirs);
    same_trees(&from, &theirs);
    for format in ["gnu", "pax", "ustar", "v7"] {
        // The older two have no room for long names.
        let excluded: &[&str] = match format {
            "ustar" | "v7" => &["--exclude=nnnn*", "--exclude=long-link"],
            _ => &[],
        };
        let format = format!("--format={format}");
        let made = Command::new("tar")
            .args(["-cf", "-", &format])
            .args(excluded)
            .arg(".")
            .current_dir(&from)
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        let to = directory.path().join(&format);
        unpack(&client, &to, made.stdout).await.unwrap();
        assert_eq!(
            std::fs::read(to.join("src/deep/data")).unwrap().len(),
            1_234_567
        );
        if excluded.is_empty() {
            same_trees(&from, &to);
        }
    }
}

#[tokio::test]
async fn hard_links_of_an_archive_stay_links() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let directory = tempfile::tempdir().unwrap();
    let from = directory.path().join("from");
    std::fs::create_dir_all(from.join("d")).unwrap();
    std::fs::write(from.join("d/one"), "x").unwrap();
    std::fs::hard_link(from.join("d/one"), from.join("two")).unwrap();
    let made = Command::new("tar")
        .args(["-cf", "-", "."])
        .current_dir(&from)
        .output()
        .unwrap();
    let to = directory.path().join("to");
    unpack(&client, &to, made.stdout).await.unwrap();
    let inode = |name: &str| std::fs::metadata(to.join(name)).unwrap().ino();
    assert_eq!(inode("d/one"), inode("two"));
}

#[tokio::test]
async fn a_file_that_changes_while_it_is_packed_does_not_break_the_archive() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let directory = tempfile::tempdir().unwrap();
    let large = directory.path().join("large");
    for new_length in [1 << 20, 64 << 20] {
        std::fs::write(&large, pattern(16 << 20)).unwrap();
        let path = directory.path().to_str().unwrap();
        let mut stream = client.pack_tree(path, ROOT).await.unwrap();
        let mut archive = within(stream.next()).await.unwrap().unwrap().to_vec();
        // The packer waits for credit in the middle of the file.
        let file = std::fs::OpenOptions::new()
            .write(true)
            .open(&large)
            .unwrap();
        file.set_len(new_length).unwrap();
        while let Some(piece) = within(stream.next()).await.unwrap() {
            archive.extend_from_slice(&piece);
        }
        let listed = gnu_tar(&["-tvf", "-"], &archive, directory.path());
        assert!(listed.contains(&format!(" {} ", 16 << 20)), "{listed}");
    }
}

#[tokio::test]
async fn one_file_is_an_archive_of_one_member() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("only");
    std::fs::write(&file, "x").unwrap();
    let archive = pack(&client, &file).await;
    assert_eq!(gnu_tar(&["-tf", "-"], &archive, directory.path()), "only\n");
    let missing = client.pack_tree("/no/such/place", ROOT).await;
    assert_eq!(code(missing), GuestErrorCode::NotFound);
    let device = client.pack_tree("/dev/zero", ROOT).await;
    assert_eq!(code(device), GuestErrorCode::Invalid);
    // The kernel's own views are not walked, or this would never end.
    let archive = pack(&client, Path::new("/proc/self/fdinfo")).await;
    assert!(archive.len() < 1 << 20);
}

#[tokio::test]
async fn a_dropped_archive_stops_where_it_is() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let directory = tempfile::tempdir().unwrap();
    let from = directory.path().join("from");
    make_tree(&from);
    let archive = Bytes::from(pack(&client, &from).await);
    let to = directory.path().join("to");
    let path = to.to_str().unwrap();
    let mut file = client.unpack_tree(path, ROOT).await.unwrap();
    within(file.write(archive.slice(..archive.len() / 2)))
        .await
        .unwrap();
    drop(file);
    // Others are served, and the same place takes the whole archive.
    unpack(&client, &to, archive.to_vec()).await.unwrap();
    same_trees(&from, &to);
}

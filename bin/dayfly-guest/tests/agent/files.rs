//! What file operations promise: exact bytes, whole files or none, and no way to hang the agent.

use crate::support::{Guest, eventually, pattern, run, shell, within};
use bytes::Bytes;
use dayfly_guest_client::{
    AgentClient, CallError, GuestFileReader, ListSpec, ReadRange, StreamError, WriteSpec,
};
use dayfly_guest_proto::GuestErrorCode;

pub(crate) const ROOT: Option<&str> = Some("root");

pub(crate) fn as_root() -> WriteSpec {
    WriteSpec {
        user: Some("root".to_owned()),
        ..WriteSpec::default()
    }
}

pub(crate) async fn write(
    client: &AgentClient,
    path: &str,
    bytes: Bytes,
    options: WriteSpec,
) -> u64 {
    let mut file = client.write_file(path, options).await.unwrap();
    within(file.write(bytes)).await.unwrap();
    within(file.finish()).await.unwrap()
}

pub(crate) async fn read_all(mut file: GuestFileReader) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some(piece) = within(file.next()).await.unwrap() {
        bytes.extend_from_slice(&piece);
    }
    bytes
}

pub(crate) fn code<T: std::fmt::Debug>(result: Result<T, CallError>) -> GuestErrorCode {
    match result {
        Err(CallError::Refused(error)) => error.code,
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn binary_file_survives_the_round_trip() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let directory = tempfile::tempdir().unwrap();
    let path = format!("{}/a/b/file", directory.path().display());
    let bytes = pattern(3 << 20);
    let mut options = as_root();
    options.make_parents = true;
    options.mode = Some(0o640);
    assert_eq!(write(&client, &path, bytes.clone(), options).await, 3 << 20);
    let file = client
        .read_file(&path, ROOT, ReadRange::default())
        .await
        .unwrap();
    assert_eq!(
        (file.info().size, file.info().mode.to_string().as_str()),
        (3 << 20, "0640")
    );
    assert!(read_all(file).await == bytes, "bytes differ");
    let range = ReadRange {
        offset: 1_000_000,
        limit: Some(77),
    };
    let part = read_all(client.read_file(&path, ROOT, range).await.unwrap()).await;
    assert!(part == bytes[1_000_000..1_000_077], "range differs");
    assert_eq!(client.stat(&path, ROOT).await.unwrap().size, 3 << 20);
}

#[tokio::test]
async fn empty_file_and_append_work() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let directory = tempfile::tempdir().unwrap();
    let path = format!("{}/file", directory.path().display());
    assert_eq!(write(&client, &path, Bytes::new(), as_root()).await, 0);
    let mut append = as_root();
    append.append = true;
    write(&client, &path, Bytes::from_static(b"one "), append.clone()).await;
    write(&client, &path, Bytes::from_static(b"two"), append).await;
    assert_eq!(std::fs::read(&path).unwrap(), b"one two");
}

#[tokio::test]
async fn dropped_write_leaves_the_old_file_and_no_trace() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let directory = tempfile::tempdir().unwrap();
    let path = format!("{}/file", directory.path().display());
    write(&client, &path, Bytes::from_static(b"old"), as_root()).await;
    let mut file = client.write_file(&path, as_root()).await.unwrap();
    within(file.write(pattern(1 << 20))).await.unwrap();
    drop(file);
    let names = || std::fs::read_dir(directory.path()).unwrap().count();
    eventually(|| names() == 1).await;
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
}

#[tokio::test]
async fn write_through_a_link_keeps_the_link() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let directory = tempfile::tempdir().unwrap();
    let (target, link) = (
        directory.path().join("target"),
        directory.path().join("link"),
    );
    std::fs::write(&target, "old").unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    write(
        &client,
        link.to_str().unwrap(),
        Bytes::from_static(b"new"),
        as_root(),
    )
    .await;
    assert_eq!(std::fs::read(&target).unwrap(), b"new");
    assert!(
        client
            .stat(link.to_str().unwrap(), ROOT)
            .await
            .unwrap()
            .is_symlink
    );
}

#[tokio::test]
async fn pipes_devices_and_directories_are_refused_without_blocking() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let directory = tempfile::tempdir().unwrap();
    let pipe = format!("{}/pipe", directory.path().display());
    run(&client, shell(&format!("mkfifo {pipe}"))).await;
    let read = |path: &str| {
        let (client, path) = (client.clone(), path.to_owned());
        async move { code(client.read_file(&path, ROOT, ReadRange::default()).await) }
    };
    assert_eq!(within(read(&pipe)).await, GuestErrorCode::Invalid);
    assert_eq!(within(read("/dev/zero")).await, GuestErrorCode::Invalid);
    assert_eq!(within(read("/tmp")).await, GuestErrorCode::IsDirectory);
    assert_eq!(
        within(read("/no/such/file")).await,
        GuestErrorCode::NotFound
    );
    assert_eq!(
        within(read("/etc/passwd/x")).await,
        GuestErrorCode::NotDirectory
    );
    assert_eq!(within(read("")).await, GuestErrorCode::Invalid);
    let write = client.write_file(&pipe, as_root()).await;
    assert_eq!(code(write), GuestErrorCode::Invalid);
}

#[tokio::test]
async fn full_disk_fails_the_write_with_its_word() {
    let guest = Guest::start();
    let client = guest.connect().await;
    // A process-wide limit would not do: `/dev/full` is refused, so a tiny file system it is.
    let directory = tempfile::tempdir().unwrap();
    let mount = format!(
        "mount -t tmpfs -o size=64k tmpfs {}",
        directory.path().display()
    );
    if run(&client, shell(&mount)).await.exit.code != 0 {
        eprintln!("skipped: this process may not mount");
        return;
    }
    let path = format!("{}/file", directory.path().display());
    let mut file = client.write_file(&path, as_root()).await.unwrap();
    let result = within(async {
        for _ in 0..64 {
            file.write(pattern(64 << 10)).await?;
        }
        file.finish().await
    })
    .await;
    run(
        &client,
        shell(&format!("umount {}", directory.path().display())),
    )
    .await;
    let Err(StreamError::Failed(error)) = result else {
        panic!("not failed: {result:?}")
    };
    assert_eq!(error.code, GuestErrorCode::NoSpace);
}

#[tokio::test]
async fn stalled_read_does_not_stall_other_files() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let directory = tempfile::tempdir().unwrap();
    let path = format!("{}/file", directory.path().display());
    let bytes = pattern(2 << 20);
    std::fs::write(&path, &bytes).unwrap();
    let stalled = client
        .read_file(&path, ROOT, ReadRange::default())
        .await
        .unwrap();
    let other = client
        .read_file(&path, ROOT, ReadRange::default())
        .await
        .unwrap();
    assert!(read_all(other).await == bytes, "bytes differ");
    assert!(read_all(stalled).await == bytes, "bytes differ");
}

#[tokio::test]
async fn directories_are_made_listed_in_pages_and_removed() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let directory = tempfile::tempdir().unwrap();
    let root = format!("{}/tree", directory.path().display());
    client.make_directory(&root, as_root()).await.unwrap();
    assert_eq!(
        code(client.make_directory(&root, as_root()).await),
        GuestErrorCode::Exists
    );
    for index in 0..4000 {
        std::fs::write(format!("{root}/file-{index:05}"), "x").unwrap();
    }
    std::os::unix::fs::symlink("nowhere", format!("{root}/link")).unwrap();
    let options = |limit| ListSpec {
        user: Some("root".to_owned()),
        limit,
        ..ListSpec::default()
    };
    let listing = within(client.list_directory(&root, &options(10_000)))
        .await
        .unwrap();
    assert_eq!((listing.entries.len(), listing.has_more), (4001, false));
    assert!(listing.entries.is_sorted_by(|a, b| a.name < b.name));
    assert_eq!(listing.entries[7].path, format!("{root}/file-00007"));
    assert!(listing.entries[4000].is_symlink);
    let part = within(client.list_directory(&root, &options(10)))
        .await
        .unwrap();
    assert_eq!((part.entries.len(), part.has_more), (10, true));
    let refused = client.remove(&root, ROOT, false).await;
    assert_eq!(code(refused), GuestErrorCode::Invalid);
    client.remove(&root, ROOT, true).await.unwrap();
    assert_eq!(
        code(client.stat(&root, ROOT).await),
        GuestErrorCode::NotFound
    );
}

#[tokio::test]
async fn user_may_do_no_more_through_the_agent_than_by_itself() {
    let guest = Guest::start();
    let client = guest.connect().await;
    if run(&client, shell("id -u")).await.stdout_text() != "0\n" {
        eprintln!("skipped: only root can become somebody else");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = format!("{}/file", directory.path().display());
    std::fs::write(&path, "secret").unwrap();
    run(&client, shell(&format!("chmod 600 {path}"))).await;
    let mut spec = shell("id -u; id -G; echo $USER");
    spec.user = Some("nobody".to_owned());
    assert_eq!(
        run(&client, spec).await.stdout_text(),
        "65534\n65534\nnobody\n"
    );
    let nobody = Some("nobody");
    let read = client.read_file(&path, nobody, ReadRange::default()).await;
    assert_eq!(code(read), GuestErrorCode::PermissionDenied);
    let options = WriteSpec {
        user: nobody.map(str::to_owned),
        ..WriteSpec::default()
    };
    let write = client.write_file(&path, options.clone()).await;
    assert_eq!(code(write), GuestErrorCode::PermissionDenied);
    let make = client.make_directory(&format!("{path}-d"), options).await;
    assert_eq!(code(make), GuestErrorCode::PermissionDenied);
    let remove = client.remove(&path, nobody, false).await;
    assert_eq!(code(remove), GuestErrorCode::PermissionDenied);
    assert_eq!(std::fs::read(&path).unwrap(), b"secret");
}

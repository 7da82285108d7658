//! Files over the socket.

use bytes::Bytes;
use dayfly_node_api::{
    ChangeMode, ChangesSince, FileRead, FileWrite, GuestPath, ListChanges, ListDirectory,
    MakeDirectory, MoveFile, NodeError, NodeFiles, RemoveFile, WatchFiles, WritePlace,
};
use dayfly_types::SnapshotId;
use futures::StreamExt;

use crate::small_files::change;
use crate::small_node::full;
use crate::start;

fn path(path: &str) -> GuestPath {
    GuestPath {
        path: path.to_owned(),
        user: None,
    }
}

#[tokio::test]
async fn a_file_that_breaks_in_the_middle_is_an_error() {
    let world = start();
    let read = async |path: &str| {
        let request = FileRead {
            path: path.to_owned(),
            user: None,
            offset: 0,
            limit: None,
        };
        let (info, content) = world.client.read_file(&world.id, request).await.unwrap();
        assert_eq!((info.size, info.mtime), (9, -1));
        content.collect::<Vec<_>>().await
    };
    let whole: Vec<Bytes> = read("/whole")
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    assert_eq!(whole.concat(), b"fourfives");
    assert_eq!(read("/broken").await.last(), Some(&Err(full())));
}

#[tokio::test]
async fn an_upload_is_whole_or_an_error() {
    let world = start();
    let write = async |path: &str, pieces: Vec<Result<Bytes, NodeError>>| {
        let request = FileWrite {
            path: path.to_owned(),
            user: None,
            mode: None,
            place: WritePlace::At(3),
        };
        world
            .client
            .write_file(&world.id, request, futures::stream::iter(pieces).boxed())
            .await
    };
    let piece = Ok(Bytes::from(vec![1; 200_000]));
    assert_eq!(
        write("/a", vec![piece.clone(), piece.clone()]).await,
        Ok(400_000)
    );
    assert_eq!(
        write("/a", vec![piece.clone(), Err(full())]).await,
        Err(full())
    );
    // More than every buffer, so that the answer comes while the client still sends.
    let many = vec![piece; 100];
    assert_eq!(write("/refused", many).await, Err(full()));
}

#[tokio::test]
async fn every_question_arrives_as_it_was_asked() {
    let world = start();
    let (client, id) = (&world.client, &world.id);
    let list = ListDirectory {
        path: "/".to_owned(),
        user: None,
        after: Some("a/b".to_owned()),
        limit: 7,
        depth: 3,
    };
    assert!(client.list_directory(id, list).await.unwrap().has_more);
    let make = MakeDirectory {
        path: "/é\0\n\"".to_owned(),
        user: Some("root".to_owned()),
        mode: Some(0o700),
        parents: true,
    };
    let echo = |text: String| Err(NodeError::not_found(text));
    let wanted = echo(format!("{make:?}"));
    assert_eq!(client.make_directory(id, make).await, wanted);
    let rename = MoveFile {
        from: "/a".to_owned(),
        to: "/b".to_owned(),
        user: None,
        replace: true,
    };
    let wanted = echo(format!("{rename:?}"));
    assert_eq!(client.move_file(id, rename).await, wanted);
    let mode = ChangeMode {
        path: "/a".to_owned(),
        mode: 0o4755,
        user: None,
    };
    let wanted = echo(format!("{mode:?}"));
    assert_eq!(client.change_mode(id, mode).await, wanted);
    let remove = RemoveFile {
        path: "/a".to_owned(),
        user: None,
        recursive: true,
    };
    assert_eq!(client.remove_file(id, remove).await, Ok(()));
    let since = ChangesSince::Snapshot(SnapshotId::parse("sn-local-1").unwrap());
    let wanted = format!("{since:?}");
    let question = ListChanges {
        path: "/".to_owned(),
        since,
        limit: 10,
    };
    let changes = client.list_changes(id, question).await.unwrap();
    assert_eq!(changes.entries[0].path, wanted);
}

#[tokio::test]
async fn changes_and_archives_arrive_in_order_and_to_their_end() {
    let world = start();
    let watch = async |recursive| {
        let request = WatchFiles {
            path: "/".to_owned(),
            user: None,
            recursive,
        };
        let changes = world.client.watch_files(&world.id, request).await.unwrap();
        changes.collect::<Vec<_>>().await
    };
    let wanted: Vec<_> = (0..5).map(|number| Ok(change(number))).collect();
    assert_eq!(watch(false).await, wanted);
    assert_eq!(watch(true).await.last(), Some(&Err(full())));
    let archive = world.client.pack_tree(&world.id, path("/")).await.unwrap();
    let pieces: Vec<Bytes> = archive.map(Result::unwrap).collect().await;
    assert_eq!(pieces.concat(), vec![7; 200_000]);
    let content = futures::stream::iter([Ok(Bytes::from(pieces.concat()))]).boxed();
    let unpacked = world.client.unpack_tree(&world.id, path("/"), content);
    assert_eq!(unpacked.await, Ok(200_000));
}

//! Files on the wire.

use dayfly_client::api::{ChangeMode, FileChange, MakeDirectory, MoveFile};
use dayfly_client::{
    ClientError, FileBody, ListOptions, ReadOptions, RemoveOptions, WatchItem, WriteOptions,
};
use dayfly_types::ErrorCode;

use crate::script::{Answer, Script, client};

const ID: &str = "sb-local-1";
const WRITTEN: &str = r#"{"path":"/a","bytes":3}"#;
const LISTING: &str = r#"{"entries":[],"truncated":true,"has_more":true,"next_after":"b"}"#;

#[tokio::test]
async fn options_are_parameters_and_ranges_are_headers() {
    let script = Script::play([
        Answer::json(206, "abc"),
        Answer::json(200, WRITTEN),
        Answer::json(200, WRITTEN),
        Answer::json(200, LISTING),
        Answer::json(200, r#"{"entries":[],"truncated":false}"#),
    ])
    .await;
    let client = client(&script);
    let part = ReadOptions {
        offset: 5,
        length: Some(3),
        user: Some("root".to_owned()),
    };
    let mut content = client.read_file_with(ID, "/a b", &part).await.unwrap();
    assert_eq!(content.next().await.unwrap().unwrap(), "abc");
    let place = WriteOptions {
        offset: Some(7),
        mode: Some("0600".to_owned()),
        ..WriteOptions::default()
    };
    let body = || FileBody::from_bytes("abc");
    let written = client.write_file_with(ID, "/a", body(), &place).await;
    assert_eq!(written.unwrap().bytes, 3);
    client
        .upload_tree(ID, "d", Some("root"), body())
        .await
        .unwrap();
    let page = ListOptions {
        depth: Some(2),
        limit: Some(10),
        after: Some("a/é".to_owned()),
        user: None,
    };
    let listing = client.list_directory_with(ID, "/", &page).await.unwrap();
    assert_eq!(listing.next_after.as_deref(), Some("b"));
    client.list_changes(ID, "/", Some("snap-1")).await.unwrap();
    let requests = script.requests();
    let heads: Vec<&str> = requests
        .iter()
        .filter_map(|request| request.head.lines().next())
        .collect();
    let base = "/v1/sandboxes/sb-local-1/fs";
    assert_eq!(
        heads,
        [
            format!("GET {base}?path=%2Fa+b&user=root HTTP/1.1"),
            format!("PUT {base}?path=%2Fa&offset=7&mode=0600 HTTP/1.1"),
            format!("PUT {base}/tar?path=d&user=root HTTP/1.1"),
            format!("GET {base}/dir?path=%2F&depth=2&limit=10&after=a%2F%C3%A9 HTTP/1.1"),
            format!("GET {base}/changes?path=%2F&since=snap-1 HTTP/1.1"),
        ]
    );
    assert_eq!(requests[0].header("range"), "bytes=5-7");
    assert_eq!(requests[2].body, b"abc");
}

#[tokio::test]
async fn what_is_done_to_files_is_sent_once() {
    let script = Script::play([
        Answer::json(204, ""),
        Answer::json(204, ""),
        Answer::json(204, ""),
        Answer::json(204, ""),
        Answer::Drop,
    ])
    .await;
    let client = client(&script);
    let path = || "/a".to_owned();
    let make = MakeDirectory {
        path: path(),
        ..MakeDirectory::default()
    };
    client.make_directory(ID, &make).await.unwrap();
    let rename = MoveFile {
        from: path(),
        to: "/b".to_owned(),
        ..MoveFile::default()
    };
    client.move_file(ID, &rename).await.unwrap();
    let mode = ChangeMode {
        path: path(),
        mode: "0600".to_owned(),
        user: None,
    };
    client.change_mode(ID, &mode).await.unwrap();
    let options = RemoveOptions {
        recursive: true,
        user: None,
    };
    client.remove_file(ID, "/a", &options).await.unwrap();
    let lost = client.remove_file(ID, "/a", &options).await;
    assert!(matches!(lost, Err(ClientError::Lost { .. })), "{lost:?}");
    let requests = script.requests();
    assert_eq!(requests.len(), 5);
    // What is not said is not sent.
    assert_eq!(requests[0].body, br#"{"path":"/a"}"#);
}

#[tokio::test]
async fn a_watch_ends_with_the_directory_and_fails_with_the_guest_or_the_connection() {
    let changes = "event: ready\ndata: {}\n\n: alive\n\nevent: change\n\
        data: {\"kind\":\"created\",\"path\":\"/\\u00e9\",\"is_dir\":true}\n\n\
        event: novel\ndata: []\n\nevent: overflow\ndata: {}\n\n";
    let error = "event: error\ndata: {\"error\":\"gone\",\"code\":\"guest_unavailable\"}\n\n";
    let script = Script::play([
        Answer::stream(&format!("{changes}event: end\ndata: {{}}\n\n")),
        Answer::stream(&format!("{changes}{error}")),
        Answer::stream(changes),
        Answer::cut_stream(changes),
    ])
    .await;
    let client = client(&script);
    let created = FileChange {
        kind: "created".to_owned(),
        path: "/é".to_owned(),
        is_dir: true,
        from: None,
    };
    for number in 0..4 {
        let mut watch = client.watch_files(ID, "/", true, None).await.unwrap();
        let first = watch.next().await.unwrap();
        assert_eq!(first, Some(WatchItem::Change(created.clone())));
        assert_eq!(watch.next().await.unwrap(), Some(WatchItem::Overflow));
        let end = watch.next().await;
        match number {
            0 => assert_eq!(end.unwrap(), None),
            1 => {
                let code = end.unwrap_err().api_code();
                assert_eq!(code, Some(ErrorCode::GuestUnavailable));
            }
            _ => assert!(matches!(end, Err(ClientError::Lost { .. })), "{end:?}"),
        }
    }
}

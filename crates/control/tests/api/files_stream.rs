//! Watches and archives.

use axum::body::Body;
use http::{Method, StatusCode};
use http_body_util::BodyExt;

use crate::support::World;

#[tokio::test]
async fn a_watch_has_the_form_that_every_client_reads() {
    let world = World::start().await;
    let id = world.create().await;
    let answer = world
        .get(&format!(
            "/v1/sandboxes/{id}/fs/watch?path=/d&recursive=true&user=root"
        ))
        .await;
    assert_eq!(answer.status, StatusCode::OK);
    let kind = &answer.headers["content-type"];
    assert_eq!(kind, "text/event-stream; charset=utf-8");
    assert_eq!(answer.headers["transfer-encoding"], "chunked");
    let expected = "event: ready\ndata: {}\n\n\
        event: change\ndata: {\"kind\":\"created\",\"path\":\"/\\u00e9\\u2028\",\"is_dir\":false}\n\n\
        event: overflow\ndata: {}\n\n\
        event: change\ndata: {\"kind\":\"moved\",\"path\":\"/b\",\"is_dir\":false,\"from\":\"/a\"}\n\n\
        event: end\ndata: {}\n\n";
    assert_eq!(answer.text(), expected);
    let asked = world.node.last_file_request();
    assert!(
        asked.contains("recursive: true") && asked.contains("root"),
        "{asked}"
    );
}

#[tokio::test]
async fn a_watch_whose_guest_is_lost_ends_with_an_error() {
    let world = World::start().await;
    let id = world.create().await;
    let answer = world
        .get(&format!("/v1/sandboxes/{id}/fs/watch?path=/lost"))
        .await;
    let last =
        "event: error\ndata: {\"error\":\"the guest is gone\",\"code\":\"guest_unavailable\"}\n\n";
    assert!(answer.text().ends_with(last), "{}", answer.text());
}

#[tokio::test]
async fn a_silent_watch_shows_that_it_lives() {
    let world = World::start().await;
    let id = world.create().await;
    let path = format!("/v1/sandboxes/{id}/fs/watch?path=/silent");
    let request = world.request(Method::GET, &path);
    let response = world.open(request.body(Body::empty()).unwrap()).await;
    let mut body = response.into_body();
    let mut heard = Vec::new();
    for _ in 0..2 {
        let frame = body.frame().await.unwrap().unwrap();
        heard.push(frame.into_data().unwrap());
    }
    assert_eq!(heard[0], "event: ready\ndata: {}\n\n");
    assert_eq!(heard[1], ": alive\n\n");
}

#[tokio::test]
async fn a_tree_goes_up_and_down_as_an_archive() {
    let world = World::start().await;
    let id = world.create().await;
    let archive: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
    let path = format!("/v1/sandboxes/{id}/fs/tar?path=tree&user=root");
    let put = async |path: &str, content: Vec<u8>| {
        let request = world.request(Method::PUT, path);
        world.send(request.body(Body::from(content)).unwrap()).await
    };
    let written = put(&path, archive.clone()).await;
    assert_eq!(written.json()["bytes"], archive.len());
    assert_eq!(written.json()["path"], "/workspace/tree");
    let read = world.get(&path).await;
    assert_eq!(read.headers["content-type"], "application/x-tar");
    assert_eq!(read.headers["x-content-type-options"], "nosniff");
    assert!(read.body == archive);
    let missing = format!("/v1/sandboxes/{id}/fs/tar?path=/none");
    assert_eq!(world.get(&missing).await.refusal(), "not_found");
    let refused = format!("/v1/sandboxes/{id}/fs/tar?path=/refused");
    assert_eq!(put(&refused, archive).await.refusal(), "invalid_request");
    // Nothing at all is an archive of nothing.
    assert_eq!(put(&path, Vec::new()).await.json()["bytes"], 0);
}

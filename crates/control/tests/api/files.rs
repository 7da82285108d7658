//! Files.

use axum::body::Body;
use http::{Method, StatusCode};
use serde_json::json;

use crate::support::World;

#[tokio::test]
async fn a_file_is_written_read_listed_and_described() {
    let world = World::start().await;
    let id = world.create().await;
    let content: Vec<u8> = (0..300_000u32).flat_map(u32::to_le_bytes).collect();
    let path = format!("/v1/sandboxes/{id}/fs?path=%2Fdata%2Fa+b%C3%A9");
    let request = world
        .request(Method::PUT, &path)
        .header("content-type", "application/octet-stream")
        .body(Body::from(content.clone()))
        .unwrap();
    let written = world.send(request).await;
    assert_eq!(written.status, StatusCode::OK);
    assert_eq!(
        written.json(),
        json!({"path": "/data/a bé", "bytes": content.len()})
    );

    let read = world.get(&path).await;
    assert_eq!(read.status, StatusCode::OK);
    assert_eq!(read.headers["content-type"], "application/octet-stream");
    assert_eq!(read.headers["content-length"], content.len().to_string());
    assert!(read.body == content);

    let listing = world
        .get(&format!("/v1/sandboxes/{id}/fs/dir?path=/data"))
        .await
        .json();
    let entry = &listing["entries"][0];
    assert_eq!(
        (&entry["name"], &entry["is_dir"]),
        (&json!("a bé"), &json!(false))
    );
    assert_eq!(
        (&entry["mode"], &entry["mtime"]),
        (&json!("0644"), &json!(1_700_000_000))
    );
    let path = format!("/v1/sandboxes/{id}/fs/stat?path=%2Fdata%2Fa%20b%C3%A9");
    assert_eq!(&world.get(&path).await.json(), entry);
}

#[tokio::test]
async fn an_empty_file_is_a_200_of_length_0() {
    let world = World::start().await;
    let id = world.create().await;
    let path = format!("/v1/sandboxes/{id}/fs?path=/empty");
    let request = world
        .request(Method::PUT, &path)
        .body(Body::empty())
        .unwrap();
    assert_eq!(world.send(request).await.json()["bytes"], 0);
    let read = world.get(&path).await;
    assert_eq!(read.status, StatusCode::OK);
    assert_eq!(read.headers["content-length"], "0");
    assert!(read.body.is_empty());
}

#[tokio::test]
async fn a_missing_file_is_a_404_and_a_full_disk_a_507() {
    let world = World::start().await;
    let id = world.create().await;
    for route in ["fs", "fs/stat"] {
        let answer = world
            .get(&format!("/v1/sandboxes/{id}/{route}?path=/none"))
            .await;
        assert_eq!(answer.refusal(), "not_found");
    }
    let path = format!("/v1/sandboxes/{id}/fs?path=/full");
    // Larger than all buffers, so that the refusal comes while the body is under way.
    let body = Body::from(vec![0; 4 << 20]);
    let answer = world
        .send(world.request(Method::PUT, &path).body(body).unwrap())
        .await;
    assert_eq!(answer.status, StatusCode::INSUFFICIENT_STORAGE);
    assert_eq!(answer.refusal(), "disk_full");
}

#[tokio::test]
async fn paths_that_no_guest_can_have_are_refused() {
    let world = World::start().await;
    let id = world.create().await;
    let long = "x".repeat(4097);
    for query in [
        "",
        "path=",
        "path=a%00b",
        "path=%ff",
        "path=a&path=b",
        &format!("path={long}"),
    ] {
        for route in ["fs", "fs/dir", "fs/stat"] {
            let answer = world
                .get(&format!("/v1/sandboxes/{id}/{route}?{query}"))
                .await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{route} {query}");
            assert_eq!(answer.refusal(), "invalid_request");
        }
    }
}

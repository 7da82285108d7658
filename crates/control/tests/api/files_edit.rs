//! Ranges, writing in place, pages, and what else can be done to files.

use axum::body::Body;
use http::{Method, StatusCode};
use serde_json::json;

use crate::support::{Answer, World};

/// A sandbox with one file.
struct Rig {
    world: World,
    id: String,
}

impl Rig {
    async fn new() -> Self {
        let world = World::start().await;
        let id = world.create().await;
        let rig = Self { world, id };
        assert_eq!(rig.put("fs?path=/f", b"0123456789").await.status, 200);
        rig
    }

    fn path(&self, rest: &str) -> String {
        format!("/v1/sandboxes/{}/{rest}", self.id)
    }

    async fn put(&self, rest: &str, content: &[u8]) -> Answer {
        let request = self.world.request(Method::PUT, &self.path(rest));
        let request = request.body(Body::from(content.to_vec())).unwrap();
        self.world.send(request).await
    }

    async fn get(&self, rest: &str) -> Answer {
        self.world.get(&self.path(rest)).await
    }

    async fn post(&self, rest: &str, body: serde_json::Value) -> Answer {
        self.world.post(&self.path(rest), body).await
    }

    async fn range(&self, range: &str) -> Answer {
        let request = self.world.request(Method::GET, &self.path("fs?path=/f"));
        let request = request.header("range", range).body(Body::empty()).unwrap();
        self.world.send(request).await
    }

    async fn content(&self) -> String {
        self.get("fs?path=/f").await.text().to_owned()
    }
}

#[tokio::test]
async fn a_range_is_a_206_with_its_place_in_the_file() {
    let rig = Rig::new().await;
    for (range, content, place) in [
        ("bytes=2-4", "234", "bytes 2-4/10"),
        ("bytes=7-", "789", "bytes 7-9/10"),
        ("bytes=-4", "6789", "bytes 6-9/10"),
        ("bytes=8-500", "89", "bytes 8-9/10"),
        ("bytes=0-0", "0", "bytes 0-0/10"),
        ("bytes=-500", "0123456789", "bytes 0-9/10"),
    ] {
        let answer = rig.range(range).await;
        assert_eq!(answer.status, StatusCode::PARTIAL_CONTENT, "{range}");
        assert_eq!(answer.text(), content, "{range}");
        assert_eq!(answer.headers["content-range"], place, "{range}");
        let length = content.len().to_string();
        assert_eq!(answer.headers["content-length"], length, "{range}");
    }
}

#[tokio::test]
async fn a_range_that_the_file_does_not_have_is_a_416_and_what_is_no_range_is_none() {
    let rig = Rig::new().await;
    for range in [
        "bytes=10-",
        "bytes=10-12",
        "bytes=-0",
        "bytes=99999999999999999999-",
    ] {
        let answer = rig.range(range).await;
        assert_eq!(answer.status, StatusCode::RANGE_NOT_SATISFIABLE, "{range}");
        assert_eq!(answer.refusal(), "range_not_satisfiable");
        assert_eq!(answer.headers["content-range"], "bytes */10", "{range}");
    }
    for range in ["bytes=1-2,4-5", "lines=1-2", "bytes=5-2", "x"] {
        let answer = rig.range(range).await;
        assert_eq!(answer.status, StatusCode::OK, "{range}");
        assert_eq!(answer.text(), "0123456789");
        assert_eq!(answer.headers["accept-ranges"], "bytes");
    }
    // There is nothing to hold a condition against, so the whole file is the answer.
    let request = rig.world.request(Method::GET, &rig.path("fs?path=/f"));
    let request = request
        .header("range", "bytes=1-2")
        .header("if-range", "\"etag\"");
    let answer = rig.world.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(answer.status, StatusCode::OK);
}

#[tokio::test]
async fn a_file_is_written_in_place_when_asked() {
    let rig = Rig::new().await;
    let written = rig.put("fs?path=/f&offset=3", b"ab").await;
    assert_eq!(written.json(), json!({"path": "/f", "bytes": 2}));
    assert_eq!(rig.content().await, "012ab56789");
    rig.put("fs?path=/f&append=true&mode=0600&user=root", b"!")
        .await;
    assert_eq!(rig.content().await, "012ab56789!");
    rig.put("fs?path=/f&append=false&mode=4755", b"new").await;
    let asked = rig.world.node.last_file_request();
    assert!(
        asked.contains(&format!("mode: Some({})", 0o4755)),
        "{asked}"
    );
    assert_eq!(rig.content().await, "new");
    for query in [
        "append=true&offset=1",
        "append=1",
        "append=",
        "offset=-1",
        "offset=x",
        "offset=5368709121",
        "mode=rw",
        "mode=99",
        "user=-x",
        "user=",
    ] {
        let answer = rig.put(&format!("fs?path=/f&{query}"), b"x").await;
        assert_eq!(answer.refusal(), "invalid_request", "{query}");
    }
    assert_eq!(rig.content().await, "new");
}

#[tokio::test]
async fn a_directory_comes_whole_or_in_pages() {
    let rig = Rig::new().await;
    for name in ["a", "b", "c"] {
        rig.put(&format!("fs?path=/d/{name}"), b"x").await;
    }
    let whole = rig.get("fs/dir?path=/d").await.json();
    assert_eq!(whole["entries"].as_array().unwrap().len(), 3);
    assert_eq!(whole["has_more"], false);
    assert_eq!(whole.get("next_after"), None);
    let asked = rig.world.node.last_file_request();
    assert!(asked.contains("limit: 10000, depth: 1"), "{asked}");
    let page = rig.get("fs/dir?path=/d&limit=2&depth=3").await.json();
    assert_eq!(page["entries"].as_array().unwrap().len(), 2);
    assert_eq!(
        (&page["has_more"], &page["truncated"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(page["next_after"], "b");
    let rest = rig.get("fs/dir?path=/d&limit=2&after=b").await.json();
    assert_eq!(rest["entries"][0]["name"], "c");
    assert_eq!(rest["has_more"], false);
    for query in [
        "limit=0",
        "limit=10001",
        "depth=0",
        "depth=65",
        "depth=x",
        "after=",
        "after=%00",
        "limit=",
    ] {
        let answer = rig.get(&format!("fs/dir?path=/d&{query}")).await;
        assert_eq!(answer.refusal(), "invalid_request", "{query}");
    }
}

#[tokio::test]
async fn directories_are_made_and_files_moved_changed_and_removed() {
    let rig = Rig::new().await;
    let made = rig
        .post(
            "fs/mkdir",
            json!({"path": "new/deep", "mode": "0700", "parents": true}),
        )
        .await;
    assert_eq!(made.status, StatusCode::NO_CONTENT);
    let asked = rig.world.node.last_file_request();
    assert!(asked.contains("/workspace/new/deep") && asked.contains("parents: true"));
    let there = rig
        .post("fs/mkdir", json!({"path": "/there", "user": null}))
        .await;
    assert_eq!(there.refusal(), "already_exists");
    assert_eq!(there.status, StatusCode::CONFLICT);

    rig.put("fs?path=/g", b"g").await;
    let wish = |replace: bool| json!({"from": "/f", "to": "/g", "replace": replace});
    assert_eq!(
        rig.post("fs/move", wish(false)).await.refusal(),
        "already_exists"
    );
    assert_eq!(rig.post("fs/move", wish(true)).await.status, 204);
    assert_eq!(rig.get("fs?path=/g").await.text(), "0123456789");
    assert_eq!(rig.post("fs/move", wish(true)).await.refusal(), "not_found");

    let mode = rig
        .post("fs/chmod", json!({"path": "/g", "mode": "640"}))
        .await;
    assert_eq!(mode.status, StatusCode::NO_CONTENT);

    let path = rig.path("fs?path=/g&recursive=true&user=root");
    assert_eq!(rig.world.delete(&path).await.status, StatusCode::NO_CONTENT);
    let asked = rig.world.node.last_file_request();
    assert!(
        asked.contains("recursive: true") && asked.contains("root"),
        "{asked}"
    );
    assert_eq!(rig.world.delete(&path).await.refusal(), "not_found");
}

#[tokio::test]
async fn wishes_that_make_no_sense_are_refused_before_anything_is_done() {
    let rig = Rig::new().await;
    let before = rig.world.node.last_file_request();
    for (route, body) in [
        ("fs/mkdir", json!({})),
        ("fs/mkdir", json!({"path": ""})),
        ("fs/mkdir", json!({"path": "a\u{0}b"})),
        ("fs/mkdir", json!({"path": "/a", "mode": 420})),
        ("fs/mkdir", json!({"path": "/a", "mode": "0x1ff"})),
        ("fs/move", json!({"from": "/a"})),
        ("fs/move", json!({"from": "/a", "to": ""})),
        ("fs/move", json!({"from": "/a", "to": "/b", "user": "a b"})),
        ("fs/chmod", json!({"path": "/a"})),
        ("fs/chmod", json!({"path": "/a", "mode": "777777"})),
    ] {
        let answer = rig.post(route, body.clone()).await;
        assert_eq!(answer.refusal(), "invalid_request", "{route} {body}");
    }
    let path = rig.path("fs?path=/f&recursive=yes");
    assert_eq!(rig.world.delete(&path).await.refusal(), "invalid_request");
    assert_eq!(rig.world.node.last_file_request(), before);
}

#[tokio::test]
async fn files_of_another_project_are_not_found() {
    let rig = Rig::new().await;
    let key = rig.world.foreign_key.clone();
    for (method, route, body) in [
        (Method::GET, "fs?path=/f", json!({})),
        (Method::PUT, "fs?path=/f", json!({})),
        (Method::DELETE, "fs?path=/f", json!({})),
        (Method::GET, "fs/dir?path=/", json!({})),
        (Method::GET, "fs/stat?path=/f", json!({})),
        (Method::POST, "fs/mkdir", json!({"path": "/a"})),
        (Method::POST, "fs/move", json!({"from": "/f", "to": "/g"})),
        (
            Method::POST,
            "fs/chmod",
            json!({"path": "/f", "mode": "0600"}),
        ),
        (Method::GET, "fs/watch?path=/", json!({})),
        (Method::GET, "fs/tar?path=/f", json!({})),
        (Method::PUT, "fs/tar?path=/f", json!({})),
        (Method::GET, "fs/changes?path=/", json!({})),
    ] {
        let path = rig.path(route);
        let answer = rig.world.ask(&key, method.clone(), &path, body).await;
        assert_eq!(answer.refusal(), "not_found", "{method} {route}");
    }
    assert_eq!(rig.content().await, "0123456789");
}

#[tokio::test]
async fn changes_are_sorted_and_count_from_a_snapshot_when_asked() {
    let rig = Rig::new().await;
    let changes = rig.get("fs/changes?path=/").await.json();
    let entries = changes["entries"].as_array().unwrap();
    let told: Vec<_> = entries
        .iter()
        .map(|entry| {
            (
                entry["path"].as_str().unwrap(),
                entry["kind"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("/etc/motd", "removed"),
            ("/workspace/a", "added"),
            ("/workspace/b", "modified"),
        ]
    );
    assert_eq!(changes["truncated"], true);
    assert!(rig.world.node.last_file_request().contains("since: Create"));
    rig.get("fs/changes?path=/&since=snap-local-x").await;
    let asked = rig.world.node.last_file_request();
    assert!(
        asked.contains("Snapshot") && asked.contains("snap-local-x"),
        "{asked}"
    );
    // By a name too, which the node does not know.
    let taking = format!("/v1/sandboxes/{}/snapshots", rig.id);
    let taken = rig.world.post(&taking, json!({"name": "tools"})).await;
    rig.get("fs/changes?path=/&since=tools").await;
    let asked = rig.world.node.last_file_request();
    assert!(
        asked.contains(taken.json()["id"].as_str().unwrap()),
        "{asked}"
    );
    let unknown = rig.get("fs/changes?path=/&since=snap-local-none").await;
    assert_eq!(unknown.refusal(), "not_found");
    for since in ["", "Yesterday", "a/b"] {
        let answer = rig.get(&format!("fs/changes?path=/&since={since}")).await;
        assert_eq!(answer.refusal(), "invalid_request", "{since}");
    }
}

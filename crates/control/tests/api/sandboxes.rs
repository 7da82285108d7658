//! Create, read, list, delete.

use std::time::{Duration, Instant};

use axum::body::Body;
use dayfly_node_api::{BakeState, NodeError};
use dayfly_types::ErrorCode;
use http::{Method, StatusCode};
use serde_json::json;

use crate::support::{World, eventually, template};

/// What a route needs in its body.
fn body_of(path: &str) -> &'static str {
    match path.rsplit('/').next() {
        Some("exec" | "stream") => r#"{"cmd":"true"}"#,
        Some("rollback") => r#"{"snapshot_id":"snap-1"}"#,
        Some("fork-tree") => r#"{"count":2}"#,
        _ => "{}",
    }
}

#[tokio::test]
async fn a_sandbox_lives_from_create_to_delete() {
    let world = World::start().await;
    let body = json!({"template": "base", "metadata": {"a": "é"}, "ttl_seconds": 60});
    let created = world.post("/v1/sandboxes", body).await;
    assert_eq!(created.status, StatusCode::CREATED);
    let sandbox = created.json();
    assert_eq!(sandbox["status"], "running");
    assert_eq!(sandbox["metadata"]["a"], "é");
    assert_eq!(sandbox["ttl_seconds"], 60);
    assert_eq!(sandbox["persistent"], false);
    assert_eq!(sandbox["boot_ms"], 12);
    assert_eq!(sandbox["boot_stages_us"]["restore"], 9000);
    assert_eq!(sandbox["isolation"], "emulated");
    assert!(sandbox["expires_at"].is_string());
    let path = format!("/v1/sandboxes/{}", sandbox["id"].as_str().unwrap());

    let read = world.get(&path).await;
    assert_eq!(read.status, StatusCode::OK);
    assert_eq!(read.json()["created_at"], sandbox["created_at"]);
    let list = world.get("/v1/sandboxes").await.json();
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    assert_eq!(list["items"][0]["id"], sandbox["id"]);

    for _ in 0..2 {
        let deleted = world.delete(&path).await;
        assert_eq!(deleted.status, StatusCode::NO_CONTENT);
        assert!(deleted.body.is_empty());
    }
    assert!(world.node.ids().is_empty());
    assert_eq!(world.get(&path).await.refusal(), "not_found");
    assert_eq!(
        world.get("/v1/sandboxes").await.json(),
        json!({"items": []})
    );
}

#[tokio::test]
async fn an_empty_body_creates_under_every_content_type() {
    let world = World::start().await;
    for content_type in [
        None,
        Some("text/plain;charset=UTF-8"),
        Some("application/json"),
    ] {
        let mut request = world.request(Method::POST, "/v1/sandboxes");
        if let Some(content_type) = content_type {
            request = request.header("content-type", content_type);
        }
        let answer = world.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{content_type:?}");
    }
}

#[tokio::test]
async fn foreign_and_unknown_ids_look_the_same() {
    let world = World::start().await;
    let id = world.create().await;
    let ask = async |method: Method, path: String, key: &str| {
        let request = http::Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", world.address))
            .header("authorization", format!("Bearer {key}"))
            .header("content-type", "application/json")
            .body(Body::from(body_of(&path)))
            .unwrap();
        let answer = world.send(request).await;
        (
            answer.status,
            answer.json()["error"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        )
    };
    let routes = [
        (Method::GET, ""),
        (Method::DELETE, ""),
        (Method::POST, "/exec"),
        (Method::POST, "/exec/stream"),
        (Method::GET, "/fs?path=/a"),
        (Method::PUT, "/fs?path=/a"),
        (Method::GET, "/fs/dir?path=/a"),
        (Method::GET, "/fs/stat?path=/a"),
        (Method::POST, "/pause"),
        (Method::POST, "/resume"),
        (Method::POST, "/hibernate"),
        (Method::POST, "/wake"),
        (Method::POST, "/rollback"),
        (Method::GET, "/lifecycle"),
        (Method::PATCH, "/lifecycle"),
        (Method::POST, "/snapshots"),
        (Method::POST, "/fork"),
        (Method::POST, "/fork-tree"),
        (Method::POST, "/promote"),
    ];
    let unknown = "sb-local-0123456789abcdefghjkmnpqrs";
    for (method, suffix) in routes {
        let foreign = format!("/v1/sandboxes/{id}{suffix}");
        let (status, text) = ask(method.clone(), foreign, &world.foreign_key).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{method} {suffix}");
        let (status, other) = ask(
            method.clone(),
            format!("/v1/sandboxes/{unknown}{suffix}"),
            &world.key,
        )
        .await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{method} {suffix}");
        assert_eq!(text.replace(&id, "ID"), other.replace(unknown, "ID"));
    }
    assert_eq!(world.node.ids().len(), 1);
}

#[tokio::test]
async fn an_idempotency_key_gives_the_same_sandbox_again() {
    let world = World::start().await;
    let create = async |key: &str, body: serde_json::Value| {
        let mut request = world.post_request("/v1/sandboxes", &body);
        request
            .headers_mut()
            .insert("idempotency-key", key.parse().unwrap());
        world.send(request).await
    };
    let first = create("k1", json!({"metadata": {"n": "1"}})).await;
    let again = create("k1", json!({"metadata": {"n": "1"}})).await;
    assert_eq!(again.status, StatusCode::CREATED);
    assert_eq!(first.json()["id"], again.json()["id"]);
    let other = create("k1", json!({"metadata": {"n": "2"}})).await;
    assert_eq!(other.status, StatusCode::CONFLICT);
    assert_eq!(other.refusal(), "idempotency_conflict");
    let new = create("k2", json!({"metadata": {"n": "1"}})).await;
    assert_ne!(first.json()["id"], new.json()["id"]);
    assert_eq!(world.node.ids().len(), 2);
    let path = format!("/v1/sandboxes/{}", new.json()["id"].as_str().unwrap());
    assert_eq!(world.delete(&path).await.status, StatusCode::NO_CONTENT);
    let gone = create("k2", json!({"metadata": {"n": "1"}})).await;
    assert_eq!(gone.refusal(), "wrong_state");
    let bad = create("a b", json!({})).await;
    assert_eq!(bad.refusal(), "invalid_request");
}

#[tokio::test]
async fn the_same_key_at_the_same_time_makes_one_sandbox() {
    let world = World::start().await;
    world.node.delay_ensure(Duration::from_millis(200));
    let create = async || {
        let mut request = world.post_request("/v1/sandboxes", &json!({}));
        request
            .headers_mut()
            .insert("idempotency-key", "same".parse().unwrap());
        world.send(request).await
    };
    let (one, two) = tokio::join!(create(), create());
    assert_eq!(one.json()["id"], two.json()["id"]);
    assert_eq!(world.node.ids().len(), 1);
}

#[tokio::test]
async fn a_refused_create_leaves_nothing() {
    let world = World::start().await;
    let full = NodeError::new(ErrorCode::NoCapacity, "no memory left");
    world
        .node
        .refuse_ensure(Some(full.retry_after(Duration::from_millis(2500))));
    let mut request = world.post_request("/v1/sandboxes", &json!({}));
    request
        .headers_mut()
        .insert("idempotency-key", "k".parse().unwrap());
    let refused = world.send(request).await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.refusal(), "no_capacity");
    assert_eq!(refused.headers["retry-after"], "3");
    assert_eq!(
        world.get("/v1/sandboxes").await.json(),
        json!({"items": []})
    );

    world.node.refuse_ensure(None);
    let mut request = world.post_request("/v1/sandboxes", &json!({}));
    request
        .headers_mut()
        .insert("idempotency-key", "k".parse().unwrap());
    assert_eq!(world.send(request).await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn a_baking_template_is_refused_at_once() {
    let world = World::start().await;
    let baking = BakeState::Baking {
        percent: 42,
        step: "installing".to_owned(),
    };
    world.node.set_templates(vec![template("base", baking)]);
    let mut times = Vec::new();
    let mut refused = world.post("/v1/sandboxes", json!({})).await;
    for _ in 0..20 {
        let started = Instant::now();
        refused = world.post("/v1/sandboxes", json!({})).await;
        times.push(started.elapsed());
    }
    times.sort_unstable();
    let p90 = times[17];
    assert!(p90 < Duration::from_millis(100), "p90 of 20: {p90:?}");
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.refusal(), "template_baking");
    assert_eq!(refused.json()["percent"], 42);
    let delay: u64 = refused.headers["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((1..=60).contains(&delay));
    assert_eq!(world.node.ensure_calls(), 0);
    let shown = world.get("/v1/templates/base").await.json();
    assert_eq!(
        (&shown["state"], &shown["percent"]),
        (&json!("baking"), &json!(42))
    );
}

#[tokio::test]
async fn an_unknown_template_is_told_with_those_that_exist() {
    let world = World::start().await;
    let refused = world
        .post("/v1/sandboxes", json!({"template": "ubuntu-12.04"}))
        .await;
    assert_eq!(refused.status, StatusCode::NOT_FOUND);
    assert!(refused.json()["error"].as_str().unwrap().contains("base"));
    let list = world.get("/v1/templates").await.json();
    assert_eq!(list[0]["name"], "base");
}

#[tokio::test]
async fn a_create_goes_on_when_its_caller_hangs_up() {
    let world = World::start().await;
    world.node.delay_ensure(Duration::from_millis(300));
    let request = world
        .http
        .request(world.post_request("/v1/sandboxes", &json!({})));
    let hung_up = tokio::time::timeout(Duration::from_millis(100), request).await;
    assert!(hung_up.is_err());
    eventually("the sandbox runs", async || {
        let list = world.get("/v1/sandboxes").await.json();
        list["items"][0]["status"] == "running"
    })
    .await;
}

#[tokio::test]
async fn a_delete_during_the_create_wins() {
    let world = World::start().await;
    world.node.delay_ensure(Duration::from_millis(300));
    let create = world.post("/v1/sandboxes", json!({}));
    let delete = async {
        let mut id = String::new();
        eventually("the row exists", async || {
            let list = world.get("/v1/sandboxes").await.json();
            id = list["items"][0]["id"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            !id.is_empty()
        })
        .await;
        world.delete(&format!("/v1/sandboxes/{id}")).await
    };
    let (created, deleted) = tokio::join!(create, delete);
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    assert_eq!(created.refusal(), "wrong_state");
    eventually("the node has nothing", async || world.node.ids().is_empty()).await;
}

#[tokio::test]
async fn without_a_node_everything_that_needs_one_says_so() {
    let world = World::start().await;
    let id = world.create().await;
    world.stop_node().await;
    let unavailable = [
        world.post("/v1/sandboxes", json!({})).await,
        world.get("/v1/node").await,
        world.get("/v1/templates").await,
        world
            .post(&format!("/v1/sandboxes/{id}/exec"), json!({"cmd": "true"}))
            .await,
        world
            .post(
                &format!("/v1/sandboxes/{id}/exec/stream"),
                json!({"cmd": "true"}),
            )
            .await,
        world.get(&format!("/v1/sandboxes/{id}/fs?path=/a")).await,
        world.delete(&format!("/v1/sandboxes/{id}")).await,
    ];
    for answer in unavailable {
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(answer.refusal(), "node_unavailable");
        assert!(answer.headers.contains_key("retry-after"));
    }
    assert_eq!(world.get("/health").await.json()["status"], "degraded");
    // What is in the database is still answered, and the wish to delete is in it.
    let read = world.get(&format!("/v1/sandboxes/{id}")).await.json();
    assert_eq!(read["status"], "deleting");

    world.start_node();
    eventually("the reconciler deletes it", async || {
        world.node.ids().is_empty()
    })
    .await;
    eventually("the row is deleted", async || {
        world.get(&format!("/v1/sandboxes/{id}")).await.status == StatusCode::NOT_FOUND
    })
    .await;
    assert_eq!(world.get("/health").await.json()["status"], "ok");
}

/// Sends a create and goes before the answer, at a moment that differs from call to call.
async fn create_and_hang_up(world: &World, key: &str, wait: Duration) {
    use tokio::io::AsyncWriteExt;
    let body = json!({"metadata": {"key": key}}).to_string();
    let request = format!(
        "POST /v1/sandboxes HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\nidempotency-key: {key}\r\ncontent-length: {}\r\n\r\n{body}",
        world.address,
        world.key,
        body.len()
    );
    let mut connection = tokio::net::TcpStream::connect(world.address).await.unwrap();
    connection.write_all(request.as_bytes()).await.unwrap();
    tokio::time::sleep(wait).await;
}

#[tokio::test]
async fn a_create_whose_answer_is_lost_and_repeated_makes_one_sandbox() {
    const CREATES: usize = 200;
    let world = World::start().await;
    world.node.delay_ensure(Duration::from_millis(5));
    let mut ids = std::collections::BTreeSet::new();
    for index in 0..CREATES {
        let key = format!("lost-{index}");
        let micros = u64::try_from(index).unwrap() * 97 % 9000;
        create_and_hang_up(&world, &key, Duration::from_micros(micros)).await;
        let body = json!({"metadata": {"key": key}});
        let repeated = world.post_keyed("/v1/sandboxes", &key, body).await;
        assert_eq!(repeated.status, StatusCode::CREATED, "{}", repeated.text());
        ids.insert(repeated.json()["id"].as_str().unwrap().to_owned());
    }
    let made: std::collections::BTreeSet<String> =
        world.node.ids().iter().map(ToString::to_string).collect();
    assert_eq!(made.len(), CREATES);
    assert_eq!(made, ids, "each answer names the one that was made");
}

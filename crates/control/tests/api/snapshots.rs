//! Snapshots, and what is made from them.

use std::time::Duration;

use dayfly_node_api::NodeError;
use dayfly_types::ErrorCode;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Setup, World};

async fn take(world: &World, sandbox: &str, body: Value) -> String {
    let taken = world
        .post(&format!("/v1/sandboxes/{sandbox}/snapshots"), body)
        .await;
    assert_eq!(taken.status, StatusCode::CREATED, "{}", taken.text());
    taken.json()["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_snapshot_is_taken_listed_read_and_deleted() {
    let world = World::start().await;
    let (one, two) = (world.create().await, world.create().await);
    let body = json!({"name": "before", "retain_seconds": 60});
    let first = take(&world, &one, body).await;
    assert!(first.starts_with("snap-local-"));
    let second = take(&world, &two, json!({})).await;

    let list = world.get("/v1/snapshots").await.json();
    assert_eq!(list["snapshots"][0]["id"], second, "newest first");
    assert_eq!(list["snapshots"][1]["id"], first);
    let of_one = world
        .get(&format!("/v1/snapshots?sandbox_id={one}"))
        .await
        .json();
    assert_eq!(of_one["snapshots"].as_array().unwrap().len(), 1);
    let read = world.get(&format!("/v1/snapshots/{first}")).await.json();
    assert_eq!(read, of_one["snapshots"][0]);
    assert_eq!(
        (&read["sandbox_id"], &read["template"]),
        (&json!(one), &json!("base"))
    );
    assert_eq!(
        (&read["name"], &read["size_bytes"]),
        (&json!("before"), &json!(1 << 20))
    );
    assert_eq!(read["created_at"], "2023-11-14T22:13:20Z");
    assert_eq!(read["expires_at"], "2023-11-14T22:14:20Z");
    assert_eq!(read["capture"]["pause_ms"], 1.5);
    assert_eq!(read["capture"]["frozen_ms"], 2.5);

    for _ in 0..2 {
        let deleted = world.delete(&format!("/v1/snapshots/{first}")).await;
        assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    }
    let gone = world.get(&format!("/v1/snapshots/{first}")).await;
    assert_eq!(gone.refusal(), "not_found");
    assert_eq!(world.node.snapshot_count(), 1);
}

#[tokio::test]
async fn another_project_sees_no_snapshot_and_deletes_none() {
    let world = World::start().await;
    let sandbox = world.create().await;
    let id = take(&world, &sandbox, json!({})).await;
    let foreign = async |method: Method, path: String, body: Value| {
        world.ask(&world.foreign_key, method, &path, body).await
    };
    let list = foreign(Method::GET, "/v1/snapshots".to_owned(), Value::Null).await;
    assert_eq!(list.json(), json!({"snapshots": []}));
    let by_sandbox = format!("/v1/snapshots?sandbox_id={sandbox}");
    let list = foreign(Method::GET, by_sandbox, Value::Null).await;
    assert_eq!(list.json(), json!({"snapshots": []}));
    let unknown = "snap-local-0123456789abcdefghjkmnpqrs";
    for id in [id.as_str(), unknown] {
        let path = format!("/v1/snapshots/{id}");
        let read = foreign(Method::GET, path.clone(), Value::Null).await;
        assert_eq!(read.status, StatusCode::NOT_FOUND);
        assert_eq!(read.json()["error"], format!("there is no snapshot {id}"));
        let deleted = foreign(Method::DELETE, path, Value::Null).await;
        assert_eq!(deleted.status, StatusCode::NO_CONTENT);
        let body = json!({"from_snapshot": id});
        let created = foreign(Method::POST, "/v1/sandboxes".to_owned(), body).await;
        assert_eq!(created.status, StatusCode::NOT_FOUND);
        assert_eq!(
            created.json()["error"],
            format!("there is no snapshot {id}")
        );
    }
    let own = foreign(Method::POST, "/v1/sandboxes".to_owned(), json!({}))
        .await
        .json();
    let rollback = format!("/v1/sandboxes/{}/rollback", own["id"].as_str().unwrap());
    let refused = foreign(Method::POST, rollback, json!({"snapshot_id": id})).await;
    assert_eq!(refused.refusal(), "not_found");
    assert_eq!(world.node.snapshot_count(), 1);
    assert_eq!(
        world.get(&format!("/v1/snapshots/{id}")).await.status,
        StatusCode::OK
    );
}

#[tokio::test]
async fn a_sandbox_starts_from_a_snapshot_whatever_template_is_sent() {
    let world = World::start().await;
    let source = world.create().await;
    let id = take(&world, &source, json!({})).await;
    for template in ["base", "ubuntu-24.04", "NOT A NAME"] {
        let body = json!({"from_snapshot": id, "template": template});
        let created = world.post("/v1/sandboxes", body).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.text());
        assert_eq!(created.json()["template"], "base");
        assert_eq!(created.json()["from_snapshot"], id);
        let wanted = world.node.last_wanted().unwrap();
        assert_eq!(wanted.from_snapshot.map(String::from), Some(id.clone()));
    }
    let body = json!({"from_snapshot": id, "cpu": 1.5});
    let refused = world.post("/v1/sandboxes", body).await;
    assert_eq!(refused.refusal(), "invalid_request");
    assert!(refused.text().contains("at most 1"), "{}", refused.text());
}

#[tokio::test]
async fn a_sandbox_boots_on_the_disk_of_a_snapshot_of_its_project() {
    let world = World::start().await;
    let source = world.create().await;
    let id = take(&world, &source, json!({"name": "tools"})).await;
    for named in [id.as_str(), "tools"] {
        let body = json!({"from_snapshot": named, "disk_only": true, "template": "ubuntu-24.04"});
        let created = world.post("/v1/sandboxes", body).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.text());
        let shown = created.json();
        assert_eq!(shown["from_snapshot"], id);
        assert_eq!(shown["boot_mode"], "boot");
        let path = format!("/v1/sandboxes/{}", shown["id"].as_str().unwrap());
        assert_eq!(world.get(&path).await.json()["boot_mode"], "boot");
    }
    let booted: Vec<String> = world.node.booted().into_iter().map(String::from).collect();
    assert_eq!(booted, [id.clone(), id.clone()], "the id is asked for");
    let whole = json!({"from_snapshot": id, "disk_only": false});
    let whole = world.post("/v1/sandboxes", whole).await;
    assert_eq!(whole.json()["boot_mode"], "restore");
    assert_eq!(world.node.booted().len(), 2);
    let nothing = world
        .post("/v1/sandboxes", json!({"disk_only": true}))
        .await;
    assert_eq!(nothing.status, StatusCode::BAD_REQUEST);
    assert!(
        nothing.text().contains("from_snapshot"),
        "{}",
        nothing.text()
    );
    let body = json!({"from_snapshot": id, "disk_only": true});
    let foreign = world
        .ask(&world.foreign_key, Method::POST, "/v1/sandboxes", body)
        .await;
    assert_eq!(foreign.status, StatusCode::NOT_FOUND);
    assert_eq!(world.node.booted().len(), 2);
}

/// A boot outlasts what an ordinary create is given, and nobody takes its row for lost meanwhile.
#[tokio::test]
async fn a_boot_is_waited_for_longer_than_a_restore() {
    let world = World::with(Setup::quick()).await;
    let source = world.create().await;
    let id = take(&world, &source, json!({})).await;
    // The world gives up rows that the node does not know after 300 ms.
    world.node.delay_ensure(Duration::from_secs(2));
    let body = json!({"from_snapshot": id, "disk_only": true});
    let created = world.post("/v1/sandboxes", body).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.text());
}

#[tokio::test]
async fn a_sandbox_is_taken_back_to_its_own_snapshot_only() {
    let world = World::start().await;
    let (one, two) = (world.create().await, world.create().await);
    let id = take(&world, &one, json!({})).await;
    world
        .post(&format!("/v1/sandboxes/{one}/pause"), json!({}))
        .await;
    let rollback = |sandbox: &str| format!("/v1/sandboxes/{sandbox}/rollback");
    let rolled = world
        .post(&rollback(&one), json!({"snapshot_id": id}))
        .await;
    assert_eq!(rolled.status, StatusCode::OK, "{}", rolled.text());
    assert_eq!(
        (&rolled.json()["id"], &rolled.json()["status"]),
        (&json!(one), &json!("running"))
    );
    let refused = world
        .post(&rollback(&two), json!({"snapshot_id": id}))
        .await;
    assert_eq!(refused.refusal(), "invalid_request");
    let unknown = world
        .post(&rollback(&one), json!({"snapshot_id": "snap-x"}))
        .await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    assert_eq!(unknown.json()["error"], "there is no snapshot snap-x");
}

#[tokio::test]
async fn a_refused_snapshot_is_told_with_its_code() {
    let world = World::start().await;
    let id = world.create().await;
    for (code, status) in [
        (ErrorCode::TooMany, StatusCode::TOO_MANY_REQUESTS),
        (ErrorCode::StorageFull, StatusCode::INSUFFICIENT_STORAGE),
        (ErrorCode::WrongState, StatusCode::CONFLICT),
    ] {
        world.node.refuse_state(Some(NodeError::new(code, "no")));
        let refused = world
            .post(&format!("/v1/sandboxes/{id}/snapshots"), json!({}))
            .await;
        assert_eq!(
            (refused.status, refused.refusal().as_str()),
            (status, code.as_str())
        );
    }
    assert_eq!(world.node.snapshot_count(), 0);
}

#[tokio::test]
async fn a_list_is_chosen_by_one_sandbox_that_can_be() {
    let world = World::start().await;
    for query in ["sandbox_id=A", "sandbox_id=", "sandbox_id=a&sandbox_id=b"] {
        let refused = world.get(&format!("/v1/snapshots?{query}")).await;
        assert_eq!(refused.refusal(), "invalid_request", "{query}");
    }
    let none = world.get("/v1/snapshots?sandbox_id=sb-x").await.json();
    assert_eq!(none, json!({"snapshots": []}));
    let bad = world.get("/v1/snapshots/NOT%20an%20id").await;
    assert_eq!(bad.refusal(), "not_found");
}

#[tokio::test]
async fn an_idempotency_key_gives_the_same_snapshot_again() {
    let world = World::start().await;
    let (one, two) = (world.create().await, world.create().await);
    let path = format!("/v1/sandboxes/{one}/snapshots");
    let first = world.post_keyed(&path, "k", json!({"name": "a"})).await;
    let again = world.post_keyed(&path, "k", json!({"name": "a"})).await;
    assert_eq!(again.status, StatusCode::CREATED);
    assert_eq!(first.json(), again.json());
    assert_eq!(world.node.snapshot_count(), 1);

    let other = format!("/v1/sandboxes/{two}/snapshots");
    let conflicts = [
        world.post_keyed(&path, "k", json!({"name": "b"})).await,
        world.post_keyed(&other, "k", json!({"name": "a"})).await,
        world.post_keyed("/v1/sandboxes", "k", json!({})).await,
    ];
    for conflict in conflicts {
        assert_eq!(conflict.refusal(), "idempotency_conflict");
    }

    let id = first.json()["id"].as_str().unwrap().to_owned();
    world.delete(&format!("/v1/snapshots/{id}")).await;
    let gone = world.post_keyed(&path, "k", json!({"name": "a"})).await;
    assert_eq!(gone.refusal(), "wrong_state");
    assert_eq!(world.node.snapshot_count(), 0);

    world
        .node
        .refuse_state(Some(NodeError::new(ErrorCode::TooMany, "no")));
    let refused = world.post_keyed(&path, "k2", json!({})).await;
    assert_eq!(refused.refusal(), "too_many");
    world.node.refuse_state(None);
    let freed = world.post_keyed(&path, "k2", json!({})).await;
    assert_eq!(freed.status, StatusCode::CREATED);
}

#[tokio::test]
async fn a_name_stands_for_a_snapshot_wherever_an_id_may() {
    let world = World::start().await;
    let sandbox = world.create().await;
    let id = take(&world, &sandbox, json!({"name": "tools"})).await;
    let read = world.get("/v1/snapshots/tools").await.json();
    assert_eq!((&read["id"], &read["name"]), (&json!(id), &json!("tools")));
    let created = world
        .post("/v1/sandboxes", json!({"from_snapshot": "tools"}))
        .await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.text());
    assert_eq!(created.json()["from_snapshot"], id, "the id is kept");
    let wanted = world.node.last_wanted().unwrap();
    assert_eq!(wanted.from_snapshot.map(String::from), Some(id.clone()));
    let rollback = format!("/v1/sandboxes/{sandbox}/rollback");
    let rolled = world.post(&rollback, json!({"snapshot_id": "tools"})).await;
    assert_eq!(rolled.status, StatusCode::OK, "{}", rolled.text());
    // Names are each project's own.
    for (method, path) in [
        (Method::GET, "/v1/snapshots/tools"),
        (Method::DELETE, "/v1/snapshots/tools"),
    ] {
        world
            .ask(&world.foreign_key, method, path, Value::Null)
            .await;
    }
    let foreign = json!({"from_snapshot": "tools"});
    let foreign = world
        .ask(&world.foreign_key, Method::POST, "/v1/sandboxes", foreign)
        .await;
    assert_eq!(foreign.json()["error"], "there is no snapshot tools");
    assert_eq!(world.node.snapshot_count(), 1, "another project deleted it");
    let deleted = world.delete("/v1/snapshots/tools").await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    assert_eq!(world.node.snapshot_count(), 0);
}

#[tokio::test]
async fn a_name_is_taken_once_and_a_label_as_often_as_anybody_likes() {
    let world = World::start().await;
    let sandbox = world.create().await;
    let path = format!("/v1/sandboxes/{sandbox}/snapshots");
    let wish = json!({"name": "tools"});
    // Of two at once, too.
    world
        .node
        .delay_snapshots(std::time::Duration::from_millis(200));
    let (one, two) = tokio::join!(
        world.post(&path, wish.clone()),
        world.post(&path, wish.clone())
    );
    let mut statuses = [one.status, two.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [StatusCode::CREATED, StatusCode::CONFLICT]);
    let refused = world.post(&path, wish.clone()).await;
    assert_eq!(refused.refusal(), "already_exists");
    // Repeated with its key it is the same one.
    let keyed = json!({"name": "more"});
    let first = world.post_keyed(&path, "k", keyed.clone()).await.json();
    let again = world.post_keyed(&path, "k", keyed).await.json();
    assert_eq!(first["id"], again["id"]);
    for label in ["before the upgrade", "snap-1", "Tools"] {
        for _ in 0..2 {
            take(&world, &sandbox, json!({"name": label})).await;
        }
    }
    let by_label = world.get("/v1/snapshots/snap-1").await;
    assert_eq!(by_label.status, StatusCode::NOT_FOUND, "a label is no name");
    world.delete("/v1/snapshots/tools").await;
    take(&world, &sandbox, wish).await;
}

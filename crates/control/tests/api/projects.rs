//! Projects, what they may use, and the record of what they did.

use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Step, World, eventually, exited};

/// A project with these limits, and a key of it.
async fn project(world: &World, id: &str, limits: Value) -> String {
    let made = world
        .post("/v1/projects", json!({"id": id, "limits": limits}))
        .await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    let path = format!("/v1/projects/{id}/tokens");
    let token = world.post(&path, json!({})).await;
    assert_eq!(token.status, StatusCode::CREATED, "{}", token.text());
    token.json()["token"].as_str().unwrap().to_owned()
}

/// Where the snapshots of a new sandbox are asked for. A capture takes a moment.
async fn snapshots_of_a_sandbox(world: &World, key: &str) -> String {
    world.node.delay_snapshots(Duration::from_millis(50));
    let sandbox = world.ask(key, Method::POST, "/v1/sandboxes", json!({}));
    let id = sandbox.await.json()["id"].as_str().unwrap().to_owned();
    format!("/v1/sandboxes/{id}/snapshots")
}

#[tokio::test]
async fn a_repeated_snapshot_is_the_same_when_there_is_no_room_for_another() {
    let world = World::start().await;
    let key = project(&world, "small", json!({"snapshot_mb": 1})).await;
    let path = snapshots_of_a_sandbox(&world, &key).await;
    let headers = [("idempotency-key", "the-same")];
    let ask = || world.ask_with(&key, Method::POST, &path, json!({}), &headers);
    let (first, second) = tokio::join!(ask(), ask());
    let third = ask().await;
    for answer in [&first, &second, &third] {
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text());
        assert_eq!(answer.json()["id"], first.json()["id"]);
    }
    assert_eq!(world.node.snapshot_count(), 1);
    let other = world.ask(&key, Method::POST, &path, json!({})).await;
    assert_eq!(other.refusal(), "quota_exceeded");
}

/// A snapshot of the node in memory is of one MiB.
#[tokio::test]
async fn snapshots_at_once_keep_to_what_a_project_may_keep() {
    let world = World::start().await;
    let key = project(&world, "small", json!({"snapshot_mb": 3})).await;
    let path = snapshots_of_a_sandbox(&world, &key).await;
    let asked = (0..8).map(|_| world.ask(&key, Method::POST, &path, json!({})));
    let answers = futures::future::join_all(asked).await;
    let (taken, refused): (Vec<_>, Vec<_>) = answers
        .iter()
        .partition(|answer| answer.status == StatusCode::CREATED);
    assert_eq!(taken.len(), 3, "room for three");
    for answer in refused {
        assert_eq!(answer.refusal(), "quota_exceeded", "{}", answer.text());
    }
    assert_eq!(world.node.snapshot_count(), 3);
}

#[tokio::test]
async fn a_project_has_no_more_than_it_may() {
    let world = World::start().await;
    let limits = json!({"sandboxes": 2, "volume_mb": 100});
    let key = project(&world, "small", limits).await;
    let create = async || {
        world
            .ask(&key, Method::POST, "/v1/sandboxes", json!({}))
            .await
    };
    let first = create().await;
    assert_eq!(first.status, StatusCode::CREATED, "{}", first.text());
    assert_eq!(create().await.status, StatusCode::CREATED);
    let over = create().await;
    assert_eq!(over.refusal(), "quota_exceeded");
    assert_eq!(over.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(
        !over.headers.contains_key("retry-after"),
        "waiting is no help"
    );
    assert!(over.text().contains("2 sandboxes"), "{}", over.text());
    let id = first.json()["id"].as_str().unwrap().to_owned();
    let fork = format!("/v1/sandboxes/{id}/fork");
    let forked = world.ask(&key, Method::POST, &fork, json!({})).await;
    assert_eq!(forked.refusal(), "quota_exceeded");
    let path = format!("/v1/sandboxes/{id}");
    world.ask(&key, Method::DELETE, &path, json!({})).await;
    assert_eq!(create().await.status, StatusCode::CREATED, "room again");

    let volume = async |name: &str, size: u64| {
        let wish = json!({"name": name, "size_mb": size});
        world.ask(&key, Method::POST, "/v1/volumes", wish).await
    };
    assert_eq!(volume("a", 64).await.status, StatusCode::CREATED);
    assert_eq!(volume("a", 64).await.status, StatusCode::OK, "not twice");
    assert_eq!(volume("b", 64).await.refusal(), "quota_exceeded");
    let usage = world.ask(&key, Method::GET, "/v1/usage", json!({})).await;
    let usage = usage.json();
    assert_eq!(
        (&usage["sandboxes"], &usage["volume_mb"]),
        (&json!(2), &json!(64))
    );
    assert_eq!(usage["limits"]["sandboxes"], 2);
    let wider = json!({"sandboxes": null});
    let changed = world.patch("/v1/projects/small", wider).await;
    assert_eq!(changed.json()["limits"]["sandboxes"], Value::Null);
    assert_eq!(changed.json()["limits"]["volume_mb"], 100);
    assert_eq!(create().await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn the_disks_of_a_project_are_limited_together() {
    let world = World::start().await;
    let key = project(&world, "roomy", json!({})).await;
    let create = async || {
        world
            .ask(&key, Method::POST, "/v1/sandboxes", json!({}))
            .await
    };
    assert_eq!(create().await.status, StatusCode::CREATED);
    let usage = world.ask(&key, Method::GET, "/v1/usage", json!({})).await;
    let disk = usage.json()["disk_mb"].as_u64().unwrap();
    assert!(disk > 0, "{}", usage.text());
    let limited = |mb: u64| json!({ "disk_mb": mb });
    let changed = world
        .patch("/v1/projects/roomy", limited(2 * disk - 1))
        .await;
    assert_eq!(changed.json()["limits"]["disk_mb"], 2 * disk - 1);
    let over = create().await;
    assert_eq!(over.refusal(), "quota_exceeded");
    assert!(over.text().contains("MiB of disks"), "{}", over.text());
    world.patch("/v1/projects/roomy", limited(2 * disk)).await;
    assert_eq!(create().await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn who_asks_too_fast_is_told_when_to_ask_again() {
    let world = World::start().await;
    let key = project(&world, "hasty", json!({"requests_per_second": 5})).await;
    let mut refused = 0;
    for _ in 0..20 {
        let answer = world.ask(&key, Method::GET, "/v1/me", json!({})).await;
        if answer.status == StatusCode::TOO_MANY_REQUESTS {
            assert_eq!(answer.refusal(), "rate_limited");
            assert!(answer.headers.contains_key("retry-after"));
            refused += 1;
        }
    }
    assert!((5..=12).contains(&refused), "{refused}");
    assert_eq!(world.get("/v1/me").await.status, StatusCode::OK, "others");
}

#[tokio::test]
async fn only_an_operator_sees_projects() {
    let world = World::start().await;
    let key = project(&world, "other-one", json!({})).await;
    for (method, path) in [
        (Method::GET, "/v1/projects"),
        (Method::POST, "/v1/projects"),
        (Method::GET, "/v1/projects/default"),
        (Method::POST, "/v1/projects/default/tokens"),
        (Method::PATCH, "/v1/projects/other-one"),
    ] {
        let answer = world.ask(&key, method, path, json!({"id": "x"})).await;
        assert_eq!(answer.refusal(), "forbidden", "{path}");
    }
    let again = world.post("/v1/projects", json!({"id": "other-one"})).await;
    assert_eq!(again.refusal(), "already_exists");
    let list = world.get("/v1/projects").await.json();
    assert!(list["items"].as_array().unwrap().len() >= 2);
}

#[tokio::test]
async fn every_command_is_in_the_record_with_its_end_and_digests() {
    let world = World::start().await;
    let id = world.create().await;
    let command = "echo hello; echo oops >&2; exit 3";
    let steps = [
        Step::Stdout("hello\n".into()),
        Step::Stderr("oops\n".into()),
        Step::Exit(exited(3)),
    ];
    world.node.script(command, steps);
    let ran = world
        .post(&format!("/v1/sandboxes/{id}/exec"), json!({"cmd": command}))
        .await;
    assert_eq!(ran.json()["exit_code"], 3, "{}", ran.text());
    let record = world.get(&format!("/v1/audit?subject={id}")).await.json();
    let items = record["items"].as_array().unwrap();
    let exec = &items[0];
    assert_eq!(exec["operation"], format!("POST /v1/sandboxes/{id}/exec"));
    assert_eq!(
        exec["request_id"],
        ran.headers["x-request-id"].to_str().unwrap()
    );
    let detail = &exec["detail"];
    assert_eq!(detail["cmd"], command);
    assert_eq!(detail["end"]["exit_code"], 3);
    assert_eq!(detail["stdout"]["bytes"], 6);
    let digest = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";
    assert_eq!(detail["stdout"]["sha256"], digest);
    assert_eq!(
        detail["stdout"]["text"],
        Value::Null,
        "not kept unless asked"
    );
    assert_eq!(items[1]["operation"], "POST /v1/sandboxes");
    assert_eq!(items[1]["status"], 201);
    let keeps = json!({"keeps_output": true});
    world.patch("/v1/projects/default", keeps).await;
    let steps = [Step::Stdout("kept\n".into()), Step::Exit(exited(0))];
    world.node.script("echo kept", steps);
    let path = format!("/v1/sandboxes/{id}/exec");
    world.post(&path, json!({"cmd": "echo kept"})).await;
    let record = world
        .get(&format!("/v1/audit?subject={id}&limit=1"))
        .await
        .json();
    assert_eq!(record["items"][0]["detail"]["stdout"]["text"], "kept\n");
    assert!(record["next_cursor"].is_string());
}

#[tokio::test]
async fn loads_are_shown_of_the_own_sandboxes_alone() {
    let world = World::start().await;
    let own = world.create().await;
    let foreign = world
        .ask(&world.foreign_key, Method::POST, "/v1/sandboxes", json!({}))
        .await;
    assert_eq!(foreign.status, StatusCode::CREATED);
    let loads = world.get("/v1/usage/sandboxes").await.json();
    let items = loads["items"].as_array().unwrap();
    assert_eq!(items.len(), 1);
    assert_eq!(items[0]["id"], own);
    assert_eq!(items[0]["cpu_us"], 1_500_000);
    assert!(loads["at_ms"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn a_command_in_the_background_has_a_second_entry_for_its_end() {
    let world = World::start().await;
    let id = world.create().await;
    let steps = [
        Step::Stdout("hello\n".into()),
        Step::Pause(Duration::from_millis(20)),
        Step::Exit(exited(3)),
    ];
    world.node.script("serve", steps);
    let body = json!({"cmd": "serve", "exec_id": "mine", "background": true});
    let path = format!("/v1/sandboxes/{id}/exec");
    let started = world.post(&path, body).await;
    assert_eq!(started.status, StatusCode::ACCEPTED);
    let path = format!("/v1/audit?subject={id}");
    eventually("its end is recorded", async || {
        let record = world.get(&path).await.json();
        record["items"][0]["detail"]["end"]["exit_code"] == 3
    })
    .await;
    let record = world.get(&path).await.json();
    let (ended, begun) = (&record["items"][0], &record["items"][1]);
    assert_eq!(ended["request_id"], begun["request_id"]);
    assert_eq!(ended["detail"]["exec_id"], "mine");
    let digest = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";
    assert_eq!(ended["detail"]["stdout"]["sha256"], digest);
    assert_eq!(begun["detail"]["cmd"], "serve");
    assert_eq!(begun["detail"]["background"], true);
    assert_eq!(begun["detail"].get("end"), None);
}

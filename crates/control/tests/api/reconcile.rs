//! Rows and node come together again after any loss.

use std::time::Duration;

use dayfly_node_api::{EnsureSandbox, NodeCalls, NodeError};
use dayfly_types::egress::EgressPolicy;
use dayfly_types::{
    EndReason, ErrorCode, Generation, LifetimeRules, ProjectId, SandboxClass, SandboxId,
    SandboxState, SnapshotId, TemplateName,
};
use http::{Method, StatusCode};
use serde_json::json;

use crate::support::{Setup, Step, World, eventually};

#[tokio::test]
async fn what_the_node_says_is_seen_and_old_news_is_not() {
    let world = World::start().await;
    let id = world.create().await;
    let path = format!("/v1/sandboxes/{id}");
    let mut report = world
        .node
        .sandbox(&SandboxId::parse(&id).unwrap())
        .await
        .unwrap();
    report.state = SandboxState::Failed;
    report.generation = Generation(5);
    report.reason = Some("the engine ended".to_owned());
    world.node.put(report.clone());
    eventually("the failure is seen", async || {
        let seen = world.get(&path).await.json();
        seen["status"] == "failed" && seen["reason"] == "the engine ended"
    })
    .await;
    report.state = SandboxState::Running;
    report.generation = Generation(4);
    world.node.put(report.clone());
    report.generation = Generation(6);
    report.state = SandboxState::Paused;
    world.node.put(report);
    eventually("newer news is seen", async || {
        let status = world.get(&path).await.json()["status"].clone();
        assert_ne!(status, "running");
        status == "paused"
    })
    .await;
}

#[tokio::test]
async fn a_sandbox_that_the_node_deletes_by_itself_is_gone() {
    let world = World::start().await;
    let id = world.create().await;
    let mut report = world
        .node
        .sandbox(&SandboxId::parse(&id).unwrap())
        .await
        .unwrap();
    report.state = SandboxState::Deleted;
    report.generation = Generation(9);
    world.node.put(report);
    eventually("it is gone", async || {
        world.get(&format!("/v1/sandboxes/{id}")).await.status == StatusCode::NOT_FOUND
    })
    .await;
    let deleted = world.delete(&format!("/v1/sandboxes/{id}")).await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
}

/// A row that is old when the list arrives, and younger than the list, is nothing that was lost.
#[tokio::test]
async fn a_list_that_was_long_on_its_way_ends_no_sandbox_that_was_made_meanwhile() {
    let setup = Setup::quick();
    let lost_after = setup.reconcile.lost_after;
    let world = World::with(setup).await;
    let held = world.node.hold_next_list();
    held.made().await;
    let path = format!("/v1/sandboxes/{}", world.create().await);
    tokio::time::sleep(lost_after * 2).await;
    let next = world.node.hold_next_list();
    held.release();
    // The next one is asked for when the first has been compared.
    next.made().await;
    assert_eq!(world.get(&path).await.status, StatusCode::OK);
    next.release();
}

/// What is said of a sandbox that is gone.
async fn epitaph(world: &World, id: &str) -> String {
    let answer = world.get(&format!("/v1/sandboxes/{id}")).await;
    assert_eq!(answer.refusal(), "not_found");
    answer.json()["error"].as_str().unwrap().to_owned()
}

/// Its end and what breaks off with it come by two ways, in either order.
#[tokio::test]
async fn a_command_that_breaks_off_before_the_word_of_the_end_waits_for_it() {
    let world = World::start().await;
    let id = world.create().await;
    let lost = NodeError::new(ErrorCode::GuestUnavailable, "the guest is gone");
    world.node.script("cut", [Step::Fail(lost)]);
    let path = format!("/v1/sandboxes/{id}/exec");
    let (cut, ()) = tokio::join!(world.post(&path, json!({"cmd": "cut"})), async {
        eventually("it broke off", async || world.node.last_exec().is_some()).await;
        let sandbox = SandboxId::parse(&id).unwrap();
        let mut report = world.node.sandbox(&sandbox).await.unwrap();
        report.state = SandboxState::Deleted;
        report.generation = Generation(9);
        report.ended = Some(EndReason::Ttl);
        world.node.put(report);
    });
    assert_eq!(cut.refusal(), "not_found");
    let text = cut.text();
    assert!(text.contains("its time to live of 3600 s ended"), "{text}");
}

#[tokio::test]
async fn whoever_asks_for_a_sandbox_that_is_gone_hears_why() {
    let world = World::with(Setup::quick()).await;
    let mut gone = Vec::new();
    for ended in [EndReason::Ttl, EndReason::Idle] {
        let body = json!({"ttl_seconds": 1, "idle_seconds": 5});
        let made = world.post("/v1/sandboxes", body).await.json();
        let id = made["id"].as_str().unwrap().to_owned();
        let mut report = world
            .node
            .sandbox(&SandboxId::parse(&id).unwrap())
            .await
            .unwrap();
        for (state, generation) in [(SandboxState::Deleting, 8), (SandboxState::Deleted, 9)] {
            report.state = state;
            report.generation = Generation(generation);
            report.ended = Some(ended);
            world.node.put(report.clone());
        }
        let path = format!("/v1/sandboxes/{id}");
        eventually("it is gone", async || {
            world.get(&path).await.status == StatusCode::NOT_FOUND
        })
        .await;
        gone.push(id);
    }
    let id = world.create().await;
    world.delete(&format!("/v1/sandboxes/{id}")).await;
    gone.push(id);
    let id = world.create().await;
    world.node.lose(&SandboxId::parse(&id).unwrap());
    eventually("its row is deleted", async || {
        world.get("/v1/sandboxes").await.json() == json!({"items": []})
    })
    .await;
    gone.push(id);
    let wanted = [
        "its time to live",
        "for its idle time of 5 s",
        "deleted by the key dfk_",
        "its node did not have it any more",
    ];
    for (id, wanted) in gone.iter().zip(wanted) {
        let text = epitaph(&world, id).await;
        assert!(
            text.starts_with(&format!("sandbox {id} is gone: ")),
            "{text}"
        );
        assert!(text.contains(wanted), "{text}");
    }
    // To others it is what it always was: nothing.
    let path = format!("/v1/sandboxes/{}", gone[0]);
    let foreign = world
        .ask(&world.foreign_key, Method::GET, &path, json!(null))
        .await;
    assert_eq!(
        foreign.json()["error"],
        format!("there is no sandbox {}", gone[0])
    );
    let project = ProjectId::parse("default").unwrap();
    let events = world.control.store.events(&project, 0, 100).await.unwrap();
    let reasons: Vec<&str> = events
        .iter()
        .filter(|event| event.state == "deleted")
        .filter_map(|event| event.reason.as_deref())
        .collect();
    assert_eq!(reasons, ["ttl", "idle", "deleted", "lost"]);
}

#[tokio::test]
async fn a_sandbox_that_the_node_lost_becomes_deleted() {
    let world = World::with(Setup::quick()).await;
    let id = world.create().await;
    world.node.lose(&SandboxId::parse(&id).unwrap());
    eventually("its row is deleted", async || {
        world.get("/v1/sandboxes").await.json() == json!({"items": []})
    })
    .await;
}

fn orphan(project: &str) -> EnsureSandbox {
    EnsureSandbox {
        id: SandboxId::parse("sb-local-orphan").unwrap(),
        project: ProjectId::parse(project).unwrap(),
        template: TemplateName::parse("base").unwrap(),
        size: None,
        from_snapshot: None,
        lifecycle: LifetimeRules::default(),
        cpu: None,
        disk: None,
        volumes: Vec::new(),
        reseed_user_space: false,
        egress: EgressPolicy::deny(),
        egress_epoch: 1,
        metadata: [("team".to_owned(), "red".to_owned())].into(),
        created_at_ms: Some(1_700_000_000_000),
        class: SandboxClass::Reserved,
    }
}

#[tokio::test]
async fn a_sandbox_without_a_row_is_adopted() {
    let world = World::with(Setup::quick()).await;
    let other = world.create().await;
    let wanted = orphan("default");
    world.node.ensure_sandbox(wanted.clone()).await.unwrap();
    let path = "/v1/sandboxes/sb-local-orphan";
    eventually("it has a row", async || {
        world.get(path).await.status == StatusCode::OK
    })
    .await;
    let adopted = world.get(path).await.json();
    assert_eq!(adopted["metadata"], json!({"team": "red"}));
    let created_at = adopted["created_at"].as_str().unwrap();
    assert!(
        created_at.starts_with("2023-11-14T22:13:20"),
        "{created_at}"
    );
    assert_eq!(adopted["status"], "running");
    let events = world.control.store.events(&wanted.project, 0, 100).await;
    let events = events.unwrap();
    assert!(events.iter().any(|event| event.state == "adopted"));
    assert_eq!(world.node.ids().len(), 2);
    // It is one like any other now.
    let deleted = world.delete(path).await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    assert_eq!(world.node.ids(), [SandboxId::parse(&other).unwrap()]);
}

#[tokio::test]
async fn an_adopted_sandbox_that_was_booted_says_so() {
    let world = World::with(Setup::quick()).await;
    let id = SandboxId::parse(&world.create().await).unwrap();
    let mut report = world.node.sandbox(&id).await.unwrap();
    for (orphan, disk_only, mode) in [
        ("sb-local-b", true, "boot"),
        ("sb-local-r", false, "restore"),
    ] {
        report.id = SandboxId::parse(orphan).unwrap();
        report.from_snapshot = Some(SnapshotId::parse("snap-local-a").unwrap());
        report.disk_only = disk_only;
        world.node.put(report.clone());
        let path = format!("/v1/sandboxes/{orphan}");
        eventually("it has a row", async || {
            world.get(&path).await.status == StatusCode::OK
        })
        .await;
        assert_eq!(world.get(&path).await.json()["boot_mode"], mode);
    }
}

#[tokio::test]
async fn a_deleted_sandbox_that_comes_back_is_deleted_again() {
    let world = World::with(Setup::quick()).await;
    let id = world.create().await;
    let report = world
        .node
        .sandbox(&SandboxId::parse(&id).unwrap())
        .await
        .unwrap();
    world.delete(&format!("/v1/sandboxes/{id}")).await;
    assert!(world.node.ids().is_empty());
    // As a node does whose directory was put back to an older state.
    world.node.put(report);
    eventually("it is gone again", async || world.node.ids().is_empty()).await;
}

#[tokio::test]
async fn an_adopted_project_goes_on_and_makes_nothing_new() {
    let world = World::with(Setup::quick()).await;
    let wanted = orphan("lost");
    let project = wanted.project.clone();
    world.node.ensure_sandbox(wanted).await.unwrap();
    eventually("its project is there", async || {
        let found = world.control.store.project(&project).await.unwrap();
        found.is_some_and(|found| found.limits.sandboxes == Some(0))
    })
    .await;
    assert_eq!(world.node.ids().len(), 1);
}

#[tokio::test]
async fn a_delete_that_the_node_refused_is_tried_again() {
    let world = World::with(Setup::quick()).await;
    let id = world.create().await;
    world
        .node
        .refuse_delete(Some(NodeError::internal("not now")));
    let refused = world.delete(&format!("/v1/sandboxes/{id}")).await;
    assert_eq!(refused.status, StatusCode::INTERNAL_SERVER_ERROR);
    refused.refusal();
    assert_eq!(
        world.get(&format!("/v1/sandboxes/{id}")).await.json()["status"],
        "deleting"
    );
    world.node.refuse_delete(None);
    eventually("it is gone", async || world.node.ids().is_empty()).await;
}

#[tokio::test]
async fn a_create_whose_node_is_lost_midway_is_undone() {
    let world = World::with(Setup::quick()).await;
    world.node.delay_ensure(Duration::from_millis(400));
    let create = world.post("/v1/sandboxes", json!({}));
    let crash = async {
        eventually("the create began", async || world.node.ensure_calls() == 1).await;
        world.stop_node().await;
    };
    let (refused, ()) = tokio::join!(create, crash);
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.refusal(), "node_unavailable");
    world.start_node();
    eventually("nothing is left", async || {
        world.node.ids().is_empty()
            && world.get("/v1/sandboxes").await.json() == json!({"items": []})
    })
    .await;
}

#[tokio::test]
async fn a_full_disk_of_the_node_is_told_until_there_is_room() {
    let world = World::with(Setup::quick()).await;
    world.node.fill_disk(true);
    eventually("it is told", async || {
        world.get("/health").await.json()["conditions"][0]["name"] == "disk_full"
    })
    .await;
    for path in ["/health", "/ready"] {
        let told = world.get(path).await;
        assert_eq!(told.status, StatusCode::SERVICE_UNAVAILABLE, "{path}");
        assert_eq!(told.json()["status"], "degraded", "{path}");
    }
    world.node.fill_disk(false);
    eventually("it is over", async || {
        world.get("/health").await.status == StatusCode::OK
    })
    .await;
    assert_eq!(world.get("/ready").await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_node_that_stays_away_is_unhealthy_and_a_short_restart_is_not() {
    let mut setup = Setup::quick();
    setup.reconcile.node_outage_max = Duration::from_secs(2);
    let world = World::with(setup).await;
    world.stop_node().await;
    let short = world.get("/health").await;
    assert_eq!(short.status, StatusCode::OK);
    assert_eq!(short.json()["conditions"][0]["name"], "node_unreachable");
    let ready = world.get("/ready").await;
    assert_eq!(ready.refusal(), "node_unavailable");
    eventually("it is unhealthy", async || {
        world.get("/health").await.status == StatusCode::SERVICE_UNAVAILABLE
    })
    .await;
    let health = world.get("/health").await;
    assert_eq!(health.refusal(), "node_unavailable");
    assert_eq!(health.json()["status"], "degraded");
    let condition = &health.json()["conditions"][0];
    assert_eq!(condition["name"], "node_unreachable");
    assert!(condition["detail"].as_str().unwrap().contains("for 2 s"));
    world.start_node();
    eventually("it is healthy", async || {
        world.get("/health").await.json()["status"] == "ok"
    })
    .await;
}

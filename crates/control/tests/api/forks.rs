//! Forks, and the choice among their children.

use std::time::Duration;

use dayfly_control::ReconcileSettings;
use dayfly_node_api::NodeError;
use dayfly_types::{ErrorCode, IdleAction};
use http::StatusCode;
use serde_json::{Value, json};

use crate::support::{Setup, World, eventually};

async fn fork(world: &World, id: &str, body: Value) -> Value {
    let forked = world.post(&format!("/v1/sandboxes/{id}/fork"), body).await;
    assert_eq!(forked.status, StatusCode::CREATED, "{}", forked.text());
    forked.json()
}

fn ids(children: &Value) -> Vec<String> {
    let children = children.as_array().unwrap();
    let id = |child: &Value| child["id"].as_str().unwrap().to_owned();
    children.iter().map(id).collect()
}

#[tokio::test]
async fn children_are_whole_sandboxes_that_name_their_source_and_their_fork() {
    let world = World::start().await;
    let body = json!({"ttl_seconds": 7, "persistent": true, "metadata": {"mine": "1"}});
    let parent = world.post("/v1/sandboxes", body).await.json();
    let parent = parent["id"].as_str().unwrap();
    let answer = fork(&world, parent, json!({"count": 3, "metadata": {"a": "b"}})).await;
    assert_eq!(answer["sandbox"], answer["children"][0]);
    assert_eq!(answer["failures"], json!({}));
    assert_eq!(answer["renewed"], json!(["machine id"]));
    assert_eq!(answer["not_renewed"], json!(["keys that were in memory"]));
    assert_eq!(answer["capture"]["pause_ms"], 1.5);
    let tree = answer["children"][0]["metadata"]["fork_tree_id"].clone();
    assert_eq!(ids(&answer["children"]).len(), 3);
    for id in ids(&answer["children"]) {
        let child = world.get(&format!("/v1/sandboxes/{id}")).await.json();
        let metadata =
            json!({"a": "b", "mine": "1", "fork_parent_id": parent, "fork_tree_id": tree});
        assert_eq!(child["metadata"], metadata);
        assert_eq!(
            (&child["status"], &child["template"]),
            (&json!("running"), &json!("base"))
        );
        // As long as its parent, and never for ever unless somebody says so.
        assert_eq!(
            (&child["ttl_seconds"], &child["persistent"]),
            (&json!(7), &json!(false))
        );
    }
    let request = &world.node.forks()[0];
    assert!(!request.all_or_nothing);
    assert_eq!(world.node.ids().len(), 4);
}

#[tokio::test]
async fn options_reach_every_child() {
    let world = World::start().await;
    let parent = world.create().await;
    let body = json!({"count": 2, "all_or_nothing": true, "reseed_user_space": true,
        "ttl_seconds": 60, "idle_seconds": 30, "on_timeout": "hibernate", "persistent": false});
    let path = format!("/v1/sandboxes/{parent}/fork-tree");
    let forked = world.post(&path, body).await;
    assert_eq!(forked.status, StatusCode::CREATED, "{}", forked.text());
    assert!(forked.json().get("sandbox").is_none());
    let request = world.node.forks().remove(0);
    assert!(request.all_or_nothing);
    for child in &request.children {
        assert!(child.reseed_user_space);
        assert_eq!(child.lifecycle.ttl_seconds, Some(60));
        assert_eq!(child.lifecycle.idle_seconds, Some(30));
        assert_eq!(child.lifecycle.on_timeout, IdleAction::Hibernate);
    }
}

#[tokio::test]
async fn a_fork_that_made_some_answers_with_those() {
    let world = World::start().await;
    let parent = world.create().await;
    world.node.limit_forks(Some(2));
    let answer = fork(&world, &parent, json!({"count": 3})).await;
    assert_eq!(ids(&answer["children"]).len(), 2);
    let failures = answer["failures"].as_object().unwrap();
    assert_eq!(failures.values().collect::<Vec<_>>(), ["no room"]);
    let list = world.get("/v1/sandboxes").await.json();
    assert_eq!(
        list["items"].as_array().unwrap().len(),
        3,
        "no row of the third stays"
    );
}

#[tokio::test]
async fn a_fork_that_made_none_fails_as_its_first_child_did_and_leaves_nothing() {
    let world = World::start().await;
    let parent = world.create().await;
    let path = format!("/v1/sandboxes/{parent}/fork");
    world.node.limit_forks(Some(0));
    let none = world.post(&path, json!({"count": 2})).await;
    assert_eq!(none.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(none.refusal(), "no_capacity");
    assert!(none.headers.contains_key("retry-after"));
    world.node.limit_forks(Some(1));
    let all = world
        .post(&path, json!({"count": 2, "all_or_nothing": true}))
        .await;
    assert_eq!(all.refusal(), "no_capacity");
    world.node.limit_forks(None);
    world
        .node
        .refuse_state(Some(NodeError::new(ErrorCode::WrongState, "paused")));
    let refused = world.post(&path, json!({})).await;
    assert_eq!(refused.refusal(), "wrong_state");
    let list = world.get("/v1/sandboxes").await.json();
    assert_eq!(ids(&list["items"]), [parent]);
}

#[tokio::test]
async fn a_child_gets_volumes_to_read_and_none_to_write() {
    let world = World::start().await;
    let body = json!({"volumes": [{"name": "a", "read_only": true}, {"name": "b"}]});
    let source = world.post("/v1/sandboxes", body).await.json();
    let answer = fork(&world, source["id"].as_str().unwrap(), json!({})).await;
    let mounted = json!([{"name": "a", "path": "/volumes/a", "read_only": true}]);
    assert_eq!(answer["sandbox"]["volumes"], mounted);
    let wanted = &world.node.forks()[0].children[0];
    assert_eq!(wanted.volumes.len(), 1);
    // What the node refuses, such as a volume that has a writer since, is told.
    let busy = NodeError::new(ErrorCode::VolumeBusy, "volume a has a writer");
    world.node.refuse_state(Some(busy));
    let path = format!("/v1/sandboxes/{}/fork", source["id"].as_str().unwrap());
    let refused = world.post(&path, json!({})).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert_eq!(refused.refusal(), "volume_busy");
}

#[tokio::test]
async fn the_caller_cannot_set_the_labels_of_the_server() {
    let world = World::start().await;
    let parent = world.create().await;
    let metadata = json!({"fork_parent_id": "x", "fork_tree_id": "y", "tree_id": "z"});
    let answer = fork(&world, &parent, json!({"metadata": metadata})).await;
    let shown = &answer["sandbox"]["metadata"];
    assert_eq!(shown["fork_parent_id"], parent);
    assert!(
        shown["fork_tree_id"]
            .as_str()
            .unwrap()
            .starts_with("tree-local-")
    );
    assert!(shown.get("tree_id").is_none());
}

#[tokio::test]
async fn promote_deletes_siblings_only_when_asked_and_only_of_its_own_tree() {
    let world = World::start().await;
    let parent = world.create().await;
    let first = ids(&fork(&world, &parent, json!({"count": 2})).await["children"]);
    let winner = &first[0];
    // The winner is itself a source, as a nested exploration makes it.
    let nested = fork(&world, winner, json!({"count": 3})).await;
    let nested = ids(&nested["children"]);
    let path = format!("/v1/sandboxes/{}/promote", nested[1]);
    for body in [
        json!({}),
        json!({"cleanup_siblings": false}),
        json!({"tree_id": ""}),
    ] {
        let kept = world.post(&path, body).await.json();
        assert_eq!(
            (&kept["winner"], &kept["deleted"]),
            (&json!(nested[1]), &json!([]))
        );
    }
    assert_eq!(world.node.ids().len(), 6);

    let own = world
        .get(&format!("/v1/sandboxes/{}", nested[1]))
        .await
        .json();
    let tree = own["metadata"]["fork_tree_id"].clone();
    let body = json!({"cleanup_siblings": true, "tree_id": tree});
    let promoted = world.post(&path, body).await;
    assert_eq!(promoted.status, StatusCode::OK, "{}", promoted.text());
    let expected = json!({"winner": nested[1], "tree_id": tree,
        "deleted": [nested[0], nested[2]], "failures": {}});
    assert_eq!(promoted.json(), expected);
    let left = world.get("/v1/sandboxes").await.json();
    let mut left = ids(&left["items"]);
    left.sort();
    let mut expected = vec![
        parent,
        first[0].clone(),
        first[1].clone(),
        nested[1].clone(),
    ];
    expected.sort();
    assert_eq!(left, expected, "the parent and its siblings live");
}

#[tokio::test]
async fn promote_refuses_another_tree_and_what_is_no_child() {
    let world = World::start().await;
    let parent = world.create().await;
    let one = fork(&world, &parent, json!({"count": 2})).await;
    let other = fork(&world, &parent, json!({"count": 2})).await;
    let foreign_tree = &one["children"][0]["metadata"]["fork_tree_id"];
    let child = &ids(&other["children"])[0];
    let body = json!({"cleanup_siblings": true, "tree_id": foreign_tree});
    let refused = world
        .post(&format!("/v1/sandboxes/{child}/promote"), body)
        .await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert_eq!(refused.refusal(), "wrong_state");
    let body = json!({"cleanup_siblings": true});
    let refused = world
        .post(&format!("/v1/sandboxes/{parent}/promote"), body)
        .await;
    assert_eq!(refused.refusal(), "wrong_state");
    assert_eq!(world.node.ids().len(), 5);
}

#[tokio::test]
async fn a_sibling_that_cannot_be_deleted_is_told() {
    let world = World::start().await;
    let parent = world.create().await;
    let children = ids(&fork(&world, &parent, json!({"count": 2})).await["children"]);
    world
        .node
        .refuse_delete(Some(NodeError::internal("not now")));
    let path = format!("/v1/sandboxes/{}/promote", children[0]);
    let promoted = world
        .post(&path, json!({"cleanup_siblings": true}))
        .await
        .json();
    assert_eq!(promoted["deleted"], json!([]));
    assert!(promoted["failures"][&children[1]].is_string());
}

#[tokio::test]
async fn a_candidate_has_its_own_deadline_until_it_is_promoted() {
    let world = World::start().await;
    let parent = world.create().await;
    let body = json!({"count": 2, "metadata": {"explore": "1", "explore_ttl": "600"}});
    let children = ids(&fork(&world, &parent, body).await["children"]);
    let ttl = async |id: &str| {
        let lifecycle = world
            .get(&format!("/v1/sandboxes/{id}/lifecycle"))
            .await
            .json();
        lifecycle["ttl_seconds"].clone()
    };
    assert_eq!(ttl(&children[0]).await, 600);
    world
        .post(&format!("/v1/sandboxes/{}/promote", children[0]), json!({}))
        .await;
    assert_eq!(ttl(&children[0]).await, 3600);
    assert_eq!(ttl(&children[1]).await, 600);
    // A deadline that somebody set since is not touched.
    let lifecycle = format!("/v1/sandboxes/{}/lifecycle", children[1]);
    world.patch(&lifecycle, json!({"ttl_seconds": 42})).await;
    world
        .post(&format!("/v1/sandboxes/{}/promote", children[1]), json!({}))
        .await;
    assert_eq!(ttl(&children[1]).await, 42);
}

#[tokio::test]
async fn an_idempotency_key_gives_the_same_children_again() {
    let world = World::start().await;
    let parent = world.create().await;
    let path = format!("/v1/sandboxes/{parent}/fork");
    world.node.limit_forks(Some(2));
    let body = json!({"count": 3});
    let first = world.post_keyed(&path, "k", body.clone()).await.json();
    let again = world.post_keyed(&path, "k", body.clone()).await;
    assert_eq!(again.status, StatusCode::CREATED);
    let again = again.json();
    for field in ["failures", "renewed", "not_renewed", "capture"] {
        assert_eq!(first[field], again[field], "{field}");
    }
    assert_eq!(ids(&first["children"]), ids(&again["children"]));
    assert_eq!((world.node.ids().len(), world.node.forks().len()), (3, 1));
    let other = world.post_keyed(&path, "k", json!({"count": 2})).await;
    assert_eq!(other.refusal(), "idempotency_conflict");

    for id in ids(&first["children"]) {
        world.delete(&format!("/v1/sandboxes/{id}")).await;
    }
    let gone = world.post_keyed(&path, "k", body.clone()).await;
    assert_eq!(gone.refusal(), "wrong_state");
    world.node.limit_forks(Some(0));
    let refused = world.post_keyed(&path, "k2", body.clone()).await;
    assert_eq!(refused.refusal(), "no_capacity");
    world.node.limit_forks(None);
    let freed = world.post_keyed(&path, "k2", body).await;
    assert_eq!(freed.status, StatusCode::CREATED);
}

#[tokio::test]
async fn the_same_key_at_the_same_time_makes_one_fork() {
    let world = World::start().await;
    let parent = world.create().await;
    world.node.delay_forks(Duration::from_millis(200));
    let path = format!("/v1/sandboxes/{parent}/fork");
    let (one, two) = tokio::join!(
        world.post_keyed(&path, "same", json!({"count": 2})),
        world.post_keyed(&path, "same", json!({"count": 2})),
    );
    assert_eq!(ids(&one.json()["children"]), ids(&two.json()["children"]));
    assert_eq!(world.node.ids().len(), 3);
    let forks = world.node.forks();
    assert_eq!(forks[0].snapshot, forks[1].snapshot, "one capture");
}

fn quick() -> Setup {
    let reconcile = ReconcileSettings {
        interval: Duration::from_millis(50),
        lost_after: Duration::from_millis(100),
        fork_lost_after: Duration::from_secs(60),
        orphan_after: Duration::from_millis(300),
        ..ReconcileSettings::default()
    };
    Setup {
        reconcile,
        ..Setup::default()
    }
}

#[tokio::test]
async fn the_reconciler_waits_for_a_fork_that_takes_its_time() {
    let world = World::with(quick()).await;
    let parent = world.create().await;
    world.node.delay_forks(Duration::from_millis(600));
    let answer = fork(&world, &parent, json!({"count": 2})).await;
    assert_eq!(ids(&answer["children"]).len(), 2, "{answer}");
}

#[tokio::test]
async fn a_fork_whose_node_is_lost_midway_is_undone() {
    let world = World::with(quick()).await;
    let parent = world.create().await;
    world.node.delay_forks(Duration::from_millis(400));
    let path = format!("/v1/sandboxes/{parent}/fork");
    let forking = world.post_keyed(&path, "k", json!({"count": 2}));
    let crash = async {
        eventually("the rows are there", async || {
            world.get("/v1/sandboxes").await.json()["items"]
                .as_array()
                .unwrap()
                .len()
                == 3
        })
        .await;
        world.stop_node().await;
    };
    let (refused, ()) = tokio::join!(forking, crash);
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.refusal(), "node_unavailable");
    world.start_node();
    eventually("only the parent is left", async || {
        let list = world.get("/v1/sandboxes").await.json();
        world.node.ids().len() == 1 && ids(&list["items"]) == [parent.clone()]
    })
    .await;
}

#[tokio::test]
async fn a_child_that_is_deleted_while_it_is_made_stays_deleted() {
    let world = World::start().await;
    let parent = world.create().await;
    world.node.delay_forks(Duration::from_secs(3));
    let forking = fork(&world, &parent, json!({"count": 2}));
    let delete = async {
        let mut child = String::new();
        eventually("the rows are there", async || {
            let list = world.get("/v1/sandboxes").await.json();
            let mut children = ids(&list["items"]);
            children.retain(|id| *id != parent);
            child = children.first().cloned().unwrap_or_default();
            children.len() == 2
        })
        .await;
        assert_eq!(
            world.delete(&format!("/v1/sandboxes/{child}")).await.status,
            StatusCode::NO_CONTENT
        );
        child
    };
    let (answer, deleted) = tokio::join!(forking, delete);
    assert_eq!(ids(&answer["children"]).len(), 1);
    assert!(answer["failures"][&deleted].is_string());
    eventually("the node has it no more", async || {
        world.node.ids().len() == 2
    })
    .await;
}

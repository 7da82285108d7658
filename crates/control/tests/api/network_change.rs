//! Changing what a sandbox may reach, when everything works and when nothing does.

use std::time::Duration;

use dayfly_control::ReconcileSettings;
use dayfly_control::store::ExpectedEgress;
use dayfly_control::time::now_ms;
use dayfly_node_api::NodeError;
use dayfly_types::egress::EgressPolicy;
use dayfly_types::{ErrorCode, ProjectId, SandboxId};
use http::StatusCode;
use serde_json::{Value, json};

use crate::network::{create, policy};
use crate::support::fake_network::NetworkFailure;
use crate::support::{Answer, Setup, World, eventually};

fn allowlist(hosts: &[&str]) -> Value {
    json!({"mode": "allowlist", "rules": hosts})
}

fn quick() -> Setup {
    let reconcile = ReconcileSettings {
        interval: Duration::from_millis(100),
        network_lost_after: Duration::from_millis(300),
        ..ReconcileSettings::default()
    };
    Setup {
        reconcile,
        ..Setup::default()
    }
}

fn refusal() -> NetworkFailure {
    NetworkFailure::Refuses(NodeError::new(ErrorCode::StorageFull, "no space"))
}

async fn put(world: &World, id: &str, body: Value) -> Answer {
    world
        .put(&format!("/v1/sandboxes/{id}/network"), body)
        .await
}

async fn shown(world: &World, id: &str) -> Value {
    world
        .get(&format!("/v1/sandboxes/{id}/network"))
        .await
        .json()
}

#[tokio::test]
async fn every_change_replaces_the_whole_and_raises_the_epoch() {
    let world = World::start().await;
    let id = create(&world, json!({})).await;
    for (epoch, body) in [
        (2, allowlist(&["a.test", "b.test"])),
        (3, json!({"mode": "public"})),
        (4, allowlist(&["b.test"])),
        (5, json!({"mode": "observe", "rules": ["b.test"]})),
        (6, json!({"mode": "deny"})),
    ] {
        let answer = put(&world, &id, body.clone()).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
        let network = answer.json();
        assert_eq!(network["mode"], body["mode"]);
        assert_eq!(
            (&network["epoch"], &network["enforced"]),
            (&json!(epoch), &json!(true))
        );
        assert_eq!(network, shown(&world, &id).await);
        let (held, held_epoch) = world.node.network_of(&id);
        assert_eq!(
            (held.mode().as_str(), held_epoch),
            (body["mode"].as_str().unwrap(), epoch)
        );
    }
    // The same again is not a change.
    let again = put(&world, &id, json!({"mode": "deny"})).await.json();
    assert_eq!(again["epoch"], 6);
}

#[tokio::test]
async fn allow_adds_and_turns_nothing_into_a_list() {
    let world = World::start().await;
    let id = create(&world, json!({})).await;
    let path = format!("/v1/sandboxes/{id}/network/allow");
    let allow = async |rules: Value| world.post(&path, json!({"rules": rules})).await;
    let one = allow(json!(["a.test"])).await.json();
    assert_eq!(
        (&one["mode"], &one["epoch"]),
        (&json!("allowlist"), &json!(2))
    );
    let two = allow(json!([{"host": "b.test", "ports": [22]}, "a.test"]))
        .await
        .json();
    assert_eq!(two["rules"].as_array().unwrap().len(), 2);
    assert_eq!((&two["epoch"], &two["enforced"]), (&json!(3), &json!(true)));
    let same = allow(json!(["a.test"])).await.json();
    assert_eq!(same["epoch"], 3, "nothing was added");
    for rules in [json!([]), json!(["*.co.uk"]), json!(["preset:public"])] {
        assert_eq!(allow(rules).await.refusal(), "invalid_request");
    }
    put(&world, &id, json!({"mode": "public"})).await;
    let refused = allow(json!(["a.test"])).await;
    assert_eq!(refused.refusal(), "invalid_request");
    assert!(refused.text().contains("everything public already"));
}

#[tokio::test]
async fn a_sandbox_that_sleeps_keeps_the_policy_for_its_wake() {
    let world = World::start().await;
    let id = create(&world, json!({})).await;
    world
        .post(&format!("/v1/sandboxes/{id}/hibernate"), json!({}))
        .await;
    let network = put(&world, &id, allowlist(&["a.test"])).await.json();
    assert_eq!(
        (&network["epoch"], &network["enforced"]),
        (&json!(2), &json!(false))
    );
    world
        .post(&format!("/v1/sandboxes/{id}/wake"), json!({}))
        .await;
    assert_eq!(shown(&world, &id).await["enforced"], true);
}

#[tokio::test]
async fn a_wider_policy_that_the_node_does_not_confirm_leaves_the_old_one() {
    for failure in [refusal(), NetworkFailure::AnswerLost] {
        let world = World::start().await;
        let id = create(&world, json!({"egress_allowlist": ["a.test"]})).await;
        let before = world.node.network_of(&id).0;
        // Only the wider one fails: what takes it back arrives.
        world.node.fail_networks(Some(failure.clone()), 0);
        let stop = async {
            eventually("it was asked for", async || {
                !world.node.network_calls().is_empty()
            })
            .await;
            world.node.fail_networks(None, 0);
        };
        let (refused, ()) = tokio::join!(put(&world, &id, json!({"mode": "public"})), stop);
        assert_ne!(refused.status, StatusCode::OK, "{failure:?}");
        assert!(
            refused.text().contains("the old one stays"),
            "{}",
            refused.text()
        );
        assert!(refused.json()["hint"].is_string());
        eventually("the node has the old one again", async || {
            world.node.network_of(&id) == (before.clone(), 3)
        })
        .await;
        let network = shown(&world, &id).await;
        assert_eq!(
            (&network["mode"], &network["epoch"]),
            (&json!("allowlist"), &json!(3))
        );
        assert_eq!(network["enforced"], true);
        // And the way is free.
        let wider = put(&world, &id, json!({"mode": "public"})).await;
        assert_eq!(wider.json()["epoch"], 4);
    }
}

#[tokio::test]
async fn a_wider_policy_that_cannot_be_taken_back_at_once_is_taken_back_later() {
    let world = World::with(quick()).await;
    let id = create(&world, json!({})).await;
    world
        .node
        .fail_networks(Some(NetworkFailure::AnswerLost), 0);
    let refused = put(&world, &id, json!({"mode": "public"})).await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(shown(&world, &id).await["mode"], "deny");
    world.node.fail_networks(None, 0);
    eventually("the node denies again and control knows", async || {
        let network = shown(&world, &id).await;
        world.node.network_of(&id).0 == EgressPolicy::deny() && network["enforced"] == true
    })
    .await;
}

#[tokio::test]
async fn a_narrower_policy_is_kept_and_sent_until_the_node_confirms_it() {
    let world = World::with(quick()).await;
    let id = create(&world, json!({"network": {"mode": "public"}})).await;
    world.node.fail_networks(Some(refusal()), 0);
    let answer = put(&world, &id, allowlist(&["a.test"])).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    let network = answer.json();
    assert_eq!(
        (&network["mode"], &network["enforced"]),
        (&json!("allowlist"), &json!(false))
    );
    assert_eq!(shown(&world, &id).await["enforced"], false);
    let calls = world.node.network_calls().len();
    eventually("it is sent again", async || {
        world.node.network_calls().len() > calls + 1
    })
    .await;
    world.node.fail_networks(None, 0);
    eventually("it is in force", async || {
        shown(&world, &id).await["enforced"] == true
    })
    .await;
    assert_eq!(
        world.node.network_of(&id).1,
        2,
        "one epoch, however often it is sent"
    );
    // Confirmed once, it is not sent for ever.
    let control = &world.control;
    eventually("nothing is left to be sent", async || {
        let unconfirmed = control.store.unconfirmed_networks(&control.node_id).await;
        unconfirmed.unwrap().is_empty()
    })
    .await;
}

#[tokio::test]
async fn a_node_that_was_away_gets_the_policy_when_it_comes_back() {
    let world = World::with(quick()).await;
    let id = create(&world, json!({"network": {"mode": "public"}})).await;
    world.stop_node().await;
    let wider = put(&world, &id, json!({"mode": "observe"})).await;
    assert_eq!(wider.json()["enforced"], false, "not wider, so it is kept");
    let narrower = put(&world, &id, json!({"mode": "deny"})).await.json();
    assert_eq!(
        (&narrower["mode"], &narrower["enforced"]),
        (&json!("deny"), &json!(false))
    );
    let refused = put(&world, &id, json!({"mode": "public"})).await;
    assert_eq!(refused.refusal(), "node_unavailable");
    world.start_node();
    eventually("it is in force", async || {
        shown(&world, &id).await["enforced"] == true
    })
    .await;
    assert_eq!(world.node.network_of(&id).0, EgressPolicy::deny());
}

fn epochs<'a>(
    project: &'a ProjectId,
    sandbox: &'a SandboxId,
    epoch: u64,
    reserved: u64,
) -> ExpectedEgress<'a> {
    ExpectedEgress {
        project,
        sandbox,
        epoch,
        reserved,
    }
}

#[tokio::test]
async fn a_change_whose_control_died_is_taken_back() {
    let world = World::with(quick()).await;
    let id = create(&world, json!({})).await;
    let (project, sandbox) = (ProjectId::default_project(), SandboxId::parse(&id).unwrap());
    // As far as a control gets that dies between the node and the database.
    let of = epochs(&project, &sandbox, 1, 1);
    let reserved = world.control.store.reserve_egress(of, 2, now_ms()).await;
    assert!(reserved.unwrap());
    world
        .node
        .put_network(&id, policy(json!({"mode": "public"})), 2);
    eventually("the node denies again", async || {
        world.node.network_of(&id) == (EgressPolicy::deny(), 3)
    })
    .await;
}

#[tokio::test]
async fn a_change_that_was_planned_from_an_old_row_is_not_written() {
    let world = World::start().await;
    let id = create(&world, json!({})).await;
    let (project, sandbox) = (ProjectId::default_project(), SandboxId::parse(&id).unwrap());
    let store = &world.control.store;
    let public = policy(json!({"mode": "public"}));
    let first = epochs(&project, &sandbox, 1, 1);
    assert!(store.reserve_egress(first, 2, now_ms()).await.unwrap());
    assert!(!store.reserve_egress(first, 2, now_ms()).await.unwrap());
    // Somebody reads the row now. Then what was asked for is written, under the epoch that was
    // already reserved.
    let during = epochs(&project, &sandbox, 1, 2);
    assert!(
        store
            .set_egress(during, &public, 2, now_ms())
            .await
            .unwrap()
    );
    assert!(!store.reserve_egress(during, 3, now_ms()).await.unwrap());
    let deny = EgressPolicy::deny();
    assert!(!store.set_egress(during, &deny, 3, now_ms()).await.unwrap());
    let other = ProjectId::parse("other").unwrap();
    let foreign = epochs(&other, &sandbox, 2, 2);
    assert!(!store.set_egress(foreign, &deny, 3, now_ms()).await.unwrap());
    let row = store.sandbox(&project, &sandbox).await.unwrap().unwrap();
    assert_eq!((row.egress.policy, row.egress.epoch), (public, 2));
    assert_eq!((row.egress.reserved, row.egress.confirmed), (2, 1));
}

#[tokio::test]
async fn a_node_with_a_later_epoch_is_overtaken() {
    let world = World::with(quick()).await;
    let id = create(&world, json!({"network": {"mode": "public"}})).await;
    world
        .node
        .put_network(&id, policy(json!({"mode": "public"})), 90);
    let answer = put(&world, &id, json!({"mode": "deny"})).await.json();
    assert_eq!(
        (&answer["mode"], &answer["enforced"]),
        (&json!("deny"), &json!(false))
    );
    eventually("the row wins", async || {
        world.node.network_of(&id) == (EgressPolicy::deny(), 91)
    })
    .await;
    eventually("and is in force", async || {
        shown(&world, &id).await["enforced"] == true
    })
    .await;
}

#[tokio::test]
async fn a_sandbox_that_is_gone_has_no_network() {
    let world = World::start().await;
    let id = create(&world, json!({})).await;
    world.node.lose(&SandboxId::parse(&id).unwrap());
    for mode in ["deny", "public"] {
        let gone = put(&world, &id, json!({"mode": mode})).await;
        assert_eq!(gone.refusal(), "not_found");
    }
    world.delete(&format!("/v1/sandboxes/{id}")).await;
    assert_eq!(
        put(&world, &id, json!({"mode": "deny"})).await.refusal(),
        "not_found"
    );
    let none = world.get(&format!("/v1/sandboxes/{id}/network")).await;
    assert_eq!(none.refusal(), "not_found");
}

#[tokio::test]
async fn changes_at_once_all_count_or_are_told() {
    let world = World::start().await;
    let id = create(&world, json!({})).await;
    let path = format!("/v1/sandboxes/{id}/network/allow");
    let allow = async |host: &str| world.post(&path, json!({"rules": [host]})).await;
    let answers = tokio::join!(allow("a.test"), allow("b.test"), allow("c.test"));
    let network = shown(&world, &id).await;
    let rules = network["rules"].as_array().unwrap();
    for (answer, host) in [
        (answers.0, "a.test"),
        (answers.1, "b.test"),
        (answers.2, "c.test"),
    ] {
        if answer.status == StatusCode::OK {
            assert!(
                rules.iter().any(|rule| rule["host"] == host),
                "{host} was lost"
            );
        } else {
            assert_eq!(answer.refusal(), "wrong_state");
        }
    }
    let held = world.node.network_of(&id);
    assert_eq!(held.0.rules().len(), rules.len());
    assert_eq!(json!(held.1), network["epoch"]);
}

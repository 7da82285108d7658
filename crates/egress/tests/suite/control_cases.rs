//! The node and the process.

use std::io::{Read, Write};

use dayfly_egress::client::EgressCallError;
use dayfly_types::egress::{Decision, EgressPolicy};

use super::guest::{ask, connect};
use super::internet::{ALLOWED, EVIL};
use super::world::{World, allow, lifecycle, policy, wait_until};

#[test]
fn an_older_message_is_refused_and_a_repeated_one_is_not() {
    let Some(world) = World::start(&[allow("allowed.test")]) else {
        return;
    };
    let refused = |result: Result<u32, EgressCallError>| match result {
        Err(EgressCallError::Refused { why }) => why,
        other => panic!("{other:?}"),
    };
    let now = lifecycle(0, 1);
    assert_eq!(
        world
            .try_set_policy(now.clone(), 5, EgressPolicy::deny())
            .unwrap(),
        0
    );
    assert_eq!(
        world
            .try_set_policy(now.clone(), 5, EgressPolicy::deny())
            .unwrap(),
        0
    );
    let why = refused(world.try_set_policy(now.clone(), 4, allow("evil.test")));
    assert!(why.contains("older"), "{why}");
    refused(world.open(now.clone(), 4, allow("evil.test")));
    refused(world.open(lifecycle(0, 0), 6, allow("evil.test")));
    refused(world.try_set_policy(lifecycle(0, 2), 6, allow("evil.test")));
    refused(world.try_set_policy(lifecycle(3, 1), 6, allow("evil.test")));
    assert!(world.guest(|| ask("evil.test")).1.is_empty());
    assert!(world.internet.names.questions().is_empty());
    assert_eq!(
        world.close(lifecycle(0, 2)),
        0,
        "another lifecycle's end is not this one's"
    );
    assert_eq!(
        world
            .try_set_policy(now.clone(), 7, allow("allowed.test"))
            .unwrap(),
        0
    );
    assert_eq!(world.guest(|| ask("allowed.test")).1.len(), 1);
    assert_eq!(world.close(now.clone()), 0);
    assert_eq!(world.close(now), 0, "again");
}

#[test]
fn closing_ends_everything_at_once() {
    let rules = serde_json::json!([{"id": "n", "network": "198.41.0.4/32", "ports": [7]}]);
    let Some(world) = World::start(&[policy("allowlist", rules)]) else {
        return;
    };
    let sink = world.internet.sink(EVIL, 7);
    let open = || {
        world.guest(|| {
            let mut stream = connect(&format!("{EVIL}:7")).unwrap();
            stream.write_all(b"x").unwrap();
            stream
        })
    };
    let mut streams = [open(), open()];
    wait_until("both have arrived", || sink.text() == "xx");
    assert_eq!(world.close(lifecycle(0, 1)), 2);
    for stream in &mut streams {
        assert!(stream.read(&mut [0; 1]).is_err(), "it is reset");
    }
    let record = world.kept.wait_decision(Decision::Closed);
    assert_eq!((record.bytes_up, record.bytes_down), (1, 0));
}

#[test]
fn without_a_node_the_policies_stay_and_records_wait() {
    let Some(mut world) = World::start(&[allow("allowed.test")]) else {
        return;
    };
    world.set_policy(allow("allowed.test"));
    let old = world.client().clone();
    let open = world.reconnect();
    assert_eq!(open, [(lifecycle(0, 1), 2)]);
    world.wait_until_over(&old);
    assert!(matches!(
        old_call(&world, &old),
        Err(EgressCallError::Gone | EgressCallError::Send(_))
    ));
    assert_eq!(
        world.guest(|| ask("allowed.test")).1,
        [ALLOWED.parse::<std::net::Ipv4Addr>().unwrap()]
    );
    world.kept.wait_decision(Decision::Allowed);
    assert_eq!(world.kept.lost(), 0);
}

fn old_call(
    world: &World,
    old: &dayfly_egress::client::EgressClient,
) -> Result<u32, EgressCallError> {
    world.block_on(old.close(lifecycle(0, 1)))
}

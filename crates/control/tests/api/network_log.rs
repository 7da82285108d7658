//! The record of what a sandbox tried to reach, and the allowlist that is drawn from it.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use axum::body::Body;
use dayfly_types::egress::{
    Decision, DenyReason, EgressRecord, EgressRecordKind, HostName, NameSource,
};
use http::{Method, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::network::create;
use crate::support::{Step, World, exited};

pub(crate) fn record(name: &str, port: u16, decision: Decision) -> EgressRecord {
    let address = SocketAddrV4::new(Ipv4Addr::new(93, 184, 216, 34), port);
    EgressRecord {
        sequence: 0,
        at_ms: 1_700_000_000_123,
        kind: EgressRecordKind::Tls,
        decision,
        name: HostName::parse(name).ok(),
        name_source: NameSource::Sni,
        destination: Some(address),
        dialed: (decision != Decision::Denied).then_some(address),
        answers: Vec::new(),
        rule: None,
        internal_network: None,
        reason: (decision == Decision::Denied).then_some(DenyReason::NoRule),
        would_deny: decision == Decision::Allowed,
        bytes_up: 10,
        bytes_down: 20,
        duration_ms: 30,
        suppressed: 0,
    }
}

fn asked(name: &str) -> EgressRecord {
    EgressRecord {
        kind: EgressRecordKind::Dns,
        destination: None,
        dialed: None,
        answers: vec![Ipv4Addr::new(93, 184, 216, 34)],
        ..record(name, 53, Decision::Allowed)
    }
}

async fn log(world: &World, id: &str, query: &str) -> Value {
    let answer = world
        .get(&format!("/v1/sandboxes/{id}/network/log{query}"))
        .await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    answer.json()
}

#[tokio::test]
async fn records_say_what_was_decided_and_why() {
    let world = World::start().await;
    let id = create(&world, json!({})).await;
    let empty = json!({"records": [], "oldest": 0, "latest": 0, "lost": 0});
    assert_eq!(log(&world, &id, "").await, empty);
    world.node.record(
        &id,
        [
            asked("evil.test"),
            record("evil.test", 443, Decision::Denied),
        ],
    );
    let shown = log(&world, &id, "").await;
    assert_eq!((&shown["oldest"], &shown["latest"]), (&json!(1), &json!(2)));
    assert_eq!(
        shown["records"][1],
        json!({"sequence": 2, "at": "2023-11-14T22:13:20.123Z", "kind": "tls",
            "decision": "denied", "name": "evil.test", "name_source": "sni", "port": 443,
            "destination": "93.184.216.34:443", "reason": "no_rule", "would_deny": false,
            "bytes_up": 10, "bytes_down": 20, "duration_ms": 30, "suppressed": 0})
    );
    assert_eq!(shown["records"][0]["answers"], json!(["93.184.216.34"]));
    assert_eq!(shown["records"][0].get("port"), None);
}

#[tokio::test]
async fn a_log_comes_in_pages_and_says_what_is_gone() {
    let world = World::start().await;
    let id = create(&world, json!({})).await;
    let ports = (1..=10).map(|port| record("a.test", port, Decision::Denied));
    world.node.record(&id, ports);
    world.node.drop_records(&id, 4);
    let ports = |page: &Value| -> Vec<u64> {
        let records = page["records"].as_array().unwrap().iter();
        records
            .map(|record| record["port"].as_u64().unwrap())
            .collect()
    };
    let page = log(&world, &id, "?after=2&limit=3").await;
    assert_eq!(ports(&page), [5, 6, 7]);
    assert_eq!(
        (&page["oldest"], &page["latest"], &page["lost"]),
        (&json!(5), &json!(10), &json!(2))
    );
    assert_eq!(ports(&log(&world, &id, "?after=7").await), [8, 9, 10]);
    for query in [
        "?limit=0",
        "?limit=1001",
        "?after=-1",
        "?wait_seconds=26",
        "?after=1&after=2",
    ] {
        let path = format!("/v1/sandboxes/{id}/network/log{query}");
        assert_eq!(
            world.get(&path).await.refusal(),
            "invalid_request",
            "{query}"
        );
    }
}

#[tokio::test]
async fn a_long_poll_ends_with_the_first_record() {
    let world = World::start().await;
    let id = create(&world, json!({})).await;
    let wait = log(&world, &id, "?wait_seconds=25");
    let write = async {
        // The order of the two does not matter to the claim.
        tokio::task::yield_now().await;
        world
            .node
            .record(&id, [record("a.test", 443, Decision::Denied)]);
    };
    let (page, ()) =
        tokio::time::timeout(Duration::from_secs(20), async { tokio::join!(wait, write) })
            .await
            .unwrap();
    assert_eq!(page["latest"], 1);
}

/// Reads whole events of a stream until there are `count`.
async fn events(body: &mut hyper::body::Incoming, count: usize) -> Vec<(String, Value)> {
    let mut text = String::new();
    let mut events = Vec::new();
    while events.len() < count {
        let frame = tokio::time::timeout(Duration::from_secs(20), body.frame())
            .await
            .expect("an event in time");
        let Some(frame) = frame else { break };
        let bytes = frame.unwrap().into_data().unwrap();
        text.push_str(std::str::from_utf8(&bytes).unwrap());
        while let Some((event, rest)) = text.split_once("\n\n") {
            let mut lines = event.lines();
            let name = lines.next().unwrap().strip_prefix("event: ");
            if let (Some(name), Some(data)) = (name, lines.next()) {
                let data = data.strip_prefix("data: ").unwrap();
                events.push((name.to_owned(), serde_json::from_str(data).unwrap()));
            }
            text = rest.to_owned();
        }
    }
    events
}

#[tokio::test]
async fn a_stream_follows_over_losses_and_restarts_to_the_end() {
    let world = World::start().await;
    let id = create(&world, json!({})).await;
    let three = (1..=3).map(|port| record("a.test", port, Decision::Denied));
    world.node.record(&id, three);
    world.node.drop_records(&id, 1);
    let path = format!("/v1/sandboxes/{id}/network/log");
    let request = world
        .request(Method::GET, &path)
        .header("accept", "text/event-stream")
        .body(Body::empty())
        .unwrap();
    let response = world.open(request).await;
    assert_eq!(response.status(), StatusCode::OK);
    let kind = response.headers()["content-type"].clone();
    assert_eq!(kind, "text/event-stream; charset=utf-8");
    let mut body = response.into_body();
    let first = events(&mut body, 3).await;
    assert_eq!(first[0], ("lost".to_owned(), json!({"count": 1})));
    let ports: Vec<&Value> = first[1..].iter().map(|(_, data)| &data["port"]).collect();
    assert_eq!(ports, [2, 3]);
    world.stop_node().await;
    world.start_node();
    world
        .node
        .record(&id, [record("a.test", 4, Decision::Denied)]);
    let next = events(&mut body, 1).await;
    assert_eq!(
        (next[0].0.as_str(), &next[0].1["port"]),
        ("record", &json!(4))
    );
    world.delete(&format!("/v1/sandboxes/{id}")).await;
    world.node.recorded_nothing();
    assert_eq!(events(&mut body, 2).await, [("end".to_owned(), json!({}))]);
}

#[tokio::test]
async fn a_suggestion_can_be_put_as_it_is_and_is_enough() {
    let world = World::start().await;
    let id = create(&world, json!({"network": {"mode": "observe"}})).await;
    world.node.record(
        &id,
        [
            asked("pypi.org"),
            record("pypi.org", 443, Decision::Allowed),
            record("pypi.org", 443, Decision::Closed),
            asked("only-asked.test"),
            record("files.pythonhosted.org", 443, Decision::Allowed),
            record("denied.test", 443, Decision::Denied),
            record("", 22, Decision::Allowed),
        ],
    );
    let base = format!("/v1/sandboxes/{id}/network");
    let suggestion = world.get(&format!("{base}/suggest")).await.json();
    let rule = |host: &str| json!({"id": host, "host": host, "ports": [443]});
    let rules = json!([rule("files.pythonhosted.org"), rule("pypi.org")]);
    assert_eq!(
        suggestion,
        json!({"mode": "allowlist", "rules": rules, "unnamed": ["93.184.216.34:22"],
            "records": 7, "lost": 0, "truncated": false})
    );
    let body = json!({"mode": suggestion["mode"], "rules": suggestion["rules"]});
    let network = world.put(&base, body).await.json();
    assert_eq!(network["rules"], rules);
}

#[tokio::test]
async fn a_command_that_fails_is_told_what_was_denied_meanwhile() {
    let world = World::start().await;
    let id = create(&world, json!({})).await;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let soon = u64::try_from(now.unwrap().as_millis()).unwrap() + 60_000;
    let earlier = record("earlier.test", 443, Decision::Denied);
    let mut meanwhile = record("pypi.test", 443, Decision::Denied);
    meanwhile.at_ms = soon;
    let mut allowed = record("allowed.test", 443, Decision::Allowed);
    allowed.at_ms = soon;
    world.node.record(&id, [earlier, meanwhile, allowed]);
    world.node.script("fails", [Step::Exit(exited(1))]);
    world.node.script("works", [Step::Exit(exited(0))]);
    let path = format!("/v1/sandboxes/{id}/exec");
    let failed = world.post(&path, json!({"cmd": "fails"})).await.json();
    let hint = failed["hint"].as_str().unwrap();
    assert!(hint.contains("denied pypi.test (no_rule); "), "{hint}");
    assert!(hint.contains(&format!("dayfly net allow {id} pypi.test")));
    let worked = world.post(&path, json!({"cmd": "works"})).await.json();
    assert_eq!(worked.get("hint"), None);

    let path = format!("{path}/stream");
    let failed = world.post(&path, json!({"cmd": "fails"})).await;
    assert!(failed.text().contains(hint), "{}", failed.text());
    let worked = world.post(&path, json!({"cmd": "works"})).await;
    assert!(!worked.text().contains("hint"), "{}", worked.text());
}

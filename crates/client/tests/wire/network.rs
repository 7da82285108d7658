//! What sandboxes may reach, on the wire.

use dayfly_client::api::{NetworkMode, NetworkWish, RuleParts, RuleWish};
use dayfly_client::{ClientError, NetworkItem, NetworkLogOptions};
use dayfly_types::ErrorCode;
use serde_json::json;

use crate::script::{Answer, Script, client};

const ID: &str = "sb-local-1";
const NETWORK: &str = r#"{"mode":"allowlist","rules":[{"id":"a","host":"a.test","ports":[443]}],
    "epoch":4,"enforced":false,"a_field_of_later":1}"#;

fn record(sequence: u64) -> String {
    let data = json!({"sequence": sequence, "at": "2026-01-01T00:00:00Z", "kind": "tls",
        "decision": "denied", "name_source": "sni", "bytes_up": 0, "bytes_down": 0,
        "duration_ms": 0, "suppressed": 0});
    format!("event: record\ndata: {data}\n\n")
}

#[tokio::test]
async fn policies_are_read_replaced_and_extended() {
    let script = Script::play([
        Answer::json(200, NETWORK),
        Answer::Drop,
        Answer::json(200, NETWORK),
        Answer::json(200, NETWORK),
        Answer::json(200, r#"{"mode":"deny","rules":[]}"#),
        Answer::json(200, r#"{"mode":"deny","rules":[]}"#),
        Answer::json(200, r#"{"items":[]}"#),
    ])
    .await;
    let client = client(&script);
    let network = client.network(ID).await.unwrap();
    assert_eq!((network.epoch, network.enforced), (4, false));
    assert_eq!(network.rules[0].host.as_deref(), Some("a.test"));
    let wish = NetworkWish {
        mode: NetworkMode::Allowlist,
        rules: vec![
            RuleWish::text("a.test"),
            RuleWish::Rule(RuleParts {
                host: Some("b.test".to_owned()),
                ports: Some(vec![22]),
                ..RuleParts::default()
            }),
        ],
    };
    client.set_network(ID, &wish).await.unwrap();
    let rules = vec![RuleWish::text("c.test")];
    client.allow_network(ID, rules).await.unwrap();
    let default = client.network_default().await.unwrap();
    assert_eq!(default.mode, NetworkMode::Deny);
    let deny = NetworkWish {
        mode: NetworkMode::Deny,
        rules: Vec::new(),
    };
    client.set_network_default(&deny).await.unwrap();
    assert!(client.network_presets().await.unwrap().is_empty());
    let requests = script.requests();
    let heads: Vec<&str> = requests
        .iter()
        .filter_map(|request| request.head.lines().next())
        .collect();
    let base = "/v1/sandboxes/sb-local-1/network";
    assert_eq!(
        heads,
        [
            format!("GET {base} HTTP/1.1"),
            format!("PUT {base} HTTP/1.1"),
            format!("PUT {base} HTTP/1.1"),
            format!("POST {base}/allow HTTP/1.1"),
            "GET /v1/network-default HTTP/1.1".to_owned(),
            "PUT /v1/network-default HTTP/1.1".to_owned(),
            "GET /v1/network-presets HTTP/1.1".to_owned(),
        ]
    );
    let body = |index: usize| String::from_utf8(requests[index].body.clone()).unwrap();
    assert_eq!(
        body(2),
        r#"{"mode":"allowlist","rules":["a.test",{"host":"b.test","ports":[22]}]}"#
    );
    assert_eq!(body(3), r#"{"rules":["c.test"]}"#);
    assert_eq!(body(5), r#"{"mode":"deny"}"#);
}

#[tokio::test]
async fn a_record_is_followed_over_a_lost_connection_without_a_gap() {
    let lost = "event: lost\ndata: {\"count\":3}\n\n";
    let script = Script::play([
        Answer::cut_stream(&format!("{lost}{}: alive\n\n{}", record(4), record(5))),
        Answer::Drop,
        Answer::cut_stream(&format!("event: later\ndata: {{}}\n\n{}", record(6))),
        Answer::stream("event: end\ndata: {}\n\n"),
    ])
    .await;
    let mut follow = client(&script).follow_network(ID, 0).await.unwrap();
    let mut seen = Vec::new();
    while let Some(item) = follow.next().await.unwrap() {
        seen.push(match item {
            NetworkItem::Record(record) => record.sequence,
            NetworkItem::Lost(count) => 1000 + count,
        });
    }
    assert_eq!(seen, [1003, 4, 5, 6]);
    assert_eq!(follow.next().await.unwrap(), None);
    let requests = script.requests();
    let after = |index: usize| {
        let line = requests[index].head.lines().next().unwrap();
        let (_, query) = line.split_once('?').unwrap();
        query.split(' ').next().unwrap().to_owned()
    };
    assert_eq!(
        [after(0), after(1), after(2), after(3)],
        ["after=0", "after=5", "after=5", "after=6"]
    );
    assert_eq!(requests[0].header("accept"), "text/event-stream");
}

#[tokio::test]
async fn a_page_of_the_record_says_which_and_errors_are_told() {
    let gone = r#"{"error":"there is no sandbox","code":"not_found","request_id":"r"}"#;
    let script = Script::play([
        Answer::json(200, r#"{"records":[],"oldest":1,"latest":9,"lost":2}"#),
        Answer::json(404, gone),
        Answer::stream("event: error\ndata: {\"error\":\"x\",\"code\":\"internal\"}\n\n"),
    ])
    .await;
    let client = client(&script);
    let options = NetworkLogOptions {
        after: 7,
        limit: Some(2),
        wait_seconds: 5,
    };
    let log = client.network_log(ID, options).await.unwrap();
    assert_eq!((log.oldest, log.latest, log.lost), (1, 9, 2));
    let head = script.requests()[0].head.clone();
    assert!(
        head.contains("/log?after=7&limit=2&wait_seconds=5 "),
        "{head}"
    );
    let error = client.follow_network(ID, 0).await.unwrap_err();
    assert_eq!(error.api_code(), Some(ErrorCode::NotFound));
    let mut follow = client.follow_network(ID, 0).await.unwrap();
    let error = follow.next().await.unwrap_err();
    assert!(matches!(error, ClientError::Api(_)), "{error:?}");
}

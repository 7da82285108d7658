//! What the commands of a sandbox have printed, all together.

use http::StatusCode;
use serde_json::json;

use crate::support::{Step, World, exited};

#[tokio::test]
async fn logs_are_text_or_lines_of_either_stream() {
    let world = World::start().await;
    let id = world.create().await;
    let steps = [
        Step::Stdout("one\ntw".into()),
        Step::Stderr("oops\n".into()),
        Step::Stdout("o\nlast".into()),
        Step::Exit(exited(0)),
    ];
    world.node.script("run", steps);
    let ran = json!({"cmd": "run", "exec_id": "mine"});
    world.post(&format!("/v1/sandboxes/{id}/exec"), ran).await;
    let logs = async |query: &str| {
        let answer = world.get(&format!("/v1/sandboxes/{id}/logs{query}")).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
        answer
    };
    let plain = logs("?stream=stdout&follow=false").await;
    assert_eq!(plain.headers["content-type"], "text/plain; charset=utf-8");
    assert_eq!(plain.text(), "one\ntwo\nlast");
    assert_eq!(logs("?stream=stderr").await.text(), "oops\n");
    assert_eq!(logs("").await.text().len(), 17);
    let followed = logs("?follow=1").await;
    let lines: Vec<&str> = followed
        .text()
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .collect();
    assert_eq!(
        lines,
        [
            r#"{"line":"one"}"#,
            r#"{"line":"oops"}"#,
            r#"{"line":"two"}"#,
            r#"{"line":"last"}"#
        ]
    );
    for query in ["?stream=all", "?follow=yes"] {
        let answer = world.get(&format!("/v1/sandboxes/{id}/logs{query}")).await;
        assert_eq!(answer.refusal(), "invalid_request");
    }
}

#[tokio::test]
async fn the_other_default_template_is_ours() {
    let world = World::start().await;
    let made = world
        .post("/v1/sandboxes", json!({"template": "ubuntu-24.04"}))
        .await;
    assert_eq!(made.json()["template"], "base");
    assert_eq!(world.get("/v1/templates/builds").await.text(), "[]");
}

//! Stateful interpreters, over a bridge that follows a script.

use http::StatusCode;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::support::{World, eventually};

#[tokio::test]
async fn a_context_is_made_listed_and_ended() {
    let world = World::start().await;
    let id = world.create().await;
    let path = format!("/v1/sandboxes/{id}/repl/sessions");
    let made = world.post(&path, json!({"language": "Py"})).await;
    assert_eq!(made.status, StatusCode::CREATED);
    assert_eq!(made.json()["language"], "python");
    let sid = made.json()["id"].as_str().unwrap().to_owned();
    assert!(sid.starts_with("ctx-"), "{sid}");
    let list = world.get(&path).await.json();
    assert_eq!(list["items"][0]["execution_count"], 3);
    for act in ["interrupt", "restart"] {
        let done = world.post(&format!("{path}/{sid}/{act}"), json!({})).await;
        assert_eq!(done.status, StatusCode::NO_CONTENT);
    }
    let gone = world.delete(&format!("{path}/{sid}")).await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT);
    let refused = world.post(&path, json!({"language": "cobol"})).await;
    assert_eq!(refused.refusal(), "invalid_request");
}

#[tokio::test]
async fn results_come_as_bundles_that_both_clients_read() {
    let world = World::start().await;
    let id = world.create().await;
    let path = format!("/v1/sandboxes/{id}/repl/sessions/a/run");
    let run = world
        .post(&path, json!({"code": "x", "run_id": "r1"}))
        .await;
    let expected = json!({
        "results": [{"text/plain": "{'a': 1}", "application/json": "{\"a\": 1}"},
            {"image/png": "iVBORw0KGgo="}],
        "stdout": "printed\n", "stderr": "", "exit": 0, "exit_code": 0, "status": "ok",
        "duration_ms": 12, "execution_count": 4, "run_id": "r1", "truncated": false});
    assert_eq!(run.json(), expected);
    let raised = world.post(&path, json!({"code": "raise"})).await.json();
    assert_eq!(raised["error"], "ValueError: no");
    assert_eq!(
        (&raised["exit"], &raised["exit_code"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(raised["traceback"].as_array().unwrap().len(), 2);
    let silent = json!({"code": "silent", "max_output_bytes": 500});
    let silent = world.post(&path, silent).await.json();
    assert!(silent["hint"].as_str().unwrap().contains("printed nothing"));
}

#[tokio::test]
async fn what_goes_wrong_is_told_apart() {
    let world = World::start().await;
    let id = world.create().await;
    let sessions = format!("/v1/sandboxes/{id}/repl/sessions");
    let run = async |context: &str, code: &str| {
        let path = format!("{sessions}/{context}/run");
        world.post(&path, json!({"code": code})).await
    };
    let slow = run("a", "slow").await;
    assert_eq!(slow.status, StatusCode::GATEWAY_TIMEOUT);
    assert!(slow.json()["error"].as_str().unwrap().contains("timeout"));
    let late = run("a", "late").await;
    assert_eq!(late.status, StatusCode::GATEWAY_TIMEOUT);
    let text = late.json()["error"].as_str().unwrap().to_owned();
    assert!(
        text.contains("busy") && text.contains("did not run"),
        "{text}"
    );
    let anew = run("a", "anew").await.json();
    assert_eq!(
        (&anew["state_lost"], &anew["status"]),
        (&json!(true), &json!("ok"))
    );
    let hint = anew["hint"].as_str().unwrap();
    assert!(
        hint.contains("started anew") && !hint.contains("SIGKILL"),
        "{hint}"
    );
    assert_eq!(run("gone", "x").await.refusal(), "not_found");
    assert_eq!(run("a", "broken").await.refusal(), "guest_unavailable");
    assert_eq!(run("a", "nonsense").await.refusal(), "guest_unavailable");
    assert_eq!(run("a", "a\0b").await.refusal(), "invalid_request");
}

#[tokio::test]
async fn a_run_is_streamed_as_events() {
    let world = World::start().await;
    let id = world.create().await;
    let path = format!("/v1/sandboxes/{id}/repl/sessions/a/run/stream");
    let answer = world
        .post(&path, json!({"code": "x", "run_id": "r1"}))
        .await;
    let names: Vec<&str> = answer
        .text()
        .lines()
        .filter_map(|line| line.strip_prefix("event: "))
        .collect();
    assert_eq!(names, ["started", "stdout", "result", "result", "end"]);
    let failed = world.post(&path, json!({"code": "raise"})).await;
    assert!(failed.text().contains("event: failure"));
    let anew = world.post(&path, json!({"code": "anew"})).await;
    assert!(
        anew.text()
            .contains("event: restarted\ndata: {\"reason\":\"it was ended by SIGKILL\"}")
    );
    let broken = world.post(&path, json!({"code": "broken"})).await;
    assert!(broken.text().contains("event: error"), "{}", broken.text());
}

#[tokio::test]
async fn the_record_has_how_a_run_ended_and_what_it_printed() {
    let world = World::start().await;
    let id = world.create().await;
    let path = format!("/v1/sandboxes/{id}/repl/sessions/a/run");
    for (path, run) in [(path.clone(), "r1"), (format!("{path}/stream"), "r2")] {
        world.post(&path, json!({"code": "x", "run_id": run})).await;
        eventually("it is in the record", async || {
            let record = world.get("/v1/audit?limit=1000").await.json();
            let entries = record["items"].as_array().unwrap().iter();
            let mut details = entries.map(|entry| &entry["detail"]);
            let Some(detail) = details.find(|detail| detail["run_id"] == run) else {
                return false;
            };
            assert_eq!(detail["code"], "x");
            assert_eq!(detail["end"], json!({"status": "ok", "duration_ms": 12}));
            assert_eq!(detail["stdout"]["bytes"], 8);
            let digest = detail["stdout"]["sha256"].as_str().unwrap();
            assert_eq!(digest, hex::encode(Sha256::digest(b"printed\n")));
            true
        })
        .await;
    }
}

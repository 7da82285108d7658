//! Execs that were started before.

use bytes::Bytes;
use dayfly_node_api::NodeError;
use dayfly_types::ErrorCode;
use dayfly_types::exec::OutputGap;
use http::StatusCode;
use serde_json::json;

use crate::support::{Step, World, exited};

async fn started(world: &World, id: &str) {
    let steps = [
        Step::Stdout("0123456789".into()),
        Step::Stderr("err".into()),
        Step::Exit(exited(3)),
    ];
    world.node.script("run", steps);
    let path = format!("/v1/sandboxes/{id}/exec");
    let body = json!({"cmd": "run", "exec_id": "mine", "background": true});
    let answer = world.post(&path, body).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED);
    assert_eq!(answer.json()["exec_id"], "mine");
}

#[tokio::test]
async fn a_process_is_described_listed_and_forgotten() {
    let world = World::start().await;
    let id = world.create().await;
    started(&world, &id).await;
    let path = format!("/v1/sandboxes/{id}/processes");
    let list = world.get(&path).await.json();
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    let one = format!("{path}/mine");
    let process = world.get(&format!("{one}?wait_seconds=5")).await.json();
    assert_eq!(
        (&process["state"], &process["exit_code"]),
        (&json!("exited"), &json!(3))
    );
    assert_eq!(process["stdout"], json!({"start": 0, "end": 10}));
    let deleted = world.delete(&one).await;
    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    assert_eq!(world.delete(&one).await.status, StatusCode::NO_CONTENT);
    assert_eq!(world.get(&one).await.refusal(), "not_found");
}

#[tokio::test]
async fn output_is_read_again_from_an_offset() {
    let world = World::start().await;
    let id = world.create().await;
    started(&world, &id).await;
    let one = format!("/v1/sandboxes/{id}/processes/mine");
    let part = world.get(&format!("{one}/output?offset=3&limit=4")).await;
    assert_eq!(part.body, "3456");
    assert_eq!(part.headers["dayfly-offset"], "3");
    assert_eq!(part.headers["dayfly-end"], "10");
    let stderr = world.get(&format!("{one}/output?stream=stderr")).await;
    assert_eq!(stderr.body, "err");
    let end = world.get(&format!("{one}/output?offset=10")).await;
    assert_eq!((end.status, end.body.len()), (StatusCode::OK, 0));
    for bad in ["offset=11", "offset=-1", "limit=0", "stream=stdin"] {
        let refused = world.get(&format!("{one}/output?{bad}")).await;
        assert_eq!(refused.refusal(), "invalid_request", "{bad}");
    }
    let stream = world
        .get(&format!("{one}/attach?stdout_offset=8&stderr_offset=3"))
        .await;
    let expected = "event: started\ndata: {\"exec_id\":\"mine\"}\n\n\
        event: stdout\ndata: {\"chunk\":\"89\"}\n\n\
        event: exit\ndata: {\"exit_code\":3,\"reason\":\"exited\",\"duration_ms\":7}\n\n";
    assert_eq!(stream.text(), expected);
}

#[tokio::test]
async fn signals_and_input_reach_the_node() {
    let world = World::start().await;
    let id = world.create().await;
    started(&world, &id).await;
    let one = format!("/v1/sandboxes/{id}/processes/mine");
    let sent = world
        .post(&format!("{one}/signal"), json!({"signal": 15}))
        .await;
    assert_eq!(sent.status, StatusCode::NO_CONTENT);
    assert_eq!(world.node.signals()[0].1, 15);
    let bad = world
        .post(&format!("{one}/signal"), json!({"signal": 0}))
        .await;
    assert_eq!(bad.refusal(), "invalid_request");
    let resized = world
        .post(&format!("{one}/resize"), json!({"columns": 80, "rows": 24}))
        .await;
    assert_eq!(resized.status, StatusCode::NO_CONTENT);
    let bytes = Bytes::from_static(b"typed");
    let request = world
        .request(http::Method::POST, &format!("{one}/stdin?close=true"))
        .body(axum::body::Body::from(bytes))
        .unwrap();
    let taken = world.send(request).await;
    assert_eq!(taken.json(), json!({"stdin_bytes": 5}));
    assert_eq!(world.node.stdin(), b"typed");
}

#[tokio::test]
async fn another_project_sees_no_process() {
    let world = World::start().await;
    let id = world.create().await;
    started(&world, &id).await;
    let one = format!("/v1/sandboxes/{id}/processes/mine");
    for path in [
        one.clone(),
        format!("{one}/output"),
        format!("{one}/attach"),
    ] {
        let answer = world
            .ask(&world.foreign_key, http::Method::GET, &path, json!({}))
            .await;
        assert_eq!(answer.refusal(), "not_found", "{path}");
    }
}

#[tokio::test]
async fn a_gap_is_told_in_a_stream_and_in_an_answer() {
    let world = World::start().await;
    let id = world.create().await;
    let gap = OutputGap {
        stream: dayfly_types::exec::OutputStream::Stdout,
        bytes: 1000,
    };
    let steps = [
        Step::Gap(gap),
        Step::Stdout("end".into()),
        Step::Exit(exited(0)),
    ];
    world.node.script("run", steps);
    let path = format!("/v1/sandboxes/{id}/exec");
    let stream = world
        .post(&format!("{path}/stream"), json!({"cmd": "run"}))
        .await;
    let told = "event: gap\ndata: {\"stream\":\"stdout\",\"offset\":0,\"bytes\":1000}\n\n";
    assert!(stream.text().contains(told), "{}", stream.text());
    let body = json!({"cmd": "run", "max_output_bytes": 1000});
    let result = world.post(&path, body).await.json();
    let omitted = json!([{"stream": "stdout", "offset": 0, "bytes": 1000, "readable": false}]);
    assert_eq!(result["omitted"], omitted);
    assert!(result["stdout"].as_str().unwrap().ends_with("end"));
    assert_eq!(result["stdout_bytes"], 1003);
}

#[tokio::test]
async fn a_node_that_restarts_costs_the_reader_nothing() {
    let world = World::start().await;
    let id = world.create().await;
    // The first reader loses the node in the middle; whoever attaches reads on to the end.
    let lost = NodeError::new(ErrorCode::NodeUnavailable, "gone");
    let steps = [
        Step::Stdout("before ".into()),
        Step::FailOnce(lost),
        Step::Stdout("after".into()),
        Step::Exit(exited(0)),
    ];
    world.node.script("run", steps);
    let path = format!("/v1/sandboxes/{id}/exec");
    let result = world.post(&path, json!({"cmd": "run"})).await.json();
    assert_eq!(result["stdout"], "before after");
    assert_eq!(result["exit_code"], 0);
}

#[tokio::test]
async fn limits_and_ids_are_checked_before_anything_runs() {
    let world = World::start().await;
    let id = world.create().await;
    let path = format!("/v1/sandboxes/{id}/exec");
    let bad = [
        json!({"cmd": "x", "exec_id": "Not-A-Label"}),
        json!({"cmd": "x", "memory_mb": 1}),
        json!({"cmd": "x", "cpu_seconds": 0}),
        json!({"cmd": "x", "max_processes": 0}),
        json!({"cmd": "x", "max_output_bytes": 1}),
        json!({"cmd": "x", "log_max_bytes": 1}),
        json!({"cmd": "x", "log_when_full": "explode"}),
        json!({"cmd": "x", "terminal": {"columns": 0, "rows": 1}}),
    ];
    for body in bad {
        let answer = world.post(&path, body.clone()).await;
        assert_eq!(answer.refusal(), "invalid_request", "{body}");
    }
    assert!(world.node.last_exec().is_none());
}

#[tokio::test]
async fn silence_is_explained_to_a_model() {
    let world = World::start().await;
    let id = world.create().await;
    world.node.script("quiet", [Step::Exit(exited(0))]);
    let path = format!("/v1/sandboxes/{id}/exec");
    let body = json!({"cmd": "quiet", "max_output_bytes": 1000});
    let result = world.post(&path, body).await.json();
    assert!(result["hint"].as_str().unwrap().contains("printed nothing"));
    let plain = world.post(&path, json!({"cmd": "quiet"})).await.json();
    assert!(plain.get("hint").is_none());
}

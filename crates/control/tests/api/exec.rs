//! Plain execs.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use dayfly_node_api::NodeError;
use dayfly_types::ErrorCode;
use dayfly_types::exec::{ExecCommand, ExitReason};
use dayfly_types::limits::EXEC_RESULT_BYTES_MAX;
use http::StatusCode;
use serde_json::json;

use crate::support::{Step, World, eventually, exited};

#[tokio::test]
async fn output_and_exit_come_back_whole() {
    let world = World::start().await;
    let id = world.create().await;
    let mut killed = exited(137);
    killed.exit.signal = Some(9);
    killed.exit.reason = ExitReason::Signaled;
    let steps = [
        Step::Stdout("out é\n".into()),
        Step::Stderr(Bytes::from_static(b"err \xff")),
        Step::Exit(killed),
    ];
    world.node.script("run", steps);
    let answer = world
        .post(
            &format!("/v1/sandboxes/{id}/exec"),
            json!({"cmd": "run", "exec_id": "mine"}),
        )
        .await;
    assert_eq!(answer.status, StatusCode::OK);
    let expected = json!({"stdout": "out é\n", "stderr": "err \u{fffd}", "exit_code": 137,
        "duration_ms": 7, "reason": "signaled", "signal": 9, "truncated": false,
        "exec_id": "mine", "stdout_bytes": 7, "stderr_bytes": 5});
    assert_eq!(answer.json(), expected);
}

#[tokio::test]
async fn everything_asked_for_reaches_the_node() {
    let world = World::start().await;
    let id = world.create().await;
    let body = json!({"cmd": ["printf", "%s", "é"], "cwd": "/tmp", "env": {"A": "b"},
        "user": "root", "stdin": "in é", "timeout_seconds": 1.5});
    let answer = world.post(&format!("/v1/sandboxes/{id}/exec"), body).await;
    assert_eq!(answer.status, StatusCode::OK);
    let seen = world.node.last_exec().unwrap();
    let words = ["printf", "%s", "é"].map(str::to_owned);
    assert_eq!(seen.spec.command, ExecCommand::Argv(words.to_vec()));
    assert_eq!(seen.spec.cwd.as_deref(), Some("/tmp"));
    assert_eq!(
        seen.spec.env,
        BTreeMap::from([("A".to_owned(), "b".to_owned())])
    );
    assert_eq!(seen.spec.user.as_deref(), Some("root"));
    assert_eq!(seen.input.as_deref(), Some("in é".as_bytes()));
    assert_eq!(seen.spec.timeout_ms, Some(1500));
}

#[tokio::test]
async fn a_command_over_its_time_is_a_504_that_says_timeout() {
    let world = World::start().await;
    let id = world.create().await;
    let mut late = exited(137);
    late.exit.reason = ExitReason::TimedOut;
    late.exit.signal = Some(9);
    world
        .node
        .script("slow", [Step::Stdout("part".into()), Step::Exit(late)]);
    let body = json!({"cmd": "slow", "timeout_seconds": 2});
    let answer = world.post(&format!("/v1/sandboxes/{id}/exec"), body).await;
    assert_eq!(answer.status, StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(answer.refusal(), "timeout");
    let text = answer.json()["error"].as_str().unwrap().to_owned();
    assert!(
        text.contains("timeout") && !text.contains("i/o timeout"),
        "{text}"
    );
}

#[tokio::test]
async fn a_lost_guest_is_not_taken_for_a_timeout() {
    let world = World::start().await;
    let id = world.create().await;
    let sly = NodeError::new(ErrorCode::GuestUnavailable, "agent: i/o timeout");
    world
        .node
        .script("timeout 5 ls", [Step::Stdout("x".into()), Step::Fail(sly)]);
    world.node.script("vanish", [Step::Vanish]);
    for command in ["timeout 5 ls", "vanish"] {
        let answer = world
            .post(&format!("/v1/sandboxes/{id}/exec"), json!({"cmd": command}))
            .await;
        assert_eq!(answer.status, StatusCode::BAD_GATEWAY);
        assert_eq!(answer.refusal(), "guest_unavailable");
        assert!(!answer.text().contains("timeout"), "{}", answer.text());
    }
}

#[tokio::test]
async fn output_over_the_limit_is_cut_and_the_command_still_ends() {
    let world = World::start().await;
    let id = world.create().await;
    let piece = Bytes::from(vec![b'x'; 1 << 20]);
    let mut steps = vec![Step::Stdout(piece); EXEC_RESULT_BYTES_MAX / (1 << 20) + 2];
    steps.push(Step::Exit(exited(3)));
    world.node.script("yes", steps);
    let answer = world
        .post(&format!("/v1/sandboxes/{id}/exec"), json!({"cmd": "yes"}))
        .await;
    let json = answer.json();
    assert_eq!(
        json["stdout"].as_str().unwrap().len(),
        EXEC_RESULT_BYTES_MAX
    );
    assert_eq!(
        (&json["truncated"], &json["exit_code"]),
        (&json!(true), &json!(3))
    );
}

#[tokio::test]
async fn hanging_up_ends_the_command() {
    let world = World::start().await;
    let id = world.create().await;
    world
        .node
        .script("sleep", [Step::Pause(Duration::from_secs(3600))]);
    let path = format!("/v1/sandboxes/{id}/exec");
    let request = world
        .http
        .request(world.post_request(&path, &json!({"cmd": "sleep"})));
    assert!(
        tokio::time::timeout(Duration::from_millis(200), request)
            .await
            .is_err()
    );
    let dropped = &world.node.counters.dropped;
    eventually("the node's stream is dropped", async || {
        dropped.load(Ordering::SeqCst) == 1
    })
    .await;
}

//! The MCP server as a client sees it, over the real API and a node in memory.

use std::time::Duration;

use dayfly_mcp::{HomeKind, definitions};
use dayfly_types::exec::ExitReason;
use rmcp::model::{CallToolRequestParams, ReadResourceRequestParams};
use serde_json::{Value, json};

use crate::support::mcp::{McpClient, own, text_of};
use crate::support::{Step, World, eventually, exited};

fn shell(command: &str) -> Value {
    json!({ "command": command })
}

#[tokio::test]
async fn every_tool_of_the_files_is_listed() {
    let world = World::start().await;
    let client = McpClient::connect(&world, own()).await;
    let listed = client.peer.list_all_tools().await.unwrap();
    let names: Vec<&str> = listed.iter().map(|tool| tool.name.as_ref()).collect();
    let known: Vec<&str> = definitions()
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert_eq!(names, known);
    assert!(world.node.ids().is_empty(), "looking makes no sandbox");
}

#[tokio::test]
async fn a_sandbox_is_made_at_its_first_use_and_deleted_at_the_end() {
    let world = World::start().await;
    world.node.script(
        "hi",
        [Step::Stdout("hello\n".into()), Step::Exit(exited(0))],
    );
    let client = McpClient::connect(&world, own()).await;
    let text = client.text("run_shell", shell("hi")).await;
    assert!(
        text.starts_with("exit code 0, 0.0 s\nchanged files: "),
        "{text}"
    );
    assert!(text.ends_with("\nstdout:\nhello"), "{text}");
    let first = world.node.ids();
    assert_eq!(first.len(), 1);
    client.text("run_shell", shell("hi")).await;
    assert_eq!(world.node.ids(), first, "the second call uses the same");
    let wanted = world.node.last_wanted().unwrap();
    assert!(wanted.lifecycle.ttl_seconds.is_some(), "{wanted:?}");
    client.server.end().await;
    assert!(world.node.ids().is_empty());
}

#[tokio::test]
async fn two_clients_have_two_sandboxes() {
    let world = World::start().await;
    let one = McpClient::connect(&world, own()).await;
    let two = McpClient::connect(&world, own()).await;
    for client in [&one, &two] {
        let write = json!({"path": "a", "content": "x"});
        client.text("write_file", write).await;
    }
    assert_eq!(world.node.ids().len(), 2);
    one.server.end().await;
    assert_eq!(world.node.ids().len(), 1);
    let text = two.text("read_file", json!({"path": "a"})).await;
    assert!(text.ends_with("\tx"), "{text}");
}

#[tokio::test]
async fn a_named_sandbox_is_found_again_and_kept() {
    let world = World::start().await;
    let kind = || HomeKind::Named {
        name: "work".to_owned(),
        ttl_seconds: None,
    };
    for content in ["first", "second"] {
        let client = McpClient::connect(&world, kind()).await;
        let write = json!({"path": "a", "content": content});
        client.text("write_file", write).await;
        client.server.end().await;
    }
    assert_eq!(world.node.ids().len(), 1);
    let named = world.get("/v1/sandboxes/work").await.json();
    assert_eq!(named["expires_at"], Value::Null);
}

#[tokio::test]
async fn a_client_that_is_dropped_leaves_nothing() {
    let world = World::start().await;
    let client = McpClient::connect(&world, own()).await;
    client.text("list_files", json!({})).await;
    assert_eq!(world.node.ids().len(), 1);
    drop(client);
    eventually("the sandbox is gone", async || world.node.ids().is_empty()).await;
}

#[tokio::test]
async fn a_command_that_took_too_long_says_what_it_printed() {
    let world = World::start().await;
    let mut late = exited(137);
    late.exit.reason = ExitReason::TimedOut;
    let steps = [Step::Stdout("begun\n".into()), Step::Exit(late)];
    world.node.script("slow", steps);
    let client = McpClient::connect(&world, own()).await;
    let text = client
        .error(
            "run_shell",
            json!({"command": "slow", "timeout_seconds": 1}),
        )
        .await;
    assert!(text.starts_with("timeout after 0.0 s"), "{text}");
    assert!(text.ends_with("stdout:\nbegun"), "{text}");
}

#[tokio::test]
async fn a_cancelled_call_ends_its_command() {
    let world = World::start().await;
    let long = [Step::Pause(Duration::from_secs(600)), Step::Exit(exited(0))];
    world.node.script("long", long);
    let client = McpClient::connect(&world, own()).await;
    client.text("list_files", json!({})).await;
    let id = world.node.ids()[0].to_string();
    let arguments = shell("long").as_object().unwrap().clone();
    let call = client
        .peer
        .call_tool_once(CallToolRequestParams::new("run_shell").with_arguments(arguments));
    let running = async || {
        let list = world.get(&format!("/v1/sandboxes/{id}/processes")).await;
        list.json()["items"]
            .as_array()
            .is_some_and(|items| !items.is_empty())
    };
    tokio::select! {
        _ = call => panic!("it does not end by itself"),
        () = eventually("the command runs", running) => {}
    }
    eventually("the command is ended", async || !running().await).await;
}

#[tokio::test]
async fn code_gives_its_output_its_value_and_its_images() {
    let world = World::start().await;
    let client = McpClient::connect(&world, own()).await;
    let result = client.call("run_code", json!({"code": "draw"})).await;
    let text = text_of(&result);
    assert!(text.starts_with("ok, 0.0 s\n"), "{text}");
    assert!(
        text.contains("stdout:\nprinted\nresult:\n{'a': 1}\nresult (with image/png)"),
        "{text}"
    );
    let images = result.content.iter().filter_map(|block| block.as_image());
    assert_eq!(images.count(), 1);
    let raised = client.error("run_code", json!({"code": "raise"})).await;
    assert!(raised.starts_with("error ValueError, 0.0 s\n"), "{raised}");
    assert!(
        raised.ends_with("stderr:\nwarned\nTraceback\nValueError: no"),
        "{raised}"
    );
    let slow = client.error("run_code", json!({"code": "slow"})).await;
    assert!(
        slow.starts_with("timeout after 0.0 s, the code was interrupted"),
        "{slow}"
    );
}

#[tokio::test]
async fn files_are_written_read_edited_and_listed() {
    let world = World::start().await;
    let client = McpClient::connect(&world, own()).await;
    let write = json!({"path": "a.txt", "content": "one\ntwo\nthree\n"});
    let text = client.text("write_file", write).await;
    assert_eq!(text, "wrote 14 bytes to a.txt");
    let part = json!({"path": "a.txt", "first_line": 2, "max_lines": 1});
    let text = client.text("read_file", part).await;
    assert_eq!(
        text,
        "lines 2-2 of 3; first_line=3 reads on\ncontent:\n2\ttwo"
    );
    let edit = json!({"path": "a.txt", "old_text": "two", "new_text": "zwei"});
    let text = client.text("edit_file", edit.clone()).await;
    assert_eq!(text, "replaced 1 place in a.txt");
    let text = client.error("edit_file", edit).await;
    assert!(text.contains("nothing was changed\nhint: "), "{text}");
    let listed = client.call("list_files", json!({})).await;
    assert!(text_of(&listed).contains("a.txt (15 bytes)"));
    let facts = listed.structured_content.unwrap();
    assert_eq!(facts["entries"][0]["size"], 15);
    let text = client.error("read_file", json!({"path": "none"})).await;
    assert!(text.starts_with("error: "), "{text}");
}

#[tokio::test]
async fn what_is_no_text_is_a_link_to_a_resource() {
    let world = World::start().await;
    let client = McpClient::connect(&world, own()).await;
    client.text("list_files", json!({})).await;
    let id = world.node.ids()[0].to_string();
    world
        .node
        .put_file(&id, "/workspace/b", vec![0, 159, 146, 150]);
    let result = client.call("read_file", json!({"path": "b"})).await;
    assert_eq!(result.is_error, Some(true));
    let link = result
        .content
        .iter()
        .find_map(|block| block.as_resource_link());
    let uri = link.unwrap().uri.clone();
    assert_eq!(uri, format!("dayfly://sandbox/{id}/files/workspace/b"));
    let read = client
        .peer
        .read_resource(ReadResourceRequestParams::new(&uri));
    let read = serde_json::to_value(read.await.unwrap()).unwrap();
    assert_eq!(read["contents"][0]["blob"], "AJ+Slg==");
    let foreign = ReadResourceRequestParams::new("file:///etc/passwd");
    assert!(client.peer.read_resource(foreign).await.is_err());
}

#[tokio::test]
async fn long_output_is_cut_and_linked_whole() {
    let world = World::start().await;
    let long = vec![b'x'; 100_000];
    let steps = [Step::Stdout(long.into()), Step::Exit(exited(0))];
    world.node.script("long", steps);
    let client = McpClient::connect(&world, own()).await;
    let result = client.call("run_shell", shell("long")).await;
    let text = text_of(&result);
    assert!(text.len() < 17_000, "{}", text.len());
    let (said, _) = text.split_once("\nstdout:\n").unwrap();
    assert!(said.contains("\ncut: "), "{said}");
    let link = result
        .content
        .iter()
        .find_map(|block| block.as_resource_link());
    let uri = link.unwrap().uri.clone();
    let read = client
        .peer
        .read_resource(ReadResourceRequestParams::new(uri));
    let read = serde_json::to_value(read.await.unwrap()).unwrap();
    assert_eq!(read["contents"][0]["text"].as_str().unwrap().len(), 100_000);
}

#[tokio::test]
async fn a_lost_sandbox_is_told_once_and_then_made_anew() {
    let world = World::start().await;
    world.node.script("hi", [Step::Exit(exited(0))]);
    let client = McpClient::connect(&world, own()).await;
    client.text("run_shell", shell("hi")).await;
    let id = world.node.ids()[0].to_string();
    world.delete(&format!("/v1/sandboxes/{id}")).await;
    let text = client.error("run_shell", shell("hi")).await;
    assert!(
        text.contains("is gone") && text.contains("makes a new one"),
        "{text}"
    );
    client.text("run_shell", shell("hi")).await;
    assert_eq!(world.node.ids().len(), 1);
}

#[tokio::test]
async fn what_a_key_may_not_do_no_tool_does() {
    let world = World::start().await;
    let mine = world.create().await;
    let client = McpClient::with_key(&world, own(), &world.foreign_key).await;
    let given = json!({"path": "/etc/hosts", "sandbox": mine});
    let text = client.error("read_file", given).await;
    assert!(text.contains(&mine) || text.contains("not"), "{text}");
    let text = client
        .error("delete_sandbox", json!({"sandbox": mine}))
        .await;
    assert!(text.starts_with("error: "), "{text}");
    assert_eq!(world.node.ids().len(), 1, "it is still there");
    let stranger = McpClient::with_key(&world, own(), "df_nobody").await;
    let text = stranger.error("run_shell", shell("hi")).await;
    assert!(text.contains("key"), "{text}");
}

#[tokio::test]
async fn sandboxes_are_created_described_listed_and_deleted() {
    let world = World::start().await;
    let client = McpClient::connect(&world, own()).await;
    let made = client
        .call("create_sandbox", json!({"name": "second"}))
        .await;
    let id = made.structured_content.unwrap()["id"].clone();
    let described = client
        .call("sandbox_info", json!({"sandbox": "second"}))
        .await;
    assert_eq!(described.structured_content.unwrap()["id"], id);
    let listed = client.call("list_sandboxes", json!({})).await;
    assert_eq!(listed.structured_content.unwrap()["sandboxes"][0]["id"], id);
    client
        .text("delete_sandbox", json!({"sandbox": "second"}))
        .await;
    assert!(world.node.ids().is_empty());
    let again = client
        .error("delete_sandbox", json!({"sandbox": "second"}))
        .await;
    assert!(again.starts_with("error: "), "{again}");
}

#[tokio::test]
async fn a_snapshot_is_gone_back_to_and_goes_with_the_client() {
    let world = World::start().await;
    let client = McpClient::connect(&world, own()).await;
    let taken = client.call("snapshot", json!({"name": "before"})).await;
    let id = taken.structured_content.unwrap()["snapshot_id"].clone();
    let text = client.text("rollback", json!({"snapshot_id": id})).await;
    assert!(text.contains("is as it was at snapshot"), "{text}");
    client.server.end().await;
    let left = world.get("/v1/snapshots").await.json();
    assert_eq!(left["snapshots"], json!([]));
}

#[tokio::test]
async fn commands_are_tried_in_copies_that_are_deleted() {
    let world = World::start().await;
    world
        .node
        .script("good", [Step::Stdout("yes".into()), Step::Exit(exited(0))]);
    world.node.script("bad", [Step::Exit(exited(3))]);
    let client = McpClient::connect(&world, own()).await;
    let result = client
        .call("fork", json!({"commands": ["good", "bad"]}))
        .await;
    let text = text_of(&result);
    assert!(text.contains("copy 1: exit code 0"), "{text}");
    assert!(text.contains("copy 2: exit code 3"), "{text}");
    assert_eq!(result.content.len(), 3);
    assert_eq!(world.node.ids().len(), 1, "only the client's own is left");
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_named_and_make_no_sandbox() {
    let world = World::start().await;
    let client = McpClient::connect(&world, own()).await;
    let text = client.error("run_shell", json!({"cmd": "ls"})).await;
    assert!(text.contains("no argument `cmd`"), "{text}");
    assert!(world.node.ids().is_empty());
}

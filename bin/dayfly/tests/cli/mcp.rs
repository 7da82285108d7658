//! `dayfly mcp` and `dayfly mcp install`.

use std::fs;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{ChildStdin, ChildStdout};

use crate::support::{FakeServer, Program, within};

/// Sends a message, and reads the response to it.
async fn ask(
    stdin: &mut ChildStdin,
    stdout: &mut Lines<BufReader<ChildStdout>>,
    message: Value,
) -> Value {
    let id = message["id"].clone();
    let line = format!("{message}\n");
    stdin.write_all(line.as_bytes()).await.unwrap();
    loop {
        let line = within("a response", stdout.next_line()).await.unwrap();
        let answer: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if answer["id"] == id {
            return answer;
        }
    }
}

#[tokio::test]
async fn a_client_that_closes_its_end_leaves_no_sandbox() {
    let server = FakeServer::start().await;
    let program = Program::at(&server);
    let mut running = program.start_with_input(&["mcp", "--template", "base"]);
    let mut stdin = running.child.stdin.take().unwrap();
    let mut stdout = BufReader::new(running.child.stdout.take().unwrap()).lines();
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let begin = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let begun = ask(&mut stdin, &mut stdout, begin).await;
    assert_eq!(begun["result"]["serverInfo"]["name"], "dayfly");
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    stdin
        .write_all(format!("{ready}\n").as_bytes())
        .await
        .unwrap();
    assert!(server.world().sandboxes.is_empty());
    let arguments = json!({"path": "/workspace/a", "content": "x"});
    let params = json!({"name": "write_file", "arguments": arguments});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
    let called = ask(&mut stdin, &mut stdout, call).await;
    assert_ne!(called["result"]["isError"], true, "{called}");
    assert_eq!(server.world().sandboxes.len(), 1);
    drop(stdin);
    let done = running.finish().await;
    assert_eq!(done.status, 0, "{done:?}");
    assert_eq!(server.world().deleted.len(), 1);
}

#[tokio::test]
async fn the_configuration_of_each_client_is_written_and_kept() {
    for (client, file, servers) in [
        ("claude", ".claude.json", "mcpServers"),
        ("cursor", ".cursor/mcp.json", "mcpServers"),
        ("vscode", ".config/Code/User/mcp.json", "servers"),
    ] {
        let program = Program::new();
        let path = program.path(file);
        let words = [
            "mcp", "install", client, "--name", "work", "--allow", "pypi.org",
        ];
        let done = program.run(&words).await;
        assert_eq!(done.status, 0, "{done:?}");
        let written: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let ours = &written[servers]["dayfly"];
        let arguments = json!(["mcp", "--name", "work", "--allow", "pypi.org"]);
        assert_eq!(ours["args"], arguments);
        assert!(ours["command"].as_str().unwrap().ends_with("/dayfly"));
        fs::write(
            &path,
            format!("{{\"{servers}\": {{\"other\": 1}}, \"mine\": 2}}"),
        )
        .unwrap();
        let done = program.run(&words).await;
        assert_eq!(done.status, 0, "{done:?}");
        let merged: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(
            (&merged[servers]["other"], &merged["mine"]),
            (&json!(1), &json!(2))
        );
        let beside = fs::read_dir(path.parent().unwrap()).unwrap();
        let copies = beside.filter(|entry| {
            let name = entry.as_ref().unwrap().file_name();
            name.to_string_lossy().contains(".before-dayfly-")
        });
        assert_eq!(copies.count(), 1, "what was there is kept");
        let again = program.run(&words).await;
        assert!(again.stderr.contains("has it already"), "{again:?}");
    }
}

#[tokio::test]
async fn a_file_that_is_not_understood_is_left_alone() {
    for (client, file, text) in [
        ("claude", ".claude.json", "{ // mine\n}"),
        ("codex", ".codex/config.toml", "model = "),
    ] {
        let program = Program::new();
        let path = program.path(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let done = program.run(&["mcp", "install", client]).await;
        assert_ne!(done.status, 0);
        assert!(done.stderr.contains("is left as it is"), "{done:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        let printed = program.run(&["mcp", "install", client, "--print"]).await;
        assert!(printed.stdout().contains("dayfly"), "{printed:?}");
    }
}

#[tokio::test]
async fn the_key_is_never_written_down() {
    let program = Program::new().with("DAYFLY_API_KEY", FakeServer::KEY);
    let done = program.run(&["mcp", "install", "codex"]).await;
    assert_eq!(done.status, 0, "{done:?}");
    assert!(
        done.stderr.contains("DAYFLY_API_KEY is not written down"),
        "{done:?}"
    );
    let written = fs::read_to_string(program.path(".codex/config.toml")).unwrap();
    assert!(written.contains("[mcp_servers.dayfly]"), "{written}");
    assert!(!written.contains(FakeServer::KEY), "{written}");
}

#[tokio::test]
async fn a_home_of_another_user_is_left_alone() {
    let program = Program::new();
    let file = program.path(".claude.json");
    let home = file.parent().unwrap();
    // Only root can give a directory away, and only root could write to it then.
    if std::os::unix::fs::chown(home, Some(12345), None).is_err() {
        return;
    }
    let done = program.run(&["mcp", "install", "claude"]).await;
    assert_ne!(done.status, 0);
    assert!(done.stderr.contains("without sudo"), "{done:?}");
    assert!(!file.exists());
}

#[tokio::test]
async fn every_sandbox_is_reached_only_when_asked_for() {
    let program = Program::new();
    for (words, is_there) in [(&[][..], false), (&["--all-sandboxes"], true)] {
        let mut line = vec!["mcp", "install", "cursor", "--print"];
        line.extend(words);
        let printed = program.run(&line).await;
        let has = printed.stdout().contains("--all-sandboxes");
        assert_eq!(has, is_there, "{printed:?}");
    }
}

//! Where the server is, who asks, and what is said when that is wrong.

use crate::support::program::write_with_mode;
use crate::support::{FakeServer, Program};

#[tokio::test]
async fn without_a_key_the_hint_says_where_it_is() {
    let done = Program::new().run(&["ls"]).await;
    assert_eq!(done.status, 4);
    assert!(
        done.stderr
            .starts_with("error: no API key for http://127.0.0.1:7070\n\nhint: ")
    );
    assert!(
        done.stderr
            .contains("export DAYFLY_API_KEY=$(sudo cat DIR/admin.key)"),
        "{done:?}"
    );
}

#[tokio::test]
async fn a_wrong_key_is_told_as_such() {
    let server = FakeServer::start().await;
    let program = Program::at(&server).with("DAYFLY_API_KEY", "wrong");
    for words in [
        &["ls"][..],
        &["info", "aaaa"],
        &["rm", "sb-local-00000000000000000000000001"],
        &["run", "--", "true"],
    ] {
        assert_eq!(program.run(words).await.status, 4, "{words:?}");
    }
    let done = program.run(&["ls"]).await;
    assert!(done.stderr.contains("key is not known"), "{done:?}");
    assert!(done.stderr.contains("check DAYFLY_API_KEY"), "{done:?}");
    assert!(!done.stderr.contains("wrong"), "a key is never shown");
}

#[tokio::test]
async fn a_scope_that_a_key_does_not_have_is_a_status_of_its_own() {
    let server = FakeServer::start().await;
    let done = Program::at(&server).run(&["create", "-T", "scope"]).await;
    assert_eq!(done.status, 4, "{done:?}");
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_a_status_of_its_own() {
    let program = Program::new()
        .with("DAYFLY_API_URL", "http://127.0.0.1:1")
        .with("DAYFLY_API_KEY", "key");
    for words in [&["ls"][..], &["info", "aaaa"], &["whoami"]] {
        let done = program.run(words).await;
        assert_eq!(done.status, 69, "{words:?}: {done:?}");
        assert!(
            done.stderr.contains("is dayflyd running there?"),
            "{done:?}"
        );
    }
}

#[tokio::test]
async fn a_context_file_is_found_in_the_home_directory() {
    let server = FakeServer::start().await;
    let program = Program::new();
    let directory = program.path(".config/dayfly");
    std::fs::create_dir_all(&directory).unwrap();
    let text = format!(
        "current = \"lab\"\n[contexts.lab]\nurl = \"{}\"\nkey = \"{}\"\n",
        server.url(),
        FakeServer::KEY
    );
    write_with_mode(&directory.join("config.toml"), &text, 0o600);
    let done = program.run(&["ls"]).await;
    assert_eq!(done.status, 0, "{done:?}");
}

#[tokio::test]
async fn a_context_file_with_a_key_that_others_can_read_is_refused() {
    let program = Program::new();
    let path = program.path("config.toml");
    let text = "current = \"a\"\n[contexts.a]\nurl = \"http://127.0.0.1:9\"\nkey = \"secret\"\n";
    write_with_mode(&path, text, 0o644);
    let shown = path.display().to_string();
    let done = program.with("DAYFLY_CONFIG", &shown).run(&["ls"]).await;
    assert_eq!(done.status, 125);
    let expected = format!(
        "error: {shown} holds a key and others can read it (mode 0644)\n\nhint: chmod 600 {shown}\n"
    );
    assert_eq!(done.stderr, expected);
}

#[tokio::test]
async fn a_key_file_that_others_can_read_is_refused() {
    let program = Program::new();
    write_with_mode(&program.path("key"), "secret\n", 0o640);
    let done = program.run(&["ls", "--key-file", "key"]).await;
    assert_eq!(done.status, 125);
    assert!(done.stderr.contains("hint: chmod 600 key"), "{done:?}");
}

#[tokio::test]
async fn a_mistyped_command_line_ends_with_2_and_a_suggestion() {
    let done = Program::new().run(&["creat"]).await;
    assert_eq!(done.status, 2);
    assert!(done.stderr.contains("'create'"), "{done:?}");
    let done = Program::new()
        .run(&["run", "--ttl", "soon", "--", "x"])
        .await;
    assert_eq!(done.status, 2);
    assert!(done.stderr.contains("30s or 2h"), "{done:?}");
    assert_eq!(Program::new().run(&["rm"]).await.status, 2);
    assert_eq!(Program::new().run(&["run"]).await.status, 2);
}

#[tokio::test]
async fn help_lists_the_exit_statuses_and_the_environment() {
    let done = Program::new().run(&["help"]).await;
    assert_eq!(done.status, 0);
    for words in [
        "Exit status:",
        "125",
        "DAYFLY_API_URL",
        "DAYFLY_API_KEY",
        "DAYFLY_CONFIG",
    ] {
        assert!(done.stdout().contains(words), "{words}: {done:?}");
    }
}

#[tokio::test]
async fn help_has_groups_of_commands() {
    for words in [&["help"][..], &["--help"], &["-h"]] {
        let done = Program::new().run(words).await;
        assert_eq!(done.status, 0);
        let text = done.stdout();
        let mut last = 0;
        for heading in [
            "Usage: dayfly [OPTIONS] <COMMAND>\n",
            "\nRun:\n  run          Run a command in a new sandbox",
            "\nInspect:\n  ls           List sandboxes [alias: list]\n",
            "  top          Live CPU and memory of sandboxes\n",
            "\nState:\n  pause ",
            "\nNetwork:\n  net ",
            "\nAdmin:\n  login ",
            "  help         Print this text",
            "\nOptions:\n",
            "\nGlobal options:\n",
            "\nExamples:\n",
        ] {
            let at = text
                .find(heading)
                .unwrap_or_else(|| panic!("{heading:?} in {text}"));
            assert!(at >= last, "{heading:?} in {text}");
            last = at;
        }
        assert!(!text.contains("Commands:"), "{text}");
    }
    let done = Program::new().run(&["help", "snapshot"]).await;
    assert!(done.stdout().contains("\nCommands:\n  create "), "{done:?}");
}

#[tokio::test]
async fn version_needs_neither_key_nor_server() {
    let own = format!("dayfly {}\n", env!("CARGO_PKG_VERSION"));
    let server = FakeServer::start().await;
    let url = server.url();
    let done = Program::new().run(&["version", "--url", &url]).await;
    assert_eq!(
        (done.status, done.stdout()),
        (0, format!("{own}server 9.9.9 ({url}, ok)\n").as_str())
    );

    let program = Program::new().with("DAYFLY_API_URL", "http://127.0.0.1:1");
    let done = program.run(&["version"]).await;
    assert_eq!((done.status, done.stdout()), (0, own.as_str()));
    let done = program.run(&["version", "--json"]).await;
    assert_eq!(done.json()["server"], serde_json::Value::Null);
}

#[tokio::test]
async fn whoami_tells_server_project_and_scopes_and_never_the_key() {
    let server = FakeServer::start().await;
    let program = Program::at(&server);
    let done = program.run(&["whoami"]).await;
    let expected = format!(
        "server\t{}\nproject\tteam-a\nkey\tdfk_ab\nscopes\tread, create\n",
        server.url()
    );
    assert_eq!((done.status, done.stdout()), (0, expected.as_str()));
    let done = program.run(&["whoami", "--json"]).await;
    assert_eq!(done.json()["scopes"][1], "create");
}

//! What a shell is told when somebody presses the key that completes.

use std::process::Stdio;

use crate::support::processes::{ENDED, RUNS};
use crate::support::program::write_with_mode;
use crate::support::{FakeServer, Program, within};

const A: &str = "sb-local-aaaa0000000000000000000000";
const B: &str = "sb-local-bbbb0000000000000000000000";

async fn completed(program: &Program, words: &[&str]) -> String {
    let done = program.run(&[&["__complete", "--"], words].concat()).await;
    assert_eq!((done.status, done.stderr.as_str()), (0, ""), "{done:?}");
    done.stdout().to_owned()
}

#[tokio::test]
async fn ids_and_names_come_from_the_server() {
    let server = FakeServer::with(&[A, B]).await;
    let program = Program::at(&server);
    assert_eq!(
        completed(&program, &["info", ""]).await,
        format!("{A}\n{B}\n")
    );
    let begun = "sb-local-b";
    assert_eq!(
        completed(&program, &["rm", A, begun]).await,
        format!("{B}\n")
    );
    assert_eq!(completed(&program, &["cp", begun]).await, format!("{B}:\n"));
    assert_eq!(completed(&program, &["run", "-T", "b"]).await, "base\n");
    assert_eq!(
        completed(&program, &["kill", A, ""]).await,
        format!("{RUNS}\n{ENDED}\n")
    );
    program.run(&["volume", "create", "data", "1G"]).await;
    assert_eq!(completed(&program, &["volume", "rm", ""]).await, "data\n");
    program
        .run(&["snapshot", "create", A, "--name", "tools"])
        .await;
    let found = completed(&program, &["rollback", A, "t"]).await;
    assert_eq!(found, "tools\n");
    for words in [&["inf"][..], &["run", "--", "sb-"], &[]] {
        assert_eq!(completed(&program, words).await, "", "{words:?}");
    }
}

#[tokio::test]
async fn without_a_server_nothing_is_found_and_nobody_complains() {
    let program = Program::new();
    assert_eq!(completed(&program, &["info", ""]).await, "");
    let text = "[contexts.lab]\nurl = \"http://127.0.0.1:1\"\nkey = \"k\"\n";
    write_with_mode(&program.path("config.toml"), text, 0o600);
    let path = program.path("config.toml").display().to_string();
    let program = program.with("DAYFLY_CONFIG", &path);
    assert_eq!(completed(&program, &["context", "use", "l"]).await, "lab\n");
    assert_eq!(
        completed(&program, &["--context", "lab", "info", ""]).await,
        ""
    );
}

#[tokio::test]
async fn bash_completes_ids_and_words() {
    let server = FakeServer::with(&[A, B]).await;
    let program = Program::at(&server);
    let script = program.run(&["completions", "bash"]).await;
    std::fs::write(program.path("script"), &script.stdout).unwrap();
    let press = |line: &str| {
        format!(
            "source ./script; COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _dayfly_values '{}' \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; \
             echo \"${{COMPREPLY[@]}}\"",
            env!("CARGO_BIN_EXE_dayfly")
        )
    };
    for (line, found) in [
        ("dayfly info sb-local-a", A),
        ("dayfly hib", "hibernate"),
        ("dayfly snapshot cr", "create"),
    ] {
        // The script knows the program by the word that it was called with.
        let line = line.replacen("dayfly", env!("CARGO_BIN_EXE_dayfly"), 1);
        let mut bash = tokio::process::Command::new("bash");
        bash.args(["--norc", "-c", &press(&line)])
            .current_dir(program.home.path())
            .env_clear()
            .env("DAYFLY_API_URL", server.url())
            .env("DAYFLY_API_KEY", FakeServer::KEY)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let output = within("bash ends", bash.output()).await.unwrap();
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        assert_eq!(said, found, "{line}: {output:?}");
    }
}

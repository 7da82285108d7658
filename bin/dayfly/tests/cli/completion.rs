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

/// What is typed, and what the key that completes makes of its last word.
const PRESSED: [(&str, &str); 3] = [
    ("dayfly info sb-local-a", A),
    ("dayfly hib", "hibernate"),
    ("dayfly snapshot cr", "create"),
];

/// Types a line into a shell that has a terminal, completes it, and has the shell say what it is now.
const IN_ZSH: &str = r#"zmodload zsh/zpty
zpty shell 'env TERM=dumb zsh -f -i'
zpty -w shell 'autoload -Uz compinit && compinit -u -D; source ./script; bindkey "^I" complete-word'
zpty -w shell 'tell() { BUFFER="print -r -- line=${(q)BUFFER}=line"; zle accept-line }; zle -N tell'
zpty -w shell 'bindkey "^X" tell; print rea""dy'
zpty -r -m shell said '*ready*'
zpty -n -w shell "$1"$'\t\x18'
zpty -r -m shell said '*line=dayfly *=line'$'\r\n''*'
print -r -- "${${said##*line=dayfly }%=line*}"
zpty -d shell
"#;

/// What a shell prints in which the words of `PRESSED` are completed.
async fn in_shell(program: &Program, server: &FakeServer, shell: &str, words: &[&str]) -> String {
    let mut command = tokio::process::Command::new(shell);
    command
        .args(words)
        .current_dir(program.home.path())
        .env_clear()
        .env("HOME", program.home.path())
        .env(
            "PATH",
            format!("{}:/usr/bin:/bin", program.home.path().display()),
        )
        .env("DAYFLY_API_URL", server.url())
        .env("DAYFLY_API_KEY", FakeServer::KEY)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = within("the shell ends", command.output()).await;
    let output = output.unwrap_or_else(|error| panic!("{shell} (.ci/packages): {error}"));
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// The script of a shell as `script`, and the program as `dayfly`, in the home directory.
async fn with_script(server: &FakeServer, shell: &str) -> Program {
    let program = Program::at(server);
    let script = program.run(&["completions", shell]).await;
    std::fs::write(program.path("script"), &script.stdout).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_dayfly"), program.path("dayfly")).unwrap();
    program
}

#[tokio::test]
async fn bash_completes_ids_and_words() {
    let server = FakeServer::with(&[A, B]).await;
    let program = with_script(&server, "bash").await;
    for (line, found) in PRESSED {
        let press = format!(
            "source ./script; COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _dayfly_values dayfly \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; \
             echo \"${{COMPREPLY[@]}}\""
        );
        let said = in_shell(&program, &server, "bash", &["--norc", "-c", &press]).await;
        assert_eq!(said, found, "{line}");
    }
}

#[tokio::test]
async fn fish_completes_ids_and_words() {
    let server = FakeServer::with(&[A, B]).await;
    let program = with_script(&server, "fish").await;
    for (line, found) in PRESSED {
        let press = format!("source ./script; complete -C '{line}'");
        let said = in_shell(&program, &server, "fish", &["--no-config", "-c", &press]).await;
        // Words have a description.
        let (word, _) = said.split_once('\t').unwrap_or((&said, ""));
        assert_eq!(word, found, "{line}: {said}");
    }
}

#[tokio::test]
async fn zsh_completes_ids_and_words() {
    let server = FakeServer::with(&[A, B]).await;
    let program = with_script(&server, "zsh").await;
    std::fs::write(program.path("press"), IN_ZSH).unwrap();
    for (line, found) in PRESSED {
        let said = in_shell(&program, &server, "zsh", &["-f", "./press", line]).await;
        let last = said.split(' ').next_back();
        assert_eq!(last, Some(found), "{line}: {said}");
    }
}

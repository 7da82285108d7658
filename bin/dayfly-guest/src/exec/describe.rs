//! What an exec is, in words.

use std::hash::{DefaultHasher, Hasher};
use std::io;

use dayfly_types::ExecId;
use dayfly_types::exec::{ExecCommand, ExecInfo, ExecSpec};
use dayfly_types::limits::EXEC_TITLE_BYTES_MAX;

use super::Exec;
use crate::account::Account;
use crate::clock::wall_clock_ms;

/// What does not change about an exec.
#[derive(Debug)]
pub(super) struct Description {
    pub(super) id: ExecId,
    pub(super) number: u64,
    /// Tells whether another start means the same thing.
    pub(super) words: Words,
    pub(super) is_terminal: bool,
    pub(super) is_service: bool,
    title: String,
    user: String,
    started_unix_ms: i64,
}

/// A digest of everything that a start says but the channel, which is another every time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Words(u64);

impl Words {
    pub(super) fn of(spec: &ExecSpec) -> Self {
        let mut digest = Digest(DefaultHasher::new());
        // Plain data with text keys always serialises, and a digest takes every byte.
        let _ = serde_json::to_writer(&mut digest, spec);
        Self(digest.0.finish())
    }
}

struct Digest(DefaultHasher);

impl io::Write for Digest {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Description {
    pub(super) fn new(spec: &ExecSpec, number: u64, account: &Account) -> Self {
        Self {
            id: spec.exec_id.clone(),
            number,
            words: Words::of(spec),
            is_terminal: spec.terminal.is_some(),
            is_service: spec.is_service,
            title: title(&spec.command),
            user: account.name.clone(),
            started_unix_ms: wall_clock_ms(),
        }
    }
}

impl Exec {
    pub(super) fn info(&self) -> ExecInfo {
        let about = &self.about;
        ExecInfo {
            exec_id: about.id.clone(),
            number: about.number,
            title: about.title.clone(),
            user: about.user.clone(),
            pid: self.pid(),
            started_unix_ms: about.started_unix_ms,
            exit: self.process.ended().map(|ended| ended.exit.clone()),
            duration_ms: self.process.duration_ms(),
            is_terminal: about.is_terminal,
            takes_stdin: self.input.is_open(),
            stdin_bytes: self.input.accepted_bytes(),
            stdout: self.stdout.extent(),
            stderr: self.stderr.extent(),
        }
    }
}

/// The beginning of a command, in one line.
fn title(command: &ExecCommand) -> String {
    let words = match command {
        ExecCommand::Argv(words) => words.as_slice(),
        ExecCommand::Shell(line) => std::slice::from_ref(line),
    };
    let mut title = String::new();
    for (index, word) in words.iter().enumerate() {
        let gap = (index > 0).then_some(' ');
        for character in gap.into_iter().chain(word.chars()) {
            // Whoever lists execs must not have its terminal driven by their names.
            let character = if character.is_control() {
                ' '
            } else {
                character
            };
            if title.len() + character.len_utf8() > EXEC_TITLE_BYTES_MAX {
                return title;
            }
            title.push(character);
        }
    }
    title
}

#[cfg(test)]
mod tests {
    use dayfly_guest_proto::StartExec;

    use super::*;

    #[test]
    fn title_is_short_and_harmless() {
        let argv = |words: &[&str]| {
            title(&ExecCommand::Argv(
                words.iter().map(|word| (*word).to_owned()).collect(),
            ))
        };
        assert_eq!(argv(&["ls", "-l", "a b"]), "ls -l a b");
        assert_eq!(argv(&["a\u{1b}[31m\nb\u{9b}c"]), "a [31m b c");
        let long = title(&ExecCommand::Shell("é".repeat(300_000)));
        assert_eq!(long, "é".repeat(EXEC_TITLE_BYTES_MAX / 2));
        let odd = title(&ExecCommand::Shell(format!("a{}", "é".repeat(300))));
        assert_eq!(odd.len(), EXEC_TITLE_BYTES_MAX - 1);
    }

    #[test]
    fn words_do_not_depend_on_the_channel_and_on_nothing_less() {
        let start = |text: &str| serde_json::from_str::<StartExec>(text).unwrap().spec;
        let one = start(r#"{"channel":1,"exec_id":"ex-a","command":{"shell":"true"}}"#);
        let two = start(r#"{"channel":2,"exec_id":"ex-a","command":{"shell":"true"}}"#);
        assert_eq!(Words::of(&one), Words::of(&two));
        for other in [
            r#"{"channel":1,"exec_id":"ex-a","command":{"shell":"false"}}"#,
            r#"{"channel":1,"exec_id":"ex-a","command":{"argv":["true"]}}"#,
            r#"{"channel":1,"exec_id":"ex-a","command":{"shell":"true"},"timeout_ms":1}"#,
            r#"{"channel":1,"exec_id":"ex-a","command":{"shell":"true"},"is_service":true}"#,
            r#"{"channel":1,"exec_id":"ex-a","command":{"shell":"true"},"env":{"A":"b"}}"#,
        ] {
            assert_ne!(Words::of(&one), Words::of(&start(other)), "{other}");
        }
    }
}

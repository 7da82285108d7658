//! Which kind of value a command line expects where the cursor is.
//!
//! It goes by the names of values in the help: what `ID` stands for there, is completed here.

use clap::{Arg, Command};

use crate::args::GlobalArgs;

/// A kind of value that can be listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Expected {
    Sandboxes,
    /// Sandboxes, with the colon that a path follows.
    SandboxPaths,
    Templates,
    Snapshots,
    Volumes,
    /// For operators.
    Projects,
    Contexts,
    /// Commands of one sandbox.
    Commands {
        sandbox: String,
    },
}

/// What is expected, and the server that was named before.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) expected: Expected,
    pub(crate) global: GlobalArgs,
    /// What is typed so far.
    pub(crate) current: String,
}

/// Reads the words behind the program's name, the one under the cursor last. Nothing when it is a word
/// of the program's own, a file, or the command of a guest.
pub(crate) fn question(root: &Command, words: &[String]) -> Option<Question> {
    let (current, before) = words.split_last()?;
    let mut walk = Walk::new(root);
    for word in before {
        walk.take(word)?;
    }
    let expected = walk.expected(current)?;
    Some(Question {
        expected,
        global: walk.global,
        current: current.clone(),
    })
}

struct Walk<'c> {
    command: &'c Command,
    /// The option whose value is the next word.
    option: Option<&'c Arg>,
    positionals: Vec<String>,
    global: GlobalArgs,
}

impl<'c> Walk<'c> {
    fn new(command: &'c Command) -> Self {
        Self {
            command,
            option: None,
            positionals: Vec::new(),
            global: GlobalArgs::default(),
        }
    }

    /// Takes a word that stands before the cursor; none when a command of a guest begins.
    fn take(&mut self, word: &str) -> Option<()> {
        if let Some(option) = self.option.take() {
            self.note(option, word);
        } else if word == "--" {
            return None;
        } else if let Some(long) = word.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (long, None),
            };
            self.option(|arg| arg.get_long() == Some(name), value);
        } else if let Some(shorts) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) {
            self.shorts(shorts);
        } else if let Some(command) = self.subcommand(word) {
            self.command = command;
        } else {
            self.positionals.push(word.to_owned());
        }
        Some(())
    }

    fn subcommand(&self, word: &str) -> Option<&'c Command> {
        let is_open = self.positionals.is_empty();
        self.command.find_subcommand(word).filter(|_| is_open)
    }

    /// `-it`, or `-Tbase`: the first that takes a value takes the rest.
    fn shorts(&mut self, shorts: &str) {
        for (at, short) in shorts.char_indices() {
            let rest = &shorts[at + short.len_utf8()..];
            let value = Some(rest).filter(|rest| !rest.is_empty());
            if self.option(|arg| arg.get_short() == Some(short), value) {
                return;
            }
        }
    }

    /// Says whether it is an option that takes a value.
    fn option(&mut self, is_meant: impl Fn(&Arg) -> bool, value: Option<&str>) -> bool {
        let mut known = self.command.get_arguments();
        let found = known.find(|arg| is_meant(arg) && arg.get_action().takes_values());
        match (found, value) {
            (None, _) => return false,
            (Some(option), Some(value)) => self.note(option, value),
            (Some(option), None) => self.option = Some(option),
        }
        true
    }

    /// Keeps what says where the server is.
    fn note(&mut self, option: &Arg, value: &str) {
        match option.get_long() {
            Some("url") => self.global.url = Some(value.to_owned()),
            Some("key-file") => self.global.key_file = Some(value.into()),
            Some("context") => self.global.context = Some(value.to_owned()),
            _ => {}
        }
    }

    fn expected(&self, current: &str) -> Option<Expected> {
        if let Some(option) = self.option {
            return self.kind(value_name(option)?, current);
        }
        if current.starts_with('-') {
            return None;
        }
        let mut known = self.command.get_positionals();
        let last = self.command.get_positionals().last();
        let more = last.filter(|arg| {
            arg.get_num_args()
                .is_some_and(|count| count.max_values() > 1)
        });
        let positional = known.nth(self.positionals.len()).or(more)?;
        self.kind(value_name(positional)?, current)
    }

    fn kind(&self, name: &str, current: &str) -> Option<Expected> {
        let kind = match name {
            "ID" | "SUBJECT" => Expected::Sandboxes,
            "ID:PATH" | "ID[:PATH]" => Expected::SandboxPaths,
            // Else files of this machine are meant.
            "SOURCE" | "DESTINATION" if !current.is_empty() => Expected::SandboxPaths,
            "TEMPLATE" => Expected::Templates,
            "SNAPSHOT" => Expected::Snapshots,
            "VOLUME" | "VOLUME[:PATH][:ro]" => Expected::Volumes,
            "PROJECT" => Expected::Projects,
            "CONTEXT" => Expected::Contexts,
            "EXEC" => Expected::Commands {
                sandbox: self.positionals.first()?.clone(),
            },
            _ => return None,
        };
        Some(kind)
    }
}

fn value_name(arg: &Arg) -> Option<&str> {
    let names = arg.get_value_names()?;
    names.first().map(|name| name.as_str())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::args::Args;

    fn asked(line: &str) -> Option<Question> {
        let mut command = Args::command();
        command.build();
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        question(&command, &words)
    }

    #[test]
    fn the_place_of_the_cursor_says_what_is_expected() {
        let commands = Expected::Commands {
            sandbox: "sb-1".to_owned(),
        };
        for (line, expected) in [
            ("info ", Expected::Sandboxes),
            ("rm sb-1 sb-", Expected::Sandboxes),
            ("exec -it ", Expected::Sandboxes),
            ("net allow ", Expected::Sandboxes),
            ("audit ", Expected::Sandboxes),
            ("audit --project ", Expected::Projects),
            ("project set ", Expected::Projects),
            ("fs ls ", Expected::SandboxPaths),
            ("fs rm sb-1:/a ", Expected::SandboxPaths),
            ("cp sb", Expected::SandboxPaths),
            ("create -T ", Expected::Templates),
            ("run --template b", Expected::Templates),
            ("template info ", Expected::Templates),
            ("create --from-snapshot ", Expected::Snapshots),
            ("rollback sb-1 ", Expected::Snapshots),
            ("volume grow ", Expected::Volumes),
            ("create --volume ", Expected::Volumes),
            ("context use ", Expected::Contexts),
            ("ls --context ", Expected::Contexts),
            ("kill sb-1 ", commands.clone()),
            ("kill -s TERM sb-1 ", commands.clone()),
            ("logs --json sb-1 ", commands),
        ] {
            let found = asked(line).map(|question| question.expected);
            assert_eq!(found, Some(expected), "{line:?}");
        }
    }

    #[test]
    fn words_of_the_program_files_and_commands_of_guests_are_left_to_the_shell() {
        for line in [
            "",
            "inf",
            "--js",
            "fs ",
            "cp ",
            "exec sb-1 ",
            "run -- sb-",
            "exec sb-1 -- info ",
            "info sb-1 ",
            "--key-file ",
            "create -T",
        ] {
            assert!(asked(line).is_none(), "{line:?}");
        }
    }

    #[test]
    fn the_server_that_was_named_is_asked() {
        let question = asked("--context lab info --url=http://a sb-").unwrap();
        assert_eq!(question.global.context.as_deref(), Some("lab"));
        assert_eq!(question.global.url.as_deref(), Some("http://a"));
        assert_eq!(question.current, "sb-");
    }
}

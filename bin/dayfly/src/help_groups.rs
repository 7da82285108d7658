//! The first help text: commands by what they are for.
//!
//! The parser has one list of commands, without headings. It is hidden in this text, and the groups
//! stand in its place; everything else, and every other help text, is the parser's own.

use std::fmt::Write as _;

use clap::CommandFactory as _;
use clap::builder::Styles;
use clap::builder::styling::Style;

use crate::args::Args;

/// Every command that is not hidden, once.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Run",
        &[
            "run", "create", "exec", "shell", "attach", "kill", "cp", "fs", "rm",
        ],
    ),
    ("Inspect", &["ls", "info", "top", "ps", "logs", "events"]),
    (
        "State",
        &[
            "pause",
            "resume",
            "hibernate",
            "wake",
            "ttl",
            "snapshot",
            "rollback",
            "fork",
            "explore",
            "promote",
            "volume",
        ],
    ),
    ("Network", &["net", "port"]),
    ("Agents", &["mcp"]),
    (
        "Admin",
        &[
            "login",
            "whoami",
            "context",
            "template",
            "token",
            "project",
            "audit",
            "export",
            "node",
            "version",
            "completions",
            "help",
        ],
    ),
];
/// The parser's own command has no text until it is built.
const HELP_ABOUT: &str = "Print this text, or the help of a command";
const USAGE: &str = "dayfly [OPTIONS] <COMMAND>";
const NAME_COLUMNS: usize = 13;

/// The parser, with a first help text that has groups.
pub(crate) fn command() -> clap::Command {
    let command = Args::command();
    let template = template(&command);
    command
        .mut_subcommands(|subcommand| subcommand.hide(true))
        // Without commands to show, the parser would leave theirs out.
        .override_usage(USAGE)
        .help_template(template)
}

fn template(command: &clap::Command) -> String {
    let styles = Styles::styled();
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (heading, names) in GROUPS {
        let style = styles.get_header();
        let _ = write!(text, "\n{style}{heading}:{style:#}\n");
        for name in *names {
            let about = command
                .find_subcommand(name)
                .map_or_else(|| HELP_ABOUT.to_owned(), about);
            let gap = " ".repeat(NAME_COLUMNS.saturating_sub(name.len()));
            let name = literal(styles.get_literal(), name);
            let _ = writeln!(text, "  {name}{gap}{about}");
        }
    }
    text.push_str("\n{all-args}{after-help}");
    text
}

fn literal(style: &Style, word: &str) -> String {
    format!("{style}{word}{style:#}")
}

fn about(command: &clap::Command) -> String {
    let about = command.get_about().map(ToString::to_string);
    let aliases: Vec<&str> = command.get_visible_aliases().collect();
    let about = about.unwrap_or_default();
    if aliases.is_empty() {
        return about;
    }
    format!("{about} [alias: {}]", aliases.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        let command = Args::command();
        let known = command
            .get_subcommands()
            .filter(|known| !known.is_hide_set());
        for name in known.map(clap::Command::get_name) {
            let count = grouped.iter().filter(|grouped| **grouped == name).count();
            assert_eq!(count, 1, "{name}");
        }
        for name in grouped.iter().filter(|name| **name != "help") {
            assert!(command.find_subcommand(name).is_some(), "{name}");
        }
    }

    #[test]
    fn every_command_and_argument_has_a_text() {
        let mut waiting = vec![Args::command()];
        while let Some(command) = waiting.pop() {
            let name = command.get_name();
            assert!(command.get_about().is_some(), "{name}");
            for argument in command.get_arguments() {
                let id = argument.get_id();
                assert!(argument.get_help().is_some(), "{name}: {id}");
            }
            waiting.extend(command.get_subcommands().cloned());
        }
    }

    #[test]
    fn no_line_of_a_group_is_wider_than_a_terminal() {
        let command = Args::command();
        for known in command.get_subcommands() {
            let width = 2 + NAME_COLUMNS + about(known).len();
            assert!(width <= 90, "{} is {width} columns wide", known.get_name());
        }
    }
}

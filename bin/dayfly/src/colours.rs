//! Whether there are colours, and which word has which.

use std::ffi::OsString;

use clap::ColorChoice;
use clap::ValueEnum as _;
use clap::builder::styling::{AnsiColor, Style};

use crate::env_vars::Environment;

pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
pub(crate) const HINT: Style = AnsiColor::Cyan.on_default().bold();
const FLAG: &str = "--color";

/// Whether an output has colours. A flag says it first, then `NO_COLOR`, then `CLICOLOR_FORCE`, then
/// whether it is a terminal.
pub(crate) fn are_wanted(
    choice: ColorChoice,
    environment: &Environment,
    is_terminal: bool,
) -> bool {
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto if environment.refuses_colour => false,
        ColorChoice::Auto => environment.forces_colour || is_terminal,
    }
}

/// What the flag says, before the arguments are parsed: the parser itself writes help and complaints.
/// What it cannot read, the parser complains about.
pub(crate) fn chosen_in(words: impl Iterator<Item = OsString>) -> ColorChoice {
    let mut words = words
        .map(|word| word.to_string_lossy().into_owned())
        .take_while(|word| word != "--");
    let mut chosen = ColorChoice::Auto;
    while let Some(word) = words.next() {
        let value = match word.strip_prefix(FLAG) {
            Some("") => words.next(),
            Some(rest) => rest.strip_prefix('=').map(str::to_owned),
            None => None,
        };
        let value = value.and_then(|value| ColorChoice::from_str(&value, false).ok());
        chosen = value.unwrap_or(chosen);
    }
    chosen
}

pub(crate) fn paint(text: &str, style: Style) -> String {
    format!("{style}{text}{style:#}")
}

/// How a status looks: what works, what waits, what sleeps, what is wrong. Others are plain.
pub(crate) fn of_status(text: &str) -> Option<Style> {
    let word = text.split([' ', ',']).next().unwrap_or_default();
    let colour = match word {
        "running" | "ready" | "allowed" => AnsiColor::Green,
        "creating" | "starting" | "waiting" | "baking" | "paused" | "deleting" => AnsiColor::Yellow,
        "hibernated" | "hibernating" | "waking" => AnsiColor::Blue,
        "failed" | "unavailable" | "denied" | "killed" | "signaled" | "timed_out"
        | "out_of_memory" | "limit_exceeded" => AnsiColor::Red,
        _ if is_http_failure(word) => AnsiColor::Red,
        _ => return None,
    };
    Some(colour.on_default())
}

fn is_http_failure(word: &str) -> bool {
    let number = word.parse::<u16>();
    number.is_ok_and(|number| (400..600).contains(&number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_beats_the_environment_beats_the_terminal() {
        let environment = |refuses_colour, forces_colour| Environment {
            refuses_colour,
            forces_colour,
            ..Environment::default()
        };
        let plain = environment(false, false);
        assert!(are_wanted(ColorChoice::Auto, &plain, true));
        assert!(!are_wanted(ColorChoice::Auto, &plain, false));
        let forced = environment(false, true);
        assert!(are_wanted(ColorChoice::Auto, &forced, false));
        assert!(!are_wanted(ColorChoice::Never, &forced, true));
        let refused = environment(true, true);
        assert!(!are_wanted(ColorChoice::Auto, &refused, true));
        assert!(are_wanted(ColorChoice::Always, &refused, false));
    }

    #[test]
    fn the_flag_is_found_before_the_command_of_the_guest() {
        let chosen = |words: &[&str]| chosen_in(words.iter().map(OsString::from));
        assert_eq!(chosen(&["ls", "--color", "never"]), ColorChoice::Never);
        assert_eq!(chosen(&["--color=always", "ls"]), ColorChoice::Always);
        for words in [
            &["run", "--", "ls", "--color=always"][..],
            &["ls", "--color"],
            &["ls", "--colors=never"],
            &["ls", "--color=pink"],
        ] {
            assert_eq!(chosen(words), ColorChoice::Auto, "{words:?}");
        }
    }

    #[test]
    fn a_status_is_known_by_its_first_word() {
        assert_eq!(of_status("baking 40 %"), of_status("paused"));
        assert_eq!(of_status("failed, usable as it was"), of_status("404"));
        assert_eq!(of_status("exited"), None);
        assert_eq!(of_status("200"), None);
    }
}

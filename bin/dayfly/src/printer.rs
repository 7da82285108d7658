//! The two outputs: data on standard output, words on standard error.

use std::io::{self, IsTerminal as _, Write as _};

use clap::builder::styling::Style;
use dayfly_client::RequestSeen;
use serde::Serialize;

use crate::args::GlobalArgs;
use crate::env_vars::Environment;
use crate::failure::CommandError;
use crate::table::{self, Table};
use crate::{colours, error_text, text};

/// Knows what the outputs are and what the caller wants to see.
#[derive(Debug)]
pub(crate) struct Printer {
    is_json: bool,
    is_quiet: bool,
    is_data_on_terminal: bool,
    is_words_on_terminal: bool,
    is_data_coloured: bool,
    is_words_coloured: bool,
}

impl Printer {
    pub(crate) fn new(global: &GlobalArgs, environment: &Environment) -> Self {
        let is_data_on_terminal = io::stdout().is_terminal();
        let is_words_on_terminal = io::stderr().is_terminal();
        let colours = |is_terminal| colours::are_wanted(global.color, environment, is_terminal);
        Self {
            is_json: global.json,
            is_quiet: global.quiet,
            is_data_on_terminal,
            is_words_on_terminal,
            is_data_coloured: colours(is_data_on_terminal),
            is_words_coloured: colours(is_words_on_terminal),
        }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.is_json
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.is_quiet
    }

    /// Whether one line of standard error may be drawn again and again.
    pub(crate) fn can_redraw(&self) -> bool {
        self.is_words_on_terminal && !self.is_quiet
    }

    /// Whether the screen that data goes to may be cleared.
    pub(crate) fn can_clear(&self) -> bool {
        self.is_data_on_terminal && !self.is_quiet
    }

    /// Whether a question can be asked and answered.
    pub(crate) fn can_ask(&self) -> bool {
        self.is_words_on_terminal && io::stdin().is_terminal()
    }

    /// One line of data.
    pub(crate) fn line(&self, text: &str) -> Result<(), CommandError> {
        self.data(&format!("{text}\n"))
    }

    /// Data as it is.
    pub(crate) fn data(&self, text: &str) -> Result<(), CommandError> {
        let mut stdout = io::stdout().lock();
        stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush())
            .map_err(|source| CommandError::Output { source })
    }

    /// One JSON document: in one line for programs, in many for people.
    pub(crate) fn json(&self, value: &impl Serialize) -> Result<(), CommandError> {
        let text = if self.is_data_on_terminal {
            serde_json::to_string_pretty(value)
        } else {
            serde_json::to_string(value)
        };
        let text = text.map_err(|error| CommandError::Output {
            source: error.into(),
        })?;
        self.line(&text)
    }

    pub(crate) fn table(&self, table: &Table) -> Result<(), CommandError> {
        self.data(&if self.is_data_on_terminal {
            table.aligned(self.is_data_coloured)
        } else {
            table.tabbed(self.is_data_coloured)
        })
    }

    /// A status within a line of data, with room for others of its column.
    pub(crate) fn status(&self, text: &str, columns: usize) -> String {
        let padded = table::padded(text, columns);
        match colours::of_status(text) {
            Some(style) if self.is_data_coloured => colours::paint(&padded, style),
            Some(_) | None => padded,
        }
    }

    /// Words that help a person and that nobody needs.
    pub(crate) fn note(&self, text: &str) {
        if !self.is_quiet && !self.is_json {
            self.words(&format!("{text}\n"));
        }
    }

    /// Words that somebody has to act on.
    pub(crate) fn warning(&self, text: &str) {
        self.words(&format!(
            "{}: {text}\n",
            self.paint("warning", colours::WARNING)
        ));
    }

    /// Why the program ends as it does.
    pub(crate) fn failure(&self, error: &CommandError) {
        if error.is_silent() {
            return;
        }
        let report = error_text::report(error);
        if self.is_json {
            // The report holds nothing but text, which always becomes JSON.
            self.words(&format!(
                "{}\n",
                serde_json::to_string(&report).unwrap_or_default()
            ));
            return;
        }
        let mut text = format!(
            "{}: {}\n",
            self.paint("error", colours::ERROR),
            report.error
        );
        if let Some(hint) = report.hint {
            text.push_str(&format!(
                "\n{}: {hint}\n",
                self.paint("hint", colours::HINT)
            ));
        }
        self.words(&text);
    }

    /// Draws over the last line of standard error; an empty text removes it.
    pub(crate) fn redraw(&self, text: &str) {
        self.words(&format!("\r\x1b[2K{text}"));
    }

    /// Asks, and reads one line.
    pub(crate) fn ask(&self, question: &str) -> Result<String, CommandError> {
        self.words(&format!("{question} "));
        let mut answer = String::new();
        io::stdin()
            .read_line(&mut answer)
            .map_err(|source| CommandError::local("cannot read the answer", source))?;
        Ok(answer.trim().to_lowercase())
    }

    /// Asks whether something may be done that cannot be undone. Where nobody can be asked, it is
    /// not done.
    pub(crate) fn confirm(&self, deed: &str, question: &str) -> Result<bool, CommandError> {
        if !self.can_ask() {
            return Err(CommandError::Refused {
                what: format!("will not {deed} without being asked twice"),
                hint: "add --yes",
            });
        }
        let answer = self.ask(&format!("{question} [y/N]"))?;
        Ok(matches!(answer.as_str(), "y" | "yes"))
    }

    /// A closed standard error is no reason to fail: nobody listens.
    fn words(&self, text: &str) {
        say(text);
    }

    fn paint(&self, word: &str, style: Style) -> String {
        if self.is_words_coloured {
            colours::paint(word, style)
        } else {
            word.to_owned()
        }
    }
}

/// One request in a line, for `--verbose`.
pub(crate) fn request(seen: &RequestSeen) {
    let status = seen.status.map(|status| status.to_string());
    let status = status.unwrap_or_else(|| "no response".to_owned());
    let line = format!(
        "request: {} {} {status} {} ms {}",
        seen.method,
        seen.path,
        seen.elapsed.as_millis(),
        seen.request_id.as_deref().unwrap_or_default()
    );
    say(&format!("{}\n", text::visible(line.trim_end())));
}

fn say(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr
        .write_all(text.as_bytes())
        .and_then(|()| stderr.flush());
}

//! How a program says what it found, and what went wrong: data to standard output, words to
//! standard error.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use serde::Serialize;
use tracing_subscriber::EnvFilter;

/// What was asked for did not happen.
pub const EXIT_FAILED: u8 = 125;

/// Why an answer was not given.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    #[error("cannot encode the answer")]
    Encode { source: serde_json::Error },
    #[error("cannot write to standard output")]
    Write { source: io::Error },
}

/// Sends the log of this process to standard error, as much as `DAYFLY_LOG` says.
pub fn start_log() {
    let filter = EnvFilter::try_from_env("DAYFLY_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        // A line that cannot be written is lost. Saying so would end the process: there is nowhere
        // to say it, on a full disk for instance.
        .log_internal_errors(false)
        .init();
}

/// Writes an answer; as JSON when asked for.
///
/// # Errors
/// [`OutputError`]; a part of the answer may have been written.
pub fn print<T: Serialize>(
    json: bool,
    value: &T,
    render: fn(&T) -> String,
) -> Result<(), OutputError> {
    let text = if json {
        serde_json::to_string_pretty(value).map_err(|source| OutputError::Encode { source })?
    } else {
        render(value).trim_end().to_owned()
    };
    writeln!(io::stdout(), "{text}").map_err(|source| OutputError::Write { source })
}

/// Says why, the whole chain, once, where it ends.
pub fn failed(error: &impl Display) -> ExitCode {
    let _ = writeln!(io::stderr(), "error: {error:#}");
    ExitCode::from(EXIT_FAILED)
}

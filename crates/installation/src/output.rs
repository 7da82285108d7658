//! How a program says what it found, and what went wrong: data to standard output, words to
//! standard error.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use serde::Serialize;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt;

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

/// A library whose lines have what clients send and get: contents of files, output of programs, code.
/// It is silent whatever `DAYFLY_LOG` says.
const SILENT: &str = "rmcp";

/// Sends the log of this process to standard error, as much as `DAYFLY_LOG` says.
pub fn start_log() {
    let filter = EnvFilter::try_from_env("DAYFLY_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    log(filter, io::stderr).init();
}

fn log<W>(filter: EnvFilter, writer: W) -> impl SubscriberInitExt
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        // A line that cannot be written is lost. Saying so would end the process: there is nowhere
        // to say it, on a full disk for instance.
        .log_internal_errors(false)
        .finish()
        .with(filter_fn(|line| !is_silent(line.target())))
}

fn is_silent(target: &str) -> bool {
    target.split("::").next() == Some(SILENT)
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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_clients_of_mcp_send_is_in_no_log() {
        for directives in ["info", "trace", "rmcp=trace", "rmcp::service=trace,info"] {
            let kept = Kept::default();
            let writer = kept.clone();
            let started = log(EnvFilter::new(directives), move || writer.clone());
            let _current = started.set_default();
            tracing::info!(target: "rmcp::service", "a tenant's");
            tracing::error!(target: "rmcp", "a tenant's");
            tracing::error!(target: "rmcp_other", "our own");
            tracing::error!("our own");
            let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
            assert!(!text.contains("a tenant's"), "{directives}: {text}");
            // A directive means every target that begins with its word.
            assert!(text.contains("our own"), "{directives}: {text}");
        }
    }
}

//! How a program says what it found, and what went wrong: data to standard output, words to
//! standard error.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use dayfly_types::LogFormat;
use serde::Serialize;
use tracing::Dispatch;
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
pub fn start_log(format: LogFormat) {
    let filter = EnvFilter::try_from_env("DAYFLY_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    log(format, filter, io::stderr).init();
    if format == LogFormat::Json {
        log_panics();
    }
}

fn log<W>(format: LogFormat, filter: EnvFilter, writer: W) -> Dispatch
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer)
        .with_target(false)
        // A line that cannot be written is lost. Saying so would end the process: there is nowhere
        // to say it, on a full disk for instance.
        .log_internal_errors(false);
    let silent = filter_fn(|line| !is_silent(line.target()));
    match format {
        LogFormat::Text => lines
            .with_ansi(io::stderr().is_terminal())
            .finish()
            .with(silent)
            .into(),
        LogFormat::Json => lines
            .json()
            .flatten_event(true)
            .with_span_list(false)
            .finish()
            .with(silent)
            .into(),
    }
}

/// What the standard library would write is no JSON.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(tracing::field::display);
        let reason = panic.payload_as_str().unwrap_or("no words");
        tracing::error!(place, reason, "this process panicked");
    }));
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
pub fn failed(format: LogFormat, error: &impl Display) -> ExitCode {
    match format {
        LogFormat::Text => {
            let _ = writeln!(io::stderr(), "error: {error:#}");
        }
        LogFormat::Json => tracing::error!(error = format!("{error:#}"), "this process ends"),
    }
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
            let filter = EnvFilter::new(directives);
            let started = log(LogFormat::Text, filter, move || writer.clone());
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

    #[test]
    fn a_line_in_json_is_one_object() {
        let kept = Kept::default();
        let writer = kept.clone();
        let started = log(LogFormat::Json, EnvFilter::new("info"), move || {
            writer.clone()
        });
        let _current = started.set_default();
        let _inside = tracing::info_span!("request", request_id = "req-1").entered();
        tracing::info!(status = 200, route = "two\nlines \u{1b}[31m", "request");
        failed(LogFormat::Json, &"the end");
        let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let [request, end] = lines.as_slice() else {
            panic!("{text}");
        };
        assert_eq!(request["status"], 200);
        assert_eq!(request["message"], "request");
        assert_eq!(request["level"], "INFO");
        assert_eq!(request["span"]["request_id"], "req-1");
        assert_eq!(request["route"], "two\nlines \u{1b}[31m");
        assert_eq!(end["error"], "the end");
    }
}

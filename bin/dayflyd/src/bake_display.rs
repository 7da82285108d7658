//! Progress of bakes for the person who started the daemon: one line that is redrawn on a
//! terminal, plain lines elsewhere, and lines of the log where the log is for programs.

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};

use dayfly_node_api::{BakeState, TemplateReport};
use dayfly_types::LogFormat;

/// Plain lines come at least this many percent apart, so that a log stays readable.
const PLAIN_STEP_PERCENT: u8 = 10;
const BAR_CELLS: usize = 24;

/// Draws what it is told.
#[derive(Debug)]
pub(crate) struct BakeDisplay {
    way: Way,
    drawn: Mutex<Drawn>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Redrawn,
    Lines,
    Log,
}

#[derive(Debug, Default)]
struct Drawn {
    template: String,
    step: String,
    percent: u8,
    line_is_open: bool,
}

impl BakeDisplay {
    pub(crate) fn new(format: LogFormat) -> Self {
        let way = match format {
            LogFormat::Json => Way::Log,
            LogFormat::Text if std::io::stderr().is_terminal() => Way::Redrawn,
            LogFormat::Text => Way::Lines,
        };
        Self {
            way,
            drawn: Mutex::new(Drawn::default()),
        }
    }

    /// Shows one template's state. Called from any thread.
    pub(crate) fn show(&self, report: &TemplateReport) {
        let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        let name = report.name.as_str();
        match &report.state {
            BakeState::NotBaked | BakeState::Waiting => {}
            BakeState::Baking { percent, step } => self.baking(&mut drawn, name, *percent, step),
            BakeState::Ready if self.way == Way::Log => {
                *drawn = Drawn::default();
                tracing::info!(template = name, "the template is ready");
            }
            BakeState::Failed { reason } if self.way == Way::Log => {
                *drawn = Drawn::default();
                tracing::error!(template = name, reason, "the template could not be baked");
            }
            BakeState::Ready => self.ended(&mut drawn, &format!("template {name} is ready")),
            BakeState::Failed { reason } => {
                self.ended(
                    &mut drawn,
                    &format!("template {name} could not be baked: {reason}"),
                );
            }
        }
    }

    fn baking(&self, drawn: &mut Drawn, name: &str, percent: u8, step: &str) {
        if self.way == Way::Redrawn {
            let full = usize::from(percent) * BAR_CELLS / 100;
            let bar = format!("{}{}", "#".repeat(full), "-".repeat(BAR_CELLS - full));
            write_now(&format!(
                "\r\x1b[K  baking {name} [{bar}] {percent:>3}% {step}"
            ));
            drawn.line_is_open = true;
            return;
        }
        let is_new = drawn.template != name || drawn.step != step;
        if is_new || percent >= drawn.percent.saturating_add(PLAIN_STEP_PERCENT) {
            match self.way {
                Way::Log => tracing::info!(template = name, percent, step, "baking"),
                Way::Redrawn | Way::Lines => {
                    write_now(&format!("baking {name}: {percent}% {step}\n"));
                }
            }
            *drawn = Drawn {
                template: name.to_owned(),
                step: step.to_owned(),
                percent,
                line_is_open: false,
            };
        }
    }

    fn ended(&self, drawn: &mut Drawn, text: &str) {
        if drawn.line_is_open {
            write_now("\r\x1b[K");
        }
        *drawn = Drawn::default();
        write_now(&format!("{text}\n"));
    }
}

/// Progress is a courtesy: a closed terminal must not stop a bake.
fn write_now(text: &str) {
    let mut stream = std::io::stderr().lock();
    let _ = stream.write_all(text.as_bytes());
    let _ = stream.flush();
}

//! What the node is told, a line at a time.

use std::io::Write as _;
use std::sync::Mutex;

use dayfly_types::container_image::{ImageReport, MadeImage};

/// Layers are nearly all of the work.
const LAYERS_PERCENT: u64 = 95;

/// Says each thing once.
#[derive(Debug, Default)]
pub(crate) struct Reporter {
    last: Mutex<Option<(String, u8)>>,
}

impl Reporter {
    pub(crate) fn progress(&self, step: &str, percent: u8) {
        let said = Some((step.to_owned(), percent));
        {
            let mut last = self
                .last
                .lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner());
            if *last == said {
                return;
            }
            *last = said;
        }
        say(&ImageReport::Progress {
            step: step.to_owned(),
            percent,
        });
    }

    /// How much of the layers is done.
    pub(crate) fn share(&self, step: &str, bytes: u64, total: u64) {
        let percent = bytes.saturating_mul(LAYERS_PERCENT).checked_div(total);
        let percent = percent.unwrap_or(LAYERS_PERCENT).min(LAYERS_PERCENT);
        self.progress(step, u8::try_from(percent).unwrap_or(u8::MAX));
    }

    pub(crate) fn made(&self, made: MadeImage) {
        say(&ImageReport::Made(Box::new(made)));
    }

    pub(crate) fn failed(&self, reason: &str) {
        say(&ImageReport::Failed {
            reason: reason.to_owned(),
        });
    }
}

/// Nobody wants the disk when nobody listens: the node is gone, or has given the image up.
fn say(report: &ImageReport) {
    let Ok(mut line) = serde_json::to_vec(report) else {
        return;
    };
    line.push(b'\n');
    if std::io::stdout().lock().write_all(&line).is_err() {
        end();
    }
}

#[expect(clippy::exit, reason = "there is nobody to return to")]
fn end() -> ! {
    std::process::exit(i32::from(crate::EXIT_FAILED))
}

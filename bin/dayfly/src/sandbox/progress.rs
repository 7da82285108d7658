//! What a person sees while a create waits.

use std::time::Duration;

use dayfly_client::{WaitProgress, WaitReason};

use crate::printer::Printer;

/// Without a terminal, a line is worth printing when this much has changed.
const PERCENT_STEP: u8 = 10;
const TIME_STEP: Duration = Duration::from_secs(10);
/// A line that wraps cannot be drawn over.
const LINE_CHARACTERS_MAX: usize = 79;

/// Shows a wait: one line drawn again and again on a terminal, else a line now and then.
#[derive(Debug)]
pub(crate) struct Progress<'p> {
    printer: &'p Printer,
    template: String,
    last: Option<WaitProgress>,
    is_drawn: bool,
}

impl<'p> Progress<'p> {
    pub(crate) fn new(printer: &'p Printer, template: Option<&str>) -> Self {
        let template = template.map_or_else(
            || "the template".to_owned(),
            |name| format!("template {name}"),
        );
        Self {
            printer,
            template,
            last: None,
            is_drawn: false,
        }
    }

    pub(crate) fn update(&mut self, progress: &WaitProgress) {
        let line = words(&self.template, progress);
        if self.printer.can_redraw() {
            self.printer
                .redraw(&line.chars().take(LINE_CHARACTERS_MAX).collect::<String>());
            self.is_drawn = true;
        } else if is_news(self.last.as_ref(), progress) {
            self.printer.note(&line);
            self.last = Some(progress.clone());
        }
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        if self.is_drawn {
            self.printer.redraw("");
        }
    }
}

fn words(template: &str, progress: &WaitProgress) -> String {
    let seconds = progress.waited.as_secs();
    match (progress.reason, progress.percent) {
        (WaitReason::TemplateBaking, Some(percent)) => {
            format!("waiting: {template} is baking, {percent} % ({seconds} s)")
        }
        (WaitReason::TemplateBaking, None) => {
            format!("waiting: {template} is baking ({seconds} s)")
        }
        (WaitReason::NoCapacity, _) => format!("waiting: the host has no room ({seconds} s)"),
        (WaitReason::NodeUnavailable, _) => {
            format!("waiting: the node is not ready yet ({seconds} s)")
        }
    }
}

fn is_news(last: Option<&WaitProgress>, now: &WaitProgress) -> bool {
    let Some(last) = last else { return true };
    let step = now.percent.unwrap_or(0).abs_diff(last.percent.unwrap_or(0));
    last.reason != now.reason
        || step >= PERCENT_STEP
        || now.waited.saturating_sub(last.waited) >= TIME_STEP
}

#[cfg(test)]
mod tests {
    use super::*;

    fn baking(percent: u8, seconds: u64) -> WaitProgress {
        WaitProgress {
            reason: WaitReason::TemplateBaking,
            percent: Some(percent),
            message: "baking".to_owned(),
            waited: Duration::from_secs(seconds),
        }
    }

    #[test]
    fn a_line_comes_at_first_at_ten_percent_and_every_ten_seconds() {
        assert!(is_news(None, &baking(0, 0)));
        assert!(!is_news(Some(&baking(0, 0)), &baking(9, 9)));
        assert!(is_news(Some(&baking(0, 0)), &baking(10, 1)));
        assert!(is_news(Some(&baking(0, 0)), &baking(0, 10)));
        let full = WaitProgress {
            reason: WaitReason::NoCapacity,
            ..baking(0, 1)
        };
        assert!(is_news(Some(&baking(0, 0)), &full));
    }

    #[test]
    fn the_line_says_what_how_far_and_how_long() {
        let line = words("template base", &baking(40, 12));
        assert_eq!(line, "waiting: template base is baking, 40 % (12 s)");
    }
}

//! What a person sees of a build.

use std::time::Instant;

use dayfly_build::BuildEvent;

use crate::printer::Printer;

/// Lines of a terminal that is drawn over do not wrap.
const LINE_CHARACTERS_MAX: usize = 79;

/// Steps, one line each; what a step says below it.
pub(crate) struct BuildView<'p> {
    printer: &'p Printer,
    began: Instant,
    last_note: String,
    is_drawn: bool,
}

impl<'p> BuildView<'p> {
    pub(crate) fn new(printer: &'p Printer) -> Self {
        Self {
            printer,
            began: Instant::now(),
            last_note: String::new(),
            is_drawn: false,
        }
    }

    pub(crate) fn show(&mut self, event: &BuildEvent) {
        if self.printer.is_json() {
            // A line that cannot be written is noticed when the end is.
            let _ = self.printer.json(event);
            return;
        }
        match event {
            BuildEvent::Base {
                image,
                percent,
                detail,
            } => {
                let detail = detail.as_deref().unwrap_or("waiting");
                self.passing(&format!("image {image}: {detail}, {percent} %"));
            }
            BuildEvent::Stage { name, steps } => {
                self.note(&format!("{name}: {steps} steps"));
            }
            BuildEvent::Cached {
                number,
                steps,
                text,
            } => self.note(&format!("[{number}/{steps}] cached  {text}")),
            BuildEvent::Started {
                number,
                steps,
                text,
            } => {
                self.note(&format!("[{number}/{steps}] {text}"));
            }
            BuildEvent::Output { text, .. } => self.note(&format!("    {text}")),
            BuildEvent::Finished { elapsed, .. } => {
                self.note(&format!("    done in {:.1} s", elapsed.as_secs_f64()));
            }
            BuildEvent::Baking { percent, detail } => {
                let detail = detail.as_deref().unwrap_or("waiting");
                self.passing(&format!("template: {detail}, {percent} %"));
            }
        }
    }

    /// A line that stays.
    fn note(&mut self, text: &str) {
        self.end();
        self.printer.note(text);
    }

    /// A line that the next one takes the place of, where that can be.
    fn passing(&mut self, text: &str) {
        let seconds = self.began.elapsed().as_secs();
        if self.printer.can_redraw() {
            let line = format!("{text} ({seconds} s)");
            let line: String = line.chars().take(LINE_CHARACTERS_MAX).collect();
            self.printer.redraw(&line);
            self.is_drawn = true;
        } else if self.last_note != text {
            self.printer.note(text);
            text.clone_into(&mut self.last_note);
        }
    }

    /// Clears what was drawn over.
    pub(crate) fn end(&mut self) {
        if self.is_drawn {
            self.printer.redraw("");
            self.is_drawn = false;
        }
    }
}

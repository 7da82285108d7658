//! What is exported, a JSON object per line.

use dayfly_client::api::{ExportPage, ExportedAudit, SandboxEvent};
use serde::Serialize;

use crate::export::place::Place;

/// How every line begins.
pub(super) const LINE_BEGIN: &[u8] = b"{\"kind\":\"";

/// Lines that go out together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Page {
    /// Each ends with a newline.
    pub(super) text: Vec<u8>,
    pub(super) count: usize,
    /// Where the next page begins.
    pub(super) end: Place,
}

/// A page that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum PageError {
    #[error("the cursor {cursor:?} of an event is no number")]
    Cursor { cursor: String },
    #[error("a line cannot be written as JSON")]
    Line,
}

#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Line<'a> {
    Audit(&'a ExportedAudit),
    Event(&'a SandboxEvent),
    /// Numbers that the server no longer had.
    Gap {
        of: &'static str,
        first: u64,
        last: u64,
    },
    /// A backup was put back: numbers begin anew.
    Reset {
        series: &'a str,
    },
}

impl Page {
    /// The lines of a page. From the first export on numbers have no holes, so one that is seen is
    /// told.
    pub(super) fn of(noted: Option<&Place>, page: &ExportPage) -> Result<Self, PageError> {
        let mut lines = Self::new(Place {
            series: page.series.clone(),
            audit: noted.map_or(0, |noted| noted.audit),
            event: noted.map_or(0, |noted| noted.event),
        });
        let has_begun = noted.is_some();
        for entry in &page.audit {
            if has_begun || lines.end.audit != 0 {
                lines.close_gap("audit", lines.end.audit, entry.number)?;
            }
            lines.push(&Line::Audit(entry))?;
            lines.end.audit = entry.number;
        }
        for event in &page.events {
            let number = event.cursor.parse().map_err(|_| PageError::Cursor {
                cursor: event.cursor.clone(),
            })?;
            if has_begun || lines.end.event != 0 {
                lines.close_gap("event", lines.end.event, number)?;
            }
            lines.push(&Line::Event(event))?;
            lines.end.event = number;
        }
        Ok(lines)
    }

    /// Says that numbers begin anew.
    pub(super) fn of_reset(series: &str) -> Result<Self, PageError> {
        let mut lines = Self::new(Place {
            series: series.to_owned(),
            audit: 0,
            event: 0,
        });
        lines.push(&Line::Reset { series })?;
        Ok(lines)
    }

    const fn new(end: Place) -> Self {
        Self {
            text: Vec::new(),
            count: 0,
            end,
        }
    }

    fn close_gap(&mut self, of: &'static str, last: u64, next: u64) -> Result<(), PageError> {
        if next <= last + 1 {
            return Ok(());
        }
        self.push(&Line::Gap {
            of,
            first: last + 1,
            last: next - 1,
        })
    }

    fn push(&mut self, line: &Line<'_>) -> Result<(), PageError> {
        serde_json::to_writer(&mut self.text, line).map_err(|_| PageError::Line)?;
        self.text.push(b'\n');
        self.count += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use dayfly_client::api::AuditEntry;

    use super::*;

    fn entry(number: u64) -> ExportedAudit {
        ExportedAudit {
            number,
            entry: AuditEntry {
                seq: number,
                at: "2026-11-18T00:00:00Z".to_owned(),
                key_prefix: "dfk_x".to_owned(),
                request_id: "req-1".to_owned(),
                operation: "POST /v1/sandboxes".to_owned(),
                subject: None,
                status: 201,
                detail: serde_json::json!({"line\n": "break"}),
                client: None,
                project: Some("team-a".to_owned()),
            },
        }
    }

    fn page(numbers: &[u64]) -> ExportPage {
        ExportPage {
            series: "a".to_owned(),
            audit: numbers.iter().copied().map(entry).collect(),
            events: Vec::new(),
        }
    }

    fn kinds(noted: Option<u64>, numbers: &[u64]) -> Vec<String> {
        let noted = noted.map(|audit| Place {
            series: "a".to_owned(),
            audit,
            event: 0,
        });
        let page = Page::of(noted.as_ref(), &page(numbers)).unwrap();
        assert_eq!(page.end.audit, *numbers.last().unwrap());
        let text = String::from_utf8(page.text).unwrap();
        let lines: Vec<serde_json::Value> = text
            .lines()
            .inspect(|line| assert!(line.as_bytes().starts_with(LINE_BEGIN)))
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), page.count);
        let told = lines.iter().map(|line| match line["kind"].as_str() {
            Some("gap") => format!("gap {} {}", line["first"], line["last"]),
            _ => format!("{} {}", line["kind"].as_str().unwrap(), line["number"]),
        });
        told.collect()
    }

    #[test]
    fn what_is_missing_is_told_and_a_beginning_is_no_gap() {
        assert_eq!(kinds(None, &[5, 6]), ["audit 5", "audit 6"]);
        assert_eq!(kinds(None, &[5, 7]), ["audit 5", "gap 6 6", "audit 7"]);
        assert_eq!(kinds(Some(0), &[5]), ["gap 1 4", "audit 5"]);
        assert_eq!(kinds(Some(4), &[5, 6]), ["audit 5", "audit 6"]);
        assert_eq!(
            kinds(Some(4), &[7, 8, 10]),
            ["gap 5 6", "audit 7", "audit 8", "gap 9 9", "audit 10"]
        );
    }

    #[test]
    fn numbers_that_begin_anew_are_told() {
        let page = Page::of_reset("b").unwrap();
        let line = "{\"kind\":\"reset\",\"series\":\"b\"}\n";
        assert_eq!(page.text, line.as_bytes());
        assert_eq!((page.end.audit, page.end.event), (0, 0));
    }
}

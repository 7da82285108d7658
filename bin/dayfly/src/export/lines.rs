//! What is exported, a JSON object per line.

use dayfly_client::api::{
    ExportPage, ExportedAudit, ExportedDecision, ExportedDecisions, ExportedEgress, SandboxEvent,
};
use serde::Serialize;

use crate::export::place::{EgressPlace, Place};

const EGRESS: &str = "egress";

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
    pub(super) rest: Rest,
}

/// What may be left behind a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    Anything,
    /// Of the others there was nothing.
    Decisions,
    /// The same, and the host does not respond.
    HiddenDecisions,
    /// The server has no decisions, and of the others there was nothing.
    Nothing,
}

impl Rest {
    fn of(page: &ExportPage) -> Self {
        if !page.audit.is_empty() || !page.events.is_empty() {
            return Self::Anything;
        }
        match &page.egress {
            ExportedEgress::Told(_) => Self::Decisions,
            ExportedEgress::Away => Self::HiddenDecisions,
            ExportedEgress::Untold => Self::Nothing,
        }
    }
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
    Egress(&'a ExportedDecision),
    /// Numbers that the server no longer had.
    Gap {
        of: &'static str,
        first: u64,
        last: u64,
    },
    /// Numbers begin anew: those of decisions about egress, or else all others, because a backup was
    /// put back.
    Reset {
        #[serde(skip_serializing_if = "Option::is_none")]
        of: Option<&'static str>,
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
            egress: noted.and_then(|noted| noted.egress.clone()),
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
        if let Some(egress) = page.egress.told() {
            lines.push_decisions(egress)?;
        }
        lines.rest = Rest::of(page);
        Ok(lines)
    }

    /// Says that numbers begin anew, but for those of decisions about egress.
    pub(super) fn of_reset(noted: &Place, series: &str) -> Result<Self, PageError> {
        let mut lines = Self::new(Place {
            series: series.to_owned(),
            audit: 0,
            event: 0,
            egress: noted.egress.clone(),
        });
        lines.push(&Line::Reset { of: None, series })?;
        Ok(lines)
    }

    /// The decisions of a page; of another series only that it is one, since they were asked for by a
    /// number of the one before.
    fn push_decisions(&mut self, page: &ExportedDecisions) -> Result<(), PageError> {
        let series = page.series.as_str();
        let noted = self.end.egress.take();
        // Numbers that went back are those of another one, whatever its name.
        let is_of = |noted: &EgressPlace| noted.series == series && noted.number <= page.through;
        if noted.as_ref().is_some_and(|noted| !is_of(noted)) {
            let of = Some(EGRESS);
            self.push(&Line::Reset { of, series })?;
            self.note_egress(series, 0);
            return Ok(());
        }
        let mut so_far = noted.map(|noted| noted.number);
        for decision in &page.decisions {
            if let Some(so_far) = so_far {
                self.close_gap(EGRESS, so_far, decision.number)?;
            }
            self.push(&Line::Egress(decision))?;
            so_far = Some(decision.number);
        }
        let so_far = so_far.unwrap_or(0);
        // What is lost behind the last of them is told without waiting for another.
        self.close_gap(EGRESS, so_far, page.through.saturating_add(1))?;
        self.note_egress(series, page.through);
        Ok(())
    }

    fn note_egress(&mut self, series: &str, number: u64) {
        self.end.egress = Some(EgressPlace {
            series: series.to_owned(),
            number,
        });
    }

    const fn new(end: Place) -> Self {
        Self {
            text: Vec::new(),
            count: 0,
            end,
            rest: Rest::Anything,
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
            egress: ExportedEgress::Untold,
        }
    }

    fn kinds(noted: Option<u64>, numbers: &[u64]) -> Vec<String> {
        let noted = noted.map(|audit| Place {
            series: "a".to_owned(),
            audit,
            event: 0,
            egress: None,
        });
        let page = Page::of(noted.as_ref(), &page(numbers)).unwrap();
        assert_eq!(page.end.audit, *numbers.last().unwrap());
        told(page)
    }

    fn told(page: Page) -> Vec<String> {
        let text = String::from_utf8(page.text).unwrap();
        let lines: Vec<serde_json::Value> = text
            .lines()
            .inspect(|line| assert!(line.as_bytes().starts_with(LINE_BEGIN)))
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), page.count);
        let told = lines.iter().map(|line| match line["kind"].as_str() {
            Some("gap") => format!("gap {} {}", line["first"], line["last"]),
            Some("reset") => format!("reset {} {}", line["of"], line["series"]),
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

    fn decision(number: u64) -> ExportedDecision {
        let record = serde_json::json!({
            "sequence": 1, "at": "2026-11-18T00:00:00Z", "kind": "dns", "decision": "denied",
            "name_source": "none", "bytes_up": 0, "bytes_down": 0, "duration_ms": 0, "suppressed": 0
        });
        ExportedDecision {
            number,
            project: "team-a".to_owned(),
            sandbox_id: "sbx-1".to_owned(),
            record: serde_json::from_value(record).unwrap(),
        }
    }

    /// The lines about a page of decisions of series `b`, and where it ends.
    fn decisions(noted: Option<(&str, u64)>, numbers: &[u64], through: u64) -> (Vec<String>, u64) {
        let noted = noted.map(|(series, number)| EgressPlace {
            series: series.to_owned(),
            number,
        });
        let noted = Place {
            series: "a".to_owned(),
            audit: 0,
            event: 0,
            egress: noted,
        };
        let page = ExportPage {
            egress: ExportedEgress::Told(ExportedDecisions {
                series: "b".to_owned(),
                decisions: numbers.iter().copied().map(decision).collect(),
                through,
            }),
            ..page(&[])
        };
        let page = Page::of(Some(&noted), &page).unwrap();
        let end = page.end.egress.clone().unwrap();
        assert_eq!(end.series, "b");
        (told(page), end.number)
    }

    #[test]
    fn decisions_are_lines_and_those_that_are_lost_are_told() {
        let lines = |words: &[&str], end| (words.iter().map(ToString::to_string).collect(), end);
        assert_eq!(decisions(None, &[], 0), lines(&[], 0));
        assert_eq!(decisions(None, &[5], 5), lines(&["egress 5"], 5));
        assert_eq!(decisions(None, &[], 3), lines(&["gap 1 3"], 3));
        assert_eq!(
            decisions(Some(("b", 0)), &[5, 7], 9),
            lines(
                &["gap 1 4", "egress 5", "gap 6 6", "egress 7", "gap 8 9"],
                9
            )
        );
        assert_eq!(decisions(Some(("b", 9)), &[], 9), lines(&[], 9));
        // What was asked for behind a number of another series says nothing.
        for before in [("x", 2), ("b", 5)] {
            assert_eq!(
                decisions(Some(before), &[3, 4], 4),
                lines(&["reset \"egress\" \"b\""], 0)
            );
        }
    }

    #[test]
    fn an_older_server_is_told_from_a_host_that_is_away() {
        let rest = |egress: &str| {
            let page = format!(r#"{{"series":"a","audit":[],"events":[]{egress}}}"#);
            let page = serde_json::from_str(&page).unwrap();
            Page::of(None, &page).unwrap().rest
        };
        assert_eq!(rest(""), Rest::Nothing);
        assert_eq!(rest(r#","egress":null"#), Rest::HiddenDecisions);
        let told = r#","egress":{"series":"b","decisions":[],"through":0}"#;
        assert_eq!(rest(told), Rest::Decisions);
        assert_eq!(Page::of(None, &page(&[1])).unwrap().rest, Rest::Anything);
    }

    #[test]
    fn numbers_that_begin_anew_are_told() {
        let egress = Some(EgressPlace {
            series: "c".to_owned(),
            number: 3,
        });
        let noted = Place {
            series: "a".to_owned(),
            audit: 7,
            event: 8,
            egress: egress.clone(),
        };
        let page = Page::of_reset(&noted, "b").unwrap();
        let line = "{\"kind\":\"reset\",\"series\":\"b\"}\n";
        assert_eq!(page.text, line.as_bytes());
        assert_eq!((page.end.audit, page.end.event), (0, 0));
        assert_eq!(page.end.egress, egress);
    }
}

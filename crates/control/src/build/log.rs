//! The events of one build, as many as there is room for.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dayfly_api::TemplateBuildEvent;
use dayfly_types::limits::BUILD_EVENTS_BYTES_MAX;
use tokio::sync::watch;

use crate::http::sse;

/// Events that one reader is given at once.
const PAGE: usize = 256;

/// One event.
#[derive(Debug)]
pub(crate) struct LogEntry {
    /// Numbers rise, with gaps where lines are gone.
    pub(crate) id: u64,
    pub(crate) event: TemplateBuildEvent,
    /// The same as JSON in pure ASCII.
    pub(crate) json: String,
}

impl LogEntry {
    pub(crate) fn new(id: u64, event: TemplateBuildEvent) -> Self {
        let json = sse::ascii_json(&event);
        Self { id, event, json }
    }

    /// What can go: a line, or the mark of lines that went.
    fn lines(&self) -> Option<u64> {
        if let TemplateBuildEvent::Dropped { lines } = &self.event {
            return Some(*lines);
        }
        matches!(self.event, TemplateBuildEvent::Output { .. }).then_some(1)
    }
}

/// The events of one build.
#[derive(Debug)]
pub(crate) struct BuildLog {
    kept: Mutex<Kept>,
    /// The number of the last one.
    last: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Kept {
    entries: VecDeque<Arc<LogEntry>>,
    bytes: usize,
    last: u64,
    is_over: bool,
}

/// Some events behind a number.
#[derive(Debug)]
pub(crate) struct LogPage {
    pub(crate) entries: Vec<Arc<LogEntry>>,
    /// There is none behind them, and none will come.
    pub(crate) is_end: bool,
}

impl BuildLog {
    pub(crate) fn new() -> Self {
        Self {
            kept: Mutex::default(),
            last: watch::Sender::new(0),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // What a panic leaves are whole entries.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps an event. One that is the last of a build ends it.
    pub(crate) fn push(&self, event: TemplateBuildEvent) {
        let mut kept = self.kept();
        let is_same = kept.entries.back().is_some_and(|last| last.event == event);
        let is_progress = matches!(
            event,
            TemplateBuildEvent::Base { .. } | TemplateBuildEvent::Baking { .. }
        );
        // Progress is told every second, whether there is any or not.
        if kept.is_over || (is_same && is_progress) {
            return;
        }
        kept.is_over = is_last(&event);
        kept.last += 1;
        let entry = LogEntry::new(kept.last, event);
        kept.bytes += entry.json.len();
        kept.entries.push_back(Arc::new(entry));
        if kept.bytes > BUILD_EVENTS_BYTES_MAX {
            thin(&mut kept);
        }
        let last = kept.last;
        drop(kept);
        self.last.send_replace(last);
    }

    /// Some of those behind a number.
    pub(crate) fn after(&self, number: u64) -> LogPage {
        let kept = self.kept();
        let begin = kept.entries.partition_point(|entry| entry.id <= number);
        let entries = kept.entries.iter().skip(begin).take(PAGE);
        let entries: Vec<_> = entries.map(Arc::clone).collect();
        let is_end = kept.is_over && begin + entries.len() == kept.entries.len();
        LogPage { entries, is_end }
    }

    /// Who wants to know when there are more.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.last.subscribe()
    }
}

/// Whether nothing follows.
const fn is_last(event: &TemplateBuildEvent) -> bool {
    matches!(
        event,
        TemplateBuildEvent::Built { .. } | TemplateBuildEvent::Failed { .. }
    )
}

/// Lets the oldest lines go, so many at once that it is seldom. A mark says how many were there.
fn thin(kept: &mut Kept) {
    let mut gone: Option<(u64, u64)> = None;
    let mut entries = VecDeque::with_capacity(kept.entries.len());
    let mut bytes = kept.bytes;
    let mark = |gone: &mut Option<(u64, u64)>, bytes: &mut usize| {
        let (id, lines) = gone.take()?;
        let entry = LogEntry::new(id, TemplateBuildEvent::Dropped { lines });
        *bytes += entry.json.len();
        Some(Arc::new(entry))
    };
    for entry in kept.entries.drain(..) {
        let lines = entry.lines().filter(|_| bytes > BUILD_EVENTS_BYTES_MAX / 2);
        match lines {
            Some(lines) => {
                bytes -= entry.json.len();
                let before = gone.map_or(0, |(_, lines)| lines);
                gone = Some((entry.id, before + lines));
            }
            None => {
                entries.extend(mark(&mut gone, &mut bytes));
                entries.push_back(entry);
            }
        }
    }
    entries.extend(mark(&mut gone, &mut bytes));
    kept.entries = entries;
    kept.bytes = bytes;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: String) -> TemplateBuildEvent {
        let is_error = false;
        TemplateBuildEvent::Output { text, is_error }
    }

    fn started(number: u64) -> TemplateBuildEvent {
        TemplateBuildEvent::Started {
            number,
            steps: 2,
            text: "RUN x".to_owned(),
        }
    }

    fn all(log: &BuildLog, mut after: u64) -> Vec<Arc<LogEntry>> {
        let mut all = Vec::new();
        loop {
            let page = log.after(after);
            let Some(last) = page.entries.last() else {
                return all;
            };
            after = last.id;
            all.extend(page.entries);
        }
    }

    #[test]
    fn the_oldest_lines_go_with_a_mark_and_nothing_else_does() {
        let log = BuildLog::new();
        log.push(started(1));
        let lines = 4 * BUILD_EVENTS_BYTES_MAX / 1000;
        for number in 0..lines {
            log.push(line(format!("{number} {}", "x".repeat(1000))));
        }
        log.push(started(2));
        let kept = all(&log, 0);
        let bytes: usize = kept.iter().map(|entry| entry.json.len()).sum();
        assert!(bytes <= BUILD_EVENTS_BYTES_MAX, "{bytes}");
        assert_eq!(kept[0].event, started(1));
        let TemplateBuildEvent::Dropped { lines: gone } = kept[1].event else {
            panic!("{:?}", kept[1]);
        };
        // All lines are there or counted, in order.
        let left = kept.len() - 3;
        assert_eq!(usize::try_from(gone).unwrap() + left, lines);
        assert!(kept.windows(2).all(|two| two[0].id < two[1].id));
        assert_eq!(kept.last().unwrap().event, started(2));
    }

    #[test]
    fn a_reader_goes_on_where_it_was_and_nothing_follows_the_last() {
        let log = BuildLog::new();
        for number in 0..3 {
            log.push(line(number.to_string()));
        }
        assert_eq!(all(&log, 2).len(), 1);
        assert!(!log.after(3).is_end);
        let error = "no".to_owned();
        log.push(TemplateBuildEvent::Failed { error, step: None });
        log.push(line("late".to_owned()));
        assert_eq!(all(&log, 3).len(), 1);
        assert!(log.after(3).is_end && log.after(4).is_end);
    }

    #[test]
    fn progress_is_told_when_there_is_some() {
        let log = BuildLog::new();
        for percent in [1, 1, 2, 2] {
            let detail = None;
            log.push(TemplateBuildEvent::Baking { percent, detail });
        }
        assert_eq!(all(&log, 0).len(), 2);
    }
}

//! Refusals that repeat: the first is an entry, the rest are counted into one more.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use dayfly_types::ProjectId;
use dayfly_types::limits::AUDIT_REPEATS_MAX;
use serde_json::json;

use crate::store::AuditEvent;
use crate::time::rfc3339;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Refusal {
    project: ProjectId,
    key_prefix: String,
    operation: String,
    status: u16,
}

#[derive(Debug)]
struct Repeated {
    /// The last of them.
    entry: AuditEvent,
    count: u64,
    first_ms: i64,
    until: Instant,
}

/// The refusals of the last while.
#[derive(Debug)]
pub(super) struct Repeats {
    window: Duration,
    seen: HashMap<Refusal, Repeated>,
}

impl Repeats {
    pub(super) fn new(window: Duration) -> Self {
        Self {
            window,
            seen: HashMap::new(),
        }
    }

    /// Lets an entry through, or counts it when the same key was refused the same a moment ago.
    pub(super) fn pass(&mut self, entry: AuditEvent, now: Instant) -> Option<AuditEvent> {
        if !matches!(entry.status, 401 | 403 | 404) {
            return Some(entry);
        }
        let refusal = Refusal {
            project: entry.project.clone(),
            key_prefix: entry.key_prefix.clone(),
            operation: entry.operation.clone(),
            status: entry.status,
        };
        if let Some(repeated) = self.seen.get_mut(&refusal) {
            if repeated.count == 0 {
                repeated.first_ms = entry.at_ms;
            }
            repeated.count += 1;
            repeated.entry = entry;
            return None;
        }
        // Who asks for ever other things is bounded by the size of the record.
        if self.seen.len() < AUDIT_REPEATS_MAX {
            let repeated = Repeated {
                entry: entry.clone(),
                count: 0,
                first_ms: entry.at_ms,
                until: now + self.window,
            };
            self.seen.insert(refusal, repeated);
        }
        Some(entry)
    }

    /// The counts of those whose while is over, or of all.
    pub(super) fn counted(&mut self, now: Option<Instant>) -> Vec<AuditEvent> {
        let is_over = |_: &Refusal, repeated: &mut Repeated| match now {
            Some(now) => repeated.until <= now,
            None => true,
        };
        let over = self.seen.extract_if(is_over);
        let told = over.filter(|(_, repeated)| repeated.count > 0);
        told.map(|(_, repeated)| repeated.into_entry()).collect()
    }

    /// When the next while is over.
    pub(super) fn next(&self) -> Option<Instant> {
        self.seen.values().map(|repeated| repeated.until).min()
    }
}

impl Repeated {
    fn into_entry(self) -> AuditEvent {
        let detail = json!({
            "repeated": self.count,
            "from": rfc3339(self.first_ms),
            "to": rfc3339(self.entry.at_ms),
        });
        AuditEvent {
            detail: detail.to_string(),
            ..self.entry
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(operation: &str, status: u16, at_ms: i64) -> AuditEvent {
        let project = ProjectId::default_project();
        AuditEvent {
            status,
            ..AuditEvent::of_server(&project, operation, at_ms, "{}".to_owned())
        }
    }

    #[test]
    fn refusals_that_repeat_become_one_count_and_nothing_else_does() {
        let now = Instant::now();
        let mut repeats = Repeats::new(Duration::from_secs(30));
        assert!(repeats.pass(refused("GET /a", 404, 1000), now).is_some());
        for at_ms in [2000, 3000, 4000] {
            assert!(repeats.pass(refused("GET /a", 404, at_ms), now).is_none());
        }
        assert!(repeats.pass(refused("GET /a", 403, 1000), now).is_some());
        assert!(repeats.pass(refused("GET /b", 404, 1000), now).is_some());
        for _ in 0..2 {
            assert!(repeats.pass(refused("POST /a", 200, 1000), now).is_some());
            assert!(repeats.pass(refused("POST /a", 409, 1000), now).is_some());
        }
        assert!(repeats.counted(Some(now)).is_empty());
        assert_eq!(repeats.next(), Some(now + Duration::from_secs(30)));
        let later = now + Duration::from_secs(30);
        let told = repeats.counted(Some(later));
        assert_eq!(told.len(), 1);
        let detail: serde_json::Value = serde_json::from_str(&told[0].detail).unwrap();
        assert_eq!(detail["repeated"], 3);
        assert_eq!(detail["from"], "1970-01-01T00:00:02Z");
        assert_eq!(detail["to"], "1970-01-01T00:00:04Z");
        assert_eq!(repeats.next(), None);
        assert!(repeats.pass(refused("GET /a", 404, 5000), later).is_some());
    }

    #[test]
    fn only_so_many_refusals_are_remembered() {
        let now = Instant::now();
        let mut repeats = Repeats::new(Duration::from_secs(30));
        for number in 0..AUDIT_REPEATS_MAX + 10 {
            let entry = refused(&format!("GET /{number}"), 404, 1000);
            assert!(repeats.pass(entry, now).is_some());
        }
        assert_eq!(repeats.seen.len(), AUDIT_REPEATS_MAX);
        assert!(repeats.counted(None).is_empty());
        assert!(repeats.seen.is_empty());
    }
}

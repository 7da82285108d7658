//! Entries that could not be written, counted until the record can say so.

use std::collections::HashMap;

use dayfly_types::ProjectId;
use dayfly_types::limits::PROJECTS_REMEMBERED_MAX;
use serde_json::json;

use crate::store::AuditEvent;
use crate::time::rfc3339;

/// How the record names the loss of entries.
pub(crate) const LOST: &str = "audit.lost";

#[derive(Debug, Clone, Copy)]
struct Loss {
    count: u64,
    first_ms: i64,
    last_ms: i64,
}

/// How much of each project was lost, from when to when.
#[derive(Debug, Default)]
pub(super) struct Losses {
    projects: HashMap<ProjectId, Loss>,
}

impl Losses {
    pub(super) fn note(&mut self, entry: &AuditEvent) {
        self.add(&entry.project, 1, entry.at_ms, entry.at_ms);
    }

    fn add(&mut self, project: &ProjectId, count: u64, first_ms: i64, last_ms: i64) {
        if let Some(loss) = self.projects.get_mut(project) {
            loss.count = loss.count.saturating_add(count);
            loss.first_ms = loss.first_ms.min(first_ms);
            loss.last_ms = loss.last_ms.max(last_ms);
            return;
        }
        // Beyond that there is only the log.
        if self.projects.len() >= PROJECTS_REMEMBERED_MAX {
            tracing::error!(%project, count, "audit entries are lost without a mark");
            return;
        }
        let loss = Loss {
            count,
            first_ms,
            last_ms,
        };
        self.projects.insert(project.clone(), loss);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.projects.is_empty()
    }

    /// Takes out what is to be written.
    pub(super) fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    /// Puts back what could not be written either.
    pub(super) fn put_back(&mut self, other: Self) {
        for (project, loss) in other.projects {
            self.add(&project, loss.count, loss.first_ms, loss.last_ms);
        }
    }

    /// An entry for each project that lost some.
    pub(super) fn marks(&self, now_ms: i64) -> Vec<AuditEvent> {
        let marks = self.projects.iter().map(|(project, loss)| {
            let detail = json!({
                "lost": loss.count,
                "from": rfc3339(loss.first_ms),
                "to": rfc3339(loss.last_ms),
            });
            AuditEvent::of_server(project, LOST, now_ms, detail.to_string())
        });
        marks.collect()
    }

    /// How many in all.
    pub(super) fn count(&self) -> u64 {
        self.projects.values().map(|loss| loss.count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_told_once_for_each_project_with_their_time() {
        let [one, two] = ["one", "two"].map(|name| ProjectId::parse(name).unwrap());
        let mut losses = Losses::default();
        for (project, at_ms) in [(&one, 2000), (&two, 500), (&one, 1000), (&one, 3000)] {
            let entry = AuditEvent::of_server(project, "x", at_ms, "{}".to_owned());
            losses.note(&entry);
        }
        let taken = losses.take();
        assert!(losses.is_empty());
        let [entry] = [one.clone()].map(|id| AuditEvent::of_server(&id, "x", 4000, String::new()));
        losses.note(&entry);
        losses.put_back(taken);
        assert_eq!(losses.count(), 5);
        let mut marks = losses.marks(9000);
        marks.sort_by(|a, b| a.project.as_str().cmp(b.project.as_str()));
        assert_eq!(marks.len(), 2);
        assert_eq!((marks[0].operation.as_str(), marks[0].at_ms), (LOST, 9000));
        let detail: serde_json::Value = serde_json::from_str(&marks[0].detail).unwrap();
        assert_eq!(detail["lost"], 4);
        assert_eq!(detail["from"], "1970-01-01T00:00:01Z");
        assert_eq!(detail["to"], "1970-01-01T00:00:04Z");
    }
}

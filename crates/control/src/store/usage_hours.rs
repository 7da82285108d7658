//! What each project used in each hour.
//!
//! Amounts are added in the transaction that moves the place up to which they are counted, in
//! [`super::meter`] and [`super::sampling`]. So a process that ends at any moment counts nothing
//! twice, and what it had not written yet is counted by the next one.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;

use dayfly_types::ProjectId;
use dayfly_types::limits::USAGE_KEPT;
use sqlx::FromRow;

use super::writer::Writing;
use super::{Store, StoreError};
use crate::time::milliseconds;

const ADD: &str = "INSERT INTO usage_hours (project_id, hour_ms, started, running_ms, vcpu_ms, \
    memory_mb_ms, cpu_us, in_bytes, out_bytes) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
    ON CONFLICT (project_id, hour_ms) DO UPDATE SET started = usage_hours.started + $3, \
    running_ms = usage_hours.running_ms + $4, vcpu_ms = usage_hours.vcpu_ms + $5, \
    memory_mb_ms = usage_hours.memory_mb_ms + $6, cpu_us = usage_hours.cpu_us + $7, \
    in_bytes = usage_hours.in_bytes + $8, out_bytes = usage_hours.out_bytes + $9";
const SELECT: &str = "SELECT * FROM usage_hours WHERE project_id = $1 \
    AND hour_ms BETWEEN $2 AND $3 AND hour_ms > $4 ORDER BY hour_ms LIMIT $5";

const HOUR_MS: i64 = 3_600_000;

/// What a project used in an hour.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct UsageHourRow {
    pub project_id: String,
    pub hour_ms: i64,
    #[sqlx(flatten)]
    pub amounts: Amounts,
}

/// What was used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromRow)]
pub struct Amounts {
    /// Sandboxes that came to run for the first time.
    pub started: i64,
    /// Time in which sandboxes had machines, added up.
    pub running_ms: i64,
    /// The same, times the vCPUs of each, and times its memory.
    pub vcpu_ms: i64,
    pub memory_mb_ms: i64,
    /// As measured, up to the last sample of each machine.
    pub cpu_us: i64,
    pub in_bytes: i64,
    pub out_bytes: i64,
}

impl AddAssign for Amounts {
    fn add_assign(&mut self, more: Self) {
        self.started += more.started;
        self.running_ms += more.running_ms;
        self.vcpu_ms += more.vcpu_ms;
        self.memory_mb_ms += more.memory_mb_ms;
        self.cpu_us += more.cpu_us;
        self.in_bytes += more.in_bytes;
        self.out_bytes += more.out_bytes;
    }
}

/// What a machine holds for as long as it is there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub(super) vcpus: i64,
    pub(super) memory_mb: i64,
}

/// Which hours are wanted: those of a span, behind those that were read.
#[derive(Debug, Clone)]
pub struct HourSpan {
    /// Hours that end behind this and begin before that.
    pub since_ms: i64,
    pub until_ms: i64,
    pub after: Option<HourPlace>,
    pub limit: i64,
}

impl HourSpan {
    /// When the first and the last of them may begin.
    pub(super) fn begins_ms(&self) -> (i64, i64) {
        let first = self.since_ms.saturating_sub(HOUR_MS - 1);
        (first, self.until_ms.saturating_sub(1))
    }
}

/// A place in what all projects used: an hour, and a project in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HourPlace {
    pub hour_ms: i64,
    pub project: ProjectId,
}

impl fmt::Display for HourPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.hour_ms, self.project)
    }
}

impl HourPlace {
    /// Reads one that a page gave out.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (hour_ms, project) = text.split_once('.')?;
        Some(Self {
            hour_ms: hour_ms.parse().ok()?,
            project: ProjectId::parse(project).ok()?,
        })
    }
}

/// Amounts that are to be added, by project and hour.
#[derive(Debug, Default)]
pub(super) struct NewUsage(BTreeMap<(String, i64), Amounts>);

impl NewUsage {
    /// Adds what was used at one moment.
    pub(super) fn add(&mut self, project: &str, at_ms: i64, amounts: Amounts) {
        let hour_ms = at_ms - at_ms.rem_euclid(HOUR_MS);
        *self.0.entry((project.to_owned(), hour_ms)).or_default() += amounts;
    }

    /// Adds what a machine of this size held from one moment to another, to each hour its part. A
    /// clock that went back adds nothing.
    pub(super) fn add_span(&mut self, project: &str, size: Size, from_ms: i64, to_ms: i64) {
        // Older hours would be removed at once.
        let mut from_ms = from_ms.max(to_ms.saturating_sub(milliseconds(USAGE_KEPT)));
        while from_ms < to_ms {
            let next_hour_ms = from_ms - from_ms.rem_euclid(HOUR_MS) + HOUR_MS;
            let running_ms = next_hour_ms.min(to_ms) - from_ms;
            let amounts = Amounts {
                running_ms,
                vcpu_ms: running_ms * size.vcpus,
                memory_mb_ms: running_ms * size.memory_mb,
                ..Amounts::default()
            };
            self.add(project, from_ms, amounts);
            from_ms = next_hour_ms;
        }
    }

    pub(super) async fn write(self, writing: &mut Writing) -> Result<(), StoreError> {
        for ((project, hour_ms), amounts) in self.0 {
            let query = sqlx::query(ADD)
                .bind(project)
                .bind(hour_ms)
                .bind(amounts.started)
                .bind(amounts.running_ms)
                .bind(amounts.vcpu_ms)
                .bind(amounts.memory_mb_ms)
                .bind(amounts.cpu_us)
                .bind(amounts.in_bytes)
                .bind(amounts.out_bytes);
            writing.execute(query).await?;
        }
        Ok(())
    }
}

impl Store {
    /// What a project used in each hour of a span, oldest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn usage_hours(
        &self,
        project: &ProjectId,
        span: &HourSpan,
    ) -> Result<Vec<UsageHourRow>, StoreError> {
        let (first_ms, last_ms) = span.begins_ms();
        sqlx::query_as(SELECT)
            .bind(project.as_str())
            .bind(first_ms)
            .bind(last_ms)
            .bind(span.after.as_ref().map_or(i64::MIN, |place| place.hour_ms))
            .bind(span.limit)
            .fetch_all(&self.reader)
            .await
            .map_err(StoreError::during("read usage by hour"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hour_gets_its_part_of_a_span_and_a_clock_that_went_back_adds_nothing() {
        let mut usage = NewUsage::default();
        let size = Size {
            vcpus: 2,
            memory_mb: 512,
        };
        usage.add_span("one", size, HOUR_MS - 1000, 2 * HOUR_MS + 500);
        let running: Vec<_> = usage.0.iter().collect();
        let part = |running_ms: i64| Amounts {
            running_ms,
            vcpu_ms: 2 * running_ms,
            memory_mb_ms: 512 * running_ms,
            ..Amounts::default()
        };
        let key = |hour: i64| ("one".to_owned(), hour * HOUR_MS);
        assert_eq!(
            running,
            [
                (&key(0), &part(1000)),
                (&key(1), &part(HOUR_MS)),
                (&key(2), &part(500)),
            ]
        );
        let mut usage = NewUsage::default();
        usage.add_span("one", size, 5000, 4000);
        assert!(usage.0.is_empty());
        usage.add_span("one", size, 0, i64::MAX / 1024);
        let hours_kept = usize::try_from(milliseconds(USAGE_KEPT) / HOUR_MS).unwrap();
        assert!(usage.0.len() <= hours_kept + 1, "{}", usage.0.len());
    }
}

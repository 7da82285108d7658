//! Counting how long sandboxes have machines: the place up to which that is counted, moved by what
//! becomes of a sandbox. [`super::sampling`] moves it in between.

use dayfly_types::limits::METER_GAP_MAX;
use dayfly_types::{ProjectId, SandboxId, SandboxState};
use sqlx::FromRow;

use super::usage_hours::{Amounts, NewUsage, Size};
use super::writer::Writing;
use super::{Store, StoreError};
use crate::time::milliseconds;

const FIND: &str = "SELECT sandboxes.state, sandboxes.cpu, sandboxes.memory_mb, \
    sandbox_meters.counted_to_ms FROM sandboxes LEFT JOIN sandbox_meters \
    ON sandbox_meters.sandbox_id = sandboxes.id \
    WHERE sandboxes.project_id = $1 AND sandboxes.id = $2";
const SET: &str = "INSERT INTO sandbox_meters (project_id, sandbox_id, counted_to_ms) \
    VALUES ($1, $2, $3) ON CONFLICT (sandbox_id) DO UPDATE SET counted_to_ms = $3";
const DELETE: &str = "DELETE FROM sandbox_meters WHERE project_id = $1 AND sandbox_id = $2";
const SAMPLES: &str = "SELECT sandbox_samples.* FROM sandbox_meters JOIN sandbox_samples \
    ON sandbox_samples.sandbox_id = sandbox_meters.sandbox_id \
    WHERE sandbox_meters.project_id = $1 AND sandbox_meters.sandbox_id = $2 \
    AND at_ms BETWEEN $3 AND $4 ORDER BY number DESC LIMIT $5";

/// What a sandbox used up to a moment, and had then.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct SampleRow {
    pub number: i64,
    pub at_ms: i64,
    pub cpu_us: i64,
    pub memory_bytes: i64,
    pub disk_bytes: i64,
    pub in_bytes: i64,
    pub out_bytes: i64,
}

/// A sandbox and its meter before it comes into another state.
#[derive(Debug, FromRow)]
pub(super) struct Before {
    state: String,
    cpu: i64,
    memory_mb: i64,
    counted_to_ms: Option<i64>,
}

/// What a change of state is about.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change<'a> {
    pub(super) project: &'a ProjectId,
    pub(super) sandbox: &'a SandboxId,
    pub(super) to: SandboxState,
    pub(super) at_ms: i64,
}

/// Looks before a state is written.
pub(super) async fn before(
    project: &ProjectId,
    sandbox: &SandboxId,
    writing: &mut Writing,
) -> Result<Option<Before>, StoreError> {
    let query = sqlx::query_as(FIND)
        .bind(project.as_str())
        .bind(sandbox.as_str());
    let found: Vec<Before> = writing.fetch_all(query).await?;
    Ok(found.into_iter().next())
}

/// Counts what was used up to a change of state that was written.
pub(super) async fn change(
    before: Option<Before>,
    change: Change<'_>,
    writing: &mut Writing,
) -> Result<(), StoreError> {
    let Change {
        project,
        sandbox,
        to,
        at_ms,
    } = change;
    let counted_to_ms = before.as_ref().and_then(|before| before.counted_to_ms);
    let mut usage = NewUsage::default();
    if let Some(before) = before {
        let was_created = before.state == SandboxState::Creating.as_str();
        if was_created && to.has_machine() {
            let started = Amounts {
                started: 1,
                ..Amounts::default()
            };
            usage.add(project.as_str(), at_ms, started);
        }
        // Of a machine that ended while nobody looked it is not known when.
        let is_known = to.has_machine() || counted_to_ms.is_none_or(|from| is_near(from, at_ms));
        if let Some(from_ms) = counted_to_ms.filter(|_| is_known) {
            usage.add_span(project.as_str(), before.size(), from_ms, at_ms);
        }
    }
    usage.write(writing).await?;
    let bound = |statement: &'static str| {
        sqlx::query(statement)
            .bind(project.as_str())
            .bind(sandbox.as_str())
    };
    if to == SandboxState::Deleted {
        writing.execute(bound(DELETE)).await?;
    } else if to.has_machine() || counted_to_ms.is_some() {
        let counted = to.has_machine().then(|| place(counted_to_ms, at_ms));
        let set = bound(SET).bind(counted);
        writing.execute(set).await?;
    }
    Ok(())
}

impl Before {
    fn size(&self) -> Size {
        Size {
            vcpus: self.cpu,
            memory_mb: self.memory_mb,
        }
    }
}

/// Up to where time is counted after something that happened then. Whoever waited for the writer may
/// come behind somebody who began later; but a clock that went back went further.
pub(super) fn place(counted_to_ms: Option<i64>, at_ms: i64) -> i64 {
    let later = counted_to_ms.filter(|counted| *counted > at_ms && is_near(at_ms, *counted));
    later.unwrap_or(at_ms)
}

fn is_near(from_ms: i64, to_ms: i64) -> bool {
    to_ms.saturating_sub(from_ms) <= milliseconds(METER_GAP_MAX)
}

impl Store {
    /// The samples of a sandbox within a span, oldest first; of more than `limit`, the newest.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn samples(
        &self,
        project: &ProjectId,
        sandbox: &SandboxId,
        (since_ms, until_ms): (i64, i64),
        limit: i64,
    ) -> Result<Vec<SampleRow>, StoreError> {
        let read = sqlx::query_as(SAMPLES)
            .bind(project.as_str())
            .bind(sandbox.as_str())
            .bind(since_ms)
            .bind(until_ms)
            .bind(limit)
            .fetch_all(&self.reader)
            .await;
        let mut samples: Vec<SampleRow> =
            read.map_err(StoreError::during("read the samples of a sandbox"))?;
        samples.reverse();
        Ok(samples)
    }
}

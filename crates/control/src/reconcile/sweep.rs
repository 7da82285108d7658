//! Comparing rows and node.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dayfly_node_api::{NodeError, SandboxReport};
use dayfly_types::{SandboxId, SandboxState};
use futures::{StreamExt, TryStreamExt};

use crate::app::sandbox_delete::delete_on_node;
use crate::control::Control;
use crate::store::{PurgeBefore, SandboxRow, StoreError};
use crate::time::now_ms;

/// Old rows are looked for this often.
const PURGE_INTERVAL: Duration = Duration::from_secs(3600);

/// Deletes that one comparison asks the node for at once.
const DELETES_MAX: usize = 8;

/// What one comparison remembers for the next.
#[derive(Debug, Default)]
pub struct Sweep {
    /// When a sandbox without a row was first seen.
    orphans: HashMap<SandboxId, Instant>,
    purged_at: Option<Instant>,
}

impl Sweep {
    /// Compares once, and repairs what differs.
    ///
    /// # Errors
    /// [`NodeError`] when the node cannot be asked. A database that cannot be read is logged: the
    /// next comparison tries again.
    pub async fn run(&mut self, control: &Arc<Control>) -> Result<(), NodeError> {
        let asked_at = Instant::now();
        // The node first: a row that is written in between is then younger than the list.
        let reports = control.node.sandboxes().await?;
        let listed: HashSet<SandboxId> = reports.iter().map(|report| report.id.clone()).collect();
        control.view.retain(&listed, asked_at);
        let compared = self.compare(control, &reports, &listed).await;
        if let Err(error) = compared {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "cannot compare rows and node"
            );
        }
        Ok(())
    }

    async fn compare(
        &mut self,
        control: &Arc<Control>,
        reports: &[SandboxReport],
        listed: &HashSet<SandboxId>,
    ) -> Result<(), StoreError> {
        let rows = control.store.sandboxes_of_node(&control.node_id).await?;
        futures::stream::iter(&rows)
            .map(Ok)
            .try_for_each_concurrent(DELETES_MAX, |row| repair_row(control, row, listed))
            .await?;
        let wanted: HashSet<&SandboxId> = rows.iter().map(|row| &row.id).collect();
        self.remove_orphans(control, reports, &wanted).await?;
        self.purge(control).await
    }

    /// Deletes what the node has and no row wants, when it has been so for long enough.
    async fn remove_orphans(
        &mut self,
        control: &Arc<Control>,
        reports: &[SandboxReport],
        wanted: &HashSet<&SandboxId>,
    ) -> Result<(), StoreError> {
        let unwanted: Vec<&SandboxReport> = reports
            .iter()
            .filter(|report| !wanted.contains(&report.id))
            .collect();
        self.orphans
            .retain(|id, _| unwanted.iter().any(|report| report.id == *id));
        for report in unwanted {
            let first_seen = *self
                .orphans
                .entry(report.id.clone())
                .or_insert_with(Instant::now);
            // A deleted row is a wish; the lack of one may be an insert under way.
            let row = control.store.sandbox(&report.project, &report.id).await?;
            let deleted = row.is_some_and(|row| row.deleted_at_ms.is_some());
            if deleted || first_seen.elapsed() >= control.reconcile.orphan_after {
                tracing::warn!(sandbox_id = %report.id, "deleting a sandbox that no row wants");
                let _ = delete_on_node(
                    Arc::clone(control),
                    report.project.clone(),
                    report.id.clone(),
                )
                .await;
            }
        }
        Ok(())
    }

    async fn purge(&mut self, control: &Control) -> Result<(), StoreError> {
        if self
            .purged_at
            .is_some_and(|purged| purged.elapsed() < PURGE_INTERVAL)
        {
            return Ok(());
        }
        self.purged_at = Some(Instant::now());
        let before = |age: Duration| now_ms().saturating_sub(milliseconds(age));
        let settings = control.reconcile;
        control
            .store
            .purge(PurgeBefore {
                deleted_ms: before(settings.deleted_kept),
                keys_ms: before(settings.idempotency_kept),
                events_ms: before(settings.events_kept),
                audit_ms: before(settings.audit_kept),
            })
            .await
    }
}

async fn repair_row(
    control: &Arc<Control>,
    row: &SandboxRow,
    listed: &HashSet<SandboxId>,
) -> Result<(), StoreError> {
    if row.state == SandboxState::Deleting {
        // A failure is logged there; the row stays as it is, for the next time.
        let _ = delete_on_node(Arc::clone(control), row.project.clone(), row.id.clone()).await;
        return Ok(());
    }
    let age_ms = now_ms().saturating_sub(row.created_at_ms);
    // One fork makes many children, the last of them long after its row.
    let is_forking = row.fork_tree.is_some() && row.state == SandboxState::Creating;
    let lost_after = if is_forking {
        control.reconcile.fork_lost_after
    } else {
        control.reconcile.lost_after
    };
    let old = age_ms >= milliseconds(lost_after);
    if old && !listed.contains(&row.id) {
        tracing::info!(sandbox_id = %row.id, "the node no longer has this sandbox");
        control
            .store
            .mark_deleted(&row.project, &row.id, now_ms())
            .await?;
    }
    Ok(())
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

//! Comparing rows and node.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use dayfly_core::wall_clock::WallClock;
use dayfly_node_api::{NodeCalls, NodeError, NodeStatus, SandboxReport};
use dayfly_types::{EndReason, Moment, SandboxId, SandboxState};
use futures::{StreamExt, TryStreamExt};
use tokio::task::JoinHandle;

use super::acquaintance::Acquaintance;
use crate::conditions::{Condition, Conditions};
use crate::control::Control;
use crate::sandbox::adopt;
use crate::sandbox::delete::delete_on_node;
use crate::store::{Cursor, PurgeBefore, SandboxRow, StoreError};
use crate::template::{order, strays};
use crate::tenancy::project_end;
use crate::time::{milliseconds, now_ms};

/// Old rows are looked for this often.
const PURGE_INTERVAL: Duration = Duration::from_secs(3600);

/// Deletes that one comparison asks the node for at once.
const DELETES_MAX: usize = 8;
/// Rows that one comparison reads at once. Between two such reads others have their turn.
const ROWS: i64 = 200;

/// What one comparison remembers for the next.
#[derive(Debug, Default)]
pub struct Sweep {
    /// When a sandbox without a row was first seen.
    orphans: HashMap<SandboxId, Instant>,
    acquaintance: Acquaintance,
    purged_at: Option<Instant>,
    /// The work on projects that are to go.
    deleting: Option<JoinHandle<()>>,
    began: Option<Instant>,
    wall_clock: WallClock,
}

/// When the node was asked for its list.
#[derive(Clone, Copy, Debug)]
struct Asked {
    at: Instant,
    wall_ms: i64,
}

/// Says whether the node has more room than it keeps for the host.
fn tell_of_the_disk(conditions: &Conditions, status: &NodeStatus) {
    let (left, reserve) = (status.disk_available_mib, status.disk_reserve_mib);
    if left > reserve {
        conditions.clear(Condition::DiskFull);
        return;
    }
    let detail = format!(
        "{left} MiB of the node's disk are left, and {reserve} MiB are kept for the host; what needs \
         more is refused, and a guest whose write finds none stands still until there is room"
    );
    conditions.set(Condition::DiskFull, detail);
}

impl Sweep {
    /// Compares once, and repairs what differs.
    ///
    /// # Errors
    /// [`NodeError`] when the node cannot be asked. A database that cannot be read is logged: the
    /// next comparison tries again.
    pub async fn run(&mut self, control: &Arc<Control>) -> Result<(), NodeError> {
        let asked = Asked {
            at: Instant::now(),
            wall_ms: now_ms(),
        };
        // What the node keeps first: from there a sandbox comes into the list, never back.
        let status = control.node.status().await?;
        let kept: Vec<SandboxId> = status.kept.iter().map(|kept| kept.id.clone()).collect();
        tell_of_the_disk(&control.conditions, &status);
        control.view.set_status(status);
        // The node before the rows: a row that is written in between is then younger than the list.
        let reports = control.node.sandboxes().await?;
        let mut listed: HashSet<SandboxId> =
            reports.iter().map(|report| report.id.clone()).collect();
        control.view.retain(&listed, asked.at);
        listed.extend(kept);
        let is_known = self.acquaintance.renew(control).await?;
        control.view.set_known(is_known);
        if !is_known {
            return Ok(());
        }
        let compared = self.compare(control, asked, &reports, &listed).await;
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
        asked: Asked,
        reports: &[SandboxReport],
        listed: &HashSet<SandboxId>,
    ) -> Result<(), StoreError> {
        let mut wanted: HashSet<SandboxId> = HashSet::new();
        let mut after = None;
        loop {
            let (store, node) = (&control.store, &control.node_id);
            let rows = store.sandboxes_of_node(node, after.as_ref(), ROWS).await?;
            futures::stream::iter(&rows)
                .map(Ok)
                .try_for_each_concurrent(DELETES_MAX, |row| repair_row(control, row, asked, listed))
                .await?;
            let Some(last) = rows.last() else {
                break;
            };
            after = Some(Cursor::of(last));
            wanted.extend(rows.into_iter().map(|row| row.id));
        }
        self.adopt_orphans(control, reports, &wanted).await?;
        self.finish_deletions(control);
        self.purge(control).await
    }

    /// Adopts what the node has and no row knows, when it has been so for long enough, and deletes
    /// what a row says was deleted.
    async fn adopt_orphans(
        &mut self,
        control: &Arc<Control>,
        reports: &[SandboxReport],
        wanted: &HashSet<SandboxId>,
    ) -> Result<(), StoreError> {
        let unwanted: Vec<&SandboxReport> = reports
            .iter()
            .filter(|report| !wanted.contains(&report.id))
            .collect();
        let ids: HashSet<&SandboxId> = unwanted.iter().map(|report| &report.id).collect();
        self.orphans.retain(|id, _| ids.contains(id));
        for report in unwanted {
            let first_seen = *self
                .orphans
                .entry(report.id.clone())
                .or_insert_with(Instant::now);
            // A deleted row is a wish; the lack of one may be an insert that is being taken back.
            let row = control.store.sandbox(&report.project, &report.id).await?;
            let is_late = first_seen.elapsed() >= control.reconcile.orphan_after;
            match row {
                Some(row) if row.deleted_at_ms.is_some() => delete_again(control, report).await,
                None if is_late && adopt::is_settled(report) => {
                    adopt(control, report).await;
                }
                Some(_) | None => {}
            }
        }
        Ok(())
    }

    /// What was asked for and is not done: templates and projects. Beside the comparisons, which must
    /// not wait for it. One at a time.
    fn finish_deletions(&mut self, control: &Arc<Control>) {
        if self.deleting.as_ref().is_none_or(JoinHandle::is_finished) {
            let control = Arc::clone(control);
            let tasks = control.tasks.clone();
            self.deleting = Some(tasks.spawn(async move {
                order::give_up_the_rest(&control).await;
                strays::forget(&control).await;
                project_end::finish(control).await;
            }));
        }
    }

    async fn purge(&mut self, control: &Control) -> Result<(), StoreError> {
        if self
            .purged_at
            .is_some_and(|purged| purged.elapsed() < PURGE_INTERVAL)
        {
            return Ok(());
        }
        self.purged_at = Some(Instant::now());
        let elapsed = self.began.get_or_insert_with(Instant::now).elapsed();
        let now = Moment::default().plus(elapsed);
        // What is removed by a clock that was wrong cannot be had back.
        if !self.wall_clock.look(now, SystemTime::now()).is_old() {
            return Ok(());
        }
        let before = |age: Duration| now_ms().saturating_sub(milliseconds(age));
        let settings = control.reconcile;
        control
            .store
            .purge(PurgeBefore {
                deleted_ms: before(settings.deleted_kept),
                keys_ms: before(settings.idempotency_kept),
                events_ms: before(settings.events_kept),
                audit_ms: before(settings.audit_kept),
                usage_ms: before(settings.usage_kept),
            })
            .await
    }
}

async fn delete_again(control: &Arc<Control>, report: &SandboxReport) {
    tracing::warn!(sandbox_id = %report.id, "deleting a sandbox that was deleted before");
    // A failure is logged there, and the next comparison tries again.
    let _ = delete_on_node(
        Arc::clone(control),
        report.project.clone(),
        report.id.clone(),
    )
    .await;
}

async fn adopt(control: &Control, report: &SandboxReport) {
    if let Err(error) = adopt::adopt(control, report).await {
        tracing::error!(sandbox_id = %report.id, error = &error as &dyn std::error::Error,
            "cannot adopt a sandbox");
    }
}

async fn repair_row(
    control: &Arc<Control>,
    row: &SandboxRow,
    asked: Asked,
    listed: &HashSet<SandboxId>,
) -> Result<(), StoreError> {
    if row.state == SandboxState::Deleting {
        // A failure is logged there; the row stays as it is, for the next time.
        let _ = delete_on_node(Arc::clone(control), row.project.clone(), row.id.clone()).await;
        return Ok(());
    }
    // Not its age now: the list may have been long on its way, and the sandbox made meanwhile.
    let age_ms = asked.wall_ms.saturating_sub(row.created_at_ms);
    // One fork makes many children, the last of them long after its row.
    let is_creating = row.state == SandboxState::Creating;
    let lost_after = if row.fork_tree.is_some() && is_creating {
        control.reconcile.fork_lost_after
    } else if row.spec.disk_of().is_some() && is_creating {
        control.reconcile.boot_lost_after
    } else {
        control.reconcile.lost_after
    };
    let old = age_ms >= milliseconds(lost_after);
    if old && !listed.contains(&row.id) {
        tracing::info!(sandbox_id = %row.id, "the node no longer has this sandbox");
        // Deadlines are kept by the node also while nobody hears it.
        let reason = match row.is_past(now_ms()) {
            true => EndReason::Ttl,
            false => EndReason::Lost,
        };
        control
            .store
            .mark_deleted(&row.project, &row.id, &reason.into(), now_ms())
            .await?;
    }
    Ok(())
}

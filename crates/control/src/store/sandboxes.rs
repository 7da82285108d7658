//! Sandboxes of one project.

use dayfly_node_api::{LifecycleReport, SandboxReport};
use dayfly_types::{EndReason, ProjectId, SandboxId, SandboxState, SleepReason};

use super::events::NewEvent;
use super::idempotency::{self, Idempotency, Inserted};
use super::quota::Count;
use super::row::{
    Ending, RawSandbox, SandboxRow, SandboxStatus, bigint, corrupt, read_ending, text,
};
use super::writer::Writing;
use super::{Cursor, OverQuota, Store, StoreError, events, meter, project_state, quota};
use crate::sandbox::name::SandboxName;
use crate::time::deadline_ms;

const INSERT: &str = "INSERT INTO sandboxes (id, project_id, node_id, state, generation, spec, \
    status, lifetime, expires_at_ms, cpu, memory_mb, disk_mib, fork_tree, egress, egress_epoch, \
    egress_reserved, egress_confirmed, egress_changed_at_ms, created_at_ms, name, environment) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, \
    $20, $21)";
const SELECT: &str = "SELECT * FROM sandboxes WHERE project_id = $1 AND id = $2";
// As the index by name has it.
const SELECT_NAMED: &str = "SELECT id FROM sandboxes WHERE project_id = $1 AND name = $2 \
    AND deleted_at_ms IS NULL AND state <> 'deleting'";
const SELECT_ALIVE: &str = "SELECT * FROM sandboxes WHERE project_id = $1 \
    AND deleted_at_ms IS NULL AND (created_at_ms, id) > ($2, $3) \
    ORDER BY created_at_ms, id LIMIT $4";
const SELECT_TREE: &str = "SELECT * FROM sandboxes WHERE project_id = $1 AND fork_tree = $2 \
    AND deleted_at_ms IS NULL AND state <> 'deleting' ORDER BY created_at_ms, id";
const DELETE: &str =
    "DELETE FROM sandboxes WHERE project_id = $1 AND id = $2 AND deleted_at_ms IS NULL";
// A row that is to be deleted takes no other news: the wish is newer than what the node knows.
const APPLY: &str = "UPDATE sandboxes SET state = $3, generation = $4, status = $5, \
    lifetime = $6, expires_at_ms = $7, cpu = $8, memory_mb = $9, disk_mib = $10, \
    ended = COALESCE($11, ended) \
    WHERE project_id = $1 AND id = $2 AND deleted_at_ms IS NULL AND state <> 'deleting' \
    AND (generation < $4 OR (generation = $4 AND state <> $3))";
const SET_LIFECYCLE: &str = "UPDATE sandboxes SET lifetime = $3, expires_at_ms = $4 \
    WHERE project_id = $1 AND id = $2";
const MARK_DELETING: &str = "UPDATE sandboxes SET state = 'deleting', ended = $3 \
    WHERE project_id = $1 AND id = $2 AND deleted_at_ms IS NULL AND state <> 'deleting'";
// Secrets are not kept of what is gone.
const MARK_DELETED: &str = "UPDATE sandboxes SET state = 'deleted', deleted_at_ms = $3, \
    environment = '{}', ended = COALESCE(ended, $4) \
    WHERE project_id = $1 AND id = $2 AND deleted_at_ms IS NULL RETURNING ended";

/// Why rows of new sandboxes were not written.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum InsertRefusal {
    #[error(transparent)]
    OverQuota(#[from] OverQuota),
    #[error("there is a sandbox of that name, {id}")]
    NameTaken { id: String },
    #[error("the project was suspended meanwhile")]
    ProjectClosed,
}

impl Store {
    /// Writes the row of a new sandbox, and its idempotency key, in one step.
    ///
    /// # Errors
    /// [`StoreError`], or [`InsertRefusal`]; nothing was written.
    pub async fn insert_sandbox(
        &self,
        row: &SandboxRow,
        idempotency: Option<&Idempotency>,
    ) -> Result<Result<Inserted, InsertRefusal>, StoreError> {
        self.insert_sandboxes(std::slice::from_ref(row), row.id.as_str(), idempotency)
            .await
    }

    /// Writes the rows of new sandboxes of one project, and the key of the request that wants
    /// them, in one step. The key belongs to `subject`.
    ///
    /// # Errors
    /// [`StoreError`], or [`InsertRefusal`]; nothing was written.
    pub async fn insert_sandboxes(
        &self,
        rows: &[SandboxRow],
        subject: &str,
        idempotency: Option<&Idempotency>,
    ) -> Result<Result<Inserted, InsertRefusal>, StoreError> {
        let Some(first) = rows.first() else {
            return Ok(Ok(Inserted::New));
        };
        let project = &first.project;
        let begun = self.writer.begin_in_turn(project, "insert a sandbox").await;
        let mut writing = begun?;
        if let Some(key) = idempotency {
            let at_ms = first.created_at_ms;
            let inserted = idempotency::insert(project, subject, key, at_ms, &mut writing).await?;
            if inserted != Inserted::New {
                writing.rollback().await?;
                return Ok(Ok(inserted));
            }
        }
        // In the same step, so that nothing is added to a project that is being deleted.
        if !project_state::is_active(project, &mut writing).await? {
            writing.rollback().await?;
            return Ok(Err(InsertRefusal::ProjectClosed));
        }
        for name in rows.iter().filter_map(|row| row.name.as_ref()) {
            let named = sqlx::query_as(SELECT_NAMED)
                .bind(project.as_str())
                .bind(name.as_str());
            let taken: Vec<(String,)> = writing.fetch_all(named).await?;
            if let Some((id,)) = taken.into_iter().next() {
                writing.rollback().await?;
                return Ok(Err(InsertRefusal::NameTaken { id }));
            }
        }
        if let Err(over) = quota::check(project, rows, &mut writing).await? {
            writing.rollback().await?;
            return Ok(Err(over.into()));
        }
        for row in rows {
            insert_row(row, &mut writing).await?;
            let event = event(&row.project, &row.id, row.state.as_str(), row.created_at_ms);
            events::insert(event, &mut writing).await?;
        }
        writing.commit().await?;
        self.new_event.notify_waiters();
        Ok(Ok(Inserted::New))
    }

    /// Writes the row of a sandbox that the node has, whatever its project may have.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn adopt_sandbox(&self, row: &SandboxRow, now_ms: i64) -> Result<(), StoreError> {
        let begun = self.writer.begin_in_turn(&row.project, "adopt a sandbox");
        let mut writing = begun.await?;
        insert_row(row, &mut writing).await?;
        let adopted = NewEvent {
            reason: Some("the database did not know it"),
            ..event(&row.project, &row.id, "adopted", now_ms)
        };
        let state = event(&row.project, &row.id, row.state.as_str(), now_ms);
        for event in [adopted, state] {
            events::insert(event, &mut writing).await?;
        }
        let change = change_of(&row.project, &row.id, row.state, now_ms);
        meter::change(None, change, &mut writing).await?;
        writing.commit().await?;
        self.new_event.notify_waiters();
        Ok(())
    }

    /// One sandbox, deleted or not.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn sandbox(
        &self,
        project: &ProjectId,
        id: &SandboxId,
    ) -> Result<Option<SandboxRow>, StoreError> {
        let raw: Option<RawSandbox> = sqlx::query_as(SELECT)
            .bind(project.as_str())
            .bind(id.as_str())
            .fetch_optional(&self.reader)
            .await
            .map_err(StoreError::during("read a sandbox"))?;
        raw.map(SandboxRow::try_from).transpose()
    }

    /// Which sandbox a project calls so.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn sandbox_named(
        &self,
        project: &ProjectId,
        name: &SandboxName,
    ) -> Result<Option<SandboxId>, StoreError> {
        let found: Option<(String,)> = sqlx::query_as(SELECT_NAMED)
            .bind(project.as_str())
            .bind(name.as_str())
            .fetch_optional(&self.reader)
            .await
            .map_err(StoreError::during("look for a name"))?;
        let id = found.map(|(id,)| SandboxId::try_from(id)).transpose();
        id.map_err(|_| corrupt("id"))
    }

    /// Those that were not deleted, oldest first: from the beginning or behind a place, at most
    /// `limit`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn sandboxes_after(
        &self,
        project: &ProjectId,
        after: Option<&Cursor>,
        limit: i64,
    ) -> Result<Vec<SandboxRow>, StoreError> {
        let raw: Vec<RawSandbox> = sqlx::query_as(SELECT_ALIVE)
            .bind(project.as_str())
            .bind(after.map_or(i64::MIN, |cursor| cursor.created_at_ms))
            .bind(after.map_or("", |cursor| cursor.id.as_str()))
            .bind(limit)
            .fetch_all(&self.reader)
            .await
            .map_err(StoreError::during("list sandboxes"))?;
        raw.into_iter().map(SandboxRow::try_from).collect()
    }

    /// The children of one fork that nobody wants to be gone, in the order of their making.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn fork_tree(
        &self,
        project: &ProjectId,
        tree: &str,
    ) -> Result<Vec<SandboxRow>, StoreError> {
        let raw: Vec<RawSandbox> = sqlx::query_as(SELECT_TREE)
            .bind(project.as_str())
            .bind(tree)
            .fetch_all(&self.reader)
            .await
            .map_err(StoreError::during("list the children of a fork"))?;
        raw.into_iter().map(SandboxRow::try_from).collect()
    }

    /// Takes back an insert that came to nothing, with its idempotency key.
    ///
    /// # Errors
    /// [`StoreError`]; the reconciler finds the row later.
    pub async fn forget(
        &self,
        project: &ProjectId,
        id: &SandboxId,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let operation = "take back a sandbox";
        let mut writing = self.writer.begin_in_turn(project, operation).await?;
        let statements = [idempotency::DELETE, DELETE];
        quota::count(Count::Out, project, id, &mut writing).await?;
        // Whoever follows events was told that it is being made.
        if run(&statements, project, id, &mut writing).await? > 0 {
            let event = event(project, id, SandboxState::Deleted.as_str(), now_ms);
            events::insert(event, &mut writing).await?;
        }
        writing.commit().await?;
        self.new_event.notify_waiters();
        Ok(())
    }

    /// As [`Store::apply_report`], when it is the project's turn: what came of a call of its own.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn apply_report_in_turn(
        &self,
        report: &SandboxReport,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let operation = "write a sandbox's state";
        let _turn = self.writer.turn(&report.project, operation).await?;
        self.apply_report(report, now_ms).await
    }

    /// Writes what the node said, unless the row is newer or is to be deleted. Takes no turn: the
    /// news of all projects come one after the other, and none must wait for one of them.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn apply_report(
        &self,
        report: &SandboxReport,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        if report.state == SandboxState::Deleted {
            let ended = report.ended.map(Ending::from);
            return self
                .write_deleted(&report.project, &report.id, ended.as_ref(), now_ms)
                .await;
        }
        let mut writing = self.writer.begin("write a sandbox's state").await?;
        let before = meter::before(&report.project, &report.id, &mut writing).await?;
        quota::count(Count::Out, &report.project, &report.id, &mut writing).await?;
        let query = sqlx::query(APPLY)
            .bind(report.project.as_str())
            .bind(report.id.as_str())
            .bind(report.state.as_str())
            .bind(bigint(report.generation.0))
            .bind(text(&SandboxStatus::from(report)))
            .bind(text(&report.lifecycle))
            .bind(deadline_ms(report.expires_in_seconds, now_ms))
            .bind(i64::from(report.vcpus.get()))
            .bind(i64::from(report.memory.get()))
            .bind(bigint(report.disk_mib))
            .bind(report.ended.map(|reason| text(&Ending::from(reason))));
        let rows = writing.execute(query).await?;
        quota::count(Count::In, &report.project, &report.id, &mut writing).await?;
        if rows > 0 {
            let event = NewEvent {
                reason: report
                    .reason
                    .as_deref()
                    .or(report.ended.map(EndReason::as_str))
                    .or(report.sleep_reason.map(SleepReason::as_str)),
                ..event(&report.project, &report.id, report.state.as_str(), now_ms)
            };
            events::insert(event, &mut writing).await?;
            let change = change_of(&report.project, &report.id, report.state, now_ms);
            meter::change(before, change, &mut writing).await?;
        }
        writing.commit().await?;
        if rows > 0 {
            self.new_event.notify_waiters();
        }
        Ok(())
    }

    /// Writes how long the sandbox lives, as its node said after a change.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn set_lifecycle(
        &self,
        project: &ProjectId,
        id: &SandboxId,
        report: &LifecycleReport,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let operation = "write a sandbox's lifecycle";
        let mut writing = self.writer.begin_in_turn(project, operation).await?;
        let query = sqlx::query(SET_LIFECYCLE)
            .bind(project.as_str())
            .bind(id.as_str())
            .bind(text(&report.lifecycle))
            .bind(deadline_ms(report.expires_in_seconds, now_ms));
        writing.execute(query).await?;
        writing.commit().await
    }

    /// Writes the wish that it be deleted.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn mark_deleting(
        &self,
        project: &ProjectId,
        id: &SandboxId,
        ended: &Ending,
        key: KeyFate,
    ) -> Result<(), StoreError> {
        let operation = "mark a sandbox as deleting";
        let mut writing = self.writer.begin_in_turn(project, operation).await?;
        let mark = sqlx::query(MARK_DELETING)
            .bind(project.as_str())
            .bind(id.as_str())
            .bind(text(ended));
        writing.execute(mark).await?;
        if key == KeyFate::Freed {
            run(&[idempotency::DELETE], project, id, &mut writing).await?;
        }
        writing.commit().await
    }

    /// Writes that it is gone, when it is the project's turn, and why unless that is known.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn mark_deleted(
        &self,
        project: &ProjectId,
        id: &SandboxId,
        ended: &Ending,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let operation = "mark a sandbox as deleted";
        let _turn = self.writer.turn(project, operation).await?;
        self.write_deleted(project, id, Some(ended), now_ms).await
    }

    async fn write_deleted(
        &self,
        project: &ProjectId,
        id: &SandboxId,
        ended: Option<&Ending>,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let mut writing = self.writer.begin("mark a sandbox as deleted").await?;
        let mut before = meter::before(project, id, &mut writing).await?;
        quota::count(Count::Out, project, id, &mut writing).await?;
        let query = sqlx::query_as(MARK_DELETED)
            .bind(project.as_str())
            .bind(id.as_str())
            .bind(now_ms)
            .bind(ended.map(text));
        let marked: Vec<(Option<String>,)> = writing.fetch_all(query).await?;
        for (ended,) in marked {
            let ended = ended.as_deref().and_then(read_ending);
            let event = NewEvent {
                reason: ended.map(|ended| ended.reason.as_str()),
                ..event(project, id, SandboxState::Deleted.as_str(), now_ms)
            };
            events::insert(event, &mut writing).await?;
            let change = change_of(project, id, SandboxState::Deleted, now_ms);
            meter::change(before.take(), change, &mut writing).await?;
        }
        writing.commit().await?;
        self.new_event.notify_waiters();
        Ok(())
    }
}

/// Runs statements that are about one sandbox. Gives how many rows the last one touched.
async fn run(
    statements: &[&'static str],
    project: &ProjectId,
    id: &SandboxId,
    writing: &mut Writing,
) -> Result<u64, StoreError> {
    let mut rows = 0;
    for statement in statements {
        let query = sqlx::query(*statement)
            .bind(project.as_str())
            .bind(id.as_str());
        rows = writing.execute(query).await?;
    }
    Ok(rows)
}

fn event<'a>(
    project: &'a ProjectId,
    sandbox: &'a SandboxId,
    state: &'a str,
    at_ms: i64,
) -> NewEvent<'a> {
    NewEvent {
        project,
        sandbox,
        state,
        reason: None,
        at_ms,
    }
}

fn change_of<'a>(
    project: &'a ProjectId,
    sandbox: &'a SandboxId,
    to: SandboxState,
    at_ms: i64,
) -> meter::Change<'a> {
    meter::Change {
        project,
        sandbox,
        to,
        at_ms,
    }
}

/// What becomes of the idempotency key of a sandbox that is being deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyFate {
    /// Its create was answered; a repeat must find the same sandbox.
    Kept,
    /// Its create failed; a repeat must start anew.
    Freed,
}

async fn insert_row(row: &SandboxRow, writing: &mut Writing) -> Result<(), StoreError> {
    let query = sqlx::query(INSERT)
        .bind(row.id.as_str())
        .bind(row.project.as_str())
        .bind(row.node.as_str())
        .bind(row.state.as_str())
        .bind(bigint(row.generation.0))
        .bind(text(&row.spec))
        .bind(text(&row.status))
        .bind(text(&row.lifetime))
        .bind(row.expires_at_ms)
        .bind(i64::from(row.cpu))
        .bind(bigint(row.memory_mb))
        .bind(bigint(row.disk_mib))
        .bind(&row.fork_tree)
        .bind(text(&row.egress.policy))
        .bind(bigint(row.egress.epoch))
        .bind(bigint(row.egress.reserved))
        .bind(bigint(row.egress.confirmed))
        .bind(row.egress.changed_at_ms)
        .bind(row.created_at_ms)
        .bind(row.name.as_ref().map(SandboxName::as_str))
        .bind(text(&row.environment));
    writing.execute(query).await?;
    quota::count(Count::In, &row.project, &row.id, writing).await
}

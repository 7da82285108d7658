//! Sandboxes of one project.

use dayfly_node_api::SandboxReport;
use dayfly_types::{ProjectId, SandboxId, SandboxState};

use super::row::{RawSandbox, SandboxRow, bigint};
use super::{Store, StoreError};

const INSERT: &str = "INSERT INTO sandboxes (id, project_id, node_id, template, state, generation, \
    reason, metadata, ttl_seconds, persistent, cpu, memory_mb, isolation, ready_ms, stages, \
    created_at_ms, deleted_at_ms) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, NULL)";
const INSERT_KEY: &str = "INSERT INTO idempotency_keys \
    (project_id, idempotency_key, request_hash, sandbox_id, created_at_ms) \
    VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING";
const SELECT_KEY: &str = "SELECT request_hash, sandbox_id FROM idempotency_keys \
    WHERE project_id = $1 AND idempotency_key = $2";
const DELETE_KEY: &str = "DELETE FROM idempotency_keys WHERE project_id = $1 AND sandbox_id = $2";
const SELECT: &str = "SELECT * FROM sandboxes WHERE project_id = $1 AND id = $2";
const SELECT_ALIVE: &str = "SELECT * FROM sandboxes WHERE project_id = $1 \
    AND deleted_at_ms IS NULL ORDER BY created_at_ms, id";
const DELETE: &str = "DELETE FROM sandboxes WHERE project_id = $1 AND id = $2";
// A row that is to be deleted takes no other news: the wish is newer than what the node knows.
const APPLY: &str = "UPDATE sandboxes SET state = $3, generation = $4, reason = $5, cpu = $6, \
    memory_mb = $7, ready_ms = $8, stages = $9 \
    WHERE project_id = $1 AND id = $2 AND deleted_at_ms IS NULL AND state <> 'deleting' \
    AND (generation < $4 OR (generation = $4 AND state <> $3))";
const MARK_DELETING: &str = "UPDATE sandboxes SET state = 'deleting' \
    WHERE project_id = $1 AND id = $2 AND deleted_at_ms IS NULL AND state <> 'deleting'";
const MARK_DELETED: &str = "UPDATE sandboxes SET state = 'deleted', deleted_at_ms = $3 \
    WHERE project_id = $1 AND id = $2 AND deleted_at_ms IS NULL";

/// What makes a create repeatable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idempotency {
    pub key: String,
    /// Of everything that the caller asked for.
    pub request_hash: String,
}

/// What became of an insert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inserted {
    New,
    /// The key was used before with the same request, which made this sandbox.
    Repeated(SandboxId),
    /// The key was used before with another request.
    Conflict,
}

impl Store {
    /// Writes the row of a new sandbox, and its idempotency key, in one step.
    ///
    /// # Errors
    /// [`StoreError`]; nothing was written.
    pub async fn insert_sandbox(
        &self,
        row: &SandboxRow,
        idempotency: Option<&Idempotency>,
    ) -> Result<Inserted, StoreError> {
        let failed = || StoreError::during("insert a sandbox");
        let mut transaction = self.writer.begin().await.map_err(failed())?;
        if let Some(idempotency) = idempotency {
            let inserted = sqlx::query(INSERT_KEY)
                .bind(row.project.as_str())
                .bind(&idempotency.key)
                .bind(&idempotency.request_hash)
                .bind(row.id.as_str())
                .bind(row.created_at_ms)
                .execute(&mut *transaction)
                .await
                .map_err(failed())?;
            if inserted.rows_affected() == 0 {
                let (hash, id): (String, String) = sqlx::query_as(SELECT_KEY)
                    .bind(row.project.as_str())
                    .bind(&idempotency.key)
                    .fetch_one(&mut *transaction)
                    .await
                    .map_err(failed())?;
                return repeated(&hash, &id, idempotency);
            }
        }
        insert_row(row, &mut transaction).await.map_err(failed())?;
        transaction.commit().await.map_err(failed())?;
        Ok(Inserted::New)
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

    /// All that were not deleted, oldest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn sandboxes(&self, project: &ProjectId) -> Result<Vec<SandboxRow>, StoreError> {
        let raw: Vec<RawSandbox> = sqlx::query_as(SELECT_ALIVE)
            .bind(project.as_str())
            .fetch_all(&self.reader)
            .await
            .map_err(StoreError::during("list sandboxes"))?;
        raw.into_iter().map(SandboxRow::try_from).collect()
    }

    /// Takes back an insert that came to nothing, with its idempotency key.
    ///
    /// # Errors
    /// [`StoreError`]; the reconciler finds the row later.
    pub async fn forget(&self, project: &ProjectId, id: &SandboxId) -> Result<(), StoreError> {
        let failed = || StoreError::during("take back a sandbox");
        let mut transaction = self.writer.begin().await.map_err(failed())?;
        for statement in [DELETE, DELETE_KEY] {
            sqlx::query(statement)
                .bind(project.as_str())
                .bind(id.as_str())
                .execute(&mut *transaction)
                .await
                .map_err(failed())?;
        }
        transaction.commit().await.map_err(failed())
    }

    /// Writes what the node said, unless the row is newer or is to be deleted.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn apply_report(
        &self,
        report: &SandboxReport,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        if report.state == SandboxState::Deleted {
            return self.mark_deleted(&report.project, &report.id, now_ms).await;
        }
        let failed = StoreError::during("write a sandbox's state");
        sqlx::query(APPLY)
            .bind(report.project.as_str())
            .bind(report.id.as_str())
            .bind(report.state.as_str())
            .bind(bigint(report.generation.0))
            .bind(&report.reason)
            .bind(i64::from(report.vcpus.get()))
            .bind(i64::from(report.memory.get()))
            .bind(report.ready_ms.map(bigint))
            .bind(stages_json(report))
            .execute(&self.writer)
            .await
            .map(drop)
            .map_err(failed)
    }

    /// Writes the wish that it be deleted.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn mark_deleting(
        &self,
        project: &ProjectId,
        id: &SandboxId,
        key: KeyFate,
    ) -> Result<(), StoreError> {
        let failed = || StoreError::during("mark a sandbox as deleting");
        let statements: &[&'static str] = match key {
            KeyFate::Kept => &[MARK_DELETING],
            KeyFate::Freed => &[MARK_DELETING, DELETE_KEY],
        };
        let mut transaction = self.writer.begin().await.map_err(failed())?;
        for statement in statements {
            sqlx::query(*statement)
                .bind(project.as_str())
                .bind(id.as_str())
                .execute(&mut *transaction)
                .await
                .map_err(failed())?;
        }
        transaction.commit().await.map_err(failed())
    }

    /// Writes that it is gone.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn mark_deleted(
        &self,
        project: &ProjectId,
        id: &SandboxId,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        sqlx::query(MARK_DELETED)
            .bind(project.as_str())
            .bind(id.as_str())
            .bind(now_ms)
            .execute(&self.writer)
            .await
            .map(drop)
            .map_err(StoreError::during("mark a sandbox as deleted"))
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

fn repeated(hash: &str, id: &str, idempotency: &Idempotency) -> Result<Inserted, StoreError> {
    if hash != idempotency.request_hash {
        return Ok(Inserted::Conflict);
    }
    let corrupt = StoreError::Corrupt {
        table: "idempotency_keys",
        column: "sandbox_id",
    };
    SandboxId::parse(id)
        .map(Inserted::Repeated)
        .map_err(|_| corrupt)
}

async fn insert_row(
    row: &SandboxRow,
    transaction: &mut sqlx::Transaction<'_, sqlx::Sqlite>,
) -> Result<(), sqlx::Error> {
    sqlx::query(INSERT)
        .bind(row.id.as_str())
        .bind(row.project.as_str())
        .bind(row.node.as_str())
        .bind(row.template.as_str())
        .bind(row.state.as_str())
        .bind(bigint(row.generation.0))
        .bind(&row.reason)
        .bind(json(&row.metadata))
        .bind(row.ttl_seconds.map(bigint))
        .bind(i64::from(row.persistent))
        .bind(i64::from(row.cpu))
        .bind(bigint(row.memory_mb))
        .bind(&row.isolation)
        .bind(row.ready_ms.map(bigint))
        .bind(json(&row.stages))
        .bind(row.created_at_ms)
        .execute(&mut **transaction)
        .await
        .map(drop)
}

fn json<T: serde::Serialize>(value: &T) -> String {
    // Maps with string keys always serialise.
    serde_json::to_string(value).unwrap_or_else(|_| "{}".to_owned())
}

fn stages_json(report: &SandboxReport) -> String {
    let stages: std::collections::BTreeMap<&str, u64> = report
        .stages
        .iter()
        .map(|stage| (stage.name.as_str(), stage.micros))
        .collect();
    json(&stages)
}

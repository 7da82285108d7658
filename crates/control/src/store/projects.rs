//! Projects themselves, as an operator sees them, and what each may use.

use dayfly_types::ProjectId;
use sqlx::FromRow;

use super::project_state::{ProjectState, RawState};
use super::writer::Writing;
use super::{Store, StoreError};

const INSERT: &str = "INSERT INTO projects (id, created_at_ms, sandboxes_max, vcpus_max, \
    memory_mb_max, snapshot_mb_max, volume_mb_max, requests_per_second, disk_mb_max, keeps_output) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING";
const SELECT_ALL: &str = "SELECT * FROM projects WHERE state <> 'deleted' \
    ORDER BY created_at_ms, id";
const SELECT_DELETING: &str = "SELECT * FROM projects WHERE state = 'deleting' \
    ORDER BY created_at_ms, id";
const SELECT_LIMITS: &str = "SELECT sandboxes_max, vcpus_max, memory_mb_max, snapshot_mb_max, \
    volume_mb_max, requests_per_second, disk_mb_max, keeps_output FROM projects WHERE id = $1";
const SELECT: &str = "SELECT * FROM projects WHERE id = $1";
pub(super) const SELECT_STATE: &str = "SELECT state, state_reason FROM projects WHERE id = $1";
pub(super) const SET_STATE: &str = "UPDATE projects SET state = $3, state_reason = $4 \
    WHERE id = $1 AND state = $2 AND state_reason = $5";
pub(super) const FINISH: &str = "UPDATE projects SET state = 'deleted' \
    WHERE id = $1 AND state = 'deleting' AND NOT EXISTS (SELECT 1 FROM sandboxes \
    WHERE project_id = $1 AND deleted_at_ms IS NULL)";
/// Gives out the number of the next event, in the transaction of what it tells of.
pub(super) const NEXT_EVENT: &str = "UPDATE projects SET events_seq = events_seq + 1 WHERE id = $1";
pub(super) const LAST_EVENT: &str = "SELECT events_seq FROM projects WHERE id = $1";
/// Gives out the number of the next entry of the audit record, and counts its size.
pub(super) const NEXT_AUDIT: &str = "UPDATE projects SET audit_seq = audit_seq + 1, \
    audit_bytes = audit_bytes + $2 WHERE id = $1";
pub(super) const FREE_AUDIT: &str =
    "UPDATE projects SET audit_bytes = audit_bytes - $2 WHERE id = $1";
pub(super) const AUDIT_BYTES: &str = "SELECT audit_bytes FROM projects WHERE id = $1";
/// All that were not deleted, asleep or not: a wake must not find its place taken.
pub(super) const USED: &str = "SELECT sandboxes_used, vcpus_used, memory_mb_used, disk_mib_used \
    FROM projects WHERE id = $1";
/// Counts a sandbox in, or out with -1, unless it was deleted: around every change of its row that
/// may change that.
pub(super) const COUNT_SANDBOX: &str = "UPDATE projects SET sandboxes_used = sandboxes_used + $3, \
    vcpus_used = vcpus_used + $3 * sandboxes.cpu, \
    memory_mb_used = memory_mb_used + $3 * sandboxes.memory_mb, \
    disk_mib_used = disk_mib_used + $3 * sandboxes.disk_mib FROM sandboxes \
    WHERE projects.id = $1 AND sandboxes.project_id = $1 AND sandboxes.id = $2 \
    AND sandboxes.deleted_at_ms IS NULL";
const SET_LIMITS: &str = "UPDATE projects SET sandboxes_max = $2, vcpus_max = $3, \
    memory_mb_max = $4, snapshot_mb_max = $5, volume_mb_max = $6, requests_per_second = $7, \
    disk_mb_max = $8, keeps_output = $9 WHERE id = $1";

/// What a project may use at once. `None` is as much as there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LimitsRow {
    pub sandboxes: Option<u64>,
    pub vcpus: Option<u64>,
    pub memory_mb: Option<u64>,
    pub snapshot_mb: Option<u64>,
    pub volume_mb: Option<u64>,
    pub requests_per_second: Option<u64>,
    /// Disks of its sandboxes.
    pub disk_mb: Option<u64>,
    /// Whether the audit record keeps what commands printed.
    pub keeps_output: bool,
}

/// A project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectRow {
    pub id: ProjectId,
    pub created_at_ms: i64,
    pub limits: LimitsRow,
    pub state: ProjectState,
}

#[derive(Debug, FromRow)]
pub(super) struct RawLimits {
    sandboxes_max: Option<i64>,
    vcpus_max: Option<i64>,
    memory_mb_max: Option<i64>,
    snapshot_mb_max: Option<i64>,
    volume_mb_max: Option<i64>,
    requests_per_second: Option<i64>,
    disk_mb_max: Option<i64>,
    keeps_output: i64,
}

#[derive(Debug, FromRow)]
struct RawProject {
    id: String,
    created_at_ms: i64,
    #[sqlx(flatten)]
    limits: RawLimits,
    #[sqlx(flatten)]
    state: RawState,
}

impl From<RawLimits> for LimitsRow {
    fn from(raw: RawLimits) -> Self {
        // A number that is no amount lets nothing through.
        let limit = |number: Option<i64>| number.map(|number| u64::try_from(number).unwrap_or(0));
        Self {
            sandboxes: limit(raw.sandboxes_max),
            vcpus: limit(raw.vcpus_max),
            memory_mb: limit(raw.memory_mb_max),
            snapshot_mb: limit(raw.snapshot_mb_max),
            volume_mb: limit(raw.volume_mb_max),
            requests_per_second: limit(raw.requests_per_second),
            disk_mb: limit(raw.disk_mb_max),
            keeps_output: raw.keeps_output != 0,
        }
    }
}

impl TryFrom<RawProject> for ProjectRow {
    type Error = StoreError;

    fn try_from(raw: RawProject) -> Result<Self, StoreError> {
        Ok(Self {
            id: ProjectId::parse(&raw.id).map_err(|_| StoreError::Corrupt {
                table: "projects",
                column: "id",
            })?,
            created_at_ms: raw.created_at_ms,
            limits: raw.limits.into(),
            state: raw.state.try_into()?,
        })
    }
}

impl LimitsRow {
    fn numbers(&self) -> [Option<i64>; 7] {
        [
            self.sandboxes,
            self.vcpus,
            self.memory_mb,
            self.snapshot_mb,
            self.volume_mb,
            self.requests_per_second,
            self.disk_mb,
        ]
        .map(|number| number.map(|number| i64::try_from(number).unwrap_or(i64::MAX)))
    }
}

/// What a project may use, as of a transaction.
pub(super) async fn limits(
    project: &ProjectId,
    writing: &mut Writing,
) -> Result<LimitsRow, StoreError> {
    let query = sqlx::query_as(SELECT_LIMITS).bind(project.as_str());
    let raw: RawLimits = writing.fetch_one(query).await?;
    Ok(raw.into())
}

impl Store {
    /// Adds a project. Says whether it is new.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn insert_project(&self, project: &ProjectRow) -> Result<bool, StoreError> {
        let operation = "add a project";
        let mut writing = self.writer.begin(operation).await?;
        let mut query = sqlx::query(INSERT)
            .bind(project.id.as_str())
            .bind(project.created_at_ms);
        for number in project.limits.numbers() {
            query = query.bind(number);
        }
        query = query.bind(i64::from(project.limits.keeps_output));
        let rows = writing.execute(query).await?;
        writing.commit().await?;
        // What is told to be there must be.
        if self.project(&project.id).await?.is_none() {
            return Err(StoreError::NotKept { operation });
        }
        Ok(rows > 0)
    }

    /// All projects that were not deleted, oldest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn projects(&self) -> Result<Vec<ProjectRow>, StoreError> {
        let raw: Vec<RawProject> = sqlx::query_as(SELECT_ALL)
            .fetch_all(&self.reader)
            .await
            .map_err(StoreError::during("list projects"))?;
        raw.into_iter().map(ProjectRow::try_from).collect()
    }

    /// Those whose deletion is not finished.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn projects_to_delete(&self) -> Result<Vec<ProjectRow>, StoreError> {
        let raw: Vec<RawProject> = sqlx::query_as(SELECT_DELETING)
            .fetch_all(&self.reader)
            .await
            .map_err(StoreError::during("list projects to delete"))?;
        raw.into_iter().map(ProjectRow::try_from).collect()
    }

    /// One project, deleted or not.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn project(&self, id: &ProjectId) -> Result<Option<ProjectRow>, StoreError> {
        let raw: Option<RawProject> = sqlx::query_as(SELECT)
            .bind(id.as_str())
            .fetch_optional(&self.reader)
            .await
            .map_err(StoreError::during("read a project"))?;
        raw.map(ProjectRow::try_from).transpose()
    }

    /// Writes what a project may use. Says whether there is such a project.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn set_project_limits(
        &self,
        id: &ProjectId,
        limits: &LimitsRow,
    ) -> Result<bool, StoreError> {
        let operation = "write the limits of a project";
        // Until they were read again: else another change in between would look like a loss.
        let _alone = self.limits_turn.lock().await;
        let mut writing = self.writer.begin(operation).await?;
        let mut query = sqlx::query(SET_LIMITS).bind(id.as_str());
        for number in limits.numbers() {
            query = query.bind(number);
        }
        query = query.bind(i64::from(limits.keeps_output));
        let rows = writing.execute(query).await?;
        writing.commit().await?;
        let kept = self.project(id).await?;
        if rows > 0 && kept.is_none_or(|kept| kept.limits != *limits) {
            return Err(StoreError::NotKept { operation });
        }
        Ok(rows > 0)
    }
}

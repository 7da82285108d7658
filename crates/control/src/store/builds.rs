//! Builds of templates, for those that were here when they ran and for those that ask later.

use dayfly_types::ProjectId;
use serde::{Deserialize, Serialize};
use sqlx::FromRow;

use super::{Store, StoreError};

// Not of a project that is on its way out.
const INSERT: &str = "INSERT INTO template_builds (id, project_id, name, tag, state, document, \
    made_by, started_at_ms) SELECT $1, $2, $3, $4, $5, $6, $7, $8 \
    WHERE EXISTS (SELECT 1 FROM projects WHERE id = $2 AND state = 'active')";
const PRUNE: &str = "DELETE FROM template_builds WHERE project_id = $1 AND id NOT IN \
    (SELECT id FROM template_builds WHERE project_id = $1 \
    ORDER BY started_at_ms DESC, id DESC LIMIT $2)";
const UPDATE: &str = "UPDATE template_builds SET state = $3, document = $4, ended_at_ms = $5 \
    WHERE project_id = $1 AND id = $2";
const SELECT: &str = "SELECT * FROM template_builds WHERE project_id = $1 \
    ORDER BY started_at_ms DESC, id DESC";
const SELECT_ONE: &str = "SELECT * FROM template_builds WHERE project_id = $1 AND id = $2";
const DELETE: &str = "DELETE FROM template_builds WHERE project_id = $1 AND id = $2";
const DELETE_ALL: &str = "DELETE FROM template_builds WHERE project_id = $1";

/// How far a build is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuildState {
    Queued,
    Running,
    Done,
    Failed,
}

impl BuildState {
    const ALL: [Self; 4] = [Self::Queued, Self::Running, Self::Done, Self::Failed];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }
}

/// What else is kept of a build.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildDocument {
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The image that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(default)]
    pub size_mb: u64,
    #[serde(default)]
    pub bytes: u64,
    #[serde(default)]
    pub steps: u64,
    #[serde(default)]
    pub cached: u64,
    #[serde(default)]
    pub elapsed_ms: u64,
}

/// A build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildRow {
    pub id: String,
    pub project: ProjectId,
    pub name: String,
    pub tag: String,
    pub state: BuildState,
    pub document: BuildDocument,
    pub made_by: String,
    pub started_at_ms: i64,
    pub ended_at_ms: Option<i64>,
}

impl BuildRow {
    /// Whether it has not ended, as far as the row knows.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(self.state, BuildState::Queued | BuildState::Running)
    }
}

#[derive(Debug, FromRow)]
struct RawBuild {
    id: String,
    project_id: String,
    name: String,
    tag: String,
    state: String,
    document: String,
    made_by: String,
    started_at_ms: i64,
    ended_at_ms: Option<i64>,
}

impl TryFrom<RawBuild> for BuildRow {
    type Error = StoreError;

    fn try_from(raw: RawBuild) -> Result<Self, StoreError> {
        let corrupt = |column| StoreError::Corrupt {
            table: "template_builds",
            column,
        };
        let mut states = BuildState::ALL.into_iter();
        let state = states.find(|state| state.as_str() == raw.state);
        Ok(Self {
            id: raw.id,
            project: ProjectId::parse(&raw.project_id).map_err(|_| corrupt("project_id"))?,
            name: raw.name,
            tag: raw.tag,
            state: state.ok_or(corrupt("state"))?,
            document: serde_json::from_str(&raw.document).map_err(|_| corrupt("document"))?,
            made_by: raw.made_by,
            started_at_ms: raw.started_at_ms,
            ended_at_ms: raw.ended_at_ms,
        })
    }
}

impl Store {
    /// Keeps a new build, and forgets the oldest of its project beyond `most`. Says whether the
    /// project may have one.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn insert_build(&self, build: &BuildRow, most: usize) -> Result<bool, StoreError> {
        let operation = "write a build";
        let mut writing = self.writer.begin_in_turn(&build.project, operation).await?;
        let query = sqlx::query(INSERT)
            .bind(&build.id)
            .bind(build.project.as_str())
            .bind(&build.name)
            .bind(&build.tag)
            .bind(build.state.as_str())
            .bind(serde_json::to_string(&build.document).unwrap_or_default())
            .bind(&build.made_by)
            .bind(build.started_at_ms);
        let rows = writing.execute(query).await?;
        let prune = sqlx::query(PRUNE)
            .bind(build.project.as_str())
            .bind(i64::try_from(most).unwrap_or(i64::MAX));
        writing.execute(prune).await?;
        writing.commit().await?;
        Ok(rows > 0)
    }

    /// Writes how far a build is.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn update_build(&self, build: &BuildRow) -> Result<(), StoreError> {
        let operation = "write how far a build is";
        let mut writing = self.writer.begin_in_turn(&build.project, operation).await?;
        let query = sqlx::query(UPDATE)
            .bind(build.project.as_str())
            .bind(&build.id)
            .bind(build.state.as_str())
            .bind(serde_json::to_string(&build.document).unwrap_or_default())
            .bind(build.ended_at_ms);
        writing.execute(query).await?;
        writing.commit().await
    }

    /// All builds of a project, newest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn builds(&self, project: &ProjectId) -> Result<Vec<BuildRow>, StoreError> {
        let raw: Vec<RawBuild> = sqlx::query_as(SELECT)
            .bind(project.as_str())
            .fetch_all(&self.reader)
            .await
            .map_err(StoreError::during("list builds"))?;
        raw.into_iter().map(BuildRow::try_from).collect()
    }

    /// # Errors
    /// [`StoreError`].
    pub async fn build(
        &self,
        project: &ProjectId,
        id: &str,
    ) -> Result<Option<BuildRow>, StoreError> {
        let raw: Option<RawBuild> = sqlx::query_as(SELECT_ONE)
            .bind(project.as_str())
            .bind(id)
            .fetch_optional(&self.reader)
            .await
            .map_err(StoreError::during("read a build"))?;
        raw.map(BuildRow::try_from).transpose()
    }

    /// # Errors
    /// [`StoreError`].
    pub async fn delete_build(&self, project: &ProjectId, id: &str) -> Result<(), StoreError> {
        let operation = "delete a build";
        let mut writing = self.writer.begin_in_turn(project, operation).await?;
        let query = sqlx::query(DELETE).bind(project.as_str()).bind(id);
        writing.execute(query).await?;
        writing.commit().await
    }

    /// Forgets all builds of a project.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn delete_builds(&self, project: &ProjectId) -> Result<(), StoreError> {
        let mut writing = self.writer.begin("delete the builds of a project").await?;
        let query = sqlx::query(DELETE_ALL).bind(project.as_str());
        writing.execute(query).await?;
        writing.commit().await
    }
}

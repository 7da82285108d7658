//! Whether a project may be used, and the end of one.

use dayfly_types::{ProjectId, SandboxId};
use sqlx::FromRow;

use super::port_links::links_with_sandboxes;
use super::writer::Writing;
use super::{Store, StoreError, projects};

const ACTIVE: &str = "active";
const SUSPENDED: &str = "suspended";
const DELETING: &str = "deleting";
const DELETED: &str = "deleted";

const REVOKE_KEYS: &str = "UPDATE api_keys SET revoked_at_ms = $2 \
    WHERE project_id = $1 AND revoked_at_ms IS NULL";
const LINKS: &str = "SELECT sandbox_id, id FROM port_links WHERE project_id = $1";
const DELETE_LINKS: &str = "DELETE FROM port_links WHERE project_id = $1";

/// Whether a project may be used.
///
/// ```text
/// active <-> suspended
///    |          |
///    +----------+--> deleting --> deleted
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProjectState {
    Active,
    /// Its keys and links open nothing.
    Suspended {
        reason: String,
    },
    /// As suspended, and everything of it goes. There is no way back.
    Deleting,
    /// Its name and its audit record are all that is left.
    Deleted,
}

impl ProjectState {
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Active => ACTIVE,
            Self::Suspended { .. } => SUSPENDED,
            Self::Deleting => DELETING,
            Self::Deleted => DELETED,
        }
    }

    /// Why it may not be used.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Suspended { reason } => Some(reason),
            Self::Active | Self::Deleting | Self::Deleted => None,
        }
    }
}

#[derive(Debug, FromRow)]
pub(super) struct RawState {
    state: String,
    state_reason: String,
}

impl TryFrom<RawState> for ProjectState {
    type Error = StoreError;

    fn try_from(raw: RawState) -> Result<Self, StoreError> {
        Ok(match raw.state.as_str() {
            ACTIVE => Self::Active,
            SUSPENDED => Self::Suspended {
                reason: raw.state_reason,
            },
            DELETING => Self::Deleting,
            DELETED => Self::Deleted,
            // One that is not understood must not look like a project that may be used.
            _ => {
                return Err(StoreError::Corrupt {
                    table: "projects",
                    column: "state",
                });
            }
        })
    }
}

/// Whether a project may be used, as of a transaction.
pub(super) async fn is_active(
    project: &ProjectId,
    writing: &mut Writing,
) -> Result<bool, StoreError> {
    let query = sqlx::query_as(projects::SELECT_STATE).bind(project.as_str());
    let raw: RawState = writing.fetch_one(query).await?;
    Ok(ProjectState::try_from(raw)? == ProjectState::Active)
}

impl Store {
    /// Writes whether a project may be used, unless it is in another state than `from` by now. Says
    /// whether it was written.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn set_project_state(
        &self,
        id: &ProjectId,
        from: &ProjectState,
        to: &ProjectState,
    ) -> Result<bool, StoreError> {
        let operation = "write the state of a project";
        // Until it was read again: else another change in between would look like a loss.
        let _alone = self.limits_turn.lock().await;
        let mut writing = self.writer.begin(operation).await?;
        let query = sqlx::query(projects::SET_STATE)
            .bind(id.as_str())
            .bind(from.as_str())
            .bind(to.as_str())
            .bind(to.reason().unwrap_or_default())
            // Another operator's suspension is another state.
            .bind(from.reason().unwrap_or_default());
        let rows = writing.execute(query).await?;
        writing.commit().await?;
        // A suspension that is told and not kept lets in whoever was to be kept out.
        let kept = self.project(id).await?;
        if rows > 0 && kept.is_none_or(|kept| kept.state != *to) {
            return Err(StoreError::NotKept { operation });
        }
        Ok(rows > 0)
    }

    /// Writes that a project is gone, unless it still has a sandbox. Says whether it is.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn finish_project(&self, id: &ProjectId) -> Result<bool, StoreError> {
        let mut writing = self.writer.begin("write the end of a project").await?;
        let query = sqlx::query(projects::FINISH).bind(id.as_str());
        writing.execute(query).await?;
        writing.commit().await?;
        // Somebody else may have been first.
        let kept = self.project(id).await?;
        Ok(kept.is_some_and(|kept| kept.state == ProjectState::Deleted))
    }

    /// Ends every key of a project, and removes its links.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn end_keys_and_links(
        &self,
        project: &ProjectId,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let operation = "end the keys and links of a project";
        let mut writing = self.writer.begin(operation).await?;
        let revoke = sqlx::query(REVOKE_KEYS).bind(project.as_str()).bind(now_ms);
        writing.execute(revoke).await?;
        let delete = sqlx::query(DELETE_LINKS).bind(project.as_str());
        writing.execute(delete).await?;
        writing.commit().await
    }

    /// The links of all sandboxes of a project.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn links_of_project(
        &self,
        project: &ProjectId,
    ) -> Result<Vec<(SandboxId, String)>, StoreError> {
        let found: Vec<(String, String)> = sqlx::query_as(LINKS)
            .bind(project.as_str())
            .fetch_all(&self.reader)
            .await
            .map_err(StoreError::during("list the links of a project"))?;
        links_with_sandboxes(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn another_suspension_is_another_state() {
        let place = tempfile::tempdir().unwrap();
        let store = Store::open(&place.path().join("database")).await.unwrap();
        let project = ProjectId::parse("one").unwrap();
        store.ensure_project(&project, 1).await.unwrap();
        let suspended = |reason: &str| ProjectState::Suspended {
            reason: reason.to_owned(),
        };
        let (active, first, second) = (
            ProjectState::Active,
            suspended("first"),
            suspended("second"),
        );
        let mut steps = Vec::new();
        for (from, to) in [(&active, &first), (&first, &second), (&first, &active)] {
            let set = store.set_project_state(&project, from, to).await;
            steps.push(set.unwrap());
        }
        assert_eq!(steps, [true, true, false], "a leaked key works again");
    }
}

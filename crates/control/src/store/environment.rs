//! The environment variables of a sandbox, which are read for each command.

use dayfly_types::{ProjectId, SandboxId};

use super::row::{corrupt, text};
use super::{Store, StoreError};
use crate::sandbox::environment::Environment;

const SELECT: &str = "SELECT environment FROM sandboxes WHERE project_id = $1 AND id = $2 \
    AND deleted_at_ms IS NULL";
const SET: &str = "UPDATE sandboxes SET environment = $3 WHERE project_id = $1 AND id = $2 \
    AND deleted_at_ms IS NULL";

impl Store {
    /// Those of a sandbox that was not deleted.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn environment(
        &self,
        project: &ProjectId,
        id: &SandboxId,
    ) -> Result<Option<Environment>, StoreError> {
        let found: Option<(String,)> = sqlx::query_as(SELECT)
            .bind(project.as_str())
            .bind(id.as_str())
            .fetch_optional(&self.reader)
            .await
            .map_err(StoreError::during("read a sandbox's environment"))?;
        let read = found.map(|(text,)| serde_json::from_str(&text));
        read.transpose().map_err(|_| corrupt("environment"))
    }

    /// Puts others in their place.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn set_environment(
        &self,
        project: &ProjectId,
        id: &SandboxId,
        environment: &Environment,
    ) -> Result<(), StoreError> {
        let operation = "write a sandbox's environment";
        let mut writing = self.writer.begin_in_turn(project, operation).await?;
        let query = sqlx::query(SET)
            .bind(project.as_str())
            .bind(id.as_str())
            .bind(text(environment));
        writing.execute(query).await?;
        writing.commit().await
    }
}

//! The key of those whom the operator lets use this host without a key of their own.
//!
//! There is one at a time, it is a new one at each start of the daemon, and nobody can end it by
//! name: the setting does.

use dayfly_types::ProjectId;

use super::{KeyRow, Store, StoreError};
use crate::tenancy::scope::{Reach, Scope, Scopes};

// The hash of no key is the empty text.
const DELETE_OTHERS: &str =
    "DELETE FROM api_keys WHERE project_id = $1 AND prefix = $2 AND hash <> $3";

/// The prefix of the key. No generated key can have it: theirs are longer.
pub(crate) const LOCAL_PREFIX: &str = "local";

impl Store {
    /// Makes `hash` the key of the people on this host, and the only one of its kind. Another one's
    /// key and the links that it made are gone afterwards; without a hash there is none at all.
    ///
    /// What it was already is left alone: the control process may start more often than the daemon.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn ensure_local_key(
        &self,
        hash: Option<&str>,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        if let Some(hash) = hash
            && self.key_by_hash(hash).await?.is_some()
        {
            return Ok(());
        }
        let project = ProjectId::default_project();
        let mut writing = self.writer.begin("end the local key").await?;
        let query = sqlx::query(DELETE_OTHERS)
            .bind(project.as_str())
            .bind(LOCAL_PREFIX)
            .bind(hash.unwrap_or_default());
        writing.execute(query).await?;
        writing.commit().await?;
        // The keys that it made are links to files.
        self.revoke_made_keys(LOCAL_PREFIX, now_ms).await?;
        self.delete_made_links(LOCAL_PREFIX).await?;
        match hash {
            Some(hash) => self.ensure_key(&local_key(hash, project, now_ms)).await,
            None => Ok(()),
        }
    }
}

fn local_key(hash: &str, project: ProjectId, now_ms: i64) -> KeyRow {
    KeyRow {
        hash: hash.to_owned(),
        project,
        prefix: LOCAL_PREFIX.to_owned(),
        reach: Reach::everywhere(Scopes::from_iter([Scope::Create, Scope::Exec])),
        label: "people on this host".to_owned(),
        made_by: None,
        person: None,
        created_at_ms: now_ms,
        expires_at_ms: None,
        revoked_at_ms: None,
    }
}

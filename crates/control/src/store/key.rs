//! Keys: rows of `api_keys`, and those of one project.

use std::fmt;

use dayfly_types::{ProjectId, SandboxId};
use sqlx::FromRow;

use super::project_state::ProjectState;
use super::projects::LimitsRow;
use super::row::text;
use super::{Store, StoreError};
use crate::tenancy::scope::{Reach, Scopes};

// A maker that was revoked meanwhile makes nothing: what it made may have been ended already.
const INSERT: &str = "INSERT INTO api_keys \
    (hash, project_id, prefix, scopes, label, sandbox_id, created_at_ms, expires_at_ms, \
    made_by, file, person, sign_in, revoked_at_ms) SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, \
    COALESCE($11, (SELECT MAX(person) FROM api_keys WHERE prefix = $9)), \
    COALESCE($12, (SELECT MAX(sign_in) FROM api_keys WHERE prefix = $9)), NULL \
    WHERE CAST($9 AS TEXT) IS NULL OR EXISTS (SELECT 1 FROM api_keys \
    WHERE prefix = $9 AND revoked_at_ms IS NULL)";
const SELECT_SURPLUS: &str = "SELECT prefix FROM api_keys WHERE project_id = $1 AND person = $2 \
    AND made_by IS NULL AND revoked_at_ms IS NULL AND expires_at_ms > $3 \
    ORDER BY created_at_ms DESC, prefix LIMIT 1000 OFFSET $4";
const SELECT_ONE: &str = "SELECT * FROM api_keys WHERE project_id = $1 AND prefix = $2 \
    ORDER BY created_at_ms DESC";
const SELECT_ALIVE: &str = "SELECT * FROM api_keys WHERE project_id = $1 \
    AND revoked_at_ms IS NULL AND (expires_at_ms IS NULL OR expires_at_ms > $2) \
    AND (created_at_ms, prefix) > ($3, $4) ORDER BY created_at_ms, prefix LIMIT $5";
// Those that people got by signing in are counted by person.
const COUNT_KEYS: &str = "SELECT COUNT(*) FROM api_keys WHERE project_id = $1 \
    AND revoked_at_ms IS NULL AND (expires_at_ms IS NULL OR expires_at_ms > $2) \
    AND file IS NULL AND NOT (person IS NOT NULL AND made_by IS NULL)";
const COUNT_SIGN_INS: &str = "SELECT COUNT(*) FROM api_keys WHERE project_id = $1 AND person = $2 \
    AND made_by IS NULL AND created_at_ms > $3";
const COUNT_LINKS: &str = "SELECT COUNT(*) FROM api_keys WHERE project_id = $1 \
    AND revoked_at_ms IS NULL AND expires_at_ms > $2 AND file IS NOT NULL";
const REVOKE: &str = "UPDATE api_keys SET revoked_at_ms = $3 \
    WHERE project_id = $1 AND prefix = $2 AND revoked_at_ms IS NULL";
const REVOKED_AT: &str = "SELECT revoked_at_ms FROM api_keys WHERE project_id = $1 AND prefix = $2";

/// A key, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    /// SHA-256 of the key, in hexadecimal.
    pub hash: String,
    pub project: ProjectId,
    pub prefix: String,
    pub reach: Reach,
    pub label: String,
    /// The prefix of the key that made it.
    pub made_by: Option<String>,
    /// Who signed in for it, or for the key that made it.
    pub person: Option<PersonOfKey>,
    pub created_at_ms: i64,
    pub expires_at_ms: Option<i64>,
    pub revoked_at_ms: Option<i64>,
}

/// Somebody who signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonOfKey {
    /// What the provider calls them.
    pub subject: String,
    /// Digest of the settings under which they did.
    pub sign_in: String,
}

/// A place in a list of keys, which is in the order of making.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPlace {
    pub created_at_ms: i64,
    pub prefix: String,
}

impl fmt::Display for KeyPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.created_at_ms, self.prefix)
    }
}

impl KeyPlace {
    /// Reads one that a list gave out.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (created_at_ms, prefix) = text.split_once('.')?;
        Some(Self {
            created_at_ms: created_at_ms.parse().ok()?,
            prefix: prefix.to_owned(),
        })
    }

    pub(crate) fn of(row: &KeyRow) -> Self {
        Self {
            created_at_ms: row.created_at_ms,
            prefix: row.prefix.clone(),
        }
    }
}

/// A key, whether its project may be used, and what it may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownKey {
    pub key: KeyRow,
    pub limits: LimitsRow,
    pub state: ProjectState,
}

#[derive(Debug, FromRow)]
pub(super) struct RawKey {
    hash: String,
    project_id: String,
    prefix: String,
    scopes: String,
    label: String,
    sandbox_id: Option<String>,
    file: Option<String>,
    made_by: Option<String>,
    person: Option<String>,
    sign_in: Option<String>,
    created_at_ms: i64,
    expires_at_ms: Option<i64>,
    revoked_at_ms: Option<i64>,
}

impl TryFrom<RawKey> for KeyRow {
    type Error = StoreError;

    fn try_from(raw: RawKey) -> Result<Self, StoreError> {
        let corrupt = |column| StoreError::Corrupt {
            table: "api_keys",
            column,
        };
        let file = raw.file.as_deref().map(serde_json::from_str).transpose();
        let sandbox = raw.sandbox_id.as_deref().map(SandboxId::parse).transpose();
        Ok(Self {
            hash: raw.hash,
            project: ProjectId::parse(&raw.project_id).map_err(|_| corrupt("project_id"))?,
            prefix: raw.prefix,
            reach: Reach {
                scopes: Scopes::parse(&raw.scopes).ok_or_else(|| corrupt("scopes"))?,
                sandbox: sandbox.map_err(|_| corrupt("sandbox_id"))?,
                // One that cannot be read must not look like a key for everything.
                file: file.map_err(|_| corrupt("file"))?,
            },
            label: raw.label,
            made_by: raw.made_by,
            person: match (raw.person, raw.sign_in) {
                (Some(subject), Some(sign_in)) => Some(PersonOfKey { subject, sign_in }),
                (None, None) => None,
                // It would outlive what it was given under.
                (Some(_), None) | (None, Some(_)) => return Err(corrupt("sign_in")),
            },
            created_at_ms: raw.created_at_ms,
            expires_at_ms: raw.expires_at_ms,
            revoked_at_ms: raw.revoked_at_ms,
        })
    }
}

impl Store {
    /// Adds a key. Its project must exist. Says whether its maker may still be used; else there is
    /// no key.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn insert_api_key(&self, key: &KeyRow) -> Result<bool, StoreError> {
        let operation = "add a key";
        let mut writing = self.writer.begin_in_turn(&key.project, operation).await?;
        let query = sqlx::query(INSERT)
            .bind(&key.hash)
            .bind(key.project.as_str())
            .bind(&key.prefix)
            .bind(key.reach.scopes.to_string())
            .bind(&key.label)
            .bind(key.reach.sandbox.as_ref().map(SandboxId::as_str))
            .bind(key.created_at_ms)
            .bind(key.expires_at_ms)
            .bind(&key.made_by)
            .bind(key.reach.file.as_ref().map(text))
            .bind(key.person.as_ref().map(|person| &person.subject))
            .bind(key.person.as_ref().map(|person| &person.sign_in));
        let rows = writing.execute(query).await?;
        writing.commit().await?;
        if rows == 0 {
            return Ok(false);
        }
        // What is told to work must.
        match self.key_is_revoked(&key.project, &key.prefix).await? {
            Some(_) => Ok(true),
            None => Err(StoreError::NotKept { operation }),
        }
    }

    /// Whether a key of the project is over, as every reader sees it. `None`: there is none.
    async fn key_is_revoked(
        &self,
        project: &ProjectId,
        prefix: &str,
    ) -> Result<Option<bool>, StoreError> {
        let found: Option<(Option<i64>,)> = sqlx::query_as(REVOKED_AT)
            .bind(project.as_str())
            .bind(prefix)
            .fetch_optional(&self.reader)
            .await
            .map_err(StoreError::during("read a key again"))?;
        Ok(found.map(|(revoked_at_ms,)| revoked_at_ms.is_some()))
    }

    /// How often a person has signed in to a project since then.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn count_sign_ins(
        &self,
        project: &ProjectId,
        subject: &str,
        since_ms: i64,
    ) -> Result<usize, StoreError> {
        let (count,): (i64,) = sqlx::query_as(COUNT_SIGN_INS)
            .bind(project.as_str())
            .bind(subject)
            .bind(since_ms)
            .fetch_one(&self.reader)
            .await
            .map_err(StoreError::during("count a person's keys"))?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// The keys that a person got in a project by signing in and that work now, but for the newest
    /// `kept`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn surplus_keys(
        &self,
        project: &ProjectId,
        subject: &str,
        kept: usize,
        now_ms: i64,
    ) -> Result<Vec<String>, StoreError> {
        let raw: Vec<(String,)> = sqlx::query_as(SELECT_SURPLUS)
            .bind(project.as_str())
            .bind(subject)
            .bind(now_ms)
            .bind(i64::try_from(kept).unwrap_or(i64::MAX))
            .fetch_all(&self.reader)
            .await
            .map_err(StoreError::during("list a person's keys"))?;
        Ok(raw.into_iter().map(|(prefix,)| prefix).collect())
    }

    /// A key of a project by its prefix, also one that is over.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn api_key(
        &self,
        project: &ProjectId,
        prefix: &str,
    ) -> Result<Option<KeyRow>, StoreError> {
        let raw: Option<RawKey> = sqlx::query_as(SELECT_ONE)
            .bind(project.as_str())
            .bind(prefix)
            .fetch_optional(&self.reader)
            .await
            .map_err(StoreError::during("read a key"))?;
        raw.map(KeyRow::try_from).transpose()
    }

    /// The keys of a project that work now, oldest first: from the beginning or behind a place, at
    /// most `limit`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn api_keys(
        &self,
        project: &ProjectId,
        now_ms: i64,
        after: Option<&KeyPlace>,
        limit: i64,
    ) -> Result<Vec<KeyRow>, StoreError> {
        let raw: Vec<RawKey> = sqlx::query_as(SELECT_ALIVE)
            .bind(project.as_str())
            .bind(now_ms)
            .bind(after.map_or(i64::MIN, |place| place.created_at_ms))
            .bind(after.map_or("", |place| place.prefix.as_str()))
            .bind(limit)
            .fetch_all(&self.reader)
            .await
            .map_err(StoreError::during("list keys"))?;
        raw.into_iter().map(KeyRow::try_from).collect()
    }

    /// How many keys of a project work now: those for one file, or all others.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn count_api_keys(
        &self,
        project: &ProjectId,
        are_for_files: bool,
        now_ms: i64,
    ) -> Result<usize, StoreError> {
        let statement = if are_for_files {
            COUNT_LINKS
        } else {
            COUNT_KEYS
        };
        let (count,): (i64,) = sqlx::query_as(statement)
            .bind(project.as_str())
            .bind(now_ms)
            .fetch_one(&self.reader)
            .await
            .map_err(StoreError::during("count keys"))?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// Revokes a key by its prefix. Takes no turn: a key that leaked, and floods the project, must
    /// not hold up its own end.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn revoke_api_key(
        &self,
        project: &ProjectId,
        prefix: &str,
        now_ms: i64,
    ) -> Result<Revoked, StoreError> {
        let operation = "revoke a key";
        let mut writing = self.writer.begin(operation).await?;
        let query = sqlx::query(REVOKE)
            .bind(project.as_str())
            .bind(prefix)
            .bind(now_ms);
        let rows = writing.execute(query).await?;
        writing.commit().await?;
        // A revocation that is told and not kept lets in whoever was to be kept out.
        match self.key_is_revoked(project, prefix).await? {
            Some(true) if rows > 0 => Ok(Revoked::Now),
            Some(true) => Ok(Revoked::Before),
            None if rows == 0 => Ok(Revoked::Unknown),
            Some(false) | None => Err(StoreError::NotKept { operation }),
        }
    }
}

/// What became of a wish to revoke a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revoked {
    Now,
    /// It was revoked already.
    Before,
    /// The project has no such key.
    Unknown,
}

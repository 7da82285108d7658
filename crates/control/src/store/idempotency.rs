//! Keys that make a request repeatable.

use dayfly_types::ProjectId;

use super::writer::Writing;
use super::{RequestHash, Store, StoreError};

const INSERT: &str = "INSERT INTO idempotency_keys \
    (project_id, idempotency_key, request_hash, subject_id, created_at_ms, answer) \
    VALUES ($1, $2, $3, $4, $5, NULL) ON CONFLICT DO NOTHING";
const SELECT: &str = "SELECT request_hash, subject_id, answer FROM idempotency_keys \
    WHERE project_id = $1 AND idempotency_key = $2";
const SET_ANSWER: &str = "UPDATE idempotency_keys SET answer = $3 \
    WHERE project_id = $1 AND subject_id = $2";
/// Frees the key of a request that came to nothing.
pub(super) const DELETE: &str =
    "DELETE FROM idempotency_keys WHERE project_id = $1 AND subject_id = $2";

/// What makes a request repeatable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idempotency {
    pub key: String,
    /// Of everything that the caller asked for.
    pub request_hash: RequestHash,
}

/// What became of an insert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inserted {
    New,
    /// The key was used before with the same request, for this subject.
    Repeated(Subject),
    /// The key was used before with another request.
    Conflict,
}

/// What a request with a key is about: a sandbox, a snapshot or the tree of a fork.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    pub id: String,
    /// What the request left to be answered again. `None`: it has not ended, or never will.
    pub answer: Option<String>,
}

impl Store {
    /// Writes the key of a request that has no row of its own.
    ///
    /// # Errors
    /// [`StoreError`]; nothing was written.
    pub async fn insert_key(
        &self,
        project: &ProjectId,
        subject: &str,
        idempotency: &Idempotency,
        now_ms: i64,
    ) -> Result<Inserted, StoreError> {
        let operation = "insert an idempotency key";
        let mut writing = self.writer.begin_in_turn(project, operation).await?;
        let inserted = insert(project, subject, idempotency, now_ms, &mut writing).await?;
        writing.commit().await?;
        Ok(inserted)
    }

    /// Writes that the request about `subject` is done, with what a repeat needs.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn set_answer(
        &self,
        project: &ProjectId,
        subject: &str,
        answer: &str,
    ) -> Result<(), StoreError> {
        let operation = "write the answer of a request";
        let mut writing = self.writer.begin_in_turn(project, operation).await?;
        let query = sqlx::query(SET_ANSWER)
            .bind(project.as_str())
            .bind(subject)
            .bind(answer);
        writing.execute(query).await?;
        writing.commit().await
    }

    /// Frees the key of a request that came to nothing.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn forget_key(&self, project: &ProjectId, subject: &str) -> Result<(), StoreError> {
        let operation = "free an idempotency key";
        let mut writing = self.writer.begin_in_turn(project, operation).await?;
        let query = sqlx::query(DELETE).bind(project.as_str()).bind(subject);
        writing.execute(query).await?;
        writing.commit().await
    }
}

/// Writes a key, or says whose it is.
pub(super) async fn insert(
    project: &ProjectId,
    subject: &str,
    idempotency: &Idempotency,
    now_ms: i64,
    writing: &mut Writing,
) -> Result<Inserted, StoreError> {
    let insert = sqlx::query(INSERT)
        .bind(project.as_str())
        .bind(&idempotency.key)
        .bind(idempotency.request_hash.as_str())
        .bind(subject)
        .bind(now_ms);
    if writing.execute(insert).await? > 0 {
        return Ok(Inserted::New);
    }
    let known = sqlx::query_as(SELECT)
        .bind(project.as_str())
        .bind(&idempotency.key);
    let (hash, id, answer): (String, String, Option<String>) = writing.fetch_one(known).await?;
    if !idempotency.request_hash.is_of(&hash) {
        return Ok(Inserted::Conflict);
    }
    Ok(Inserted::Repeated(Subject { id, answer }))
}

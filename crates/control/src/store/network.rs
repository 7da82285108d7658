//! What sandboxes of one project may reach.

use dayfly_types::egress::EgressPolicy;
use dayfly_types::{ProjectId, SandboxId};

use super::row::{bigint, text};
use super::{Store, StoreError};

// Each change names both epochs that it knows of, so that of two at once one is told: a wider
// policy that is written changes the one, and one that is asked for the other.
const SET: &str = "UPDATE sandboxes SET egress = $5, egress_epoch = $6, egress_reserved = $6, \
    egress_changed_at_ms = $7 WHERE project_id = $1 AND id = $2 AND egress_epoch = $3 \
    AND egress_reserved = $4 AND deleted_at_ms IS NULL";
const RESERVE: &str = "UPDATE sandboxes SET egress_reserved = $5, egress_changed_at_ms = $6 \
    WHERE project_id = $1 AND id = $2 AND egress_epoch = $3 AND egress_reserved = $4 \
    AND deleted_at_ms IS NULL";
const CONFIRM: &str = "UPDATE sandboxes SET egress_confirmed = $3 \
    WHERE project_id = $1 AND id = $2 AND egress_epoch = $3";
const SELECT_DEFAULT: &str = "SELECT policy FROM network_defaults WHERE project_id = $1";
const SET_DEFAULT: &str = "INSERT INTO network_defaults (project_id, policy, changed_at_ms) \
    VALUES ($1, $2, $3) ON CONFLICT (project_id) DO UPDATE SET policy = excluded.policy, \
    changed_at_ms = excluded.changed_at_ms";

/// What a row says about the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressRow {
    pub policy: EgressPolicy,
    /// Of the policy.
    pub epoch: u64,
    /// The last that was given out. Above `epoch` while the node is asked for a wider policy.
    pub reserved: u64,
    /// The last that the node has confirmed.
    pub confirmed: u64,
    pub changed_at_ms: i64,
}

impl EgressRow {
    /// Of a sandbox that is yet to be made: the call that makes it carries the policy.
    #[must_use]
    pub const fn first(policy: EgressPolicy, now_ms: i64) -> Self {
        Self {
            policy,
            epoch: 1,
            reserved: 1,
            confirmed: 1,
            changed_at_ms: now_ms,
        }
    }

    /// Whether the node is asked for a wider policy, or the one who asked is gone.
    #[must_use]
    pub const fn is_widening(&self) -> bool {
        self.reserved != self.epoch
    }
}

/// A sandbox, and the epochs that its caller knows of.
#[derive(Debug, Clone, Copy)]
pub struct ExpectedEgress<'a> {
    pub project: &'a ProjectId,
    pub sandbox: &'a SandboxId,
    pub epoch: u64,
    pub reserved: u64,
}

impl Store {
    /// Writes a policy with its epoch, unless another change came first. Says whether it was
    /// written.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn set_egress(
        &self,
        of: ExpectedEgress<'_>,
        policy: &EgressPolicy,
        epoch: u64,
        now_ms: i64,
    ) -> Result<bool, StoreError> {
        let operation = "write a network policy";
        let mut writing = self.writer.begin_in_turn(of.project, operation).await?;
        let query = sqlx::query(SET)
            .bind(of.project.as_str())
            .bind(of.sandbox.as_str())
            .bind(bigint(of.epoch))
            .bind(bigint(of.reserved))
            .bind(text(policy))
            .bind(bigint(epoch))
            .bind(now_ms);
        let rows = writing.execute(query).await?;
        writing.commit().await?;
        Ok(rows > 0)
    }

    /// Gives out an epoch for a policy that the node is asked for first. Says whether it did.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn reserve_egress(
        &self,
        of: ExpectedEgress<'_>,
        epoch: u64,
        now_ms: i64,
    ) -> Result<bool, StoreError> {
        let operation = "reserve an epoch";
        let mut writing = self.writer.begin_in_turn(of.project, operation).await?;
        let query = sqlx::query(RESERVE)
            .bind(of.project.as_str())
            .bind(of.sandbox.as_str())
            .bind(bigint(of.epoch))
            .bind(bigint(of.reserved))
            .bind(bigint(epoch))
            .bind(now_ms);
        let rows = writing.execute(query).await?;
        writing.commit().await?;
        Ok(rows > 0)
    }

    /// Writes that the node goes by this epoch, if it is still the last.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn confirm_egress(
        &self,
        project: &ProjectId,
        id: &SandboxId,
        epoch: u64,
    ) -> Result<(), StoreError> {
        let mut writing = self.writer.begin("confirm a network policy").await?;
        let query = sqlx::query(CONFIRM)
            .bind(project.as_str())
            .bind(id.as_str())
            .bind(bigint(epoch));
        writing.execute(query).await?;
        writing.commit().await
    }

    /// What new sandboxes of the project may reach, when it has said so.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn network_default(
        &self,
        project: &ProjectId,
    ) -> Result<Option<EgressPolicy>, StoreError> {
        let found: Option<(String,)> = sqlx::query_as(SELECT_DEFAULT)
            .bind(project.as_str())
            .fetch_optional(&self.reader)
            .await
            .map_err(StoreError::during("read a network default"))?;
        let parse = |(policy,): (String,)| {
            serde_json::from_str(&policy).map_err(|_| StoreError::Corrupt {
                table: "network_defaults",
                column: "policy",
            })
        };
        found.map(parse).transpose()
    }

    /// # Errors
    /// [`StoreError`].
    pub async fn set_network_default(
        &self,
        project: &ProjectId,
        policy: &EgressPolicy,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let operation = "write a network default";
        let mut writing = self.writer.begin_in_turn(project, operation).await?;
        let query = sqlx::query(SET_DEFAULT)
            .bind(project.as_str())
            .bind(text(policy))
            .bind(now_ms);
        writing.execute(query).await?;
        writing.commit().await
    }
}

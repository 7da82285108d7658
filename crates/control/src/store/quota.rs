//! Whether a project has room for more sandboxes.

use dayfly_types::{ProjectId, SandboxId};

use super::projects;
use super::row::SandboxRow;
use super::writer::Writing;
use super::{Store, StoreError};

/// What the sandboxes of a project use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Used {
    pub sandboxes: u64,
    pub vcpus: u64,
    pub memory_mb: u64,
    /// Disks, in full, whatever is written to them.
    pub disk_mb: u64,
}

/// A limit of a project that a wish would pass. Nothing was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the project may have {limit} {what}, has {used}, and this asks for {wanted} more")]
pub struct OverQuota {
    pub what: &'static str,
    pub limit: u64,
    pub used: u64,
    pub wanted: u64,
}

impl OverQuota {
    /// Whether `wanted` fits beside `used`.
    ///
    /// # Errors
    /// [`OverQuota`].
    pub fn check(
        what: &'static str,
        limit: Option<u64>,
        used: u64,
        wanted: u64,
    ) -> Result<(), Self> {
        match limit {
            Some(limit) if used.saturating_add(wanted) > limit => Err(Self {
                what,
                limit,
                used,
                wanted,
            }),
            Some(_) | None => Ok(()),
        }
    }
}

impl From<(i64, i64, i64, i64)> for Used {
    fn from((sandboxes, vcpus, memory_mb, disk_mb): (i64, i64, i64, i64)) -> Self {
        let number = |number: i64| u64::try_from(number).unwrap_or(0);
        Self {
            sandboxes: number(sandboxes),
            vcpus: number(vcpus),
            memory_mb: number(memory_mb),
            disk_mb: number(disk_mb),
        }
    }
}

/// Whether the rows of one project fit. In the transaction that adds them, so that of two at once
/// the second sees the first.
pub(super) async fn check(
    project: &ProjectId,
    rows: &[SandboxRow],
    writing: &mut Writing,
) -> Result<Result<(), OverQuota>, StoreError> {
    let limits = projects::limits(project, writing).await?;
    let query = sqlx::query_as(projects::USED).bind(project.as_str());
    let used: (i64, i64, i64, i64) = writing.fetch_one(query).await?;
    let used = Used::from(used);
    let vcpus = rows.iter().map(|row| u64::from(row.cpu)).sum();
    let memory_mb = rows.iter().map(|row| row.memory_mb).sum();
    let disk_mb = rows.iter().map(|row| row.disk_mib).sum();
    let fits = OverQuota::check(
        "sandboxes",
        limits.sandboxes,
        used.sandboxes,
        rows.len() as u64,
    )
    .and_then(|()| OverQuota::check("vCPUs", limits.vcpus, used.vcpus, vcpus))
    .and_then(|()| OverQuota::check("MiB of memory", limits.memory_mb, used.memory_mb, memory_mb))
    .and_then(|()| OverQuota::check("MiB of disks", limits.disk_mb, used.disk_mb, disk_mb));
    Ok(fits)
}

/// Which way a sandbox is counted.
#[derive(Debug, Clone, Copy)]
pub(super) enum Count {
    In,
    Out,
}

/// Counts a sandbox as it is in its row now, unless that says that it was deleted. Out before a
/// change of its row, and in behind it, in one transaction.
pub(super) async fn count(
    which: Count,
    project: &ProjectId,
    sandbox: &SandboxId,
    writing: &mut Writing,
) -> Result<(), StoreError> {
    let times = match which {
        Count::In => 1_i64,
        Count::Out => -1,
    };
    let query = sqlx::query(projects::COUNT_SANDBOX)
        .bind(project.as_str())
        .bind(sandbox.as_str())
        .bind(times);
    writing.execute(query).await.map(drop)
}

impl Store {
    /// What the sandboxes of a project use.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn used(&self, project: &ProjectId) -> Result<Used, StoreError> {
        let used: (i64, i64, i64, i64) = sqlx::query_as(projects::USED)
            .bind(project.as_str())
            .fetch_one(&self.reader)
            .await
            .map_err(StoreError::during("read what a project uses"))?;
        Ok(used.into())
    }
}

//! What the sandboxes of all projects use, written at each sample.
//!
//! A sandbox keeps its newest samples and thins out older ones: a sample that stays has a number
//! which is divisible by a power of two that grows with its age. So each new one takes the place of
//! exactly one, and a life of any length has some more samples whenever it becomes twice as long.

use dayfly_node_api::ResourceUse;
use dayfly_types::SandboxState;
use dayfly_types::limits::SAMPLES_NEWEST;
use sqlx::FromRow;

use super::meter;
use super::row::bigint;
use super::usage_hours::{Amounts, NewUsage, Size};
use super::writer::Writing;
use super::{Store, StoreError};

const FIND: &str = "SELECT sandboxes.project_id, sandboxes.state, sandboxes.cpu, \
    sandboxes.memory_mb, sandbox_meters.counted_to_ms, \
    COALESCE(sandbox_meters.samples, 0) AS samples, \
    COALESCE(sandbox_meters.machine, '') AS machine, \
    COALESCE(sandbox_meters.machine_cpu_us, 0) AS machine_cpu_us, \
    COALESCE(sandbox_meters.machine_in_bytes, 0) AS machine_in_bytes, \
    COALESCE(sandbox_meters.machine_out_bytes, 0) AS machine_out_bytes, \
    COALESCE(sandbox_meters.cpu_us, 0) AS cpu_us, \
    COALESCE(sandbox_meters.in_bytes, 0) AS in_bytes, \
    COALESCE(sandbox_meters.out_bytes, 0) AS out_bytes \
    FROM sandboxes LEFT JOIN sandbox_meters ON sandbox_meters.sandbox_id = sandboxes.id \
    WHERE sandboxes.id = $1 AND sandboxes.deleted_at_ms IS NULL";
const SET: &str = "INSERT INTO sandbox_meters (sandbox_id, project_id, counted_to_ms, samples, \
    sampled_at_ms, machine, machine_cpu_us, machine_in_bytes, machine_out_bytes, cpu_us, in_bytes, \
    out_bytes) VALUES ($1, $2, $3, $4, $12, $5, $6, $7, $8, $9, $10, $11) \
    ON CONFLICT (sandbox_id) DO UPDATE SET counted_to_ms = $3, samples = $4, sampled_at_ms = $12, \
    machine = $5, machine_cpu_us = $6, machine_in_bytes = $7, machine_out_bytes = $8, \
    cpu_us = $9, in_bytes = $10, out_bytes = $11";
const ADD: &str = "INSERT INTO sandbox_samples (sandbox_id, number, at_ms, cpu_us, memory_bytes, \
    disk_bytes, in_bytes, out_bytes) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
const THIN: &str = "DELETE FROM sandbox_samples WHERE sandbox_id = $1 AND number = $2";
const SHIFT: &str = "UPDATE sandbox_meters SET counted_to_ms = counted_to_ms + $1 \
    WHERE counted_to_ms BETWEEN $2 AND $3";
const COUNT: &str = "SELECT COUNT(*) FROM sandbox_samples";
const FORGET: &str = "DELETE FROM sandbox_samples WHERE sandbox_id IN (SELECT sandbox_id \
    FROM sandbox_meters WHERE EXISTS (SELECT 1 FROM sandbox_samples \
    WHERE sandbox_samples.sandbox_id = sandbox_meters.sandbox_id) \
    ORDER BY sampled_at_ms LIMIT $1)";

/// More than any machine uses within a sample, so that no sum can run over.
const MORE_MAX: i64 = 1 << 50;
/// Sandboxes whose samples one transaction writes, so that nobody waits long for the writer.
const AT_ONCE: usize = 32;
/// Sandboxes that lose their samples at once when there are too many.
const FORGOTTEN_AT_ONCE: i64 = 16;

/// A sandbox and what is known of its use.
#[derive(Debug, FromRow)]
struct Known {
    project_id: String,
    state: String,
    cpu: i64,
    memory_mb: i64,
    counted_to_ms: Option<i64>,
    samples: i64,
    machine: String,
    machine_cpu_us: i64,
    machine_in_bytes: i64,
    machine_out_bytes: i64,
    cpu_us: i64,
    in_bytes: i64,
    out_bytes: i64,
}

impl Known {
    /// What was used since the last sample. Another machine has begun at zero; one that ran before
    /// there were meters, nobody knows where.
    fn since(&self, used: &ResourceUse) -> Amounts {
        if self.machine.is_empty() && self.counted_to_ms.is_none() {
            return Amounts::default();
        }
        let is_same = self.machine == used.machine;
        let more = |now: u64, before: i64| {
            let before = if is_same { before } else { 0 };
            bigint(now).saturating_sub(before).clamp(0, MORE_MAX)
        };
        Amounts {
            cpu_us: more(used.cpu_micros, self.machine_cpu_us),
            in_bytes: more(used.network_in_bytes, self.machine_in_bytes),
            out_bytes: more(used.network_out_bytes, self.machine_out_bytes),
            ..Amounts::default()
        }
    }

    /// Whether the sandbox has a machine as far as the rows know. One that is being deleted has it
    /// until it is gone.
    fn has_machine(&self) -> bool {
        let state = SandboxState::parse(&self.state);
        self.counted_to_ms.is_some() || state.is_some_and(SandboxState::has_machine)
    }
}

/// The sample whose place a new one takes.
fn thinned(number: i64) -> Option<i64> {
    let step = 1_i64.checked_shl(number.trailing_zeros())?;
    let behind = SAMPLES_NEWEST.checked_mul(step)?;
    Some(number - behind).filter(|old| *old > 0)
}

impl Store {
    /// Writes what sandboxes that have a machine use. What a process that is killed in between had
    /// not written, the next one counts.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn add_samples(&self, uses: &[ResourceUse], at_ms: i64) -> Result<(), StoreError> {
        let mut written = Ok(());
        for some in uses.chunks(AT_ONCE) {
            // Those behind one that cannot be written are written all the same.
            written = written.and(self.add_some(some, at_ms).await);
        }
        written
    }

    async fn add_some(&self, uses: &[ResourceUse], at_ms: i64) -> Result<(), StoreError> {
        let mut writing = self.writer.begin("write what sandboxes use").await?;
        let mut usage = NewUsage::default();
        for used in uses {
            add_sample(used, at_ms, &mut usage, &mut writing).await?;
        }
        usage.write(&mut writing).await?;
        writing.commit().await
    }

    /// Moves the places up to which running time is counted, when the wall clock was set: those that
    /// the old one can have written since the last sample.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn shift_meters(
        &self,
        by_ms: i64,
        (from_ms, to_ms): (i64, i64),
    ) -> Result<(), StoreError> {
        let mut writing = self.writer.begin("follow the clock").await?;
        let shift = sqlx::query(SHIFT).bind(by_ms).bind(from_ms).bind(to_ms);
        writing.execute(shift).await?;
        writing.commit().await
    }

    /// Forgets samples when there are more than `max`: those of sandboxes that slept longest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn trim_samples(&self, max: i64) -> Result<(), StoreError> {
        let counted: Result<i64, _> = sqlx::query_scalar(COUNT).fetch_one(&self.reader).await;
        let mut count = counted.map_err(StoreError::during("count samples"))?;
        while count > max {
            let mut writing = self.writer.begin("forget old samples").await?;
            let forget = sqlx::query(FORGET).bind(FORGOTTEN_AT_ONCE);
            let forgotten = writing.execute(forget).await?;
            writing.commit().await?;
            if forgotten == 0 {
                break;
            }
            count = count.saturating_sub_unsigned(forgotten);
        }
        Ok(())
    }
}

async fn add_sample(
    used: &ResourceUse,
    at_ms: i64,
    usage: &mut NewUsage,
    writing: &mut Writing,
) -> Result<(), StoreError> {
    let id = used.id.as_str();
    let found: Vec<Known> = writing.fetch_all(sqlx::query_as(FIND).bind(id)).await?;
    let Some(known) = found.into_iter().find(Known::has_machine) else {
        // Its row has yet to learn of the machine, or knows already that it is gone.
        return Ok(());
    };
    if let Some(from_ms) = known.counted_to_ms {
        let size = Size {
            vcpus: known.cpu,
            memory_mb: known.memory_mb,
        };
        usage.add_span(&known.project_id, size, from_ms, at_ms);
    }
    let since = known.since(used);
    usage.add(&known.project_id, at_ms, since);
    let number = known.samples + 1;
    let totals = [
        known.cpu_us.saturating_add(since.cpu_us),
        known.in_bytes.saturating_add(since.in_bytes),
        known.out_bytes.saturating_add(since.out_bytes),
    ];
    let [cpu_us, in_bytes, out_bytes] = totals;
    let set = sqlx::query(SET)
        .bind(id)
        .bind(&known.project_id)
        .bind(meter::place(known.counted_to_ms, at_ms))
        .bind(number)
        .bind(&used.machine)
        .bind(bigint(used.cpu_micros))
        .bind(bigint(used.network_in_bytes))
        .bind(bigint(used.network_out_bytes))
        .bind(cpu_us)
        .bind(in_bytes)
        .bind(out_bytes)
        .bind(at_ms);
    writing.execute(set).await?;
    let add = sqlx::query(ADD)
        .bind(id)
        .bind(number)
        .bind(at_ms)
        .bind(cpu_us)
        .bind(bigint(used.memory_bytes))
        .bind(bigint(used.disk_bytes))
        .bind(in_bytes)
        .bind(out_bytes);
    writing.execute(add).await?;
    if let Some(old) = thinned(number) {
        let thin = sqlx::query(THIN).bind(id).bind(old);
        writing.execute(thin).await?;
    }
    Ok(())
}

//! What an engine holds of guest memory for itself alone.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use dayfly_api::Sandbox;
use dayfly_host::memory::{MappingSelector, MappingUsage, mapping_usage};
use dayfly_node::journal::{Entry, Journal};

/// The template's image, and the layers over it, by how the names of their files end.
const GUEST_MEMORY_FILES: [&str; 2] = ["/memory.img", ".layer"];

/// Bytes of guest memory that differ from the files that they are mapped from. Nobody else shares
/// them: they are what this sandbox costs in memory beside its kin.
///
/// `node` is the node's part of the data directory, whose journal names the engine's process.
pub(crate) fn private_bytes(node: &Path, sandbox: &Sandbox) -> Result<u64> {
    let pid = engine_pid(node, &sandbox.id)?;
    let mut total = MappingUsage::default();
    for suffix in GUEST_MEMORY_FILES {
        let selector = MappingSelector::PathSuffix(suffix.to_owned());
        let usage = mapping_usage(pid, &selector).context("cannot read the engine's mappings")?;
        total.shared_mappings += usage.shared_mappings;
        total.size_bytes += usage.size_bytes;
        total.anonymous_bytes += usage.anonymous_bytes;
        total.swap_bytes += usage.swap_bytes;
    }
    // A mapping that was overlooked would make the figure better than it is.
    ensure!(
        total.size_bytes == sandbox.memory_mb << 20 && total.shared_mappings == 0,
        "the engine of {} maps {} bytes of {} MiB of guest memory",
        sandbox.id,
        total.size_bytes,
        sandbox.memory_mb
    );
    Ok(total.anonymous_bytes + total.swap_bytes)
}

fn engine_pid(node: &Path, id: &str) -> Result<i32> {
    let journal = Journal::open(&node.join("sandboxes")).context("cannot open the journal")?;
    let entries = journal.entries().context("cannot read the journal")?;
    let record = entries.into_iter().find_map(|entry| match entry {
        Entry::Record(record) if record.id.as_str() == id => Some(record),
        Entry::Record(_) | Entry::Unreadable { .. } | Entry::Empty { .. } => None,
    });
    let process = record.and_then(|record| record.phase.process());
    let process = process.with_context(|| format!("no engine of {id} is in the journal"))?;
    Ok(process.pid)
}

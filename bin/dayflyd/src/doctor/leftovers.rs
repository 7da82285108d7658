//! What exists of an instance and belongs to no known sandbox.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use dayfly_host::leftovers::{InstancePlaces, Leftover, find_leftovers};
use dayfly_installation::DataDirectory;
use dayfly_node::egress::EGRESS_GROUP;
use dayfly_node::glimpse::GlimpsedSlot;
use dayfly_node::journal::{Entry, Journal};
use dayfly_node_api::{BakeState, NodeCalls, NodeClient};
use dayfly_snapshots::container::IMAGES_GROUP;

/// What is on its way in or out when it is seen settles within this.
const SETTLE_TRIES: u32 = 20;
const SETTLE_PAUSE: Duration = Duration::from_millis(200);

/// Lists what nobody answers for. Looks again while something may just be on its way.
pub(crate) async fn find(directory: &DataDirectory) -> Result<Vec<Leftover>> {
    let mut left = look(directory).await?;
    for _ in 0..SETTLE_TRIES {
        if left.is_empty() {
            break;
        }
        tokio::time::sleep(SETTLE_PAUSE).await;
        left = look(directory).await?;
    }
    Ok(left)
}

async fn look(directory: &DataDirectory) -> Result<Vec<Leftover>> {
    let Some(instance) = directory.instance()? else {
        return Ok(Vec::new());
    };
    let places = InstancePlaces {
        instance: instance.instance,
        data_directory: directory.root().to_owned(),
        netns_directory: directory.node().join("netns"),
        slots_directory: directory.node().join("slots"),
    };
    let slots = slots_of_sandboxes(directory)?;
    let is_exact = slots.is_some();
    let mut known = slots.unwrap_or_default();
    let held = slots_of_the_node(directory).await?;
    let is_egress_needed = held.is_running || !known.is_empty() || !is_exact;
    known.extend(held.pool);
    let found = tokio::task::spawn_blocking(move || find_leftovers(&places)).await??;
    let mut unknown: Vec<Leftover> = found
        .into_iter()
        .filter(|item| !is_known(item, &known))
        .collect();
    let egress = directory.node().join("egress");
    unknown.retain(|item| !(is_egress_needed && is_of_the_egress(item, &egress)));
    if !is_exact {
        // Any of them may be the slot of a sandbox whose record cannot be read.
        unknown.retain(|item| slot_name(item).is_none());
    }
    // A bake holds one slot, of which the node does not tell the number.
    let strangers: BTreeSet<String> = unknown.iter().filter_map(slot_name).collect();
    if held.is_baking && strangers.len() == 1 {
        unknown.retain(|item| slot_name(item).is_none());
    }
    Ok(unknown)
}

/// The slots that belong to sandboxes, or `None` when that cannot be told.
fn slots_of_sandboxes(directory: &DataDirectory) -> Result<Option<BTreeSet<String>>> {
    let path = directory.node().join("sandboxes");
    if !path.exists() {
        return Ok(Some(BTreeSet::new()));
    }
    let entries = Journal::open(&path)?
        .entries()
        .context("cannot read the journal")?;
    let mut slots = BTreeSet::new();
    for entry in entries {
        match entry {
            Entry::Record(record) => {
                slots.extend(record.phase.slot().map(|slot| slot.0.to_string()))
            }
            Entry::Unreadable { glimpse, .. } => match glimpse.slot {
                GlimpsedSlot::Named(slot) => {
                    slots.insert(slot.0.to_string());
                }
                GlimpsedSlot::None => {}
                GlimpsedSlot::Unknown => return Ok(None),
            },
            Entry::Empty { .. } => {}
        }
    }
    Ok(Some(slots))
}

struct Held {
    is_running: bool,
    pool: BTreeSet<String>,
    is_baking: bool,
}

async fn slots_of_the_node(directory: &DataDirectory) -> Result<Held> {
    let mut held = Held {
        is_running: directory.running()?.is_some(),
        pool: BTreeSet::new(),
        is_baking: false,
    };
    if !held.is_running {
        return Ok(held);
    }
    let node = NodeClient::new(directory.node_socket());
    // A node that is being started again answers for nothing yet; the caller looks again.
    if let Ok(status) = node.status().await {
        held.pool = status.held_slots.iter().map(u32::to_string).collect();
    }
    if let Ok(templates) = node.templates().await {
        held.is_baking = templates
            .iter()
            .any(|report| matches!(report.state, BakeState::Baking { .. }));
    }
    Ok(held)
}

fn is_known(item: &Leftover, known: &BTreeSet<String>) -> bool {
    slot_name(item).is_some_and(|name| known.contains(&name))
}

const GROUPS_BESIDE_SLOTS: [&str; 2] = [EGRESS_GROUP, IMAGES_GROUP];

/// The process that lets sandboxes out runs for as long as there is a daemon or a sandbox; the one
/// that reads images runs now and then.
fn is_of_the_egress(item: &Leftover, directory: &Path) -> bool {
    match item {
        Leftover::Cgroup { name } => GROUPS_BESIDE_SLOTS.contains(&name.as_str()),
        Leftover::Process { cgroup, .. } => cgroup
            .as_deref()
            .is_some_and(|group| GROUPS_BESIDE_SLOTS.contains(&group)),
        Leftover::Mount { mount_point: path }
        | Leftover::NetworkNamespace { path, .. }
        | Leftover::SlotDirectory { path } => path.starts_with(directory),
    }
}

/// The slot that a thing belongs to, by its name.
fn slot_name(item: &Leftover) -> Option<String> {
    let last = |path: &Path| {
        path.file_name()
            .map(|name| name.to_string_lossy().into_owned())
    };
    match item {
        Leftover::Cgroup { name } => Some(name.clone()),
        Leftover::Process { cgroup, .. } => cgroup.clone(),
        Leftover::NetworkNamespace { path, .. } | Leftover::SlotDirectory { path } => last(path),
        Leftover::Mount { mount_point } => last(mount_point),
    }
}

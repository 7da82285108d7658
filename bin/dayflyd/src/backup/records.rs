//! The sandboxes of a node: which sleep, and which are left out.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use dayfly_installation::DataDirectory;
use dayfly_node::journal::{Entry, Journal, SandboxRecord};
use dayfly_types::{SandboxId, SandboxState, SnapshotId};

use super::contents::LeftOut;
use super::output::Output;

const RECORD: &str = "record.json";
/// As a node makes them; nobody but root comes this far.
const DIRECTORY_MODE: u32 = 0o755;
const RECORD_MODE: u32 = 0o644;

/// What the journal says.
#[derive(Debug)]
pub(super) struct Records {
    directory: PathBuf,
    journal: Journal,
    pub(super) asleep: BTreeMap<SandboxId, SandboxRecord>,
    pub(super) unreadable: Vec<SandboxId>,
    awake: BTreeMap<SandboxId, String>,
}

impl Records {
    pub(super) fn read(directory: &DataDirectory) -> Result<Self> {
        let directory = directory.node().join("sandboxes");
        let mut records = Self {
            journal: Journal::open(&directory)?,
            directory,
            asleep: BTreeMap::new(),
            unreadable: Vec::new(),
            awake: BTreeMap::new(),
        };
        let entries = records
            .journal
            .entries()
            .context("cannot read the journal")?;
        for entry in entries {
            match entry {
                Entry::Record(record) if record.state() == SandboxState::Hibernated => {
                    records.asleep.insert(record.id.clone(), *record);
                }
                Entry::Record(record) => {
                    let why = format!("it is {}", record.state().as_str());
                    records.awake.insert(record.id, why);
                }
                Entry::Unreadable { id, .. } => records.unreadable.push(id),
                Entry::Empty { .. } => {}
            }
        }
        Ok(records)
    }

    /// The captures that sandboxes sleep in.
    pub(super) fn captures(&self) -> impl Iterator<Item = &SnapshotId> {
        self.asleep
            .values()
            .flat_map(|record| record.phase.captures())
    }

    /// Whether a sandbox sleeps on, as it did when its record was read.
    pub(super) fn sleeps_on(&self, id: &SandboxId) -> bool {
        let Entry::Record(now) = self.journal.look(id.clone()) else {
            return false;
        };
        self.asleep.get(id).is_some_and(|then| {
            // That its slot is given back meanwhile changes nothing about its sleep.
            then.generation == now.generation && now.state() == SandboxState::Hibernated
        })
    }

    /// Leaves out one that woke.
    pub(super) fn leave_out(&mut self, id: &SandboxId) {
        if self.asleep.remove(id).is_some() {
            let why = "it woke while its volumes were copied".to_owned();
            self.awake.insert(id.clone(), why);
        }
    }

    pub(super) fn left_out(&self) -> Vec<LeftOut> {
        let awake = self.awake.iter();
        awake
            .map(|(id, why)| LeftOut {
                sandbox: id.to_string(),
                why: why.clone(),
            })
            .collect()
    }

    pub(super) fn add_to(&self, output: &mut Output<'_>) -> Result<()> {
        output.directory("node/sandboxes", &self.directory)?;
        for (id, record) in &self.asleep {
            // One that is deleted meanwhile is still held, with everything that it needs. The
            // database, which was copied after it was read, may have it deleted again.
            let path = format!("node/sandboxes/{id}");
            output.directory_of_mode(&path, DIRECTORY_MODE)?;
            let text = serde_json::to_vec_pretty(record)?;
            output.bytes(&format!("{path}/{RECORD}"), RECORD_MODE, &text)?;
            let source = self.directory.join(id.as_str());
            for item in std::fs::read_dir(&source).into_iter().flatten().flatten() {
                let name = item.file_name().to_string_lossy().into_owned();
                let is_file = item.file_type().is_ok_and(|kind| kind.is_file());
                if is_file && !name.starts_with(RECORD) && item.path().exists() {
                    output.changing(&format!("{path}/{name}"), &item.path())?;
                }
            }
        }
        for id in &self.unreadable {
            let source = self.directory.join(id.as_str());
            output.changing_tree(&format!("node/sandboxes/{id}"), &source)?;
        }
        Ok(())
    }
}

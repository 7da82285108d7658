//! What can be told of a record that this program cannot read.
//!
//! Every later format keeps three fields where they are, by name and meaning: `format`, `id` and
//! `slot` (`docs/adr/0017-kept.md`). So an older program knows which slot it has to leave alone;
//! where it does not, it leaves all of them alone that no other record names.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use dayfly_types::ProjectId;
use dayfly_vmm::{MachineSpec, SlotIndex};
use serde_json::Value;

/// The slot of a record that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GlimpsedSlot {
    /// It may have any.
    #[default]
    Unknown,
    None,
    Named(SlotIndex),
}

/// What is known of a sandbox without its record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Glimpse {
    pub project: Option<ProjectId>,
    pub slot: GlimpsedSlot,
    pub machine: Option<MachineSpec>,
}

impl Glimpse {
    /// Looks at a file of which at most `bytes_max` bytes are read. Whatever goes wrong, less is
    /// known.
    pub(crate) fn of(path: &Path, bytes_max: u64) -> Self {
        let mut text = Vec::new();
        let read =
            fs::File::open(path).and_then(|file| file.take(bytes_max).read_to_end(&mut text));
        let value = match read {
            Ok(_) => serde_json::from_slice(&text).unwrap_or(Value::Null),
            Err(_) => Value::Null,
        };
        Self {
            project: field(&value, "project"),
            slot: match value.get("slot") {
                Some(Value::Null) => GlimpsedSlot::None,
                Some(_) => field(&value, "slot").map_or(GlimpsedSlot::Unknown, GlimpsedSlot::Named),
                None => GlimpsedSlot::Unknown,
            },
            machine: field(&value, "machine"),
        }
    }
}

fn field<T: serde::de::DeserializeOwned>(value: &Value, name: &str) -> Option<T> {
    serde_json::from_value(value.get(name)?.clone()).ok()
}

//! Records of the node's journal.
//!
//! What is promised for any file: no panic; the sandbox is listed, with a record or as one that
//! cannot be read; and what was read, written again, is read as the same.

use std::cell::OnceCell;
use std::path::PathBuf;

use dayfly_node::journal::{Journal, SandboxRecord};
use tempfile::TempDir;

use super::{Inputs, texts};

const ID: &str = "sb-local-1";

struct Place {
    directory: TempDir,
    journal: Journal,
}

impl Place {
    fn make() -> Option<Self> {
        // In memory where that is possible: what is asked for here is no disk's.
        let parent = PathBuf::from("/dev/shm");
        let directory = tempfile::tempdir_in(parent).or_else(|_| tempfile::tempdir());
        let directory = directory.ok()?;
        std::fs::create_dir(directory.path().join(ID)).ok()?;
        let journal = Journal::open(directory.path()).ok()?;
        Some(Self { directory, journal })
    }
}

thread_local! {
    static PLACE: OnceCell<Option<Place>> = const { OnceCell::new() };
}

pub(super) fn check(input: &[u8]) {
    PLACE.with(|place| {
        if let Some(place) = place.get_or_init(Place::make) {
            check_file(place, input);
        }
    });
    let Ok(record) = serde_json::from_slice::<SandboxRecord>(input) else {
        return;
    };
    let text = serde_json::to_vec(&record).unwrap_or_default();
    let again = serde_json::from_slice::<SandboxRecord>(&text);
    assert!(
        matches!(&again, Ok(again) if *again == record),
        "written again it is {again:?}"
    );
}

fn check_file(place: &Place, input: &[u8]) {
    let path = place.directory.path().join(ID).join("record.json");
    if std::fs::write(path, input).is_err() {
        return;
    }
    let entries = place.journal.entries();
    assert!(
        matches!(&entries, Ok(entries) if entries.len() == 1),
        "the sandbox is not listed: {entries:?}"
    );
}

pub(super) fn seeds() -> Inputs {
    let newest = include_str!("../../../crates/node/schema/journal-3.json");
    texts(&[
        include_str!("../../../crates/node/schema/journal-1.json"),
        include_str!("../../../crates/node/schema/journal-2.json"),
        newest,
        &newest.replace("\"format\": 3", "\"format\": 4"),
        &newest[..newest.len() / 2],
    ])
}

//! Environment variables of sandboxes that were read lately. A command reads nothing else from the
//! database, and takes less time than that.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dayfly_types::SandboxId;

use crate::sandbox::environment::{Environment, bytes};

/// Most sandboxes have none, which costs little.
const ENTRIES_MAX: usize = 4096;
const BYTES_MAX: usize = 4 << 20;

#[derive(Debug, Default)]
pub(crate) struct KnownEnvironments(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    kept: HashMap<SandboxId, Environment>,
    bytes: usize,
    /// Another number after every change: what was read before it is not kept, of whatever sandbox.
    changes: u64,
}

impl KnownEnvironments {
    fn known(&self) -> MutexGuard<'_, Known> {
        // Every change leaves the map whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, id: &SandboxId) -> Option<Environment> {
        self.known().kept.get(id).cloned()
    }

    /// To be asked before the database is.
    pub(crate) fn changes(&self) -> u64 {
        self.known().changes
    }

    /// Keeps what was read, unless something has changed since.
    pub(crate) fn keep(&self, id: &SandboxId, environment: &Environment, changes: u64) {
        let mut known = self.known();
        if known.changes != changes {
            return;
        }
        let more = bytes(environment.variables());
        if known.kept.len() >= ENTRIES_MAX || known.bytes.saturating_add(more) > BYTES_MAX {
            known.kept.clear();
            known.bytes = 0;
        }
        let before = known.kept.insert(id.clone(), environment.clone());
        let before = before.map_or(0, |before| bytes(before.variables()));
        known.bytes = known.bytes.saturating_add(more).saturating_sub(before);
    }

    /// Held while those of a sandbox are changed, whatever becomes of that: afterwards they are read
    /// again. Those of others stay.
    pub(crate) fn change<'a>(&'a self, id: &'a SandboxId) -> Changing<'a> {
        Changing { known: self, id }
    }

    fn forget(&self, id: &SandboxId) {
        let mut known = self.known();
        let gone = known.kept.remove(id);
        let gone = gone.map_or(0, |gone| bytes(gone.variables()));
        known.bytes = known.bytes.saturating_sub(gone);
        known.changes += 1;
    }
}

/// A change that may be under way.
#[derive(Debug)]
pub(crate) struct Changing<'a> {
    known: &'a KnownEnvironments,
    id: &'a SandboxId,
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.known.forget(self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn environment(value: &str) -> Environment {
        let variables = BTreeMap::from([("A".to_owned(), value.to_owned())]);
        Environment::parse(variables).unwrap()
    }

    fn id(number: usize) -> SandboxId {
        SandboxId::parse(&format!("sb-local-{number}")).unwrap()
    }

    #[test]
    fn what_was_read_before_a_change_is_not_kept_after_it_and_others_stay() {
        let known = KnownEnvironments::default();
        let before = known.changes();
        known.keep(&id(1), &environment("old"), before);
        assert_eq!(known.get(&id(1)), Some(environment("old")));
        let (changed, other) = (id(1), id(2));
        known.keep(&other, &environment("other"), before);
        let changing = known.change(&changed);
        // Of somebody who read while it was written.
        known.keep(&id(1), &environment("old"), before);
        drop(changing);
        assert_eq!(known.get(&id(1)), None);
        assert_eq!(known.get(&other), Some(environment("other")));
        assert_eq!(known.known().bytes, bytes(environment("other").variables()));
        known.keep(&id(1), &environment("old"), before);
        assert_eq!(known.get(&id(1)), None);
        known.keep(&id(1), &environment("new"), known.changes());
        assert_eq!(known.get(&id(1)), Some(environment("new")));
    }

    #[test]
    fn it_holds_no_more_than_it_may() {
        let known = KnownEnvironments::default();
        let long = environment(&"x".repeat(100 << 10));
        for number in 0..200 {
            known.keep(&id(number), &long, 0);
            // The same again takes no more room.
            known.keep(&id(number), &long, 0);
            let held: usize = known
                .known()
                .kept
                .values()
                .map(|one| bytes(one.variables()))
                .sum();
            assert_eq!(held, known.known().bytes);
            assert!(held <= BYTES_MAX);
        }
        for number in 0..2 * ENTRIES_MAX {
            known.keep(&id(number), &Environment::default(), 0);
        }
        assert!(known.known().kept.len() <= ENTRIES_MAX);
    }
}

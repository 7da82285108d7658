//! The sandboxes of a node, by id.
//!
//! Whoever looks at all of them takes a page at a time, so that a create or a call to one of them
//! never waits for a look at fifty thousand.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dayfly_types::{ProjectId, SandboxId};

use crate::sandbox::SandboxHandle;

/// Handles that are copied while the table is held.
const PAGE: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct SandboxTable {
    by_id: BTreeMap<SandboxId, SandboxHandle>,
    /// How many each project has, those with none left out.
    of_project: HashMap<ProjectId, usize>,
}

impl SandboxTable {
    pub(crate) fn get(&self, id: &SandboxId) -> Option<&SandboxHandle> {
        self.by_id.get(id)
    }

    pub(crate) fn contains_key(&self, id: &SandboxId) -> bool {
        self.by_id.contains_key(id)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub(crate) fn insert(&mut self, id: SandboxId, handle: SandboxHandle) {
        let project = handle.report().project.clone();
        // The owner of another of the same id has forgotten it before.
        self.remove(&id);
        self.by_id.insert(id, handle);
        *self.of_project.entry(project).or_default() += 1;
    }

    pub(crate) fn remove(&mut self, id: &SandboxId) {
        let Some(handle) = self.by_id.remove(id) else {
            return;
        };
        let project = &handle.report().project;
        if let Some(count) = self.of_project.get_mut(project) {
            *count -= 1;
            if *count == 0 {
                self.of_project.remove(project);
            }
        }
    }

    /// Whether any sandbox is another project's.
    pub(crate) fn has_other_than(&self, project: &ProjectId) -> bool {
        let own = usize::from(self.of_project.contains_key(project));
        self.of_project.len() > own
    }

    fn page(&self, after: Option<&SandboxId>) -> Vec<SandboxHandle> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let rest = self.by_id.range::<SandboxId, _>((start, Bound::Unbounded));
        rest.take(PAGE).map(|(_, handle)| handle.clone()).collect()
    }
}

/// Every sandbox that was there from the beginning of this to its end, and some of the others.
pub(crate) fn all_of(table: &Mutex<SandboxTable>) -> impl Iterator<Item = SandboxHandle> {
    let mut page = Vec::new().into_iter();
    let mut last: Option<SandboxId> = None;
    std::iter::from_fn(move || {
        if page.len() == 0 {
            page = lock(table).page(last.as_ref()).into_iter();
        }
        let next: SandboxHandle = page.next()?;
        last = Some(next.id.clone());
        Some(next)
    })
}

pub(crate) fn lock(table: &Mutex<SandboxTable>) -> MutexGuard<'_, SandboxTable> {
    // Nothing in a change of it can panic.
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

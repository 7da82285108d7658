//! Places that all projects share, of which no project can take all.
//!
//! A project may have half of what the others leave, so that whoever comes next finds a place
//! whatever one project does. Each further greedy project halves what is left.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dayfly_types::ProjectId;

/// The places of one kind.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    max: usize,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Debug, Default)]
struct Taken {
    total: usize,
    /// Only of those that have any.
    of: HashMap<ProjectId, usize>,
}

/// One place of a project, until it is dropped.
#[derive(Debug)]
pub(crate) struct SharedPlace {
    taken: Arc<Mutex<Taken>>,
    project: ProjectId,
}

impl Shared {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            max,
            taken: Arc::default(),
        }
    }

    /// A place for a project; `None` when it has its share, or when there is none at all.
    pub(crate) fn take(&self, project: &ProjectId) -> Option<SharedPlace> {
        let mut taken = lock(&self.taken);
        let own = taken.of.get(project).copied().unwrap_or(0);
        let left_by_others = self.max.saturating_sub(taken.total - own);
        if taken.total >= self.max || own >= left_by_others.div_ceil(2) {
            return None;
        }
        taken.total += 1;
        *taken.of.entry(project.clone()).or_insert(0) += 1;
        Some(SharedPlace {
            taken: Arc::clone(&self.taken),
            project: project.clone(),
        })
    }
}

impl Drop for SharedPlace {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        taken.total = taken.total.saturating_sub(1);
        if let Some(own) = taken.of.get_mut(&self.project) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                taken.of.remove(&self.project);
            }
        }
    }
}

fn lock(taken: &Mutex<Taken>) -> MutexGuard<'_, Taken> {
    // Nothing between the two changes can panic.
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_it_gets(places: &Shared, name: &str) -> Vec<SharedPlace> {
        let project = ProjectId::parse(name).unwrap();
        std::iter::from_fn(|| places.take(&project)).collect()
    }

    #[test]
    fn nobody_can_take_what_another_needs_first() {
        let places = Shared::new(512);
        let counts = ["a", "b", "c", "d"].map(|name| {
            let held = all_it_gets(&places, name);
            let count = held.len();
            std::mem::forget(held);
            count
        });
        assert_eq!(counts, [256, 128, 64, 32]);
    }

    #[test]
    fn places_come_back_and_one_is_enough_for_one() {
        let places = Shared::new(8);
        let held = all_it_gets(&places, "a");
        assert_eq!((held.len(), all_it_gets(&places, "b").len()), (4, 2));
        drop(held);
        assert_eq!(all_it_gets(&places, "b").len(), 4);
        assert!(
            lock(&places.taken).of.is_empty(),
            "nothing stays of who is done"
        );
        assert_eq!(all_it_gets(&Shared::new(1), "a").len(), 1);
        assert_eq!(all_it_gets(&Shared::new(0), "a").len(), 0);
    }

    #[test]
    fn all_together_never_have_more_than_there_is() {
        let places = Shared::new(5);
        let names: Vec<String> = (0..9).map(|number| format!("p{number}")).collect();
        let held: Vec<_> = names
            .iter()
            .flat_map(|name| all_it_gets(&places, name))
            .collect();
        assert_eq!(held.len(), 5);
    }
}

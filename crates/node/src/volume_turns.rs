//! Who may work on a volume now.
//!
//! Two kinds of work: a change of its record, which is short and waited for, and a maintenance
//! (made, grown, removed), which takes programs and whole disks and is not waited for. No map is
//! locked during either, so work on one volume keeps nobody from another.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What is being done to one volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Change,
    Maintenance,
}

/// The work under way, by volume.
#[derive(Debug)]
pub(crate) struct Turns<K: Ord> {
    busy: Mutex<BTreeMap<K, Work>>,
    over: Condvar,
}

impl<K: Ord> Default for Turns<K> {
    fn default() -> Self {
        Self {
            busy: Mutex::default(),
            over: Condvar::new(),
        }
    }
}

/// The volume is maintained by somebody else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Maintained;

/// Keeps everybody else from a volume for as long as it lives.
#[derive(Debug)]
pub(crate) struct Turn<'a, K: Ord + Clone> {
    turns: &'a Turns<K>,
    key: K,
}

impl<K: Ord + Clone> Drop for Turn<'_, K> {
    fn drop(&mut self) {
        self.turns.lock().remove(&self.key);
        self.turns.over.notify_all();
    }
}

impl<K: Ord + Clone> Turns<K> {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<K, Work>> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For a change of the record. Blocks while another change is under way.
    ///
    /// # Errors
    /// [`Maintained`]; nobody waits for that.
    pub(crate) fn change(&self, key: &K) -> Result<Turn<'_, K>, Maintained> {
        let free = self.wait_for(key, |work| work == Work::Change);
        self.begin(free, key, Work::Change)
    }

    /// For a maintenance. Blocks while a change is under way.
    ///
    /// # Errors
    /// [`Maintained`] by somebody else already.
    pub(crate) fn maintenance(&self, key: &K) -> Result<Turn<'_, K>, Maintained> {
        let free = self.wait_for(key, |work| work == Work::Change);
        self.begin(free, key, Work::Maintenance)
    }

    /// For a change that must not be refused: blocks while anything is under way. What a lease is
    /// taken back from is not maintained for long, because it has a user.
    pub(crate) fn certain_change(&self, key: &K) -> Turn<'_, K> {
        let mut free = self.wait_for(key, |_| true);
        free.insert(key.clone(), Work::Change);
        self.turn(key)
    }

    /// Waits while work of this kind is under way.
    fn wait_for(&self, key: &K, waits: impl Fn(Work) -> bool) -> MutexGuard<'_, BTreeMap<K, Work>> {
        let mut busy = self.lock();
        while busy.get(key).is_some_and(|work| waits(*work)) {
            let waited = self.over.wait(busy);
            busy = waited.unwrap_or_else(PoisonError::into_inner);
        }
        busy
    }

    fn begin(
        &self,
        mut busy: MutexGuard<'_, BTreeMap<K, Work>>,
        key: &K,
        work: Work,
    ) -> Result<Turn<'_, K>, Maintained> {
        if busy.contains_key(key) {
            return Err(Maintained);
        }
        busy.insert(key.clone(), work);
        Ok(self.turn(key))
    }

    fn turn(&self, key: &K) -> Turn<'_, K> {
        Turn {
            turns: self,
            key: key.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn changes_wait_for_each_other_and_for_no_other_volume() {
        let turns = Turns::default();
        let first = turns.change(&1).unwrap();
        turns.change(&2).unwrap();
        let (begun, has_begun) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _second = turns.change(&1).unwrap();
                begun.send(()).unwrap();
            });
            // The other can only wait: it has no turn while the first lives.
            assert!(has_begun.try_recv().is_err());
            drop(first);
            has_begun.recv_timeout(Duration::from_secs(10)).unwrap();
        });
        turns.change(&1).unwrap();
    }

    #[test]
    fn only_what_must_not_be_refused_waits_for_a_maintenance() {
        let turns = Turns::default();
        let maintenance = turns.maintenance(&1).unwrap();
        assert_eq!(turns.change(&1).unwrap_err(), Maintained);
        assert_eq!(turns.maintenance(&1).unwrap_err(), Maintained);
        let (begun, has_begun) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _certain = turns.certain_change(&1);
                begun.send(()).unwrap();
            });
            assert!(has_begun.try_recv().is_err());
            drop(maintenance);
            has_begun.recv_timeout(Duration::from_secs(10)).unwrap();
        });
        turns.change(&1).unwrap();
    }
}

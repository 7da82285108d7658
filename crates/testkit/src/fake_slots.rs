//! Slots without root: temporary directories, and processes that are only numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use dayfly_types::CpuMillis;
use dayfly_types::limits::SLOTS_MAX;
use dayfly_vmm::{
    CpuWeight, EngineCommand, EngineProcess, EngineView, LaunchError, Slot, SlotError, SlotIndex,
    SlotProvider, VmExit,
};
use tempfile::TempDir;
use tokio::sync::watch;

use crate::faults::{Fault, Faults, Ordered};

/// Beyond any pid that a kernel gives out, so that a signal to one of these reaches nobody.
const FIRST_PID: i32 = 1_000_000_000;

/// What can be made to go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotOperation {
    Acquire,
    Reopen,
    Launch,
    Release,
    List,
}

/// A [`SlotProvider`] for tests. Its slots outlive the node under test, as real ones do.
#[derive(Debug)]
pub struct FakeSlots {
    root: PathBuf,
    /// Removes the directory at the end.
    _directory: TempDir,
    faults: Faults<SlotOperation>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    held: BTreeSet<SlotIndex>,
    processes: BTreeMap<i32, FakeProcess>,
    next_pid: i32,
    cpu: BTreeMap<SlotIndex, CpuMillis>,
    weights: BTreeMap<SlotIndex, CpuWeight>,
}

#[derive(Debug)]
struct FakeProcess {
    slot: SlotIndex,
    process: EngineProcess,
    exit: watch::Sender<Option<VmExit>>,
}

impl FakeSlots {
    /// # Errors
    /// When no temporary directory can be made.
    pub fn new() -> io::Result<Self> {
        let directory = tempfile::tempdir()?;
        let state = State {
            held: BTreeSet::new(),
            processes: BTreeMap::new(),
            next_pid: FIRST_PID,
            cpu: BTreeMap::new(),
            weights: BTreeMap::new(),
        };
        Ok(Self {
            root: directory.path().canonicalize()?,
            _directory: directory,
            faults: Faults::default(),
            state: Mutex::new(state),
        })
    }

    #[must_use]
    pub fn faults(&self) -> &Faults<SlotOperation> {
        &self.faults
    }

    /// What a slot's engine was held to.
    #[must_use]
    pub fn cpu_limit(&self, index: SlotIndex) -> Option<CpuMillis> {
        self.state().cpu.get(&index).copied()
    }

    /// How the engines that still run stand beside each other.
    #[must_use]
    pub fn weights(&self) -> Vec<CpuWeight> {
        let state = self.state();
        let alive = (state.processes.values()).filter(|one| one.exit.borrow().is_none());
        let weight = |one: &FakeProcess| state.weights.get(&one.slot).copied();
        alive.filter_map(weight).collect()
    }

    /// The processes that still run, in the order of their start.
    #[must_use]
    pub fn running(&self) -> Vec<EngineProcess> {
        let state = self.state();
        let alive = state
            .processes
            .values()
            .filter(|process| process.exit.borrow().is_none());
        alive.map(|process| process.process).collect()
    }

    /// Ends a process from outside, as a crash does. `false` when it does not run.
    pub fn end(&self, process: EngineProcess, exit: VmExit) -> bool {
        let state = self.state();
        let found = state
            .processes
            .get(&process.pid)
            .filter(|found| found.process == process);
        found.is_some_and(|found| found.end(exit))
    }

    /// Tells of a process's end. `None` when there is no such process, or its pid is another's.
    #[must_use]
    pub fn watch(&self, process: EngineProcess) -> Option<watch::Receiver<Option<VmExit>>> {
        let state = self.state();
        let found = state
            .processes
            .get(&process.pid)
            .filter(|found| found.process == process)?;
        Some(found.exit.subscribe())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self, index: SlotIndex) -> Slot {
        let run_directory = self.root.join(index.0.to_string());
        Slot {
            index,
            engine_run_directory: run_directory.clone(),
            run_directory,
            engine_view: EngineView::Bare,
        }
    }

    /// Plays out an order: an error, or a call that never comes back.
    async fn fault(&self, operation: SlotOperation) -> Result<(), Ordered> {
        match self.faults.next(operation) {
            None => Ok(()),
            Some(Fault::Fail | Fault::Exit) => Err(Ordered),
            Some(Fault::Hang) => std::future::pending().await,
        }
    }
}

impl FakeProcess {
    fn end(&self, exit: VmExit) -> bool {
        self.exit
            .send_if_modified(|now| now.is_none() && now.replace(exit).is_none())
    }
}

#[async_trait]
impl SlotProvider for FakeSlots {
    async fn acquire(&self) -> Result<Slot, SlotError> {
        let failed = |error| step(SlotIndex(0), "acquire", error);
        self.fault(SlotOperation::Acquire).await.map_err(failed)?;
        let mut state = self.state();
        let free = (0..SLOTS_MAX)
            .map(SlotIndex)
            .find(|index| !state.held.contains(index));
        let index = free.ok_or(SlotError::Exhausted { limit: SLOTS_MAX })?;
        let slot = self.slot(index);
        std::fs::create_dir(&slot.run_directory)
            .map_err(|error| step(index, "make the run directory", error))?;
        state.held.insert(index);
        Ok(slot)
    }

    async fn reopen(&self, index: SlotIndex) -> Result<Slot, SlotError> {
        self.fault(SlotOperation::Reopen)
            .await
            .map_err(|error| step(index, "reopen", error))?;
        if !self.state().held.contains(&index) {
            let absent = io::Error::from(io::ErrorKind::NotFound);
            return Err(step(index, "reopen", absent));
        }
        Ok(self.slot(index))
    }

    async fn launch(
        &self,
        slot: &Slot,
        _command: EngineCommand,
    ) -> Result<EngineProcess, LaunchError> {
        let failed = |error| LaunchError::Step {
            step: "launch".to_owned(),
            source: Box::new(error),
        };
        self.fault(SlotOperation::Launch).await.map_err(failed)?;
        let mut state = self.state();
        let pid = state.next_pid;
        state.next_pid += 1;
        let process = EngineProcess {
            pid,
            start_time_ticks: u64::from(pid.unsigned_abs()) + 7,
        };
        let exit = watch::Sender::new(None);
        state.weights.insert(slot.index, CpuWeight::Starting);
        state.processes.insert(
            pid,
            FakeProcess {
                slot: slot.index,
                process,
                exit,
            },
        );
        Ok(process)
    }

    async fn limit_cpu(&self, index: SlotIndex, cpu: CpuMillis) -> Result<(), SlotError> {
        self.state().cpu.insert(index, cpu);
        Ok(())
    }

    async fn weigh_cpu(&self, index: SlotIndex, weight: CpuWeight) -> Result<(), SlotError> {
        self.state().weights.insert(index, weight);
        Ok(())
    }

    async fn close_directory(&self, _slot: &Slot) -> Result<(), SlotError> {
        Ok(())
    }

    async fn release(&self, index: SlotIndex) -> Result<(), SlotError> {
        self.fault(SlotOperation::Release)
            .await
            .map_err(|error| step(index, "release", error))?;
        let mut state = self.state();
        state.processes.retain(|_, process| {
            let stays = process.slot != index;
            if !stays {
                process.end(VmExit::Signaled { signal: 9 });
            }
            stays
        });
        match std::fs::remove_dir_all(self.slot(index).run_directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(step(index, "remove the run directory", error));
            }
            Ok(()) | Err(_) => {}
        }
        state.held.remove(&index);
        Ok(())
    }

    async fn list(&self) -> Result<Vec<SlotIndex>, SlotError> {
        let failed = |error| step(SlotIndex(0), "list", error);
        self.fault(SlotOperation::List).await.map_err(failed)?;
        Ok(self.state().held.iter().copied().collect())
    }
}

fn step(
    slot: SlotIndex,
    what: &'static str,
    source: impl std::error::Error + Send + Sync + 'static,
) -> SlotError {
    SlotError::Step {
        slot,
        what,
        source: Box::new(source),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_failed_release_leaves_the_slot_listed_and_a_repeat_clears_it() {
        let slots = FakeSlots::new().unwrap();
        let slot = slots.acquire().await.unwrap();
        slots.faults().order(SlotOperation::Release, 1, Fault::Fail);
        slots.release(slot.index).await.unwrap_err();
        assert_eq!(slots.list().await.unwrap(), [slot.index]);
        assert!(slot.run_directory.exists());
        slots.release(slot.index).await.unwrap();
        slots.release(slot.index).await.unwrap();
        assert!(slots.list().await.unwrap().is_empty());
        assert!(!slot.run_directory.exists());
    }

    #[tokio::test]
    async fn an_ordered_acquire_fails_and_holds_nothing() {
        let slots = FakeSlots::new().unwrap();
        slots.faults().order(SlotOperation::Acquire, 2, Fault::Fail);
        slots.acquire().await.unwrap();
        slots.acquire().await.unwrap_err();
        assert_eq!(slots.list().await.unwrap().len(), 1);
        slots.acquire().await.unwrap();
    }
}

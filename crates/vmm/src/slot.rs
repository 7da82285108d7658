//! The host resources of one vm, and the port through which a driver starts its process in them.

use std::path::PathBuf;

use async_trait::async_trait;
use dayfly_types::{CpuMillis, MemoryMib, Vcpus};
pub use dayfly_types::{EngineProcess, SlotIndex};
use serde::{Deserialize, Serialize};

use crate::capabilities::Accelerator;

/// One acquired slot, as plain data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    pub index: SlotIndex,
    /// The directory that only this slot's engine can write, as the host sees it.
    pub run_directory: PathBuf,
    /// The same directory as the engine sees it (`/run` in a jail, the same path without one).
    pub engine_run_directory: PathBuf,
    /// Where mounted directories appear to the engine: `/template` in a jail.
    pub engine_view: EngineView,
}

/// How the engine sees files outside its run directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineView {
    /// Every [`EngineMount`] appears at its target.
    Jailed,
    /// Host paths are engine paths; mounts are not made.
    Bare,
}

/// A host file or directory that the engine may read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineMount {
    pub host: PathBuf,
    pub target: PathBuf,
}

impl EngineMount {
    /// The path that goes on the engine's command line.
    #[must_use]
    pub fn engine_path(&self, view: EngineView) -> PathBuf {
        match view {
            EngineView::Jailed => self.target.clone(),
            EngineView::Bare => self.host.clone(),
        }
    }
}

/// What the kernel holds an engine to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotLimits {
    /// Guest memory; the engine's own overhead is added by the provider.
    pub memory: MemoryMib,
    pub vcpus: Vcpus,
}

/// How an engine stands beside others that want the same CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuWeight {
    /// It waits to be used or is brought up: what runs for somebody goes first.
    Starting,
    /// User code runs in it. All of these are equal.
    Running,
}

/// A process to start in a slot.
#[derive(Debug, Clone)]
pub struct EngineCommand {
    /// The directory that becomes `/`, where the provider makes jails.
    pub root: PathBuf,
    /// As the root has it.
    pub program: PathBuf,
    pub arguments: Vec<String>,
    /// Read-only mounts. The run directory is always there, read-write.
    pub mounts: Vec<EngineMount>,
    /// Nothing else is in the environment.
    pub environment: Vec<(String, String)>,
    /// Device nodes beyond `/dev/null` and `/dev/urandom`, such as `/dev/kvm`.
    pub devices: Vec<PathBuf>,
    pub limits: SlotLimits,
    /// What runs the guest, and so what the process needs of the kernel.
    pub accelerator: Accelerator,
}

/// Why an engine process was not started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("cannot start the engine: step {step} failed")]
    Step {
        step: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Why a slot operation failed.
#[derive(Debug, thiserror::Error)]
pub enum SlotError {
    #[error("all {limit} slots are taken")]
    Exhausted { limit: u32 },
    #[error("cannot {what} of slot {slot}", slot = slot.0)]
    Step {
        slot: SlotIndex,
        what: &'static str,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Makes and ends slots. The real one needs root; the fake one needs nothing.
#[async_trait]
pub trait SlotProvider: Send + Sync + std::fmt::Debug + 'static {
    /// Makes a fresh slot: run directory, cgroup, namespaces. Nothing runs in it.
    async fn acquire(&self) -> Result<Slot, SlotError>;

    /// Finds a slot that an earlier life of this program made.
    async fn reopen(&self, index: SlotIndex) -> Result<Slot, SlotError>;

    /// Starts an engine in the slot.
    async fn launch(
        &self,
        slot: &Slot,
        command: EngineCommand,
    ) -> Result<EngineProcess, LaunchError>;

    /// Holds the engine of the slot to this much processor time.
    async fn limit_cpu(&self, index: SlotIndex, cpu: CpuMillis) -> Result<(), SlotError>;

    /// Says how the engine of the slot stands beside others. It is launched as one that starts.
    async fn weigh_cpu(&self, index: SlotIndex, weight: CpuWeight) -> Result<(), SlotError>;

    /// Ends the time in which the slot's engine may make files: what lies in its run directory now
    /// is all that it can write. Its sockets must be there. May be repeated.
    async fn close_directory(&self, slot: &Slot) -> Result<(), SlotError>;

    /// Kills whatever runs in the slot and removes every resource of it. May be repeated, also
    /// after a crash in the middle of itself.
    async fn release(&self, index: SlotIndex) -> Result<(), SlotError>;

    /// Every slot of which anything is left on this host, from kernel facts.
    async fn list(&self) -> Result<Vec<SlotIndex>, SlotError>;
}

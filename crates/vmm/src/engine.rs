//! The traits that a driver implements.

use std::fmt;
use std::path::Path;

use async_trait::async_trait;
use dayfly_types::DiskMib;
use serde::{Deserialize, Serialize};

use crate::capabilities::Capabilities;
use crate::error::{
    AdoptError, BootError, ControlError, EngineCaptureError, ParkError, RestoreError, SealError,
};
use crate::give_back::{FrameRange, GiveBackError, GivenBack};
use crate::slot::{EngineProcess, Slot};
use crate::spec::{BootSpec, CaptureSpec, Captured, MemoryCapture, RestoreSpec};

/// An engine product on this host.
///
/// # Contract
/// * Every future may be dropped: what it started can then be found through its slot (cgroup and
///   run directory), and [`crate::SlotProvider::release`] ends it.
/// * A driver never sees an operation that its [`Capabilities`] exclude.
#[async_trait]
pub trait Engine: Send + Sync + std::fmt::Debug + 'static {
    /// Of the installed build, which boots and, where nothing else is asked for, restores.
    fn capabilities(&self) -> &Capabilities;

    /// Earlier builds that can still restore what they saved, oldest first. May become fewer.
    fn kept(&self) -> Vec<Capabilities> {
        Vec::new()
    }

    /// Starts a machine from nothing, in the installed build.
    async fn boot(&self, slot: &Slot, spec: &BootSpec) -> Result<Box<dyn Vm>, BootError>;

    /// Starts a process that waits for [`ParkedVm::restore`]. Its memory image and disks are fixed
    /// by `spec`; no guest instruction runs.
    async fn park(&self, slot: &Slot, spec: &RestoreSpec) -> Result<Box<dyn ParkedVm>, ParkError>;

    /// Takes over a machine that an earlier life of this program started.
    async fn adopt(&self, slot: &Slot, process: EngineProcess) -> Result<Box<dyn Vm>, AdoptError>;
}

/// An engine process that has loaded nothing yet.
#[async_trait]
pub trait ParkedVm: Send + Sync + std::fmt::Debug + 'static {
    fn process(&self) -> EngineProcess;

    /// Loads the device state and lets the guest run.
    async fn restore(self: Box<Self>) -> Result<Box<dyn Vm>, RestoreError>;
}

/// One running or paused machine, owned by exactly one task.
#[async_trait]
pub trait Vm: Send + Sync + std::fmt::Debug + 'static {
    fn process(&self) -> EngineProcess;

    /// Stops the guest's processors. Repeating it changes nothing.
    async fn pause(&mut self) -> Result<(), ControlError>;

    /// Lets the guest's processors run. Repeating it changes nothing.
    async fn resume(&mut self) -> Result<(), ControlError>;

    /// Copies memory for a capture that is yet to come, while the guest runs: what differs from
    /// what was restored at the first call for a layer, what was written since the call before at
    /// each further one. Answers how many bytes that were. `None` when this machine cannot tell what
    /// it writes; then nothing was copied.
    ///
    /// A call that failed or was dropped begins anew, or leaves everything to the capture.
    async fn copy_ahead(
        &mut self,
        memory: &MemoryCapture,
    ) -> Result<Option<u64>, EngineCaptureError>;

    /// Writes the device state, and the memory that differs from what was restored. The machine
    /// must be paused and stays so. Nothing is synced to disk; that can wait until it runs again.
    /// What [`Vm::copy_ahead`] has copied to the same layer is not copied again.
    async fn capture(&mut self, spec: &CaptureSpec) -> Result<Captured, EngineCaptureError>;

    /// Notes from now on what the guest writes, for a [`Vm::give_back`] that is yet to come.
    /// `memory_bytes` is how much memory the machine has. Says whether this machine can give memory
    /// back at all. What was copied ahead for a capture has to be copied anew afterwards.
    async fn note_writes(&mut self, memory_bytes: u64) -> Result<bool, GiveBackError>;

    /// Gives memory back to the host: frames that the guest has said to be free since the call
    /// before, if they differ from what was restored and were not written since that call. They are
    /// what was restored then. Does nothing when that is less than `least_bytes`.
    ///
    /// The machine, which must run, stands still for moments. A call that was dropped may leave it
    /// so.
    async fn give_back(
        &mut self,
        free: &[FrameRange],
        least_bytes: u64,
    ) -> Result<GivenBack, GiveBackError>;

    /// Makes an empty disk layer of that name in the run directory and has the engine open it, so
    /// that [`Vm::seal_disk`] is quick. Repeating it with the same name changes nothing.
    async fn prepare_seal(&mut self, layer: &str, empty_layer: &Path) -> Result<(), SealError>;

    /// From now on the guest writes to the layer of that name; the file before it is not written
    /// again. The machine must be paused. Answers with the name of the sealed file, in the run
    /// directory.
    async fn seal_disk(&mut self, layer: &str) -> Result<String, SealError>;

    /// The name of the file that the guest's writes go to, in the run directory.
    async fn writable_disk(&mut self) -> Result<String, ControlError>;

    /// Enlarges the writable disk of a running machine and tells the guest.
    async fn grow_disk(&mut self, size: DiskMib) -> Result<(), ControlError>;

    /// Tells the guest the size of a volume that took the place of a spare disk.
    async fn announce_volume(&mut self, spare: u8, bytes: u64) -> Result<(), ControlError>;

    /// Resolves when the engine process has ended, for any reason. Cancel safe, repeatable.
    async fn wait(&mut self) -> VmExit;

    /// Resolves when something befalls the machine that nobody asked for. Cancel safe, repeatable.
    /// What had happened already when this is first asked is told as well.
    async fn next_event(&mut self) -> VmEvent;

    /// Whether the guest stands still because a write of it waits for room on the host's disk.
    async fn waits_for_room(&mut self) -> Result<bool, ControlError>;

    /// The last of what the guest wrote to its console and nobody has read yet. It is the guest's
    /// own text, and may be anything; it is empty where nothing was written or kept.
    async fn console(&mut self) -> Result<String, ControlError>;

    /// Ends the process at once and waits until it is gone. Repeating it changes nothing.
    async fn kill(&mut self) -> Result<(), ControlError>;
}

/// What befell a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VmEvent {
    Ended(VmExit),
    /// The guest will not run again. Its engine is still there, for a look at the console, and has
    /// to be killed.
    GuestEnded(GuestEnd),
    /// The host's disk has no room for a write of the guest, which stands still until
    /// [`Vm::resume`] tries the write again. Nothing of it is lost.
    WaitsForRoom,
    /// A write failed for another reason, and the guest was told. What its disk holds is in doubt.
    /// Told once for each driver object.
    WriteFailed,
}

/// Why a guest will not run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuestEnd {
    /// It switched its machine off or reset it. So does a kernel that panics.
    ShutDown,
    /// Its processor met something that the engine cannot go on from.
    CannotRun,
}

impl fmt::Display for GuestEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ShutDown => "the guest switched its machine off, or panicked",
            Self::CannotRun => "the engine cannot run the guest any more",
        })
    }
}

/// How an engine process ended, as far as can be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VmExit {
    /// The process is gone. An adopted process is nobody's child, so it has no exit code.
    Gone,
    Exited {
        code: i32,
    },
    Signaled {
        signal: i32,
    },
}

/// The signal of a system call that a process may not make.
const BAD_SYSTEM_CALL: i32 = 31;

impl fmt::Display for VmExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("nobody knows how"),
            Self::Exited { code } => write!(f, "exit code {code}"),
            Self::Signaled {
                signal: BAD_SYSTEM_CALL,
            } => f.write_str("signal 31, for a system call that is not on its list"),
            Self::Signaled { signal } => write!(f, "signal {signal}"),
        }
    }
}

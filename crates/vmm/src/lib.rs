//! The engine port: what Dayfly asks of a virtual machine monitor and of the slot it runs in.
//!
//! Plain data and three traits, [`Engine`], [`ParkedVm`] and [`Vm`].
//! No driver's words may appear here: QEMU, Firecracker and the fake fit the same port, and one
//! conformance suite (`dayfly-testkit`) keeps them honest. Start reading at [`engine`].
#![forbid(unsafe_code)]

pub mod capabilities;
pub mod engine;
pub mod error;
pub mod give_back;
pub mod slot;
pub mod spec;

pub use capabilities::{Accelerator, Capabilities, CaptureKind, EngineBuild, EngineKind};
pub use engine::{Engine, GuestEnd, ParkedVm, Vm, VmEvent, VmExit};
pub use error::{
    AdoptError, BootError, ControlError, EngineCaptureError, ParkError, RestoreError, SealError,
};
pub use give_back::{FrameRange, GiveBackError, GivenBack};
pub use slot::{
    CpuWeight, EngineCommand, EngineMount, EngineProcess, EngineView, LaunchError, Slot, SlotError,
    SlotIndex, SlotLimits, SlotProvider,
};
pub use spec::{
    Afterwards, BasePart, BootMemory, BootSpec, CaptureSpec, Captured, DiskFiles, MachineSpec,
    MemoryCapture, MemoryImage, MemoryLayer, PAGE_BYTES, PagePatch, PageRange, RestoreSpec,
    VolumeFile, file_names,
};

//! What tests of other crates stand on: a clock that they move, slots without root, an engine
//! without a hypervisor, and the suites that every driver and every node must pass.
//!
//! Only ever a development dependency. It must not know the node or the control plane, which test
//! themselves with it. Start reading at [`fake_engine`], [`conformance`] and [`node_conformance`].
#![forbid(unsafe_code)]

pub mod clock;
pub mod conformance;
pub mod fake_engine;
pub mod fake_guest;
pub mod fake_slots;
mod fake_vm;
pub mod faults;
pub mod issuer;
mod kernel;
pub mod node_conformance;
pub mod trace_receiver;

pub use clock::TestClock;
pub use fake_engine::{
    EngineOperation, FakeEngine, GuestFactory, GuestOrigin, GuestSockets, echo_guests,
};
pub use fake_guest::{FakeGuest, FakeVolume, GuestFault};
pub use fake_slots::{FakeSlots, SlotOperation};
pub use faults::{Fault, Faults};
pub use kernel::kernel_notes_writes;

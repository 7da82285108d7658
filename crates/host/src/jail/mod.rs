//! The contract between the node and `dayfly-jail`, the small program that puts an engine process
//! into its slot: what the slot is made of, how to launch it, and how a launch reports.
//!
//! The jail is closed by construction: [`JailSpec`] can name what is let in, never what privilege
//! is kept. Capabilities, groups, set-user-id, new privileges and core files are always off. It
//! knows of the program that it executes which list of system calls is its own, and must not know
//! what its arguments mean.

pub mod calls;
mod launch;
mod report;
mod spec;

pub use calls::{Allowed, CallList, Condition, JAIL_FILTERS, JailCalls, OtherCalls, SystemCall};
pub use launch::{JailLaunchError, launch};
pub use report::{JailReport, JailStep, REPORT_BYTES_MAX};
pub use spec::{
    BindMount, InvalidSpec, JailSpec, MountAccess, NULL_DEVICE, ResourceLimits, SPEC_BYTES_MAX,
};

//! Linux, for the rest of Dayfly: control groups, namespaces, the network of a slot, the jail of
//! an engine process, pidfds, durable files, unix sockets, and what the kernel says about all of
//! these.
//!
//! This crate carries out and reports; it decides nothing. It must not know sandboxes, engines,
//! snapshots or the wire. It is the one place where unsafe code may stand, and only in [`sys`].
//!
//! Functions that are not `async` may block for a moment on the disk or the kernel; those that
//! wait for something take a limit. Call them from a blocking task.
//!
//! Paths that reach the kernel as the source of a mount, as a socket to dial or as a tree to
//! remove are resolved without following symbolic links in any component, because below a slot's
//! directory a hostile engine may have planted one. Hand in canonical paths.
//!
//! Start reading at [`jail`] (what a slot is made of) and [`posture`] (how to check that it held).
#![deny(unsafe_code)]

pub mod cgroup;
pub mod clock;
pub mod engine_root;
pub mod files;
pub mod guest_memory;
pub mod jail;
mod kernel_switches;
pub mod leftovers;
pub mod memory;
pub mod memory_pressure;
pub mod mounts;
pub mod net;
pub mod netns;
pub mod posture;
pub mod privileges;
pub mod probe;
pub mod process;
pub mod processor;
pub mod sys;
pub mod unix;

pub use cgroup::{Cgroup, CgroupLimits, CgroupTree, CgroupUsage};
pub use clock::HostClock;
pub use jail::{JailLaunchError, JailSpec, launch};
pub use posture::{Expected, Posture, differences};
pub use process::{Pidfd, ProcessIdentity};

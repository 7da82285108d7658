//! The way out of this node's sandboxes: who may use it, and the record of its use.
//!
//! ```text
//! owner of a sandbox --permit, withdraw--> EgressGate --> dayfly-egress (a process of its own)
//!                                              records <--
//! ```
//! A sandbox without a permit reaches nothing: its namespace has no way out, and nobody listens
//! where its packets are led. So every failure here is a denial. Start reading at [`EgressGate`],
//! then [`HostEgress`].

mod audit;
mod gate;
mod host_gate;
mod log;
mod process;
mod spool;
mod spool_files;
mod tally;

pub use audit::{EgressHome, audit};
pub use gate::{EgressGate, EgressPermit, GateError, NoEgress};
pub use host_gate::HostEgress;
pub use log::{LogError, NetworkLogs};
pub use process::{EGRESS_GROUP, EgressProcess, StartEgressError};
pub use spool::{EgressSpool, SpoolError};

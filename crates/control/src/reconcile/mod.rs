//! Brings rows and node together. Takes no input and may be stopped anywhere.
//!
//! One task watches the node. Each time it connects, and at intervals, it compares: what the rows
//! want gone is deleted on the node, what the node lost is marked as deleted, and what the node
//! has without a row is adopted after a while. All of this only while node and database know each
//! other. Beside that, network policies that the node has not confirmed are sent until it has, and
//! what sandboxes use is written at intervals.

mod acquaintance;
mod network;
mod sample;
mod sweep;
mod watch;

pub use sweep::Sweep;
pub use watch::watch;

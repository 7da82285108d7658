//! Disks that outlive sandboxes.

pub mod change;
pub(crate) mod http;
pub(crate) mod mounts;

//! Snapshots of sandboxes.

pub(crate) mod http;
pub(crate) mod name;
pub mod read;
pub mod take;

//! Snapshots of sandboxes.

pub(crate) mod http;
pub mod read;
pub mod take;

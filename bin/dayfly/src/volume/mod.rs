//! Volumes.

pub(crate) mod commands;
pub(crate) mod mounts;

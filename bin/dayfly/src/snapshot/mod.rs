//! Snapshots.

pub(crate) mod commands;

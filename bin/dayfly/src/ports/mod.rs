//! Services of a sandbox.

pub(crate) mod args;
pub(crate) mod links;

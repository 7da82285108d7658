//! Templates.

pub(crate) mod commands;

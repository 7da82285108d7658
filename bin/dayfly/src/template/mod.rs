//! Templates.

pub(crate) mod commands;
mod variants;

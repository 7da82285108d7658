//! Templates.

pub(crate) mod args;
pub(crate) mod build;
pub(crate) mod build_view;
pub(crate) mod commands;
mod variants;
pub(crate) mod version_commands;

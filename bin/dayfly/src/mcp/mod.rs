//! The MCP server for one client, and how clients are told of it.

pub(crate) mod args;
mod clients;
mod config_file;
pub(crate) mod install;
mod json_text;
pub(crate) mod serve;

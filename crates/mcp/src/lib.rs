//! The MCP server: sandboxes as tools of a model, for any client that speaks the Model Context
//! Protocol.
//!
//! It is a client of the public API with the caller's key, and of nothing else: what the key may not
//! do, no tool does. What the tools are called and take is in `sdk/tools/tools.json`, and how
//! results read in `sdk/tools/texts.json`, which the SDKs use too. [`stdio`] serves one client over
//! standard input and output, [`http`] many over HTTP. Start reading at [`McpServer`].
#![forbid(unsafe_code)]

mod arguments;
mod definition;
mod error;
mod home;
pub mod http;
mod named_sandbox;
mod names;
mod network;
mod output;
mod resources;
mod server;
pub mod stdio;
mod text;
mod tools;

pub use definition::{ToolDefinition, definitions};
pub use home::{HomeKind, HomeSettings, SandboxReach};
pub use server::McpServer;

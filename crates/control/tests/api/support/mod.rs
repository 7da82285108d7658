//! What the tests share.

pub(crate) mod fake_context;
mod fake_exec;
mod fake_files;
pub(crate) mod fake_identity;
mod fake_ingress;
mod fake_list;
pub(crate) mod fake_network;
pub(crate) mod fake_node;
pub(crate) mod fake_state;
mod fake_status;
mod fake_templates;
pub(crate) mod fake_variants;
pub(crate) mod log;
pub(crate) mod mcp;
pub(crate) mod service;
pub(crate) mod small_disk;
pub(crate) mod world;

pub(crate) use fake_exec::{Step, exited};
pub(crate) use fake_node::{made, template};
pub(crate) use fake_variants::variant;
pub(crate) use world::{Answer, Setup, World, eventually, raise_descriptor_limit};

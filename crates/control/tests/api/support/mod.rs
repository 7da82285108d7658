//! What the tests share.

pub(crate) mod fake_exec;
pub(crate) mod fake_node;
pub(crate) mod fake_state;
pub(crate) mod world;

pub(crate) use fake_exec::{Step, exited};
pub(crate) use fake_node::template;
pub(crate) use world::{Answer, Setup, World, eventually};

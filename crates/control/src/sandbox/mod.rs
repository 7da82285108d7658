//! Sandboxes: made, found, listed, forked, put to sleep and deleted.

pub(crate) mod adopt;
pub(crate) mod class;
pub mod create;
pub mod delete;
pub mod environment;
pub(crate) mod events_http;
pub mod fork;
pub mod fork_spec;
pub(crate) mod forks_http;
pub(crate) mod http;
pub(crate) mod known_environments;
pub(crate) mod lifetime;
pub mod list;
pub(crate) mod list_query;
pub(crate) mod metadata;
pub mod name;
pub mod origin;
pub mod promote;
pub mod read;
pub(crate) mod samples_http;
pub(crate) mod size;
pub mod spec;
pub mod state;
pub(crate) mod states_http;

//! Files of a sandbox.

pub mod byte_range;
pub(crate) mod edit_http;
pub(crate) mod http;
pub(crate) mod links_http;
pub mod path;
pub(crate) mod query;
pub mod spec;
pub(crate) mod transfer;
pub(crate) mod tree_http;
pub(crate) mod watch_http;

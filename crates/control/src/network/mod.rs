//! What a sandbox may reach, and what it tried.

pub(crate) mod denials;
pub(crate) mod error;
pub(crate) mod http;
pub(crate) mod log_http;
pub(crate) mod presets;
pub mod read;
pub(crate) mod rule;
pub mod set;
pub(crate) mod spec;
pub(crate) mod suggest;

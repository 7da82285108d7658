//! What a sandbox may reach, and what it tried.

pub(crate) mod args;
pub(crate) mod denials;
pub(crate) mod log;
pub(crate) mod net;

//! Contexts: interpreters that keep their state between runs.

pub(crate) mod context;
pub(crate) mod environment;
pub(crate) mod http;
pub(crate) mod parameter;
pub(crate) mod run;

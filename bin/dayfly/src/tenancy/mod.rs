//! Servers, projects, keys and what was done with them.

pub(crate) mod args;
pub(crate) mod audit;
pub(crate) mod context_file;
pub(crate) mod events;
pub(crate) mod hours;
pub(crate) mod limit_changes;
pub(crate) mod local_access;
pub(crate) mod local_daemon;
pub(crate) mod local_login;
pub(crate) mod login;
pub(crate) mod project;
pub(crate) mod project_state;
pub(crate) mod sign_in;
pub(crate) mod token;

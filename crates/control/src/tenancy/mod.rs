//! Projects, their keys and what they may use.

pub(crate) mod hours_http;
pub mod key;
pub(crate) mod key_ends;
pub(crate) mod project_end;
pub(crate) mod projects;
pub(crate) mod projects_http;
pub mod scope;
pub(crate) mod sign_in;
pub(crate) mod sign_in_http;
pub mod sign_in_settings;
pub(crate) mod suspension;
pub(crate) mod tokens;
pub(crate) mod tokens_http;
pub(crate) mod usage;
pub(crate) mod whose;

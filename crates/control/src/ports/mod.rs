//! Services of a sandbox, as others reach them.

pub(crate) mod gateway_http;
pub(crate) mod http;
pub(crate) mod links;
pub(crate) mod wait;

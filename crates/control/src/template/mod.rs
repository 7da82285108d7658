//! What sandboxes are made from.

pub(crate) mod http;
pub mod read;
pub(crate) mod variant;

//! What sandboxes are made from.

pub(crate) mod failures;
pub(crate) mod http;
pub(crate) mod images;
pub(crate) mod order;
pub mod read;
pub(crate) mod reference;
pub(crate) mod strays;
pub(crate) mod variant;
pub(crate) mod versions;
pub(crate) mod versions_http;

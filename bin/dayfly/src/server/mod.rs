//! The server, and this program.

pub(crate) mod manual;
pub(crate) mod node;
pub(crate) mod version;
pub(crate) mod whoami;

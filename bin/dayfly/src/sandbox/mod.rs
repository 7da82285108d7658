//! Sandboxes: made, listed, forked, put to sleep and removed.

mod amounts;
pub(crate) mod args;
pub(crate) mod create;
pub(crate) mod creation;
pub(crate) mod explore;
pub(crate) mod fork;
pub(crate) mod info;
pub(crate) mod life;
pub(crate) mod ls;
pub(crate) mod prefixes;
pub(crate) mod progress;
pub(crate) mod promote;
pub(crate) mod removal;
pub(crate) mod rm;
pub(crate) mod state;
pub(crate) mod top;
pub(crate) mod ttl;

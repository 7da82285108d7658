//! Files of a sandbox, and copies of them.

pub(crate) mod args;
pub(crate) mod copy_progress;
pub(crate) mod cp;
pub(crate) mod cp_tree;
pub(crate) mod fs;
mod link;
pub(crate) mod local_tree;
pub(crate) mod places;

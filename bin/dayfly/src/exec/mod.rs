//! Commands in a sandbox.

pub(crate) mod guest_output;
pub(crate) mod local_input;
pub(crate) mod log_output;
pub(crate) mod logs;
pub(crate) mod process;
pub(crate) mod ps;
pub(crate) mod run;
pub(crate) mod signal_names;
pub(crate) mod start;
pub(crate) mod terminal;

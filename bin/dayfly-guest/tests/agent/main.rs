//! The agent as an ordinary process, driven by the real client over socket pairs.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what fails in a test must fail the test"
)]

mod conversation;
mod durable;
mod durable_input;
mod exec;
mod execs;
mod file_changes;
mod file_paths;
mod file_trees;
mod file_watch;
mod files;
mod hostile_archives;
mod hostile_host;
mod pause;
mod raw;
mod socket;
mod support;
mod terminal;

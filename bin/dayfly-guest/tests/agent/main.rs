//! The agent as an ordinary process, driven by the real client over socket pairs.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what fails in a test must fail the test"
)]

mod conversation;
mod exec;
mod files;
mod pause;
mod support;

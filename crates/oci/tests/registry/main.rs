//! Registries: a real one, and ones that lie.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

mod hostile;
mod real;
mod redirects;
mod server;
mod sign_in;

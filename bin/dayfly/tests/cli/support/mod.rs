//! A server with the shape of the public API and no machines, and the program run against it.

mod files;
mod guest;
mod network;
mod ports;
pub(crate) mod processes;
pub(crate) mod program;
pub(crate) mod screen;
pub(crate) mod server;
mod state;
mod streams;
mod tenancy;

pub(crate) use program::Program;
pub(crate) use screen::Screen;
pub(crate) use server::FakeServer;

use std::future::Future;
use std::time::Duration;

/// Longer than anything here takes; a test that reaches it has failed.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// Waits for `future`, but not for ever.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited too long: {what}"),
    }
}

//! The runtime that every program runs on, and how it is told to stop.

use std::future::Future;
use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Why a program cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    #[error("cannot start the runtime")]
    Start { source: io::Error },
    #[error("cannot watch for {name}")]
    Watch {
        name: &'static str,
        source: io::Error,
    },
}

/// Runs a future on a fresh runtime.
///
/// # Errors
/// What the future fails with, and [`RuntimeError::Start`].
pub fn block_on<T, E: From<RuntimeError>>(
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|source| RuntimeError::Start { source })?;
    runtime.block_on(work)
}

/// A token that SIGTERM and SIGINT cancel.
///
/// # Errors
/// [`RuntimeError::Watch`].
pub fn stop_on_signal() -> Result<CancellationToken, RuntimeError> {
    let stop = CancellationToken::new();
    let mut terminate = watch(SignalKind::terminate(), "SIGTERM")?;
    let mut interrupt = watch(SignalKind::interrupt(), "SIGINT")?;
    let token = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        token.cancel();
    });
    Ok(stop)
}

fn watch(kind: SignalKind, name: &'static str) -> Result<Signal, RuntimeError> {
    signal(kind).map_err(|source| RuntimeError::Watch { name, source })
}

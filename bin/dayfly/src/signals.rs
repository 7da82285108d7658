//! The signals that ask to stop.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit_status;
use crate::failure::CommandError;

/// SIGINT, SIGTERM and SIGHUP. From its making on, they no longer end the program by themselves.
#[derive(Debug)]
pub(crate) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl StopSignals {
    pub(crate) fn install() -> Result<Self, CommandError> {
        let open = |kind| {
            signal(kind).map_err(|source| CommandError::local("cannot listen for signals", source))
        };
        Ok(Self {
            interrupt: open(SignalKind::interrupt())?,
            terminate: open(SignalKind::terminate())?,
            hang_up: open(SignalKind::hangup())?,
        })
    }

    /// The number of the next signal. Cancel safe.
    pub(crate) async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.interrupt.recv() => 2,
            _ = self.terminate.recv() => 15,
            _ = self.hang_up.recv() => 1,
        }
    }
}

/// Does the work, or drops it when somebody asks to stop.
pub(crate) async fn unless_stopped<T>(
    work: impl Future<Output = Result<T, CommandError>>,
) -> Result<T, CommandError> {
    let mut signals = StopSignals::install()?;
    tokio::select! {
        outcome = work => outcome,
        signal = signals.next() => Err(CommandError::Interrupted { signal }),
    }
}

/// Shows what goes on until its reader has seen enough. Asking to stop is how that ends, so nothing
/// is said about it: the exit status alone tells the signal.
pub(crate) async fn until_left(
    work: impl Future<Output = Result<u8, CommandError>>,
) -> Result<u8, CommandError> {
    let mut signals = StopSignals::install()?;
    tokio::select! {
        outcome = work => outcome,
        signal = signals.next() => Ok(exit_status::of_signal(signal)),
    }
}

//! What an engine says without being asked, on a monitor of its own.
//!
//! The other monitor is closed while a guest runs, because a guest can cause events and nobody
//! would read them. This one is read for as long as its owner waits for the machine, at a pace
//! that an engine cannot raise. Nothing hangs on an event alone: whoever opens this conversation
//! asks for the state first.

use std::path::Path;
use std::time::Duration;

use dayfly_types::limits::{ENGINE_COMMAND_DEADLINE, ENGINE_EVENTS_PER_SECOND_MAX};
use dayfly_vmm::GuestEnd;
use tokio::time::{Instant, sleep, sleep_until};

use crate::error::MonitorError;
use crate::qmp::{Monitor, QmpEvent};

/// The engine's own name for a guest that stands still because a request of it failed.
pub(crate) const STOPPED_BY_ERROR: &str = "io-error";

/// Its names for a guest that will not run again.
pub(crate) const SHUT_DOWN: &str = "shutdown";
pub(crate) const CANNOT_RUN: &str = "internal-error";

/// How soon a conversation that could not be had is tried again. An engine that an earlier program
/// started has no such monitor at all.
const RETRY: Duration = Duration::from_secs(5);
const SECOND: Duration = Duration::from_secs(1);

/// What an engine said that its owner must know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    /// The guest stands still because of a request that failed.
    StoppedByError,
    /// A write failed, and the guest was told. Heard once.
    WriteFailed,
    /// The guest will not run again.
    GuestEnded(GuestEnd),
}

/// A conversation that is only listened to, opened when it is first needed.
#[derive(Debug, Default)]
pub(crate) struct Events {
    monitor: Option<Monitor>,
    told_of_failure: bool,
    /// When the present second began, and what was heard in it.
    second: Option<(Instant, u32)>,
}

impl Events {
    /// Resolves when there is something to know. Cancel safe.
    pub(crate) async fn next(&mut self, socket: &Path) -> Heard {
        loop {
            match self.listen(socket).await {
                Ok(heard) => return heard,
                Err(error) => {
                    tracing::debug!(socket = %socket.display(), %error, "cannot hear an engine");
                    self.monitor = None;
                    sleep(RETRY).await;
                }
            }
        }
    }

    async fn listen(&mut self, socket: &Path) -> Result<Heard, MonitorError> {
        if self.monitor.is_none() {
            let monitor = Monitor::open(socket, ENGINE_COMMAND_DEADLINE).await?;
            if let Some(heard) = self.ask(monitor).await? {
                return Ok(heard);
            }
        }
        loop {
            self.keep_pace().await;
            let Some(monitor) = self.monitor.as_mut() else {
                return Err(MonitorError::Closed);
            };
            if !matches!(
                monitor.hear().await?,
                Some(QmpEvent::Stop | QmpEvent::WriteFailed)
            ) {
                continue;
            }
            // Taken out: a question that is cut short leaves half an answer behind.
            if let Some(monitor) = self.monitor.take()
                && let Some(heard) = self.ask(monitor).await?
            {
                return Ok(heard);
            }
        }
    }

    /// Events are only the occasion: what counts is what the engine answers.
    async fn ask(&mut self, mut monitor: Monitor) -> Result<Option<Heard>, MonitorError> {
        let status = monitor.status(ENGINE_COMMAND_DEADLINE).await?;
        if !self.told_of_failure && monitor.failed_writes().await? > 0 {
            // The rest is asked again with the next conversation.
            self.told_of_failure = true;
            return Ok(Some(Heard::WriteFailed));
        }
        self.monitor = Some(monitor);
        Ok(match status.as_str() {
            STOPPED_BY_ERROR => Some(Heard::StoppedByError),
            SHUT_DOWN => Some(Heard::GuestEnded(GuestEnd::ShutDown)),
            CANNOT_RUN => Some(Heard::GuestEnded(GuestEnd::CannotRun)),
            _ => None,
        })
    }

    /// Waits where an engine says too much. Nothing that was heard is in doubt here.
    async fn keep_pace(&mut self) {
        let now = Instant::now();
        let (began, heard) = match self.second {
            Some((began, heard)) if now < began + SECOND => (began, heard),
            Some(_) | None => (now, 0),
        };
        if heard >= ENGINE_EVENTS_PER_SECOND_MAX {
            sleep_until(began + SECOND).await;
        }
        self.second = Some((began, heard + 1));
    }
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;

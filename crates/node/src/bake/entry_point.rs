//! The program that an image of a container is for: starts it, and waits until the image's own check
//! says that it is ready.

use std::time::{Duration, Instant};

use dayfly_guest_client::{AgentClient, ExecSession};
use dayfly_types::container_image::{ImageHealthCheck, ImageHealthCommand};
use dayfly_types::exec::{ExecCommand, ExecEvent};

use super::warm_up::{self, WarmUpError};

/// An image asks for half a minute between two looks. Here somebody waits for the first that is good.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Less than that between two looks would be work for its own sake.
const LEAST_INTERVAL: Duration = Duration::from_millis(100);
/// What a shell says of a program that it cannot start.
pub(super) const NOT_STARTED: [i32; 2] = [126, 127];

/// A program that was started and is still listened to.
#[derive(Debug)]
pub(super) struct EntryPoint {
    words: String,
    session: ExecSession,
}

impl EntryPoint {
    pub(super) async fn start(
        agent: &AgentClient,
        arguments: &[String],
    ) -> Result<Self, WarmUpError> {
        let words = arguments.join(" ");
        let command = ExecCommand::Argv(arguments.to_vec());
        let session = warm_up::open(agent, command, &words, None).await?;
        Ok(Self { words, session })
    }

    /// Whether it could be started at all. One that has done its work and is gone is fine; one that
    /// is not in the image is not what the image says.
    pub(super) async fn check(mut self) -> Result<(), WarmUpError> {
        let mut output = Vec::new();
        loop {
            // What it has said so far; nobody waits for more.
            let heard = tokio::time::timeout(Duration::ZERO, self.session.next()).await;
            let Ok(event) = heard else { return Ok(()) };
            match event.map_err(|source| WarmUpError::Lost {
                command: self.words.clone(),
                source,
            })? {
                Some(ExecEvent::Stdout(bytes) | ExecEvent::Stderr(bytes)) => {
                    warm_up::keep_tail(&mut output, &bytes);
                }
                Some(ExecEvent::Gap(_)) => {}
                Some(ExecEvent::Exited(end)) if NOT_STARTED.contains(&end.exit.code) => {
                    return Err(WarmUpError::failed(&self.words, end.exit.code, &output));
                }
                Some(ExecEvent::Exited(_)) | None => return Ok(()),
            }
        }
    }
}

/// Looks until the check is good. It gives up when the image would call itself unhealthy: after its
/// start period and as many intervals as it has retries.
pub(super) async fn wait_until_ready(
    agent: &AgentClient,
    health: &ImageHealthCheck,
    most: Duration,
) -> Result<(), WarmUpError> {
    let milliseconds = |number: u64| Duration::from_millis(number);
    let interval = milliseconds(health.interval_ms).max(LEAST_INTERVAL);
    let patience = milliseconds(health.start_period_ms)
        .saturating_add(interval.saturating_mul(health.retries))
        .min(most);
    let limit = milliseconds(health.timeout_ms).clamp(LOOK_INTERVAL, most);
    let (command, words) = match &health.command {
        ImageHealthCommand::Arguments(arguments) => {
            (ExecCommand::Argv(arguments.clone()), arguments.join(" "))
        }
        ImageHealthCommand::Shell(line) => (ExecCommand::Shell(line.clone()), line.clone()),
    };
    let began = Instant::now();
    loop {
        match warm_up::finish(agent, command.clone(), &words, limit).await {
            Ok(()) => return Ok(()),
            Err(error @ (WarmUpError::Failed { .. } | WarmUpError::TimedOut { .. })) => {
                if began.elapsed() >= patience {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
        tokio::time::sleep(LOOK_INTERVAL.min(interval)).await;
    }
}

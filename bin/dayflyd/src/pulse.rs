//! How the supervisor knows that a process is alive: its runtime says so, every second.
//!
//! The sign goes over the process's standard output, which nothing else uses. A process that is
//! stopped, or whose runtime hangs, says nothing any more.

use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::time::Duration;

use anyhow::{Context, Result};
use dayfly_types::limits::{PULSE_INTERVAL, SILENCE_MAX};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::stdio;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Sender;
use tokio::process::ChildStdout;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use crate::args::RunArguments;

/// Descriptors below this one are standard.
const FIRST_FREE: i32 = 3;
/// What of one look is counted at most: when the supervisor itself did not run, as with a host that
/// was suspended or a whole group that was frozen, nobody else can be blamed for the silence.
const STEP_MAX: Duration = Duration::from_secs(2);

/// Begins to say that this process is alive, if somebody supervises it. Must run in its runtime.
pub(crate) fn give(arguments: &RunArguments) -> Result<()> {
    if arguments.supervisor.is_none() {
        return Ok(());
    }
    let own = fcntl_dupfd_cloexec(stdio::stdout(), FIRST_FREE)
        .context("cannot take the way to the supervisor")?;
    // Children and whatever prints must not speak in this process's name.
    stdio::dup2_stdout(stdio::stderr()).context("cannot replace the standard output")?;
    let sender = sender(own)?;
    tokio::spawn(async move {
        let mut ticks = interval(PULSE_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match sender.try_write(b".") {
                Ok(_) => {}
                // The supervisor does not read now; what is there is enough for it.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    });
    Ok(())
}

fn sender(pipe: OwnedFd) -> Result<Sender> {
    Sender::from_owned_fd(pipe).context("the standard output is no pipe of a supervisor")
}

/// What is heard of one process.
#[derive(Debug)]
pub(crate) struct Pulse {
    /// Absent once it was closed.
    output: Option<ChildStdout>,
    looks: Interval,
    looked: Instant,
    silence: Silence,
}

/// How long nothing was heard, as far as somebody listened.
#[derive(Debug, Default)]
struct Silence(Duration);

impl Silence {
    /// Whether it is too long, so much later. Begins anew then.
    fn lasts(&mut self, later: Duration) -> bool {
        self.0 += later.min(STEP_MAX);
        let is_too_long = self.0 >= SILENCE_MAX;
        if is_too_long {
            self.0 = Duration::ZERO;
        }
        is_too_long
    }
}

impl Pulse {
    pub(crate) fn of(output: Option<ChildStdout>) -> Self {
        let mut looks = interval(PULSE_INTERVAL);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            output,
            looks,
            looked: Instant::now(),
            silence: Silence::default(),
        }
    }

    /// Ends when nothing was heard for too long. Cancel safe.
    pub(crate) async fn stops(&mut self) {
        loop {
            tokio::select! {
                biased;
                is_heard = heard(&mut self.output) => {
                    if is_heard {
                        self.silence = Silence::default();
                    } else {
                        self.output = None;
                    }
                }
                _ = self.looks.tick() => {
                    let later = self.looked.elapsed();
                    self.looked = Instant::now();
                    if self.silence.lasts(later) {
                        return;
                    }
                }
            }
        }
    }
}

/// Whether a sign came; otherwise none ever will.
async fn heard(output: &mut Option<ChildStdout>) -> bool {
    let Some(output) = output else {
        return std::future::pending().await;
    };
    let mut buffer = [0; 64];
    output.read(&mut buffer).await.is_ok_and(|count| count > 0)
}

/// Whether a debugger holds a process: then its silence is somebody's wish.
pub(crate) fn is_traced(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let tracer = status
        .lines()
        .find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.is_some_and(|tracer| tracer.trim() != "0")
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use tokio::process::Command;

    use super::*;

    #[test]
    fn silence_is_too_long_after_the_limit_and_not_before() {
        let mut silence = Silence::default();
        let looks = (1..100).find(|_| silence.lasts(PULSE_INTERVAL)).unwrap();
        assert_eq!(PULSE_INTERVAL * looks, SILENCE_MAX);
        assert!(!silence.lasts(PULSE_INTERVAL), "it begins anew");
    }

    #[test]
    fn a_supervisor_that_did_not_run_blames_nobody() {
        let mut silence = Silence::default();
        // As after a suspended host: hours passed, and nobody looked.
        assert!(!silence.lasts(Duration::from_secs(7200)));
        assert!(!silence.lasts(PULSE_INTERVAL));
    }

    #[tokio::test]
    async fn a_process_that_speaks_is_heard() {
        let mut child = Command::new("sh")
            .args(["-c", "while :; do echo; sleep 0.1; done"])
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut pulse = Pulse::of(child.stdout.take());
        pulse.silence = Silence(SILENCE_MAX - PULSE_INTERVAL * 2);
        let limit = Duration::from_secs(4);
        let stops = tokio::time::timeout(limit, pulse.stops()).await;
        assert!(stops.is_err(), "it counts as silent");
        child.kill().await.unwrap();
        pulse.silence = Silence(SILENCE_MAX - PULSE_INTERVAL * 2);
        let stops = tokio::time::timeout(limit, pulse.stops()).await;
        assert!(stops.is_ok(), "it says nothing any more");
    }

    #[test]
    fn nobody_traces_this_process() {
        assert!(!is_traced(std::process::id()));
    }
}

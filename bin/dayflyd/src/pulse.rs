//! How the supervisor knows that a process is alive: its runtime says so, every second.
//!
//! The sign goes over the process's standard output, which nothing else uses. A process that is
//! stopped, or whose runtime hangs, says nothing any more.

use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use dayfly_types::limits::{PULSE_INTERVAL, SILENCE_MAX};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::stdio;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Sender;
use tokio::process::ChildStdout;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

/// Descriptors below this one are standard.
const FIRST_FREE: i32 = 3;
/// What of one look is counted at most: when the supervisor itself did not run, as with a host that
/// was suspended or a whole group that was frozen, nobody else can be blamed for the silence.
const STEP_MAX: Duration = Duration::from_secs(2);

/// What is said every second, and once when there is something to serve with.
const ALIVE: &[u8] = b".";
const READY: &[u8] = b"!";

/// The way to the supervisor.
#[derive(Debug, Clone)]
pub(crate) struct Voice(Arc<Sender>);

impl Voice {
    /// Says that this process serves.
    pub(crate) fn is_ready(&self) {
        self.say(READY);
    }

    /// Whether anybody may still hear it.
    fn say(&self, sign: &[u8]) -> bool {
        match self.0.try_write(sign) {
            Ok(_) => true,
            // The supervisor does not read now; what is there is enough for it.
            Err(error) => error.kind() == ErrorKind::WouldBlock,
        }
    }
}

/// Begins to say that this process is alive. Must run in its runtime.
pub(crate) fn give() -> Result<Voice> {
    let own = fcntl_dupfd_cloexec(stdio::stdout(), FIRST_FREE)
        .context("cannot take the way to the supervisor")?;
    // Children and whatever prints must not speak in this process's name.
    stdio::dup2_stdout(stdio::stderr()).context("cannot replace the standard output")?;
    let voice = Voice(Arc::new(sender(own)?));
    let speaker = voice.clone();
    tokio::spawn(async move {
        let mut ticks = interval(PULSE_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while speaker.say(ALIVE) {
            ticks.tick().await;
        }
    });
    Ok(voice)
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

/// What of a process is worth knowing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum News {
    /// It serves.
    Ready,
    /// Nothing was heard for too long.
    Silent,
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

    /// Waits for news. Cancel safe.
    pub(crate) async fn news(&mut self) -> News {
        loop {
            tokio::select! {
                biased;
                heard = hear(&mut self.output) => match heard {
                    Some(is_ready) => {
                        self.silence = Silence::default();
                        if is_ready {
                            return News::Ready;
                        }
                    }
                    None => self.output = None,
                },
                _ = self.looks.tick() => {
                    let later = self.looked.elapsed();
                    self.looked = Instant::now();
                    if self.silence.lasts(later) {
                        return News::Silent;
                    }
                }
            }
        }
    }
}

/// Whether the signs that came say that it serves; none when no sign will ever come.
async fn hear(output: &mut Option<ChildStdout>) -> Option<bool> {
    let Some(output) = output else {
        return std::future::pending().await;
    };
    let mut buffer = [0; 64];
    let count = output
        .read(&mut buffer)
        .await
        .ok()
        .filter(|count| *count > 0)?;
    let signs = buffer.get(..count)?;
    Some(signs.iter().any(|sign| READY.contains(sign)))
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
        let news = tokio::time::timeout(limit, pulse.news()).await;
        assert!(news.is_err(), "it counts as silent");
        child.kill().await.unwrap();
        pulse.silence = Silence(SILENCE_MAX - PULSE_INTERVAL * 2);
        let news = tokio::time::timeout(limit, pulse.news()).await;
        assert_eq!(news, Ok(News::Silent), "it says nothing any more");
    }

    #[tokio::test]
    async fn a_process_that_serves_is_told_from_one_that_only_lives() {
        let mut child = Command::new("sh")
            .args(["-c", "printf .; printf ..!.; exec sleep 60"])
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut pulse = Pulse::of(child.stdout.take());
        let limit = Duration::from_secs(10);
        let news = tokio::time::timeout(limit, pulse.news()).await;
        assert_eq!(news, Ok(News::Ready));
    }

    #[test]
    fn nobody_traces_this_process() {
        assert!(!is_traced(std::process::id()));
    }
}

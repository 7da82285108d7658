//! Role `all`: one unprivileged control process and one root node process, kept alive.
//!
//! A crash of either is repaired by starting it again; the other one and every sandbox go on. One
//! that is stopped or hangs is killed first. On SIGTERM both are told to stop, and sandboxes are
//! left running for the next start.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result};
use dayfly_installation::{DataDirectory, RunningDaemon};
use dayfly_types::Backoff;
use dayfly_types::limits::SILENCE_MAX;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep_until, timeout};

use crate::admin_key;
use crate::args::{Role, RunArguments};
use crate::pulse::{self, Pulse};

/// A child that ran shorter than this is restarted with a pause, so that a crash at start does not
/// spin. The pause doubles with each, up to a limit.
const SHORT_LIFE: Duration = Duration::from_secs(2);
const RESTART_PAUSE: Duration = Duration::from_secs(1);
const RESTART_PAUSE_MAX: Duration = Duration::from_secs(30);
/// How long a child may take to stop before it is killed.
const STOP_DEADLINE: Duration = Duration::from_secs(20);

/// Runs until SIGTERM or SIGINT.
pub(crate) async fn run(arguments: RunArguments) -> Result<()> {
    let directory = DataDirectory::create(&arguments.data_dir)?;
    let _lock = directory.lock()?;
    let key = admin_key::ensure(&directory.admin_key())?;
    directory.announce(&RunningDaemon {
        listen: arguments.listen,
        pid: std::process::id(),
    })?;
    let arguments = RunArguments {
        data_dir: directory.root().to_owned(),
        admin_key_sha256: Some(admin_key::digest(&key)),
        ..arguments
    };
    let mut terminate = signal(SignalKind::terminate()).context("cannot watch for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot watch for SIGINT")?;
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut node = Supervised::start(Role::Node, &program, &arguments)?;
    let mut control = Supervised::start(Role::Control, &program, &arguments)?;
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            kept = node.keep(&program, &arguments) => kept?,
            kept = control.keep(&program, &arguments) => kept?,
        }
    }
    tracing::info!("stopping; sandboxes go on running");
    // Control first, so that no new work reaches a node that stops.
    control.stop().await?;
    node.stop().await
}

#[derive(Debug)]
struct Supervised {
    role: Role,
    state: State,
    /// Short lives in a row.
    failures: u32,
    backoff: Backoff,
}

#[derive(Debug)]
enum State {
    Runs(Box<Process>),
    /// Is started again then.
    Waits(Instant),
}

/// A process that runs.
#[derive(Debug)]
struct Process {
    child: Child,
    pulse: Pulse,
    started: Instant,
}

impl Supervised {
    fn start(role: Role, program: &PathBuf, arguments: &RunArguments) -> Result<Self> {
        let state = State::Runs(Box::new(Process::start(role, program, arguments)?));
        Ok(Self {
            role,
            state,
            failures: 0,
            backoff: Backoff::new(RESTART_PAUSE, RESTART_PAUSE_MAX),
        })
    }

    /// Waits for whatever happens to the process next, and does what follows from it. Cancel safe:
    /// what was waited for is waited for again.
    async fn keep(&mut self, program: &PathBuf, arguments: &RunArguments) -> Result<()> {
        let role = self.role.as_str();
        match &mut self.state {
            State::Waits(until) => {
                sleep_until(*until).await;
                match Process::start(self.role, program, arguments) {
                    Ok(process) => self.state = State::Runs(Box::new(process)),
                    Err(error) => {
                        tracing::error!(role, error = format!("{error:#}"), "cannot start it");
                        self.try_later(Duration::ZERO);
                    }
                }
            }
            State::Runs(process) => tokio::select! {
                status = process.child.wait() => {
                    let (status, lived) = (status?, process.started.elapsed());
                    tracing::warn!(role, %status, "a process ended; starting it again");
                    self.try_later(lived);
                }
                () = process.pulse.stops() => process.end_silent(role)?,
            },
        }
        Ok(())
    }

    /// Starts it again: at once when it had worked, else after a pause.
    fn try_later(&mut self, lived: Duration) {
        if lived >= SHORT_LIFE {
            self.failures = 0;
            self.backoff.reset();
            self.state = State::Waits(Instant::now());
            return;
        }
        let pause = self.backoff.pause();
        self.failures = self.failures.saturating_add(1);
        tracing::error!(
            role = self.role.as_str(),
            failures = self.failures,
            pause_seconds = pause.as_secs(),
            "a process does not stay alive; what it said before is the reason"
        );
        self.state = State::Waits(Instant::now() + pause);
    }

    async fn stop(&mut self) -> Result<()> {
        match &mut self.state {
            State::Waits(_) => Ok(()),
            State::Runs(process) => process.stop(self.role).await,
        }
    }
}

impl Process {
    fn start(role: Role, program: &PathBuf, arguments: &RunArguments) -> Result<Self> {
        let mut child = Command::new(program)
            .args(role_arguments(role, arguments))
            .stdin(role_input(role, arguments)?)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start the {} process", role.as_str()))?;
        let pulse = Pulse::of(child.stdout.take());
        Ok(Self {
            child,
            pulse,
            started: Instant::now(),
        })
    }

    /// Kills a process that is stopped or hangs. Sandboxes go on, as after a crash.
    fn end_silent(&mut self, role: &str) -> Result<()> {
        let seconds = SILENCE_MAX.as_secs();
        if self.child.id().is_some_and(pulse::is_traced) {
            tracing::warn!(role, seconds, "silent under a debugger; leaving it alone");
            return Ok(());
        }
        tracing::error!(role, seconds, "a process is stopped or hangs; killing it");
        self.child
            .start_kill()
            .context("cannot kill a process that hangs")
    }

    async fn stop(&mut self, role: Role) -> Result<()> {
        let pid = self
            .child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // It may have ended by itself just now; then there is nothing to stop.
            let _ = kill_process(pid, Signal::TERM);
        }
        if timeout(STOP_DEADLINE, self.child.wait()).await.is_err() {
            let role = role.as_str();
            tracing::warn!(role, "did not stop in time; killing it");
            self.child
                .kill()
                .await
                .context("cannot kill a process that does not stop")?;
        }
        Ok(())
    }
}

/// Control reads the digest of the administrator's key here: arguments are for everybody to see.
fn role_input(role: Role, arguments: &RunArguments) -> Result<Stdio> {
    let (Role::Control, Some(digest)) = (role, &arguments.admin_key_sha256) else {
        return Ok(Stdio::null());
    };
    let (reader, writer) = std::io::pipe().context("cannot make a pipe")?;
    admin_key::send_digest(digest, writer)?;
    Ok(Stdio::from(reader))
}

fn role_arguments(role: Role, arguments: &RunArguments) -> Vec<String> {
    let mut words = vec![
        "--role".to_owned(),
        role.as_str().to_owned(),
        "--data-dir".to_owned(),
        arguments.data_dir.display().to_string(),
        "--listen".to_owned(),
        arguments.listen.to_string(),
        "--parked-engines".to_owned(),
        arguments.parked_engines.to_string(),
        "--parked-slots".to_owned(),
        arguments.parked_slots.to_string(),
        "--supervisor".to_owned(),
        std::process::id().to_string(),
    ];
    let mut option = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            words.extend([name.to_owned(), value]);
        }
    };
    option(
        "--memory-reserve",
        arguments.memory_reserve.map(|mib| mib.to_string()),
    );
    option(
        "--disk-reserve",
        arguments.disk_reserve.map(|mib| mib.to_string()),
    );
    option("--templates", Some(arguments.templates.join(",")));
    option("--egress-uplink", Some(arguments.egress_uplink.to_string()));
    option("--egress-rate", Some(arguments.egress_rate.to_string()));
    for resolver in &arguments.egress_resolver {
        option("--egress-resolver", Some(resolver.to_string()));
    }
    option(
        "--preview-domain",
        Some(arguments.preview_domain.to_string()),
    );
    if arguments.allow_shared_emulation {
        words.push("--allow-shared-emulation".to_owned());
    }
    words
}

//! Role `all`: one unprivileged control process and one root node process, kept alive.
//!
//! A crash of either is repaired by starting it again; the other one and every sandbox go on. On
//! SIGTERM both are told to stop, and sandboxes are left running for the next start.

use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use dayfly_host::files::write_atomic;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep, timeout};

use crate::admin_key;
use crate::args::{Role, RunArguments};
use crate::data_directory::{DataDirectory, Running};

/// A child that ran shorter than this is restarted with a pause, so that a crash at start does not
/// spin.
const SHORT_LIFE: Duration = Duration::from_secs(2);
const RESTART_PAUSE: Duration = Duration::from_secs(1);
/// How long a child may take to stop before it is killed.
const STOP_DEADLINE: Duration = Duration::from_secs(20);

/// Runs until SIGTERM or SIGINT.
pub(crate) async fn run(arguments: RunArguments) -> Result<()> {
    let directory = DataDirectory::create(&arguments.data_dir)?;
    let _lock = directory.lock()?;
    let key = admin_key::ensure(&directory.admin_key())?;
    let running = Running {
        listen: arguments.listen,
        pid: std::process::id(),
    };
    write_atomic(
        &directory.running_file(),
        &serde_json::to_vec(&running)?,
        0o644,
    )
    .context("cannot write daemon.json")?;
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
            status = node.child.wait() => node.restart(status?, &program, &arguments).await?,
            status = control.child.wait() => control.restart(status?, &program, &arguments).await?,
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
    child: Child,
    started: Instant,
}

impl Supervised {
    fn start(role: Role, program: &PathBuf, arguments: &RunArguments) -> Result<Self> {
        let child = Command::new(program)
            .args(role_arguments(role, arguments))
            .stdin(role_input(role, arguments)?)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start the {} process", role.as_str()))?;
        Ok(Self {
            role,
            child,
            started: Instant::now(),
        })
    }

    async fn restart(
        &mut self,
        status: ExitStatus,
        program: &PathBuf,
        arguments: &RunArguments,
    ) -> Result<()> {
        tracing::warn!(role = self.role.as_str(), %status, "a process ended; starting it again");
        if self.started.elapsed() < SHORT_LIFE {
            sleep(RESTART_PAUSE).await;
        }
        *self = Self::start(self.role, program, arguments)?;
        Ok(())
    }

    async fn stop(&mut self) -> Result<()> {
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
            tracing::warn!(
                role = self.role.as_str(),
                "did not stop in time; killing it"
            );
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

//! Role `all`: one unprivileged control process and one root node process, kept alive.
//!
//! A crash of either is repaired by starting it again; the other one and every sandbox go on. One
//! that is stopped or hangs is killed first. However often one fails, the daemon does not end: the
//! node keeps deadlines without control, and control says what is wrong without the node (`/health`
//! is 503 then). On SIGTERM both are told to stop, and sandboxes are
//! left running for the next start.

use std::ffi::OsString;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use dayfly_installation::{DaemonLock, DataDirectory, Instance, RunningDaemon};
use dayfly_snapshots::Registries;
use dayfly_types::Backoff;
use dayfly_types::limits::SILENCE_MAX;
use rustix::process::{Pid, Signal, kill_process};
use sd_notify::NotifyState;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep_until, timeout};

use crate::admin_key;
use crate::args::{Role, RunArguments};
use crate::hand_over::{HandOver, Listeners, ToProcess};
use crate::local_access::LocalAccess;
use crate::pulse::{self, News, Pulse};
use crate::tls::CertificateText;
use crate::{settings, traces};

/// A child that ran shorter than this is restarted with a pause, so that a crash at start does not
/// spin. The pause doubles with each, up to a limit.
const SHORT_LIFE: Duration = Duration::from_secs(2);
const RESTART_PAUSE: Duration = Duration::from_secs(1);
const RESTART_PAUSE_MAX: Duration = Duration::from_secs(30);
/// How long a child may take to stop before it is killed.
const STOP_DEADLINE: Duration = Duration::from_secs(20);

/// How long a port that is taken is waited for.
const BIND_RETRIES: u32 = 20;
const BIND_RETRY: Duration = Duration::from_millis(100);
/// How many connections may wait while the control process is started again.
const BACKLOG: i32 = 1024;

/// Runs until SIGTERM or SIGINT. The words are those of the command line, program and all: on SIGHUP
/// the settings file is read anew, and they still come before it.
pub(crate) async fn run(given: &[OsString]) -> Result<()> {
    let mut parent = Parent::prepare(given)?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot watch for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot watch for SIGINT")?;
    let mut hang_up = signal(SignalKind::hangup()).context("cannot watch for SIGHUP")?;
    let mut node = Supervised::start(Role::Node, &parent)?;
    let mut control = Supervised::start(Role::Control, &parent)?;
    let mut is_ready = false;
    loop {
        if !is_ready && node.is_ready && control.is_ready {
            is_ready = true;
            tell_systemd(NotifyState::Ready);
        }
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = hang_up.recv() => {
                let Reloaded { changed, certificate } = parent.reload_all(given);
                for supervised in [&mut control, &mut node] {
                    if changed.contains(&supervised.role) {
                        supervised.restart().await?;
                    }
                }
                if let Some(certificate) = certificate {
                    control.give(&certificate);
                }
            }
            kept = node.keep(&parent) => kept?,
            kept = control.keep(&parent) => kept?,
        }
    }
    tell_systemd(NotifyState::Stopping);
    tracing::info!("stopping; sandboxes go on running");
    // Control first, so that no new work reaches a node that stops.
    control.stop().await?;
    let Parent {
        lock: _held_until_the_end,
        listeners,
        local,
        ..
    } = parent;
    drop((listeners, local));
    node.stop().await
}

/// Without systemd nobody is told.
fn tell_systemd(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::warn!(%error, "cannot tell systemd");
    }
}

/// Of a daemon that was killed, the process that has its port may be a moment behind.
fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    for _ in 0..BIND_RETRIES {
        match TcpListener::bind(address) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                std::thread::sleep(BIND_RETRY);
            }
            bound => return bound,
        }
    }
    TcpListener::bind(address)
}

fn listen(address: SocketAddr) -> Result<TcpListener> {
    let listener = bind(address).with_context(|| format!("cannot listen on {address}"))?;
    rustix::net::listen(&listener, BACKLOG).context("cannot let connections wait")?;
    Ok(listener)
}

/// What every process is started from.
#[derive(Debug)]
struct Parent {
    program: PathBuf,
    lock: DaemonLock,
    listeners: Listeners<TcpListener>,
    /// Shown where TLS is served.
    certificate: Option<CertificateText>,
    key_file: PathBuf,
    key_digest: String,
    instance: Instance,
    /// Gone from the host when it is dropped.
    local: Option<LocalAccess>,
    /// Where settings were read from.
    file: Option<PathBuf>,
    settings: RunArguments,
}

/// What follows from a look at everything that may have changed.
#[derive(Debug)]
struct Reloaded {
    /// The processes that must be started anew.
    changed: Vec<Role>,
    /// To be shown from now on.
    certificate: Option<CertificateText>,
}

impl Parent {
    /// Takes the data directory and the addresses, before anything is started.
    fn prepare(given: &[OsString]) -> Result<Self> {
        let found = settings::resolve(given)?;
        let certificate = settings::check(&found.arguments)?;
        let (settings, file) = (found.arguments, found.report.file);
        let directory = DataDirectory::create(&settings.data_dir)?;
        let lock = directory.lock()?;
        let key = admin_key::ensure(&directory.admin_key())?;
        let listeners = Listeners {
            plain: listen(settings.listen)?,
            tls: settings.tls_listen.map(listen).transpose()?,
            metrics: settings.metrics_listen.map(listen).transpose()?,
        };
        let address = listeners
            .plain
            .local_addr()
            .context("cannot find the port")?;
        directory.announce(&RunningDaemon {
            listen: address,
            pid: std::process::id(),
        })?;
        let instance = directory.instance()?;
        let instance = instance.context("the data directory has no instance")?;
        let local = LocalAccess::open(settings.local_group.as_deref(), &instance, address)?;
        Ok(Self {
            program: std::env::current_exe().context("cannot find this program")?,
            lock,
            listeners,
            certificate,
            key_file: directory.admin_key(),
            key_digest: admin_key::digest(&key),
            instance,
            local,
            file,
            settings: RunArguments {
                data_dir: directory.root().to_owned(),
                ..settings
            },
        })
    }

    /// What a process is given, and the way to it.
    fn input(&self, role: Role, restarts: u64) -> Result<(OwnedFd, ToProcess)> {
        let is_control = role == Role::Control;
        let local = self.local.as_ref().map(|local| local.digest().to_owned());
        let words = HandOver {
            settings: settings_for(role, &self.settings),
            admin_key_sha256: is_control.then(|| self.key_digest.clone()),
            local_key_sha256: local.filter(|_| is_control),
            certificate: self.certificate.clone().filter(|_| is_control),
            restarts,
        };
        let listeners = is_control.then_some(&self.listeners);
        words.send(self.lock.of_processes(), listeners)
    }

    fn read_again(&self, given: &[OsString]) -> Result<RunArguments> {
        let found = settings::resolve(given)?;
        settings::check(&found.arguments)?;
        // An editor that writes a file anew may have taken it away for a moment.
        let is_there = self.file.is_none() || found.report.file.is_some();
        ensure!(is_there, "the settings file is gone");
        Ok(found.arguments)
    }

    /// Reads key, settings and certificate again.
    fn reload_all(&mut self, given: &[OsString]) -> Reloaded {
        let has_new_key = self.reload_key();
        let mut changed = self.reload(given);
        if has_new_key && !changed.contains(&Role::Control) {
            changed.push(Role::Control);
        }
        Reloaded {
            certificate: self.reload_certificate(),
            changed,
        }
    }

    /// Goes on to the certificate that is in the files now. Gives it if it is another.
    fn reload_certificate(&mut self) -> Option<CertificateText> {
        self.listeners.tls.as_ref()?;
        match CertificateText::of(&self.settings) {
            Ok(certificate) => {
                let is_new = certificate != self.certificate;
                self.certificate = certificate;
                self.certificate.clone().filter(|_| is_new)
            }
            Err(error) => {
                let error = format!("{error:#}");
                tracing::error!(error, "the certificate of before is shown on");
                None
            }
        }
    }

    /// Goes on to the administrator's key that waits, if one does. Says whether it is another.
    fn reload_key(&mut self) -> bool {
        match admin_key::ensure(&self.key_file) {
            Ok(key) => {
                let digest = admin_key::digest(&key);
                let is_new = digest != self.key_digest;
                if is_new {
                    tracing::info!("the administrator's key was replaced");
                }
                self.key_digest = digest;
                is_new
            }
            Err(error) => {
                let error = format!("{error:#}");
                tracing::error!(error, "the administrator's key of before holds on");
                false
            }
        }
    }

    /// Lets another group in, or none.
    fn open_to(&mut self, group: Option<&str>) -> Result<()> {
        let address = self
            .listeners
            .plain
            .local_addr()
            .context("cannot find the port")?;
        // First the old one: both have the same name.
        self.local = None;
        self.local = LocalAccess::open(group, &self.instance, address)?;
        Ok(())
    }

    /// Reads the settings again. Gives the processes that must be started anew for them; none when
    /// they are wrong, so that a mistake in the file stops nothing.
    fn reload(&mut self, given: &[OsString]) -> Vec<Role> {
        let new = match self.read_again(given) {
            Ok(settings) => settings,
            Err(error) => {
                let error = format!("{error:#}");
                tracing::error!(error, "the settings are wrong; those of before hold on");
                return Vec::new();
            }
        };
        let addresses = |settings: &RunArguments| {
            (
                settings.listen,
                settings.tls_listen,
                settings.metrics_listen,
            )
        };
        if addresses(&new) != addresses(&self.settings) {
            tracing::warn!("another address to listen on needs a restart of the daemon");
        }
        if new.log_format != self.settings.log_format {
            tracing::warn!("another format of the log needs a restart of the daemon");
        }
        let new = RunArguments {
            listen: self.settings.listen,
            // The socket is there until a restart, and must have a certificate until then.
            tls_certificate: new
                .tls_certificate
                .clone()
                .or(self.settings.tls_certificate.clone()),
            tls_key: new.tls_key.clone().or(self.settings.tls_key.clone()),
            tls_listen: self.settings.tls_listen,
            metrics_listen: self.settings.metrics_listen,
            data_dir: self.settings.data_dir.clone(),
            log_format: self.settings.log_format,
            ..new
        };
        if new.local_group != self.settings.local_group
            && let Err(error) = self.open_to(new.local_group.as_deref())
        {
            let error = format!("{error:#}");
            tracing::error!(error, "nobody uses this host without a key now");
        }
        let changed = changed_for(&self.settings, &new);
        let roles: Vec<&str> = changed.iter().map(|role| role.as_str()).collect();
        tracing::info!(restarted = ?roles, "the settings were read again");
        self.settings = new;
        changed
    }
}

/// What a process of this role may know.
fn settings_for(role: Role, settings: &RunArguments) -> RunArguments {
    let mut settings = settings.clone();
    if role == Role::Control {
        // It serves strangers, and has no use for where passwords are.
        settings.registry = Registries::default();
    }
    settings
}

/// Who has to be started anew for other settings.
fn changed_for(old: &RunArguments, new: &RunArguments) -> Vec<Role> {
    let mut changed = Vec::new();
    if old.preview_domain != new.preview_domain
        || old.local_group != new.local_group
        || old.api_host != new.api_host
        || old.trusted_proxy != new.trusted_proxy
        || old.sign_in != new.sign_in
        // The node opens them, and control says which rules may be written.
        || old.internal_network != new.internal_network
    {
        changed.push(Role::Control);
    }
    let without_control = RunArguments {
        preview_domain: old.preview_domain.clone(),
        local_group: old.local_group.clone(),
        api_host: old.api_host.clone(),
        trusted_proxy: old.trusted_proxy.clone(),
        sign_in: old.sign_in.clone(),
        // No process reads these.
        plain_http: old.plain_http,
        tls_certificate: old.tls_certificate.clone(),
        tls_key: old.tls_key.clone(),
        ..new.clone()
    };
    if *old != without_control {
        changed.push(Role::Node);
    }
    changed
}

#[derive(Debug)]
struct Supervised {
    role: Role,
    state: State,
    /// It served at least once.
    is_ready: bool,
    /// Times that it ended unasked.
    restarts: u64,
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
    way: ToProcess,
    pulse: Pulse,
    started: Instant,
}

impl Supervised {
    fn start(role: Role, parent: &Parent) -> Result<Self> {
        let state = State::Runs(Box::new(Process::start(role, parent, 0)?));
        Ok(Self {
            role,
            state,
            is_ready: false,
            restarts: 0,
            failures: 0,
            backoff: Backoff::new(RESTART_PAUSE, RESTART_PAUSE_MAX),
        })
    }

    /// Waits for whatever happens to the process next, and does what follows from it. Cancel safe:
    /// what was waited for is waited for again.
    async fn keep(&mut self, parent: &Parent) -> Result<()> {
        let role = self.role.as_str();
        match &mut self.state {
            State::Waits(until) => {
                sleep_until(*until).await;
                match Process::start(self.role, parent, self.restarts) {
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
                    self.restarts = self.restarts.saturating_add(1);
                    self.try_later(lived);
                }
                news = process.pulse.news() => match news {
                    News::Ready => {
                        self.is_ready = true;
                        if self.failures > 0 {
                            tell_systemd(NotifyState::Status(&format!("the {role} process serves")));
                        }
                    }
                    News::Silent => process.end_silent(role)?,
                },
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
        let status = format!("the {} process does not stay alive", self.role.as_str());
        tell_systemd(NotifyState::Status(&status));
        self.state = State::Waits(Instant::now() + pause);
    }

    /// Ends it, and has it started again at once.
    async fn restart(&mut self) -> Result<()> {
        self.stop().await?;
        self.state = State::Waits(Instant::now());
        Ok(())
    }

    /// Gives it another certificate. One that is not there now gets it when it is started.
    fn give(&self, certificate: &CertificateText) {
        let State::Runs(process) = &self.state else {
            return;
        };
        if let Err(error) = process.way.give(certificate) {
            let (role, error) = (self.role.as_str(), format!("{error:#}"));
            tracing::error!(role, error, "the certificate of before is shown on");
        }
    }

    async fn stop(&mut self) -> Result<()> {
        match &mut self.state {
            State::Waits(_) => Ok(()),
            State::Runs(process) => process.stop(self.role).await,
        }
    }
}

impl Process {
    fn start(role: Role, parent: &Parent, restarts: u64) -> Result<Self> {
        let supervisor = std::process::id().to_string();
        let (input, way) = parent.input(role, restarts)?;
        let mut command = Command::new(&parent.program);
        if role == Role::Node {
            traces::hide_variables(&mut command);
        }
        let mut child = command
            .args(["--role", role.as_str(), "--supervisor", &supervisor])
            .args(["--log-format", parent.settings.log_format.as_str()])
            .stdin(Stdio::from(input))
            .stdout(Stdio::piped())
            // A signal for the whole group, as of a terminal, is the daemon's to deal with.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start the {} process", role.as_str()))?;
        let pulse = Pulse::of(child.stdout.take());
        Ok(Self {
            child,
            way,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(words: &[&str]) -> RunArguments {
        let words = ["dayflyd"].iter().chain(words);
        let given: Vec<OsString> = words.map(OsString::from).collect();
        settings::resolve(&given).unwrap().arguments
    }

    #[test]
    fn only_who_reads_a_setting_is_started_anew_for_it() {
        let old = settings(&[]);
        assert!(changed_for(&old, &old).is_empty());
        let domain = settings(&["--preview-domain", "example.org"]);
        assert_eq!(changed_for(&old, &domain), [Role::Control]);
        let group = settings(&["--local-group", "root"]);
        assert_eq!(changed_for(&old, &group), [Role::Control]);
        let host = settings(&["--api-host", "box.example.org"]);
        assert_eq!(changed_for(&old, &host), [Role::Control]);
        let pool = settings(&["--parked-engines", "9"]);
        assert_eq!(changed_for(&old, &pool), [Role::Node]);
        let network = r#"[{"name":"a","projects":["*"],"ranges":["10.20.0.0/16"],"ports":[443]}]"#;
        let network = settings(&["--internal-network", network]);
        assert_eq!(changed_for(&old, &network), [Role::Control, Role::Node]);
        let registry = settings(&["--registry", REGISTRY]);
        assert_eq!(changed_for(&old, &registry), [Role::Node]);
    }

    const REGISTRY: &str = r#"[{"host":"r.example","user":"puller","password_file":"/a"}]"#;

    #[test]
    fn registries_are_for_the_node_alone() {
        let given = settings(&["--registry", REGISTRY]);
        assert_eq!(settings_for(Role::Node, &given), given);
        let control = settings_for(Role::Control, &given);
        assert_eq!(control, settings(&[]));
        let text = serde_json::to_string(&control).unwrap();
        assert!(!text.contains("puller"), "{text}");
    }
}

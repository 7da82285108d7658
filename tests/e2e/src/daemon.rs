//! A daemon of the test's own, on a data directory of its own, with templates that are baked.

use std::net::TcpListener;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use dayfly_client::{ApiKey, Client, ClientConfig};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::Setting;
use crate::processes::children;
use crate::wait::{patient, until};

const READY_DEADLINE: Duration = Duration::from_secs(60);
const STOP_DEADLINE: Duration = Duration::from_secs(30);
const STOP_PAUSE: Duration = Duration::from_millis(200);
const LOG_LINES: usize = 200;

/// How the daemon is started.
#[derive(Debug, Clone, Default)]
pub struct DaemonOptions {
    pub arguments: Vec<String>,
    /// More recipes, by file name.
    pub recipes: Vec<(String, String)>,
    /// Where to make the data directory. Default: beside the templates, so that their files can be
    /// linked instead of copied.
    pub parent: Option<PathBuf>,
    pub environment: Vec<(String, PathBuf)>,
}

const UPLINK: &str = "--egress-uplink";

/// A running daemon.
#[derive(Debug)]
pub struct Daemon {
    setting: Setting,
    options: DaemonOptions,
    directory: TempDir,
    port: u16,
    child: Child,
    is_finished: bool,
}

impl Daemon {
    /// Starts a daemon on a fresh directory and waits until it answers.
    ///
    /// # Errors
    /// When it does not come up in time.
    pub async fn start(setting: &Setting, options: DaemonOptions) -> Result<Self> {
        let parent = match &options.parent {
            Some(parent) => parent,
            None => setting.templates.parent().context("no parent directory")?,
        };
        let directory = tempfile::Builder::new().prefix("e2e-").tempdir_in(parent)?;
        link_templates(setting, directory.path())?;
        let recipes = directory.path().join("recipes");
        std::fs::create_dir_all(&recipes)?;
        for (name, text) in &options.recipes {
            std::fs::write(recipes.join(name), text)?;
        }
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let child = spawn(setting, directory.path(), port, &options)?;
        let daemon = Self {
            setting: setting.clone(),
            options,
            directory,
            port,
            child,
            is_finished: false,
        };
        daemon.wait_until_ready().await?;
        Ok(daemon)
    }

    /// Starts a daemon whose `base` is ready, with a client of its administrator: what nearly every
    /// test begins with.
    ///
    /// # Errors
    /// When it does not come up in time.
    pub async fn ready(setting: &Setting, options: DaemonOptions) -> Result<(Self, Client)> {
        let daemon = Self::start(setting, options).await?;
        daemon.wait_for_template("base", READY_DEADLINE).await?;
        let client = daemon.client()?;
        Ok((daemon, client))
    }

    /// Starts the daemon again on the same directory, after it was stopped or killed.
    ///
    /// # Errors
    /// When it does not come up in time.
    pub async fn start_again(&mut self) -> Result<()> {
        // The last of its threads may hold the directory's lock for a moment after the first is
        // gone.
        let ended = tokio::time::timeout(patient(STOP_DEADLINE), self.child.wait()).await;
        ended.context("the daemon before still runs")??;
        self.child = spawn(&self.setting, self.path(), self.port, &self.options)?;
        self.wait_until_ready().await
    }

    /// Starts the daemon again, ready or not: one of another version may never be.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start_without_waiting(&mut self) -> Result<()> {
        self.child = spawn(&self.setting, self.path(), self.port, &self.options)?;
        Ok(())
    }

    /// Has the next start use other programs. Gives those that were used before.
    pub fn use_programs(&mut self, programs: PathBuf) -> PathBuf {
        std::mem::replace(&mut self.setting.programs, programs)
    }

    async fn wait_until_ready(&self) -> Result<()> {
        let ready = until("the daemon answers", READY_DEADLINE, || async {
            self.client().ok()?.node().await.ok()
        });
        ready.await.with_context(|| self.last_of_log())?;
        Ok(())
    }

    /// The end of what the daemon logged, for a failure to be understood when its directory is
    /// gone.
    #[must_use]
    pub fn last_of_log(&self) -> String {
        let log = std::fs::read_to_string(self.path().join("daemon.log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let from = lines.len().saturating_sub(LOG_LINES);
        format!(
            "the daemon logged last:\n{}",
            lines.get(from..).unwrap_or_default().join("\n")
        )
    }

    /// Waits until a template is ready, and has it baked if need be.
    ///
    /// # Errors
    /// When it is not ready in time.
    pub async fn wait_for_template(&self, name: &str, limit: Duration) -> Result<()> {
        let client = self.client()?;
        until(&format!("{name} is ready"), limit, || async {
            // Also asks for the bake; a repeat is fine.
            let template = client.bake_template(name).await.ok()?;
            (template.state == dayfly_api::TemplateState::Ready).then_some(())
        })
        .await
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The administrator's key.
    ///
    /// # Errors
    /// When the daemon has not written it yet.
    pub fn key(&self) -> Result<String> {
        Ok(std::fs::read_to_string(self.path().join("admin.key"))?
            .trim()
            .to_owned())
    }

    /// A client with the administrator's key.
    ///
    /// # Errors
    /// When the daemon has not written the key yet.
    pub fn client(&self) -> Result<Client> {
        let key = Some(ApiKey::parse(&self.key()?)?);
        Ok(Client::new(ClientConfig {
            url: self.url(),
            key,
        })?)
    }

    /// The pid of the supervising process.
    ///
    /// # Errors
    /// When it has ended.
    pub fn pid(&self) -> Result<i32> {
        Ok(i32::try_from(
            self.child.id().context("the daemon has ended")?,
        )?)
    }

    /// The pid of one of its processes: `node` or `control`.
    ///
    /// # Errors
    /// When there is none.
    pub fn role_pid(&self, role: &str) -> Result<i32> {
        let wanted = format!("--role {role} ");
        children(self.pid()?)?
            .into_iter()
            .find(|(_, line)| line.contains(&wanted))
            .map(|(pid, _)| pid)
            .with_context(|| format!("no {role} process"))
    }

    /// Kills one process by pid, at once.
    ///
    /// # Errors
    /// When there is no such process.
    pub fn kill(pid: i32) -> Result<()> {
        kill_process(Pid::from_raw(pid).context("no pid")?, Signal::KILL)?;
        Ok(())
    }

    /// Kills the supervisor alone, and gives the pids of the two processes that it had.
    ///
    /// # Errors
    /// When it cannot be killed.
    pub async fn kill_supervisor(&mut self) -> Result<[i32; 2]> {
        let roles = [self.role_pid("node")?, self.role_pid("control")?];
        Self::kill(self.pid()?)?;
        self.child.wait().await?;
        Ok(roles)
    }

    /// Kills the supervisor and both processes under it. Sandboxes go on.
    ///
    /// # Errors
    /// When a process cannot be killed.
    pub async fn kill_all(&mut self) -> Result<()> {
        let pids = [
            self.pid()?,
            self.role_pid("node")?,
            self.role_pid("control")?,
        ];
        for pid in pids {
            Self::kill(pid)?;
        }
        self.child.wait().await?;
        Ok(())
    }

    /// Stops the daemon; sandboxes go on running.
    ///
    /// # Errors
    /// When it does not stop in time.
    pub async fn terminate(&mut self) -> Result<()> {
        kill_process(Pid::from_raw(self.pid()?).context("no pid")?, Signal::TERM)?;
        if tokio::time::timeout(STOP_DEADLINE, self.child.wait())
            .await
            .is_err()
        {
            bail!("the daemon did not stop within {STOP_DEADLINE:?}");
        }
        Ok(())
    }

    /// Runs `dayfly` against this daemon.
    ///
    /// # Errors
    /// When it cannot be run.
    pub async fn dayfly(&self, arguments: &[&str]) -> Result<std::process::Output> {
        Ok(self.command(arguments)?.output().await?)
    }

    /// `dayfly` with these arguments, ready to be run against this daemon.
    ///
    /// # Errors
    /// When there is no key.
    pub fn command<T: AsRef<std::ffi::OsStr>>(&self, arguments: &[T]) -> Result<Command> {
        let mut command = Command::new(self.setting.programs.join("dayfly"));
        command
            .args(arguments)
            .env("DAYFLY_API_URL", self.url())
            .env("DAYFLY_API_KEY", self.key()?)
            .stdin(Stdio::null());
        Ok(command)
    }

    /// Runs `dayflyd` with these arguments.
    ///
    /// # Errors
    /// When it cannot be run.
    pub async fn dayflyd(&self, arguments: &[&str]) -> Result<std::process::Output> {
        let command = Command::new(self.setting.programs.join("dayflyd"))
            .args(arguments)
            .stdin(Stdio::null())
            .output();
        Ok(command.await?)
    }

    /// What `dayflyd doctor --no-probe --json` says about this directory.
    ///
    /// # Errors
    /// When its answer cannot be read.
    pub async fn doctor(&self) -> Result<Value> {
        let path = self.path().display().to_string();
        // Where KVM boots no guest, finding that out takes six seconds, each time.
        let output = self
            .dayflyd(&["doctor", "--data-dir", &path, "--no-probe", "--json"])
            .await?;
        serde_json::from_slice(&output.stdout)
            .with_context(|| format!("doctor: {}", String::from_utf8_lossy(&output.stderr)))
    }

    /// Everything of this directory that belongs to no known sandbox.
    ///
    /// # Errors
    /// When doctor's answer cannot be read.
    pub async fn leftovers(&self) -> Result<Vec<Value>> {
        let report = self.doctor().await?;
        report["leftovers"]
            .as_array()
            .cloned()
            .context("doctor lists no leftovers")
    }

    /// Deletes every sandbox, stops the daemon, and makes sure that nothing is left.
    ///
    /// # Errors
    /// When something is left.
    pub async fn finish(mut self) -> Result<()> {
        let client = self.client()?;
        for sandbox in client.list_sandboxes().await? {
            client.delete_sandbox(&sandbox.id).await?;
        }
        // Only an operator sees what other projects have.
        self.stop_all();
        self.terminate().await?;
        self.is_finished = true;
        let left = self.leftovers().await?;
        if !left.is_empty() {
            bail!("left over: {left:#?}");
        }
        // What a sandbox that is known still uses is no leftover, but nothing may run on.
        let mounted = mounted_below(self.path())?;
        if !mounted.is_empty() {
            bail!("still mounted: {mounted:#?}");
        }
        Ok(())
    }

    /// Forgets a daemon of which the test has left nothing.
    pub fn let_go(mut self) {
        self.is_finished = true;
    }

    /// The programs under test.
    #[must_use]
    pub fn programs(&self) -> PathBuf {
        self.setting.programs.clone()
    }
}

impl Drop for Daemon {
    /// A failed test must not leave machines behind for the next one. Those of a daemon that was
    /// killed are taken over by another one, which deletes them.
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        if !matches!(self.child.try_wait(), Ok(None)) {
            match spawn(&self.setting, self.path(), self.port, &self.options) {
                Ok(child) => self.child = child,
                Err(_) => return,
            }
        }
        let Some(pid) = self.child.id().and_then(|id| i32::try_from(id).ok()) else {
            return;
        };
        self.stop_all();
        if let Some(pid) = Pid::from_raw(pid) {
            // It may have ended already.
            let _ = kill_process(pid, Signal::TERM);
            let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
        }
    }
}

impl Daemon {
    /// Asks the daemon to delete what runs, until it answers.
    fn stop_all(&self) {
        let path = self.path().display().to_string();
        let deadline = Instant::now() + STOP_DEADLINE;
        while Instant::now() < deadline {
            let stop = std::process::Command::new(self.setting.programs.join("dayflyd"))
                .args(["stop", "--all", "--data-dir", &path])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            if stop.is_ok_and(|status| status.success()) {
                return;
            }
            std::thread::sleep(STOP_PAUSE);
        }
    }
}

fn spawn(setting: &Setting, path: &Path, port: u16, options: &DaemonOptions) -> Result<Child> {
    let log = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path.join("daemon.log"))?;
    let mut command = Command::new(setting.programs.join("dayflyd"));
    // Only a test that made itself an internet lets anything out.
    if !options.arguments.iter().any(|word| word == UPLINK) {
        command.args([UPLINK, "none"]);
    }
    command
        .arg("--data-dir")
        .arg(path)
        .args(["--listen", &format!("127.0.0.1:{port}")])
        .args(&options.arguments)
        .envs(options.environment.iter().cloned())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::from(log))
        .spawn()
        .context("cannot start dayflyd")
}

/// Where something is mounted below a directory. Each sandbox that runs has a mount there.
///
/// # Errors
/// When the mount table cannot be read.
pub fn mounted_below(path: &Path) -> Result<Vec<PathBuf>> {
    let mounts = dayfly_host::mounts::own_mounts()?.into_iter();
    let points = mounts.map(|mount| mount.mount_point);
    Ok(points.filter(|point| point.starts_with(path)).collect())
}

/// Gives the directory the baked templates of another: links where that is possible, copies of the
/// smallest one where it is not.
fn link_templates(setting: &Setting, to: &Path) -> Result<()> {
    std::fs::DirBuilder::new()
        .mode(0o700)
        .create(to.join("node"))?;
    let is_one_device = setting.templates.metadata()?.dev() == to.metadata()?.dev();
    let (how, parts): (_, &[&str]) = if is_one_device {
        ("--link", &["templates", "images", "accelerator.json"])
    } else {
        ("--sparse=always", &["templates/base", "accelerator.json"])
    };
    for part in parts {
        let from = setting.templates.join("node").join(part);
        if !from.exists() {
            continue;
        }
        let into = to.join("node").join(part);
        let into = into.parent().context("no parent directory")?;
        std::fs::create_dir_all(into)?;
        let status = std::process::Command::new("cp")
            .args(["--archive", how])
            .arg(&from)
            .arg(into)
            .status()?;
        if !status.success() {
            bail!("cannot link {}", from.display());
        }
    }
    Ok(())
}

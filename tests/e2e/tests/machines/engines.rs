//! What was saved by one engine, after others were installed.
//!
//! The other engines are this host's with another version in its words: a build of its own as far as
//! anybody here can tell, which loads what it should not be asked to load. So the tests look at
//! which program runs, and not only at whether it works.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use dayfly_api::{CreateSandbox, CreateSnapshot};
use dayfly_client::Client;
use dayfly_e2e::{
    Daemon, DaemonOptions, create, engine, figure, keeper, output, output_of_root, patient,
    refusal, setting_or_skip, until,
};
use serde_json::Value;
use tempfile::TempDir;

/// From the start of a daemon until it has a machine's agent.
const TAKEN_OVER: Duration = Duration::from_secs(20);
const ENGINE: &str = "/usr/bin/qemu-system-x86_64";

/// Programs whose daemon sees another engine where the host's is.
struct OtherEngine {
    programs: TempDir,
}

impl OtherEngine {
    /// The host's, which calls itself otherwise.
    fn new(real: &Path, beside: &Path, version: &str) -> Result<Self> {
        let made = Self::empty(beside)?;
        let other = made.programs.path().join("engine");
        write_as_version(&other, version)?;
        made.with_mount(real, &other, Path::new(ENGINE))
    }

    /// That of another distribution, with its libraries and every other program of it.
    fn of_root(real: &Path, beside: &Path, root: &Path) -> Result<Self> {
        Self::empty(beside)?.with_mount(real, &root.join("usr"), Path::new("/usr"))
    }

    fn empty(beside: &Path) -> Result<Self> {
        let parent = beside.parent().context("no parent")?;
        let programs = tempfile::Builder::new()
            .prefix("e2e-engine-")
            .tempdir_in(parent)?;
        Ok(Self { programs })
    }

    /// In a mount namespace of its own: the host keeps its engine.
    fn with_mount(self, real: &Path, from: &Path, to: &Path) -> Result<Self> {
        let programs = &self.programs;
        let script = format!(
            "#!/bin/sh\nexec unshare --mount sh -c 'mount --bind \"$0\" {} && exec \"$@\"' \
             {} {} \"$@\"\n",
            to.display(),
            from.display(),
            real.join("dayflyd").display()
        );
        let daemon = programs.path().join("dayflyd");
        std::fs::write(&daemon, script)?;
        std::fs::set_permissions(&daemon, std::fs::Permissions::from_mode(0o755))?;
        std::os::unix::fs::symlink(real.join("dayfly"), programs.path().join("dayfly"))?;
        Ok(self)
    }

    fn path(&self) -> PathBuf {
        self.programs.path().to_owned()
    }
}

/// Writes the host's engine to a file, with another version in its words.
fn write_as_version(file: &Path, version: &str) -> Result<()> {
    let own = version_in(Path::new(ENGINE))?;
    ensure!(
        own.len() == version.len(),
        "{own} is not as long as {version}"
    );
    let written = Command::new("sed")
        .env("LC_ALL", "C")
        .arg(format!("s/{} (/{version} (/g", own.replace('.', r"\.")))
        .arg(ENGINE)
        .stdout(std::fs::File::create(file)?)
        .status()?;
    ensure!(written.success(), "sed: {written}");
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755))?;
    let changed = version_in(file)?;
    ensure!(changed == version, "it calls itself {changed}");
    Ok(())
}

/// What a program holds as its version and its package's. It is not asked: it may run in a jail.
fn build_text_in(program: &Path) -> Result<String> {
    let found = Command::new("grep")
        .env("LC_ALL", "C")
        .args(["-m1", "-aoE", r"[0-9]+\.[0-9]+\.[0-9]+ \(Debian 1:[^)]+\)"])
        .arg(program)
        .output()?;
    let text = String::from_utf8(found.stdout)?;
    Ok(text.lines().next().context("no version")?.to_owned())
}

fn version_in(program: &Path) -> Result<String> {
    let text = build_text_in(program)?;
    let (version, _) = text.split_once(' ').context("no version")?;
    Ok(version.to_owned())
}

/// The version of the program that a sandbox's engine runs.
fn version_of_engine(daemon: &Daemon, id: &str) -> Result<String> {
    let pid = engine::engine_pid(daemon, id)?;
    version_in(Path::new(&format!("/proc/{pid}/exe")))
}

fn build_text_of_engine(daemon: &Daemon, id: &str) -> Result<String> {
    let pid = engine::engine_pid(daemon, id)?;
    build_text_in(Path::new(&format!("/proc/{pid}/exe")))
}

async fn engines(daemon: &Daemon) -> Result<Vec<Value>> {
    let directory = daemon.path().display().to_string();
    let listed = daemon
        .dayflyd(&["engines", "ls", "--json", "--data-dir", &directory])
        .await?;
    ensure!(listed.status.success(), "{listed:?}");
    let list: Value = serde_json::from_slice(&listed.stdout)?;
    Ok(list["engines"].as_array().context("no list")?.clone())
}

async fn retire(daemon: &Daemon, build: &str, more: &[&str]) -> Result<std::process::Output> {
    let directory = daemon.path().display().to_string();
    let mut arguments = vec![
        "engines",
        "retire",
        build,
        "--json",
        "--data-dir",
        &directory,
    ];
    arguments.extend(more);
    daemon.dayflyd(&arguments).await
}

async fn hashes(client: &Client, id: &str) -> Result<(String, String)> {
    let files = output(client, id, "sha256sum files/* | sha256sum").await?;
    Ok((files, keeper::ask(client, id, "hash").await?))
}

/// A bake for each engine would take minutes: only where somebody asks for a new sandbox.
fn without_bakes() -> DaemonOptions {
    DaemonOptions {
        arguments: vec!["--templates".to_owned(), String::new()],
        ..DaemonOptions::default()
    }
}

/// A sandbox with files and a process that has something in memory, and the hashes of both.
async fn working(client: &Client) -> Result<(String, (String, String))> {
    let id = create(client, "base").await?.id;
    keeper::start(client, &id, 8).await?;
    let text = "mkdir files && head -c 300000 /dev/urandom > files/a";
    output(client, &id, text).await?;
    let found = hashes(client, &id).await?;
    Ok((id, found))
}

fn build_in<'a>(engines: &'a [Value], state: &str, version: &str) -> Result<&'a str> {
    let found = engines
        .iter()
        .find(|one| one["state"] == state && one["version"] == version);
    let build = found.and_then(|one| one["build"].as_str());
    build.with_context(|| format!("no {state} engine {version} in {engines:?}"))
}

#[tokio::test]
async fn a_sleeper_wakes_in_its_own_engine_after_two_others_were_installed() -> Result<()> {
    let setting = setting_or_skip!();
    let (mut daemon, client) = Daemon::ready(&setting, without_bakes()).await?;
    let (id, before) = working(&client).await?;
    let own = version_of_engine(&daemon, &id)?;
    let snapshot = client
        .create_snapshot(&id, &CreateSnapshot::default())
        .await?
        .id;
    client.hibernate_sandbox(&id).await?;
    let host = daemon.programs();
    // The daemon runs from them.
    let mut others = Vec::new();

    for version in ["99.0.1", "99.0.2"] {
        daemon.terminate().await?;
        let other = OtherEngine::new(&host, daemon.path(), version)?;
        daemon.use_programs(other.path());
        others.push(other);
        daemon.start_again().await?;
        let listed = engines(&daemon).await?;
        build_in(&listed, "installed", version)?;
        let kept = build_in(&listed, "kept", &own)?;
        client.wake_sandbox(&id).await?;
        ensure!(hashes(&client, &id).await? == before, "it is another");
        let runs = version_of_engine(&daemon, &id)?;
        ensure!(runs == own, "it runs in {runs}");
        // It is needed, and what needs it is named.
        let refused = retire(&daemon, kept, &[]).await?;
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        ensure!(!refused.status.success() && said.contains(&id), "{said}");
        client.hibernate_sandbox(&id).await?;
    }

    // From then on nothing is started in it: the sleeper sleeps on, and has lost nothing on disk.
    let listed = engines(&daemon).await?;
    let kept = build_in(&listed, "kept", &own)?;
    let retired = retire(&daemon, kept, &["--accept-loss"]).await?;
    ensure!(retired.status.success(), "{retired:?}");
    let lost = String::from_utf8_lossy(&retired.stdout).into_owned();
    ensure!(lost.contains(&id) && lost.contains(&snapshot), "{lost}");
    refusal(client.wake_sandbox(&id).await, "snapshot_unfit")?;
    ensure!(client.get_sandbox(&id).await?.status == "hibernated");

    // The engine of the host is installed again, and with it everything works.
    daemon.terminate().await?;
    daemon.use_programs(host);
    daemon.start_again().await?;
    client.wake_sandbox(&id).await?;
    ensure!(hashes(&client, &id).await? == before, "it is another");
    client.delete_sandbox(&id).await?;
    client.delete_snapshot(&snapshot).await?;
    daemon.finish().await
}

#[tokio::test]
async fn a_machine_that_goes_on_under_a_new_engine_is_saved_as_the_old_ones() -> Result<()> {
    let setting = setting_or_skip!();
    let (mut daemon, client) = Daemon::ready(&setting, without_bakes()).await?;
    let (id, before) = working(&client).await?;
    let own = version_of_engine(&daemon, &id)?;
    let other = OtherEngine::new(&daemon.programs(), daemon.path(), "99.0.1")?;
    daemon.terminate().await?;
    daemon.use_programs(other.path());
    daemon.start_again().await?;
    until("it answers", patient(TAKEN_OVER), || async {
        output(&client, &id, "true").await.ok()
    })
    .await?;
    client.hibernate_sandbox(&id).await?;
    client.wake_sandbox(&id).await?;
    ensure!(hashes(&client, &id).await? == before, "it is another");
    ensure!(version_of_engine(&daemon, &id)? == own);
    client.delete_sandbox(&id).await?;
    daemon.finish().await
}

/// Two builds as they are, each with its own libraries: the host's and that of another distribution.
#[tokio::test]
#[ignore = "needs the root of another distribution: .ci/soak engines"]
async fn sleepers_of_two_distributions_wake_under_either() -> Result<()> {
    let setting = setting_or_skip!();
    let root = std::env::var_os("DAYFLY_OTHER_ROOT").context("DAYFLY_OTHER_ROOT names no root")?;
    let (mut daemon, client) = Daemon::ready(&setting, without_bakes()).await?;
    let host = daemon.programs();
    let other = OtherEngine::of_root(&host, daemon.path(), Path::new(&root))?;
    let (first, of_first) = working(&client).await?;
    let hosts = build_text_of_engine(&daemon, &first)?;
    client.hibernate_sandbox(&first).await?;

    daemon.terminate().await?;
    daemon.use_programs(other.path());
    daemon.start_again().await?;
    client.wake_sandbox(&first).await?;
    ensure!(hashes(&client, &first).await? == of_first, "it is another");
    ensure!(build_text_of_engine(&daemon, &first)? == hosts);
    // A new one has the new engine, in a bake of its own.
    let (second, of_second) = working(&client).await?;
    let others = build_text_of_engine(&daemon, &second)?;
    ensure!(others != hosts, "both are {hosts}");
    figure!("the host's engine: {hosts}; the other's: {others}");
    for id in [&first, &second] {
        client.hibernate_sandbox(id).await?;
    }

    daemon.terminate().await?;
    daemon.use_programs(host);
    daemon.start_again().await?;
    for (id, before, engine) in [(&first, &of_first, &hosts), (&second, &of_second, &others)] {
        client.wake_sandbox(id).await?;
        ensure!(hashes(&client, id).await? == *before, "it is another");
        ensure!(build_text_of_engine(&daemon, id)? == *engine);
        client.delete_sandbox(id).await?;
    }
    daemon.finish().await
}

/// Everything that a user put on the disk, by content, owner and mode.
const FILES: &str =
    "tar --sort=name --numeric-owner -C / -cf - etc/kept workspace/files | sha256sum";

/// A sandbox with files of its user and of root, and a process that nobody finds on a disk.
async fn with_files(client: &Client) -> Result<(String, String)> {
    let id = create(client, "base").await?.id;
    keeper::start(client, &id, 8).await?;
    let files = "mkdir -p /workspace/files && cd /workspace/files && head -c 3000000 /dev/urandom > a \
                 && ln -s a link && chmod 700 a && setfattr -n user.k -v v a 2>/dev/null; true";
    output(client, &id, files).await?;
    output_of_root(client, &id, "echo kept > /etc/kept && rm -f /etc/issue").await?;
    let hash = output_of_root(client, &id, FILES).await?;
    Ok((id, hash))
}

/// Installs another engine and gives up the one that is called `own`.
async fn lose_engine(daemon: &mut Daemon, own: &str, version: &str) -> Result<OtherEngine> {
    daemon.terminate().await?;
    let other = OtherEngine::new(&daemon.programs(), daemon.path(), version)?;
    daemon.use_programs(other.path());
    daemon.start_again().await?;
    let listed = engines(daemon).await?;
    let kept = build_in(&listed, "kept", own)?;
    let retired = retire(daemon, kept, &["--accept-loss"]).await?;
    ensure!(retired.status.success(), "{retired:?}");
    Ok(other)
}

fn from(snapshot: &str, disk_only: Option<bool>) -> CreateSandbox {
    CreateSandbox {
        from_snapshot: Some(snapshot.to_owned()),
        disk_only,
        ..CreateSandbox::default()
    }
}

async fn has_files(client: &Client, id: &str, files: &str) -> Result<()> {
    let found = output_of_root(client, id, FILES).await?;
    ensure!(found == files, "it has other files");
    Ok(())
}

/// Sleeps, is taken over and is captured: a sandbox like any other, whose memory is its own.
async fn lives_on(daemon: &Daemon, client: &Client, id: &str, files: &str) -> Result<()> {
    keeper::start(client, id, 8).await?;
    let before = keeper::ask(client, id, "hash").await?;
    for _ in 0..2 {
        client.hibernate_sandbox(id).await?;
        client.wake_sandbox(id).await?;
        let memory = keeper::ask(client, id, "hash").await?;
        ensure!(memory == before, "it has other memory");
        has_files(client, id, files).await?;
    }
    Daemon::kill(daemon.role_pid("node")?)?;
    until("it answers", patient(TAKEN_OVER), || async {
        output(client, id, "true").await.ok()
    })
    .await?;
    let snapshot = CreateSnapshot::default();
    let snapshot = client.create_snapshot(id, &snapshot).await?.id;
    client.delete_sandbox(id).await?;
    let copy = client.create_sandbox(&from(&snapshot, None)).await?.id;
    let memory = keeper::ask(client, &copy, "hash").await?;
    ensure!(memory == before, "a copy has other memory");
    has_files(client, &copy, files).await?;
    client.delete_sandbox(&copy).await?;
    client.delete_snapshot(&snapshot).await?;
    Ok(())
}

#[tokio::test]
async fn a_snapshot_whose_engine_is_gone_still_gives_its_disk() -> Result<()> {
    let setting = setting_or_skip!();
    let (mut daemon, client) = Daemon::ready(&setting, without_bakes()).await?;
    let (id, files) = with_files(&client).await?;
    let own = version_of_engine(&daemon, &id)?;
    let snapshot = CreateSnapshot::default();
    let snapshot = client.create_snapshot(&id, &snapshot).await?.id;
    client.delete_sandbox(&id).await?;
    // The daemon runs from its programs.
    let _other = lose_engine(&mut daemon, &own, "99.0.1").await?;

    let whole = client.create_sandbox(&from(&snapshot, None)).await;
    let refused = refusal(whole, "snapshot_unfit")?;
    ensure!(refused.message.contains("--disk-only"), "{refused:?}");
    let booted = client.create_sandbox(&from(&snapshot, Some(true))).await?;
    ensure!(booted.boot_mode == "boot", "{booted:?}");
    let id = booted.id;
    has_files(&client, &id, &files).await?;
    output(&client, &id, "test ! -e /etc/issue").await?;
    let asked = keeper::ask(&client, &id, "hash").await;
    ensure!(asked.is_err(), "a process came along");
    let runs = version_of_engine(&daemon, &id)?;
    ensure!(runs == "99.0.1", "it runs in {runs}");
    lives_on(&daemon, &client, &id, &files).await?;
    client.delete_snapshot(&snapshot).await?;
    daemon.finish().await
}

//! What this program cannot read, or does not know, it keeps: real machines, captures and volumes
//! survive a record, a manifest, a database or a program that is not the right one for a while.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use dayfly_api::{CreateSandbox, CreateSnapshot, CreateVolume, ForkSandbox, Sandbox, VolumeMount};
use dayfly_client::Client;
use dayfly_e2e::engine::{engine_pid, is_gone};
use dayfly_e2e::{
    Daemon, DaemonOptions, Setting, create, figure, output, patient, setting_or_skip, until,
};
use serde_json::Value;

/// The collector takes two passes of 5 s.
const COLLECTED_AFTER: Duration = Duration::from_secs(12);
/// A former program deleted what had no row two minutes after its start.
const DELETED_AFTER: Duration = Duration::from_secs(150);
const SETTLED: Duration = Duration::from_secs(60);
/// Two comparisons of rows and node, and the time for which a sandbox must have had no row.
const ADOPTED: Duration = Duration::from_secs(120);

/// A daemon with everything that can be lost.
struct World {
    daemon: Daemon,
    /// Runs, and writes to a volume.
    awake: String,
    asleep: String,
    child: String,
    snapshot: String,
    /// The engines of the two that run.
    engines: [i32; 2],
}

fn with_volume(read_only: bool) -> CreateSandbox {
    CreateSandbox {
        volumes: Some(vec![VolumeMount {
            name: "data".to_owned(),
            path: None,
            read_only: Some(read_only),
        }]),
        ttl_seconds: Some(7200),
        ..CreateSandbox::default()
    }
}

impl World {
    async fn new(setting: &Setting) -> Result<Self> {
        let (daemon, client) = Daemon::ready(setting, DaemonOptions::default()).await?;
        let volume = CreateVolume {
            name: "data".to_owned(),
            size_mb: Some(64),
            size_gb: None,
        };
        client.create_volume(&volume).await?;
        let parent = create(&client, "base").await?.id;
        output(&client, &parent, "echo mine > mark && sync").await?;
        let fork = client
            .fork_sandbox(&parent, &ForkSandbox::default())
            .await?;
        let child = fork.children.first().context("no child")?.id.clone();
        let request = CreateSnapshot::default();
        let snapshot = client.create_snapshot(&parent, &request).await?.id;
        client.hibernate_sandbox(&parent).await?;
        let awake = client.create_sandbox(&with_volume(false)).await?.id;
        output(&client, &awake, WRITE).await?;
        let engines = [engine_pid(&daemon, &awake)?, engine_pid(&daemon, &child)?];
        Ok(Self {
            daemon,
            awake,
            asleep: parent,
            child,
            snapshot,
            engines,
        })
    }

    /// Without what was being filled or removed when the daemon was killed, whose names have a
    /// suffix.
    fn captures(&self) -> Result<BTreeSet<String>> {
        let mut names = BTreeSet::new();
        for entry in std::fs::read_dir(self.daemon.path().join("node/captures"))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if !name.contains('.') {
                names.insert(name);
            }
        }
        Ok(names)
    }

    /// What the sleeping one lies in.
    fn bed(&self) -> Result<String> {
        let record: Value = serde_json::from_slice(&std::fs::read(self.record(&self.asleep))?)?;
        let capture = record["asleep_in"].as_str();
        Ok(capture.context("it does not sleep")?.to_owned())
    }

    fn record(&self, id: &str) -> PathBuf {
        let journal = self.daemon.path().join("node/sandboxes");
        journal.join(id).join("record.json")
    }

    fn client(&self) -> Result<Client> {
        self.daemon.client()
    }

    /// Nothing ended and nothing was collected.
    fn is_kept(&self, what: &str) -> Result<()> {
        for engine in self.engines {
            ensure!(!is_gone(engine), "{what}: a machine ended");
        }
        ensure!(
            self.captures()?.contains(&self.snapshot),
            "{what}: its snapshot is gone"
        );
        for id in [&self.awake, &self.asleep, &self.child] {
            let directory = self.record(id).parent().context("no parent")?.to_owned();
            ensure!(directory.exists(), "{what}: the entry of {id} is gone");
        }
        let volume = self
            .daemon
            .path()
            .join("node/volumes/default/data/disk.img");
        ensure!(volume.exists(), "{what}: the volume is gone");
        Ok(())
    }

    /// Everything can be used, and has what it had.
    async fn is_whole(&self, what: &str) -> Result<()> {
        let client = self.client()?;
        for id in [&self.awake, &self.child, &self.asleep] {
            until(
                &format!("{what}: {id} is there"),
                patient(SETTLED),
                || async {
                    let sandbox = client.get_sandbox(id).await.ok()?;
                    (sandbox.status != "unavailable").then_some(())
                },
            )
            .await?;
        }
        self.is_kept(what)?;
        for id in [&self.child, &self.asleep] {
            ensure!(
                output(&client, id, "cat mark").await? == "mine",
                "{what}: {id}"
            );
        }
        ensure!(
            output(&client, &self.awake, READ).await? == "kept",
            "{what}"
        );
        let request = CreateSandbox {
            from_snapshot: Some(self.snapshot.clone()),
            ..CreateSandbox::default()
        };
        let restored = client.create_sandbox(&request).await?.id;
        ensure!(
            output(&client, &restored, "cat mark").await? == "mine",
            "{what}"
        );
        client.delete_sandbox(&restored).await?;
        client.hibernate_sandbox(&self.asleep).await?;
        Ok(())
    }

    async fn shown(&self, id: &str) -> Result<Sandbox> {
        let client = self.client()?;
        until(
            &format!("{id} is unavailable"),
            patient(SETTLED),
            || async {
                let sandbox = client.get_sandbox(id).await.ok()?;
                (sandbox.status == "unavailable").then_some(sandbox)
            },
        )
        .await
    }

    async fn doctor_warns(&self, name: &str) -> Result<bool> {
        let report = self.daemon.doctor().await?;
        let checks = report["checks"].as_array().context("no checks")?;
        let warns = |check: &&Value| check["name"] == name && check["verdict"] != "ok";
        Ok(checks.iter().any(|check| warns(&check)))
    }

    async fn finish(self) -> Result<()> {
        self.daemon.finish().await
    }

    /// Spoils one file between two lives of the daemon, looks, and puts it right again.
    async fn survives(&mut self, damage: Damage, id: &str, path: &Path) -> Result<()> {
        let what = format!("{damage:?}");
        self.daemon.kill_all().await?;
        let captures = self.captures()?;
        let spoilt = Spoilt::new(damage, path.to_owned())?;
        self.daemon.start_again().await?;
        let shown = self.shown(id).await?;
        ensure!(
            shown
                .reason
                .is_some_and(|reason| reason.contains("cannot be read"))
        );
        tokio::time::sleep(COLLECTED_AFTER).await;
        self.is_kept(&what)?;
        ensure!(
            captures.is_subset(&self.captures()?),
            "{what}: a capture was collected"
        );
        ensure!(
            self.doctor_warns("unreadable").await?,
            "{what}: doctor is silent"
        );
        ensure!(
            self.daemon.leftovers().await?.is_empty(),
            "{what}: left over"
        );
        spoilt.put_right()?;
        self.is_whole(&what).await?;
        figure!("{what}: kept and there again");
        Ok(())
    }
}

const WRITE: &str = "echo kept > /volumes/data/note && sync";
const READ: &str = "cat /volumes/data/note";

/// How a file is spoilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Damage {
    LaterFormat,
    Torn,
    InputOutputError,
    Missing,
}

struct Spoilt {
    path: PathBuf,
    text: Vec<u8>,
}

impl Spoilt {
    fn new(damage: Damage, path: PathBuf) -> Result<Self> {
        let text = std::fs::read(&path)?;
        std::fs::remove_file(&path)?;
        match damage {
            Damage::LaterFormat => {
                let mut value: Value = serde_json::from_slice(&text)?;
                value["format"] = 5.into();
                std::fs::write(&path, value.to_string())?;
            }
            Damage::Torn => std::fs::write(&path, &text[..text.len() / 2])?,
            // The first page of whoever reads it, which cannot be read.
            Damage::InputOutputError => std::os::unix::fs::symlink("/proc/self/mem", &path)?,
            Damage::Missing => {}
        }
        Ok(Self { path, text })
    }

    /// By rename, as the daemon does: whoever looks sees the whole of it.
    fn put_right(self) -> Result<()> {
        let aside = self.path.with_extension("aside");
        std::fs::write(&aside, self.text)?;
        Ok(std::fs::rename(aside, &self.path)?)
    }
}

/// The files of the database: the rest of it may be in its log.
fn database_files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory.join("control"))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("dayfly.db") {
            files.push(path.clone());
        }
    }
    Ok(files)
}

/// Puts the database of one directory, or of none, into the place of the other's, with its owner.
fn replace_database(directory: &Path, with: Option<&Path>) -> Result<()> {
    for file in database_files(directory)? {
        std::fs::remove_file(file)?;
    }
    let Some(with) = with else {
        return Ok(());
    };
    let owner = std::fs::metadata(directory.join("control"))?;
    for file in database_files(with)? {
        let name = file.file_name().context("no name")?;
        let to = directory.join("control").join(name);
        std::fs::copy(&file, &to)?;
        let (uid, gid) = {
            use std::os::unix::fs::MetadataExt as _;
            (owner.uid(), owner.gid())
        };
        std::os::unix::fs::chown(&to, Some(uid), Some(gid))?;
    }
    Ok(())
}

fn copy_database(directory: &Path) -> Result<tempfile::TempDir> {
    let copy = tempfile::tempdir()?;
    std::fs::create_dir(copy.path().join("control"))?;
    for file in database_files(directory)? {
        let name = file.file_name().context("no name")?;
        std::fs::copy(&file, copy.path().join("control").join(name))?;
    }
    Ok(copy)
}

async fn is_strange(client: &Client) -> Option<()> {
    let health = client.health(Duration::from_secs(5)).await.ok()?;
    let is_that = |name: &str| name == "strange_database";
    let mut conditions = health.conditions.iter();
    conditions
        .any(|condition| is_that(&condition.name))
        .then_some(())
}

/// Which database the daemon finds instead of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    None,
    ZeroLength,
    WeekOld,
    Foreign,
}

impl World {
    /// Starts with another database, waits, and goes back to the right one.
    async fn survives_database(
        &mut self,
        found: Found,
        other: Option<&Path>,
        wait: Duration,
    ) -> Result<()> {
        let what = format!("{found:?}");
        self.daemon.terminate().await?;
        let bed = self.bed()?;
        let right = copy_database(self.daemon.path())?;
        replace_database(self.daemon.path(), other)?;
        if found == Found::ZeroLength {
            std::fs::write(self.daemon.path().join("control/dayfly.db"), b"")?;
            let owner = std::fs::metadata(self.daemon.path().join("control"))?;
            let uid = std::os::unix::fs::MetadataExt::uid(&owner);
            let path = self.daemon.path().join("control/dayfly.db");
            std::os::unix::fs::chown(path, Some(uid), Some(uid))?;
        }
        self.daemon.start_again().await?;
        let client = self.client()?;
        until(&what, patient(SETTLED), || is_strange(&client)).await?;
        tokio::time::sleep(wait).await;
        self.is_kept(&what)?;
        ensure!(
            self.captures()?.contains(&bed),
            "{what}: what it sleeps in is gone"
        );
        ensure!(
            self.doctor_warns("health").await?,
            "{what}: doctor is silent"
        );
        self.daemon.terminate().await?;
        replace_database(self.daemon.path(), Some(right.path()))?;
        self.daemon.start_again().await?;
        self.is_whole(&what).await?;
        ensure!(is_strange(&self.client()?).await.is_none(), "{what}");
        figure!("{what}: kept, and there again with the right database");
        Ok(())
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_kept_and_there_again() -> Result<()> {
    let setting = setting_or_skip!();
    let mut world = World::new(&setting).await?;
    let (awake, asleep) = (world.awake.clone(), world.asleep.clone());
    let path = world.record(&awake);
    world.survives(Damage::LaterFormat, &awake, &path).await?;
    let path = world.record(&asleep);
    world.survives(Damage::Torn, &asleep, &path).await?;
    world
        .survives_database(Found::None, None, Duration::ZERO)
        .await?;
    world.finish().await
}

#[tokio::test]
#[ignore = "soak: every damage of every record, and of a manifest"]
async fn every_damage_of_a_record_or_a_manifest_is_survived() -> Result<()> {
    let setting = setting_or_skip!();
    let mut world = World::new(&setting).await?;
    let ids = [&world.awake, &world.asleep, &world.child].map(Clone::clone);
    for damage in [Damage::LaterFormat, Damage::Torn, Damage::InputOutputError] {
        for id in &ids {
            let path = world.record(id);
            world.survives(damage, id, &path).await?;
        }
    }
    for damage in [Damage::Missing, Damage::Torn, Damage::InputOutputError] {
        let captures = world.daemon.path().join("node/captures");
        let path = captures.join(world.bed()?).join("manifest.json");
        world.survives(damage, &ids[1], &path).await?;
    }
    world.finish().await
}

#[tokio::test]
#[ignore = "soak: every wrong database, for longer than a former program waited"]
async fn every_wrong_database_is_survived() -> Result<()> {
    let setting = setting_or_skip!();
    let mut world = World::new(&setting).await?;
    world.daemon.terminate().await?;
    let week_old = copy_database(world.daemon.path())?;
    world.daemon.start_again().await?;
    // What happened since the copy was made.
    let client = world.client()?;
    output(&client, &world.child, "true").await?;
    let young = create(&client, "base").await?.id;
    let other = Daemon::start(&setting, DaemonOptions::default()).await?;
    let foreign = create(&other.client()?, "base").await?.id;
    other.client()?.delete_sandbox(&foreign).await?;
    let foreign = copy_database(other.path())?;
    other.finish().await?;
    for (found, with) in [
        (Found::None, None),
        (Found::ZeroLength, None),
        (Found::WeekOld, Some(week_old.path())),
        (Found::Foreign, Some(foreign.path())),
    ] {
        world.survives_database(found, with, DELETED_AFTER).await?;
    }
    // The operator means the old copy: what it does not know is adopted.
    world.daemon.terminate().await?;
    replace_database(world.daemon.path(), Some(week_old.path()))?;
    world.daemon.start_again().await?;
    let path = world.daemon.path().display().to_string();
    let accepted = world
        .daemon
        .dayflyd(&["database", "accept", "--data-dir", &path])
        .await?;
    ensure!(accepted.status.success(), "{accepted:?}");
    let client = world.client()?;
    until("it is adopted", patient(ADOPTED), || async {
        client.get_sandbox(&young).await.ok()
    })
    .await?;
    ensure!(output(&client, &young, "echo works").await? == "works");
    world.is_whole("accepted").await?;
    world.finish().await
}

/// What `docs/operate.md` says of a downgrade.
#[tokio::test]
#[ignore = "soak: needs the programs of commit 41c4352 in DAYFLY_OLD_PROGRAMS"]
async fn an_older_program_on_the_directory_loses_nothing() -> Result<()> {
    let setting = setting_or_skip!();
    let Some(old) = std::env::var_os("DAYFLY_OLD_PROGRAMS") else {
        figure!("skipped: DAYFLY_OLD_PROGRAMS is not set");
        return Ok(());
    };
    let mut world = World::new(&setting).await?;
    world.daemon.terminate().await?;
    let bed = world.bed()?;
    let programs = world.daemon.use_programs(PathBuf::from(old));
    world.daemon.start_without_waiting()?;
    let log = world.daemon.path().join("daemon.log");
    let adopted = || async {
        let log = std::fs::read_to_string(&log).ok()?;
        let starts = log.matches("node ready").count();
        (starts == 2).then_some(())
    };
    until("the old node has taken over", patient(SETTLED), adopted).await?;
    tokio::time::sleep(DELETED_AFTER).await;
    world.is_kept("the older program")?;
    ensure!(
        world.captures()?.contains(&bed),
        "what it sleeps in is gone"
    );
    let log = std::fs::read_to_string(&log)?;
    ensure!(
        log.contains("cannot bring the database schema up to date"),
        "the old control did not refuse the database"
    );
    world.daemon.terminate().await?;
    world.daemon.use_programs(programs);
    world.daemon.start_again().await?;
    world.is_whole("after the older program").await?;
    world.finish().await
}

//! A backup that was made under load gives back everything that cannot be made again.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dayfly_api::{
    CreateProject, CreateSandbox, CreateSnapshot, CreateToken, CreateVolume, VolumeMount,
};
use dayfly_client::{ApiKey, Client, ClientConfig};
use dayfly_e2e::{
    Daemon, DaemonOptions, create, engine, figure, keeper, output, patient, setting_or_skip, until,
};
use serde_json::Value;
use tempfile::TempDir;
use tokio::task::JoinHandle;

const SETTLED: Duration = Duration::from_secs(60);
/// Writes to its volume without a pause.
const WRITE_ALWAYS: &str = "setsid nohup sh -c 'while :; do date >> /volumes/busy/log; \
    sync /volumes/busy/log; done' >/dev/null 2>&1 </dev/null &";

/// Everything that a host can lose.
struct World {
    daemon: Daemon,
    operator: Client,
    token: String,
    /// Sleeps, with files, memory and a volume.
    sleeper: String,
    hashes: (String, String),
    /// Runs, and writes to a volume all the time.
    writer: String,
    snapshots: Vec<String>,
}

fn with_volume(name: &str) -> CreateSandbox {
    CreateSandbox {
        volumes: Some(vec![VolumeMount {
            name: name.to_owned(),
            path: None,
            read_only: Some(false),
        }]),
        ttl_seconds: Some(7200),
        ..CreateSandbox::default()
    }
}

async fn hashes(client: &Client, id: &str) -> Result<(String, String)> {
    let files = output(client, id, "sha256sum files/* | sha256sum").await?;
    Ok((files, keeper::ask(client, id, "hash").await?))
}

impl World {
    async fn new(setting: &dayfly_e2e::Setting) -> Result<Self> {
        let options = DaemonOptions {
            arguments: vec!["--allow-shared-emulation".to_owned()],
            recipes: vec![("note.txt".to_owned(), "mine".to_owned())],
            ..DaemonOptions::default()
        };
        let (daemon, operator) = Daemon::ready(setting, options).await?;
        let project = CreateProject {
            id: "alpha".to_owned(),
            limits: None,
        };
        operator.create_project(&project).await?;
        let token = operator
            .create_token(Some("alpha"), &CreateToken::default())
            .await?
            .token;
        for name in ["idle", "mine", "busy"] {
            let volume = CreateVolume {
                name: name.to_owned(),
                size_mb: Some(64),
                size_gb: None,
            };
            operator.create_volume(&volume).await?;
        }
        let first = operator.create_sandbox(&with_volume("idle")).await?.id;
        output(&operator, &first, "echo idle > /volumes/idle/note && sync").await?;
        operator.delete_sandbox(&first).await?;
        let mut world = Self {
            daemon,
            operator,
            token,
            sleeper: String::new(),
            hashes: <(String, String)>::default(),
            writer: String::new(),
            snapshots: Vec::new(),
        };
        world.fill().await?;
        Ok(world)
    }

    async fn fill(&mut self) -> Result<()> {
        let client = &self.operator;
        let sleeper = client.create_sandbox(&with_volume("mine")).await?.id;
        let text = "mkdir files && for i in 1 2 3; do head -c 300000 /dev/urandom > files/$i; done";
        output(client, &sleeper, text).await?;
        output(client, &sleeper, "echo mine > /volumes/mine/note && sync").await?;
        keeper::start(client, &sleeper, 8).await?;
        self.hashes = hashes(client, &sleeper).await?;
        client.hibernate_sandbox(&sleeper).await?;
        let writer = client.create_sandbox(&with_volume("busy")).await?.id;
        let source = create(client, "base").await?.id;
        for number in 0..2 {
            output(client, &source, &format!("echo {number} > mark && sync")).await?;
            let taken = client
                .create_snapshot(&source, &CreateSnapshot::default())
                .await?;
            self.snapshots.push(taken.id);
        }
        client.delete_sandbox(&source).await?;
        // So that a copy takes longer than its pauses between two writes.
        let text = "head -c 40000000 /dev/urandom > /volumes/busy/data && sync";
        output(client, &writer, text).await?;
        output(client, &writer, WRITE_ALWAYS).await?;
        (self.sleeper, self.writer) = (sleeper, writer);
        Ok(())
    }

    fn alpha(&self) -> Result<Client> {
        Ok(Client::new(ClientConfig {
            url: self.daemon.url(),
            key: Some(ApiKey::parse(&self.token)?),
        })?)
    }

    async fn dayflyd(&self, arguments: &[&str]) -> Result<Value> {
        let output = self.daemon.dayflyd(arguments).await?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "{arguments:?}: {said}");
        serde_json::from_slice(&output.stdout).with_context(|| said)
    }

    /// The answer names what is in the backup, what each volume is worth, and what is not in it.
    fn says_what_it_is(&self, made: &Value) -> Result<()> {
        ensure!(
            made["sleepers"] == serde_json::json!([self.sleeper]),
            "{made}"
        );
        let volumes = made["volumes"].as_array().context("no volumes")?;
        let state = |name: &str| {
            volumes
                .iter()
                .find(|one| one["name"] == name)
                .map(|one| &one["state"])
        };
        ensure!(state("idle") == Some(&"at_rest".into()), "{volumes:?}");
        ensure!(state("mine") == Some(&"with_sleeper".into()), "{volumes:?}");
        ensure!(
            state("busy") == Some(&"crash_consistent".into()),
            "{volumes:?}"
        );
        let left_out = made["left_out"]
            .as_array()
            .context("nothing about what runs")?;
        ensure!(
            left_out
                .iter()
                .any(|one| one["sandbox"] == self.writer.as_str()),
            "{left_out:?}"
        );
        Ok(())
    }

    /// Everything is as it was.
    async fn is_whole(&self) -> Result<()> {
        let client = self.daemon.client()?;
        self.daemon.wait_for_template("base", SETTLED).await?;
        until("it is healthy", SETTLED, || async {
            let health = client.health(SETTLED).await.ok()?;
            health.conditions.is_empty().then_some(())
        })
        .await?;
        let projects = client.projects().await?;
        ensure!(
            projects.iter().any(|project| project.id == "alpha"),
            "{projects:?}"
        );
        self.alpha()?.list_sandboxes().await?;
        ensure!(client.get_sandbox(&self.sleeper).await?.status == "hibernated");
        let found = hashes(&client, &self.sleeper).await?;
        ensure!(found == self.hashes, "{found:?}, not {:?}", self.hashes);
        ensure!(output(&client, &self.sleeper, "cat /volumes/mine/note").await? == "mine");
        self.snapshots_are_whole(&client).await?;
        for (volume, text) in [
            ("idle", "cat /volumes/idle/note"),
            ("busy", "wc -l < /volumes/busy/log"),
        ] {
            let id = client.create_sandbox(&with_volume(volume)).await?.id;
            let found = output(&client, &id, text).await?;
            ensure!(
                found == "idle" || found.parse::<u64>()? > 0,
                "{volume}: {found}"
            );
            client.delete_sandbox(&id).await?;
        }
        ensure!(std::fs::read_to_string(self.daemon.path().join("recipes/note.txt"))? == "mine");
        // The row of what ran is given up, as for any sandbox that a node has lost.
        until(
            "the row of the writer is gone",
            patient(SETTLED),
            || async {
                let rows = client.list_sandboxes().await.ok()?;
                rows.iter().all(|row| row.id != self.writer).then_some(())
            },
        )
        .await
    }

    /// Whatever snapshot there is can be used.
    async fn snapshots_are_whole(&self, client: &Client) -> Result<()> {
        let found = client.list_snapshots(None).await?;
        let ids: Vec<&str> = found.iter().map(|one| one.id.as_str()).collect();
        figure!(
            "{} snapshots came back, {} of them from the load",
            ids.len(),
            ids.len() - 2
        );
        for (number, id) in self.snapshots.iter().enumerate() {
            ensure!(ids.contains(&id.as_str()), "{id} is not among {ids:?}");
            let mark = mark_of(client, id).await?;
            ensure!(mark == number.to_string(), "{id} has {mark}");
        }
        for id in ids
            .iter()
            .filter(|id| !self.snapshots.iter().any(|one| one == *id))
        {
            let mark = mark_of(client, id).await?;
            ensure!(mark.starts_with("load-"), "{id} has {mark}");
        }
        Ok(())
    }
}

async fn mark_of(client: &Client, snapshot: &str) -> Result<String> {
    let request = CreateSandbox {
        from_snapshot: Some(snapshot.to_owned()),
        ..CreateSandbox::default()
    };
    let id = client.create_sandbox(&request).await?.id;
    let mark = output(client, &id, "cat mark").await?;
    client.delete_sandbox(&id).await?;
    Ok(mark)
}

/// Takes snapshots and deletes all but the last two, until it is told to stop.
struct Load {
    is_over: Arc<AtomicBool>,
    count: Arc<AtomicUsize>,
    work: JoinHandle<Result<()>>,
}

impl Load {
    async fn start(client: Client) -> Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let count = Arc::new(AtomicUsize::new(0));
        let (told, counted) = (Arc::clone(&is_over), Arc::clone(&count));
        let id = create(&client, "base").await?.id;
        let work = tokio::spawn(async move {
            let mut taken = Vec::new();
            while !told.load(Ordering::SeqCst) {
                let number = counted.load(Ordering::SeqCst);
                output(&client, &id, &format!("echo load-{number} > mark")).await?;
                let snapshot = client
                    .create_snapshot(&id, &CreateSnapshot::default())
                    .await?;
                taken.push(snapshot.id);
                if taken.len() > 2 {
                    client.delete_snapshot(&taken.remove(0)).await?;
                }
                counted.store(number + 1, Ordering::SeqCst);
            }
            Ok(())
        });
        Ok(Self {
            is_over,
            count,
            work,
        })
    }

    /// Waits until some are taken and some are deleted.
    async fn is_under_way(&self) -> Result<()> {
        until("the load is under way", patient(SETTLED), || async {
            (self.count.load(Ordering::SeqCst) > 3).then_some(())
        })
        .await
    }

    async fn stop(self) -> Result<usize> {
        self.is_over.store(true, Ordering::SeqCst);
        self.work.await??;
        Ok(self.count.load(Ordering::SeqCst))
    }
}

/// Removes all that is in a directory, as a disk that was replaced.
fn wipe(directory: &Path) -> Result<()> {
    for item in std::fs::read_dir(directory)? {
        let path = item?.path();
        if path.is_dir() {
            std::fs::remove_dir_all(path)?;
        } else {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a path that is no text")
}

#[tokio::test]
async fn a_wiped_host_gets_everything_back_from_a_backup_under_load() -> Result<()> {
    let setting = setting_or_skip!();
    let mut world = World::new(&setting).await?;
    let place = tempfile::tempdir_in(setting.templates.parent().context("no parent")?)?;
    let backup = place.path().join("backup");
    let (data, to) = (world.daemon.path().to_owned(), text(&backup)?.to_owned());
    let data = text(&data)?.to_owned();
    let load = Load::start(world.operator.clone()).await?;
    load.is_under_way().await?;
    let generation = engine::record(&world.daemon, &world.writer)?["generation"].clone();
    let start = Instant::now();
    let made = world
        .dayflyd(&["backup", "--data-dir", &data, &to, "--json"])
        .await?;
    let took = start.elapsed();
    let count = load.stop().await?;
    figure!(
        "{} MiB in {took:?}, while {count} snapshots were taken",
        made["bytes"].as_u64().unwrap_or(0) >> 20
    );
    world.says_what_it_is(&made)?;
    ensure!(
        !world.daemon.path().join("node/backup-stage").exists(),
        "the stage stays"
    );
    let is_same = engine::record(&world.daemon, &world.writer)?["generation"] == generation;
    figure!("the writer was paused: {}", !is_same);
    // It goes on.
    output(
        &world.operator,
        &world.writer,
        "tail -n 1 /volumes/busy/log",
    )
    .await?;

    world.dayflyd(&["backup", "check", &to, "--json"]).await?;
    let refused = world
        .daemon
        .dayflyd(&["restore", "--data-dir", &data, &to])
        .await?;
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    ensure!(
        !refused.status.success() && said.contains("not empty"),
        "{said}"
    );
    world
        .dayflyd(&["stop", "--all", "--data-dir", &data, "--json"])
        .await?;
    world.daemon.terminate().await?;
    wipe(world.daemon.path())?;
    world
        .dayflyd(&["restore", "--data-dir", &data, &to, "--json"])
        .await?;
    world.daemon.start_again().await?;
    world.is_whole().await?;
    world.daemon.finish().await
}

/// A daemon with a volume and nothing that runs: its backup is small.
async fn small(setting: &dayfly_e2e::Setting) -> Result<(Daemon, TempDir, PathBuf)> {
    let daemon = Daemon::start(setting, DaemonOptions::default()).await?;
    let volume = CreateVolume {
        name: "data".to_owned(),
        size_mb: Some(64),
        size_gb: None,
    };
    daemon.client()?.create_volume(&volume).await?;
    let place = tempfile::tempdir_in(setting.templates.parent().context("no parent")?)?;
    let archive = place.path().join("archive.tar");
    let status = tokio::process::Command::new(daemon.programs().join("dayflyd"))
        .args(["backup", "--data-dir", text(daemon.path())?, "-"])
        .stdout(Stdio::from(std::fs::File::create(&archive)?))
        .status();
    ensure!(status.await?.success(), "no archive");
    Ok((daemon, place, archive))
}

/// Runs `dayflyd` with an archive as its standard input.
async fn with_archive(
    daemon: &Daemon,
    archive: &Path,
    arguments: &[&str],
) -> Result<(bool, String)> {
    let output = tokio::process::Command::new(daemon.programs().join("dayflyd"))
        .args(arguments)
        .stdin(Stdio::from(std::fs::File::open(archive)?))
        .output()
        .await?;
    Ok((
        output.status.success(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    ))
}

#[tokio::test]
async fn an_archive_is_refused_beside_its_own_installation_and_when_it_is_damaged() -> Result<()> {
    let setting = setting_or_skip!();
    let (mut daemon, place, archive) = small(&setting).await?;
    let (is_whole, said) = with_archive(&daemon, &archive, &["backup", "check", "-"]).await?;
    ensure!(is_whole, "{said}");
    let elsewhere = place.path().join("elsewhere");
    let restore = ["restore", "--data-dir", text(&elsewhere)?, "-"];
    // Two of one name on one host would end each other's sandboxes.
    let (is_done, said) = with_archive(&daemon, &archive, &restore).await?;
    ensure!(!is_done && said.contains("control groups"), "{said}");
    ensure!(!elsewhere.exists());
    daemon.terminate().await?;
    let whole = std::fs::read(&archive)?;
    let mut flipped = whole.clone();
    flipped[whole.len() / 3] ^= 1;
    for damaged in [&whole[..whole.len() / 2], &flipped] {
        let path = place.path().join("damaged.tar");
        std::fs::write(&path, damaged)?;
        let (is_done, said) = with_archive(&daemon, &path, &restore).await?;
        ensure!(!is_done, "{said}");
        std::fs::remove_file(path)?;
        let beside = std::fs::read_dir(place.path())?.count();
        ensure!(beside == 1, "something stays of a restore that was refused");
    }
    let (is_done, said) = with_archive(&daemon, &archive, &restore).await?;
    ensure!(is_done, "elsewhere: {said}");
    // The same through the door: the daemon's own directory again, from the archive.
    wipe(daemon.path())?;
    let here = ["restore", "--data-dir", text(daemon.path())?, "-"];
    let (is_done, said) = with_archive(&daemon, &archive, &here).await?;
    ensure!(is_done, "{said}");
    daemon.start_again().await?;
    let volumes = daemon.client()?.list_volumes().await?;
    ensure!(
        volumes.len() == 1 && volumes[0].name == "data",
        "{volumes:?}"
    );
    daemon.finish().await
}

//! Volumes outlive sandboxes, have one writer or many readers, and are whole on every way out.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dayfly_api::{
    CreateSandbox, CreateSnapshot, CreateVolume, ForkSandbox, GrowVolume, Sandbox, VolumeMount,
};
use dayfly_client::{Client, ClientError};
use dayfly_e2e::{Daemon, DaemonOptions, exec, figure, output, refusal, setting_or_skip, until};

const NAME: &str = "data";
const AT: &str = "/volumes/data";

struct World {
    daemon: Daemon,
    client: Client,
}

impl World {
    /// A daemon with one volume of 64 MiB.
    async fn new(setting: &dayfly_e2e::Setting) -> Result<Self> {
        let (daemon, client) = Daemon::ready(setting, DaemonOptions::default()).await?;
        let volume = CreateVolume {
            name: NAME.to_owned(),
            size_mb: Some(64),
            size_gb: None,
        };
        client.create_volume(&volume).await?;
        Ok(Self { daemon, client })
    }

    async fn attach(&self, read_only: bool) -> Result<Sandbox, ClientError> {
        let request = CreateSandbox {
            volumes: Some(vec![VolumeMount {
                name: NAME.to_owned(),
                path: None,
                read_only: Some(read_only),
            }]),
            ..CreateSandbox::default()
        };
        self.client.create_sandbox(&request).await
    }

    async fn run(&self, id: &str, text: &str) -> Result<String> {
        output(&self.client, id, text).await
    }

    /// The volume's file system has no error at all, not even a journal to replay. Nobody has it.
    fn is_clean(&self, when: &str) -> Result<()> {
        let disk = self.disk();
        let check = std::process::Command::new("e2fsck")
            .args(["-f", "-n"])
            .arg(&disk)
            .output()?;
        let said = String::from_utf8_lossy(&check.stdout).into_owned();
        ensure!(
            check.status.code() == Some(0) && !said.contains("recovery"),
            "{when}: {said}"
        );
        Ok(())
    }

    fn disk(&self) -> PathBuf {
        let path = format!("node/volumes/default/{NAME}/disk.img");
        self.daemon.path().join(path)
    }

    /// A process in the guest that has a file of the volume open.
    async fn hold(&self, id: &str) -> Result<()> {
        let text = format!(
            "setsid nohup sh -c 'exec 3>>{AT}/held; while :; do echo x >&3; sleep 0.05; done' \
             >/dev/null 2>&1 </dev/null &"
        );
        self.run(id, &text).await?;
        until("the file is held", Duration::from_secs(10), || async {
            let size = self.run(id, &format!("stat -c %s {AT}/held")).await.ok()?;
            (size != "0").then_some(())
        })
        .await
    }

    async fn let_go(&self, id: &str) -> Result<()> {
        // The brackets keep the pattern from finding the shell that it stands in.
        let text = "pkill -f '[d]ata/held'; while pgrep -f '[d]ata/held' >/dev/null; do :; done";
        self.run(id, text).await?;
        Ok(())
    }
}

#[tokio::test]
async fn one_writes_or_many_read_and_it_outlives_them() -> Result<()> {
    let setting = setting_or_skip!();
    let world = World::new(&setting).await?;
    let client = &world.client;
    let writer = world.attach(false).await?.id;
    world
        .run(&writer, &format!("echo kept > {AT}/file && sync"))
        .await?;
    for read_only in [false, true] {
        let error = refusal(world.attach(read_only).await, "volume_busy")?;
        ensure!(error.message.contains(&writer), "{}", error.message);
    }
    refusal(client.delete_volume(NAME).await, "volume_busy")?;
    let larger = GrowVolume {
        size_mb: Some(128),
        size_gb: None,
    };
    refusal(client.grow_volume(NAME, &larger).await, "volume_busy")?;
    client.delete_sandbox(&writer).await?;
    world.is_clean("after a delete")?;

    let (first, second) = (world.attach(true).await?.id, world.attach(true).await?.id);
    for id in [&first, &second] {
        ensure!(world.run(id, &format!("cat {AT}/file")).await? == "kept");
        let write = exec(client, id, &format!("echo no > {AT}/file")).await?;
        ensure!(
            write.exit_code != 0 && write.stderr.contains("Read-only"),
            "{write:?}"
        );
    }
    let error = refusal(world.attach(false).await, "volume_busy")?;
    ensure!(
        error.message.contains(&first) || error.message.contains(&second),
        "{}",
        error.message
    );
    for id in [&first, &second] {
        client.delete_sandbox(id).await?;
    }
    let grown = client.grow_volume(NAME, &larger).await?;
    ensure!(grown.size_mb == 128 && grown.writer.is_none(), "{grown:?}");
    world.is_clean("after growing")?;
    let third = world.attach(false).await?.id;
    ensure!(world.run(&third, &format!("cat {AT}/file")).await? == "kept");
    // What did not fit before fits now.
    world
        .run(&third, &format!("fallocate -l 100M {AT}/large"))
        .await?;
    client.delete_sandbox(&third).await?;
    world.is_clean("after the larger one was used")?;
    client.delete_volume(NAME).await?;
    ensure!(!world.disk().exists(), "its bytes are still there");
    world.daemon.finish().await
}

#[tokio::test]
async fn a_volume_in_use_is_not_captured_and_not_harmed() -> Result<()> {
    let setting = setting_or_skip!();
    let world = World::new(&setting).await?;
    let client = &world.client;
    let id = world.attach(false).await?.id;
    world.hold(&id).await?;
    let snapshot = CreateSnapshot::default();
    let error = refusal(client.create_snapshot(&id, &snapshot).await, "volume_busy")?;
    ensure!(error.message.contains(NAME), "{}", error.message);
    let fork = ForkSandbox::default();
    refusal(client.fork_sandbox(&id, &fork).await, "volume_busy")?;
    // The writer never lost its file.
    let size = world.run(&id, &format!("stat -c %s {AT}/held")).await?;
    until("the writer goes on", Duration::from_secs(5), || async {
        let now = world
            .run(&id, &format!("stat -c %s {AT}/held"))
            .await
            .ok()?;
        (now.parse::<u64>().ok()? > size.parse().ok()?).then_some(())
    })
    .await?;
    world.let_go(&id).await?;

    world.run(&id, &format!("echo one > {AT}/file")).await?;
    let taken = client.create_snapshot(&id, &snapshot).await?;
    ensure!(world.run(&id, &format!("cat {AT}/file")).await? == "one");
    world.run(&id, &format!("echo two > {AT}/file")).await?;
    let child = client.fork_sandbox(&id, &fork).await?.children;
    let child = child.first().context("no child")?;
    ensure!(child.volumes.is_empty(), "{:?}", child.volumes);
    let missing = exec(client, &child.id, &format!("grep -q ' {AT} ' /proc/mounts")).await?;
    ensure!(
        missing.exit_code == 1,
        "the child has the volume: {missing:?}"
    );
    // The positive control: the source has it.
    world
        .run(&id, &format!("grep -q ' {AT} ' /proc/mounts"))
        .await?;
    client.delete_sandbox(&child.id).await?;

    // The volume is not part of the snapshot: what was written since stays.
    world.run(&id, "echo old > /workspace/file").await?;
    client.rollback_sandbox(&id, &taken.id).await?;
    ensure!(exec(client, &id, "cat /workspace/file").await?.exit_code != 0);
    ensure!(world.run(&id, &format!("cat {AT}/file")).await? == "two");
    world.run(&id, &format!("echo three > {AT}/file")).await?;
    client.delete_sandbox(&id).await?;
    world.is_clean("after a rollback and a delete")?;
    world.daemon.finish().await
}

#[tokio::test]
async fn a_sleeper_keeps_its_volume_and_finds_it_again() -> Result<()> {
    let setting = setting_or_skip!();
    let world = World::new(&setting).await?;
    let client = &world.client;
    let id = world.attach(false).await?.id;
    // In use on purpose: nobody else can change the disk of a sleeper, so it may stay mounted.
    world.hold(&id).await?;
    client.hibernate_sandbox(&id).await?;
    let error = refusal(world.attach(false).await, "volume_busy")?;
    ensure!(error.message.contains(&id), "{}", error.message);
    ensure!(client.get_volume(NAME).await?.writer.as_deref() == Some(id.as_str()));
    let start = Instant::now();
    let size: u64 = world
        .run(&id, &format!("stat -c %s {AT}/held"))
        .await?
        .parse()?;
    figure!("woken with a volume after {:?}", start.elapsed());
    until("the writer goes on", Duration::from_secs(5), || async {
        let now = world
            .run(&id, &format!("stat -c %s {AT}/held"))
            .await
            .ok()?;
        (now.parse::<u64>().ok()? > size).then_some(())
    })
    .await?;
    world.let_go(&id).await?;
    client.delete_sandbox(&id).await?;
    world.is_clean("after a wake and a delete")?;
    world.daemon.finish().await
}

#[tokio::test]
async fn a_killed_node_lets_in_no_second_writer_and_loses_nothing() -> Result<()> {
    let setting = setting_or_skip!();
    let world = World::new(&setting).await?;
    let client = &world.client;
    let id = world.attach(false).await?.id;
    world
        .run(&id, &format!("echo safe > {AT}/file && sync {AT}/file"))
        .await?;
    world.hold(&id).await?;
    let node = world.daemon.role_pid("node")?;
    Daemon::kill(node)?;
    // From the first answer on, and not only once the sandbox has been taken over.
    let mut tries = 0;
    until("the sandbox answers", Duration::from_secs(20), || {
        tries += 1;
        async {
            let second = world.attach(false).await;
            if second.is_ok() {
                return Some(Err(anyhow::anyhow!("a second writer: {second:?}")));
            }
            output(client, &id, "true").await.ok().map(Ok)
        }
    })
    .await??;
    world
        .daemon
        .wait_for_template("base", Duration::from_secs(20))
        .await?;
    let error = refusal(world.attach(false).await, "volume_busy")?;
    figure!(
        "after the kill {tries} attempts were refused; then: {}",
        error.message
    );
    ensure!(error.message.contains(&id), "{}", error.message);
    ensure!(world.run(&id, &format!("cat {AT}/file")).await? == "safe");
    client.delete_sandbox(&id).await?;
    // The writer was cut off in the middle, which a journal is for; then it is whole.
    let next = world.attach(false).await?.id;
    ensure!(world.run(&next, &format!("cat {AT}/file")).await? == "safe");
    client.delete_sandbox(&next).await?;
    world.is_clean("after the next writer")?;
    world.daemon.finish().await
}

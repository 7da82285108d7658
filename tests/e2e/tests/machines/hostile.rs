//! Guests that do their worst: the daemon's processes stay small, a neighbour keeps answering,
//! delete works within five seconds, and nothing is left.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dayfly_api::ExecRequest;
use dayfly_client::Client;
use dayfly_e2e::{
    Daemon, DaemonOptions, create, exec, exec_as_root, patient, processes, setting_or_skip, shell,
};

const GROWTH_MAX_KIB: u64 = 16 << 10;
const DELETE_MAX: Duration = Duration::from_secs(5);
/// A neighbour on two emulated cores that somebody else spins.
const NEIGHBOUR_MAX: Duration = Duration::from_secs(20);

struct Rig {
    daemon: Daemon,
    client: Client,
    neighbour: String,
    memory_before: u64,
}

impl Rig {
    async fn new(setting: &dayfly_e2e::Setting) -> Result<Self> {
        let (daemon, client) = Daemon::ready(setting, DaemonOptions::default()).await?;
        let neighbour = create(&client, "base").await?.id;
        // One whole life first, so that what is allocated once does not count as growth.
        let first = create(&client, "base").await?.id;
        exec(&client, &first, "seq 100000").await?;
        client.delete_sandbox(&first).await?;
        let memory_before = daemon_memory(&daemon)?;
        Ok(Self {
            daemon,
            client,
            neighbour,
            memory_before,
        })
    }

    /// The host's side of the bargain, while or after the guest misbehaved.
    async fn check(&self, what: &str, hostile: &str) -> Result<()> {
        let start = Instant::now();
        let answer = tokio::time::timeout(
            patient(NEIGHBOUR_MAX),
            exec(&self.client, &self.neighbour, "echo alive"),
        )
        .await
        .with_context(|| format!("{what}: the neighbour does not answer"))??;
        ensure!(answer.stdout.trim() == "alive", "{what}: {answer:?}");
        let neighbour = start.elapsed();
        let grown = daemon_memory(&self.daemon)?.saturating_sub(self.memory_before);
        let start = Instant::now();
        self.client.delete_sandbox(hostile).await?;
        let deleted = start.elapsed();
        dayfly_e2e::figure!(
            "{what}: neighbour {neighbour:?}, daemon grew {grown} KiB, delete {deleted:?}"
        );
        ensure!(
            grown <= GROWTH_MAX_KIB,
            "{what}: the daemon grew by {grown} KiB"
        );
        ensure!(
            deleted < patient(DELETE_MAX),
            "{what}: delete took {deleted:?}"
        );
        Ok(())
    }
}

fn daemon_memory(daemon: &Daemon) -> Result<u64> {
    let pids = [daemon.role_pid("node")?, daemon.role_pid("control")?];
    pids.iter().map(|pid| processes::anonymous_kib(*pid)).sum()
}

/// Runs something that need not come back, for a while.
async fn let_loose(client: &Client, id: &str, text: &str, how_long: Duration) {
    let request = ExecRequest {
        user: Some("root".to_owned()),
        ..shell(text)
    };
    // Not a wait for a condition: this is for how long the guest misbehaves.
    let _ = tokio::time::timeout(how_long, client.exec(id, &request)).await;
}

#[tokio::test]
async fn hostile_guests_harm_only_themselves() -> Result<()> {
    let_guests_misbehave(Duration::from_secs(4)).await
}

#[tokio::test]
#[ignore = "soak: longer"]
async fn hostile_guests_with_time_harm_only_themselves() -> Result<()> {
    let_guests_misbehave(Duration::from_secs(20)).await
}

async fn let_guests_misbehave(how_long: Duration) -> Result<()> {
    let setting = setting_or_skip!();
    let rig = Rig::new(&setting).await?;
    let cases = [
        (
            "fills its memory",
            "python3 -c 'b=[]\nwhile 1: b.append(bytearray(1<<20))'",
        ),
        ("fork bomb", "bomb() { bomb | bomb & }; bomb; sleep 20"),
        (
            "fills its disk",
            "dd if=/dev/zero of=/workspace/fill bs=1M; dd if=/dev/zero of=/fill bs=1M",
        ),
        (
            "spins all cores",
            "for i in 1 2 3 4; do (while :; do :; done) & done; wait",
        ),
    ];
    for (what, text) in cases {
        let hostile = create(&rig.client, "base").await?.id;
        let_loose(&rig.client, &hostile, text, how_long).await;
        rig.check(what, &hostile).await?;
    }
    rig.daemon.finish().await
}

#[tokio::test]
async fn output_into_a_client_that_does_not_read_costs_nobody_memory() -> Result<()> {
    let_nobody_read(Duration::from_secs(10)).await
}

#[tokio::test]
#[ignore = "soak: longer"]
async fn output_that_nobody_reads_for_a_minute_costs_nobody_memory() -> Result<()> {
    let_nobody_read(Duration::from_secs(60)).await
}

async fn let_nobody_read(how_long: Duration) -> Result<()> {
    let setting = setting_or_skip!();
    let rig = Rig::new(&setting).await?;
    let hostile = create(&rig.client, "base").await?.id;
    let stream = rig
        .client
        .exec_stream(&hostile, &shell("yes abcdefghijklmnopqrstuvwxyz"))
        .await?;
    // Nobody takes an event from the stream; meanwhile the neighbour works.
    let start = Instant::now();
    while start.elapsed() < how_long {
        let answer = exec(&rig.client, &rig.neighbour, "echo alive").await?;
        ensure!(answer.stdout.trim() == "alive", "{answer:?}");
        // Another exec of the same sandbox is not held up either.
        let other = exec(&rig.client, &hostile, "echo other").await?;
        ensure!(other.stdout.trim() == "other", "{other:?}");
        let grown = daemon_memory(&rig.daemon)?.saturating_sub(rig.memory_before);
        ensure!(grown <= GROWTH_MAX_KIB, "the daemon grew by {grown} KiB");
    }
    rig.check("an unread stream", &hostile).await?;
    drop(stream);
    rig.daemon.finish().await
}

#[tokio::test]
async fn garbage_on_the_agent_channel_ends_the_conversation_and_nothing_else() -> Result<()> {
    let setting = setting_or_skip!();
    let rig = Rig::new(&setting).await?;
    let hostile = create(&rig.client, "base").await?.id;
    // Root of the guest can write to the very ports that its agent uses.
    let text = "for i in $(seq 200); do for p in /dev/vport*; do \
                timeout 1 head -c 65536 /dev/urandom > $p & done; wait; done";
    let_loose(&rig.client, &hostile, text, Duration::from_secs(10)).await;
    // Whether the guest can still be talked to is its own affair; that it can be deleted is ours.
    let answer = exec_as_root(&rig.client, &hostile, "true").await;
    dayfly_e2e::figure!(
        "after the garbage: {:?}",
        answer.map(|result| result.exit_code)
    );
    rig.check("garbage on the agent channel", &hostile).await?;
    rig.daemon.finish().await
}

#[tokio::test]
async fn a_guest_that_ends_itself_is_reported_and_leaves_nothing() -> Result<()> {
    let setting = setting_or_skip!();
    let rig = Rig::new(&setting).await?;
    let hostile = create(&rig.client, "base").await?.id;
    let text = "echo 1 > /proc/sys/kernel/sysrq; echo b > /proc/sysrq-trigger";
    let_loose(&rig.client, &hostile, text, Duration::from_secs(5)).await;
    dayfly_e2e::until("the end is reported", Duration::from_secs(5), || async {
        let now = rig.client.get_sandbox(&hostile).await.ok()?;
        (now.status == "failed" && now.reason.is_some()).then_some(())
    })
    .await?;
    rig.check("a guest that reset itself", &hostile).await?;
    rig.daemon.finish().await
}

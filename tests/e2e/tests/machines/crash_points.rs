//! Ends the node by SIGKILL at every effect of every operation, on real machines.
//!
//! The simulated twin in `tests/sim` says what must hold; here guests are real, and so is what
//! they would lose: a file, and a value in the memory of a process, are looked at after each kill.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use dayfly_api::{CreateSandbox, CreateSnapshot, ForkSandbox};
use dayfly_client::Client;
use dayfly_e2e::daemon::{Daemon, DaemonOptions};
use dayfly_e2e::guest::{create, output};
use dayfly_e2e::wait::until;
use dayfly_e2e::{figure, keeper, setting_or_skip};

const BACK_WITHIN: Duration = Duration::from_secs(30);
const ANSWERS_WITHIN: Duration = Duration::from_secs(60);
/// Fewer engines to end and to start between two kills.
const ARGUMENTS: [&str; 4] = ["--parked-engines", "0", "--parked-slots", "0"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Create,
    Snapshot,
    Fork,
    Hibernate,
    Wake,
    Rollback,
    Delete,
}

/// What a kill may not take.
struct Subject {
    id: String,
    hash: String,
    snapshot: String,
}

impl Operation {
    async fn prepare(self, client: &Client) -> Result<Subject> {
        let id = create(client, "base").await?.id;
        keeper::start(client, &id, 4).await?;
        output(client, &id, "echo precious > /workspace/file; sync").await?;
        let hash = keeper::ask(client, &id, "hash").await?;
        let taken = client
            .create_snapshot(&id, &CreateSnapshot::default())
            .await?;
        if self == Self::Wake {
            client.hibernate_sandbox(&id).await?;
        }
        Ok(Subject {
            id,
            hash,
            snapshot: taken.id,
        })
    }

    /// Whatever it answers: the node may die in the middle.
    async fn run(self, client: &Client, subject: &Subject) {
        let id = &subject.id;
        let _ = match self {
            Self::Create => {
                let request = CreateSandbox::default();
                client.create_sandbox(&request).await.map(drop)
            }
            Self::Snapshot => {
                let request = CreateSnapshot::default();
                client.create_snapshot(id, &request).await.map(drop)
            }
            Self::Fork => client
                .fork_sandbox(id, &ForkSandbox::default())
                .await
                .map(drop),
            Self::Hibernate => client.hibernate_sandbox(id).await,
            Self::Wake => client.wake_sandbox(id).await,
            Self::Rollback => client
                .rollback_sandbox(id, &subject.snapshot)
                .await
                .map(drop),
            Self::Delete => client.delete_sandbox(id).await,
        };
    }
}

/// The file by which the node is told where to die.
struct Orders(PathBuf);

impl Orders {
    fn give(&self, order: &str) -> Result<()> {
        Ok(std::fs::write(&self.0, order)?)
    }

    fn are_carried_out(&self) -> bool {
        std::fs::read_to_string(&self.0).is_ok_and(|order| order.is_empty())
    }

    fn points(&self) -> Result<Vec<String>> {
        let text = std::fs::read_to_string(self.0.with_extension("points"))?;
        Ok(text.lines().map(str::to_owned).collect())
    }
}

async fn is_whole(daemon: &Daemon, subject: &Subject, operation: Operation) -> Result<()> {
    let client = daemon.client()?;
    until("the node is back", BACK_WITHIN, || async {
        client.node().await.ok()
    })
    .await?;
    let is_there = client.get_sandbox(&subject.id).await.is_ok();
    ensure!(
        is_there || operation == Operation::Delete,
        "an acknowledged sandbox is gone"
    );
    for sandbox in client.list_sandboxes().await? {
        if sandbox.id == subject.id && operation == Operation::Delete {
            continue;
        }
        ensure!(sandbox.status != "failed", "{sandbox:?}");
    }
    if is_there && operation != Operation::Delete {
        until("it answers", ANSWERS_WITHIN, || async {
            output(&client, &subject.id, "true").await.ok()
        })
        .await?;
        let file = output(&client, &subject.id, "cat /workspace/file").await?;
        ensure!(file.trim() == "precious", "the file is {file:?}");
        let hash = keeper::ask(&client, &subject.id, "hash").await?;
        ensure!(hash == subject.hash, "memory has changed");
    }
    one_engine_each(daemon, &client).await
}

/// As many engines as there are sandboxes that have one.
async fn one_engine_each(daemon: &Daemon, client: &Client) -> Result<()> {
    until("one engine for each sandbox", ANSWERS_WITHIN, || async {
        let sandboxes = client.list_sandboxes().await.ok()?;
        let awake = sandboxes
            .iter()
            .filter(|sandbox| sandbox.status == "running")
            .count();
        // An adopted engine is nobody's child, so slots are counted: one engine runs in each.
        let slots = std::fs::read_dir(daemon.path().join("node/slots")).ok()?;
        let alive = slots.count();
        (alive == awake && sandboxes.iter().all(|one| one.status != "deleting")).then_some(())
    })
    .await
}

async fn clear(client: &Client) -> Result<()> {
    for sandbox in client.list_sandboxes().await? {
        client.delete_sandbox(&sandbox.id).await?;
    }
    for snapshot in client.list_snapshots(None).await? {
        client.delete_snapshot(&snapshot.id).await?;
    }
    Ok(())
}

fn orders_in(directory: &Path) -> Orders {
    Orders(directory.join("orders"))
}

async fn die_everywhere(operation: Operation) -> Result<()> {
    let setting = setting_or_skip!();
    let orders_directory = tempfile::tempdir()?;
    let orders = orders_in(orders_directory.path());
    let options = DaemonOptions {
        arguments: ARGUMENTS.map(str::to_owned).to_vec(),
        environment: vec![("DAYFLY_CRASH_FILE".to_owned(), orders.0.clone())],
        ..DaemonOptions::default()
    };
    orders.give("")?;
    let (daemon, client) = Daemon::ready(&setting, options).await?;
    let subject = operation.prepare(&client).await?;
    orders.give("record")?;
    operation.run(&client, &subject).await;
    orders.give("")?;
    let points = orders.points()?;
    clear(&client).await?;
    for (index, point) in points.iter().enumerate() {
        let subject = operation.prepare(&client).await?;
        orders.give(&index.to_string())?;
        operation.run(&client, &subject).await;
        // Points of the background make the count differ from run to run.
        let died = orders.are_carried_out();
        orders.give("")?;
        is_whole(&daemon, &subject, operation)
            .await
            .with_context(|| format!("{operation:?}, point {index} ({point}), died: {died}"))?;
        clear(&client).await?;
    }
    figure!(
        "{operation:?}: {} crash points on real machines",
        points.len()
    );
    ensure!(
        daemon.leftovers().await?.is_empty(),
        "something is left over"
    );
    daemon.finish().await
}

macro_rules! tests {
    ($($name:ident: $operation:ident,)*) => {$(
        #[tokio::test]
        #[ignore = "soak: one kill for each effect"]
        async fn $name() -> Result<()> {
            die_everywhere(Operation::$operation).await
        }
    )*};
}

tests! {
    the_node_may_be_killed_anywhere_in_a_create: Create,
    the_node_may_be_killed_anywhere_in_a_snapshot: Snapshot,
    the_node_may_be_killed_anywhere_in_a_fork: Fork,
    the_node_may_be_killed_anywhere_in_a_hibernation: Hibernate,
    the_node_may_be_killed_anywhere_in_a_wake: Wake,
    the_node_may_be_killed_anywhere_in_a_rollback: Rollback,
    the_node_may_be_killed_anywhere_in_a_delete: Delete,
}

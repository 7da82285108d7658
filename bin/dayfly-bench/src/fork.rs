//! `dayflyd bench fork`: what a fork costs its parent, and what its children cost.
//!
//! ```text
//! round: a parent with a session of so many MiB
//!   as often as there are children: fork one child, first `true`; a plain create beside it; as
//!     many bytes as the capture had, written as fast as this host takes them
//!   fork all children at once from one capture, first `true` in each; a second later, what each
//!     engine holds of guest memory for itself
//! ```

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use dayfly_api::{Capture, ForkOptions, ForkSandbox, Forked, Sandbox};
use dayfly_client::Client;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::args::ForkBenchArguments;
use crate::daemon::BenchDaemon;
use crate::engine_memory::private_bytes;
use crate::environment::{Environment, file_system_of};
use crate::figures::{Parts, mebibytes};
use crate::fork_report::Report;
use crate::mark::Mark;
use crate::product::{create_sample, delete, exec_true, wait_for_pools};
use crate::run::on_daemon;
use crate::session::start_session;
use crate::write_speed::write_mib_per_second;

/// A child that could not be deleted ends by itself.
const CHILD_TTL_SECONDS: u64 = 600;
/// When a child's memory is looked at, from the answer of its first `true`.
const SETTLED_AFTER: Duration = Duration::from_secs(1);

/// Everything that was measured, in the order of the runs.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    pub(crate) captures: Vec<Capture>,
    /// MiB a second.
    pub(crate) write_speeds: Vec<f64>,
    pub(crate) children_ready: Vec<Duration>,
    pub(crate) child_parts: Parts,
    pub(crate) creates: Vec<Duration>,
    /// MiB, one for each round.
    pub(crate) sessions: Vec<f64>,
    /// MiB, all children of a round together.
    pub(crate) ram_added: Vec<f64>,
}

/// One run on one daemon.
#[derive(Clone, Copy)]
struct Bench<'a> {
    daemon: &'a BenchDaemon,
    client: &'a Client,
    mark: &'a Mark,
    arguments: &'a ForkBenchArguments,
}

/// Runs the bench and answers what it found.
pub(crate) async fn run(arguments: &ForkBenchArguments) -> Result<Report> {
    if arguments.children == 0 || arguments.session_mib == 0 || arguments.rounds == 0 {
        bail!("--children, --session-mib and --rounds must be at least 1");
    }
    on_daemon(&arguments.data_dir, async |daemon, mark| {
        let bench = Bench {
            daemon,
            client: daemon.client(),
            mark,
            arguments,
        };
        bench.measure().await
    })
    .await
}

impl Bench<'_> {
    async fn measure(self) -> Result<Report> {
        let template = &self.arguments.template;
        self.daemon.wait_for_template(template).await?;
        self.warm_up().await?;
        let mut samples = Samples::default();
        for number in 1..=self.arguments.rounds {
            let rounds = self.arguments.rounds;
            tracing::info!(number, rounds, "a session is set up, then forked");
            self.round(&mut samples).await?;
        }
        let environment = Environment::of(self.client, template).await?;
        let file_system = file_system_of(&self.daemon.captures())?;
        Report::of(&samples, self.arguments, environment, file_system)
    }

    /// One of each, unmeasured, so that none of them pays for a cold page cache.
    async fn warm_up(self) -> Result<()> {
        let template = &self.arguments.template;
        let parent = start_session(self.client, template, self.mark, 1).await?;
        let mut unmeasured = Samples::default();
        self.one_child(&parent, &mut unmeasured).await?;
        self.one_create(&mut unmeasured).await?;
        delete(self.client, &parent.id).await
    }

    async fn round(self, samples: &mut Samples) -> Result<()> {
        let wanted_mib = self.arguments.session_mib;
        let template = &self.arguments.template;
        let parent = start_session(self.client, template, self.mark, wanted_mib).await?;
        let session_mib = self.private_mib(&parent).await?;
        ensure!(
            session_mib >= wanted_mib as f64,
            "the session of {wanted_mib} MiB takes only {session_mib:.0} MiB"
        );
        samples.sessions.push(session_mib);
        for _ in 0..self.arguments.children {
            self.one_child(&parent, samples).await?;
            self.one_create(samples).await?;
        }
        self.all_children(&parent, samples).await?;
        delete(self.client, &parent.id).await
    }

    /// A child alone, and the write that its capture is held against.
    async fn one_child(self, parent: &Sandbox, samples: &mut Samples) -> Result<()> {
        wait_for_pools(self.client, &self.arguments.template).await?;
        let start = Instant::now();
        let forked = self.fork(parent, 1).await?;
        let answered = start.elapsed();
        let child = forked.children.first().context("the fork has no child")?;
        exec_true(self.client, &child.id).await?;
        let elapsed = start.elapsed();
        delete(self.client, &child.id).await?;
        let captured = Duration::try_from_secs_f64(forked.capture.total_ms / 1000.0)?;
        let ready = elapsed.saturating_sub(captured);
        samples.children_ready.push(ready);
        let exec = elapsed.saturating_sub(answered);
        samples.child_parts.push("exec", exec);
        // Everything from a capture in memory to one that may be restored, and the API.
        let until_exec = ready.saturating_sub(exec);
        let stages = &child.boot_stages_us;
        let parts = &mut samples.child_parts;
        parts.push_stages(until_exec, stages, "publish_and_api");
        self.write_beside(&forked.capture, samples).await?;
        samples.captures.push(forked.capture);
        Ok(())
    }

    async fn one_create(self, samples: &mut Samples) -> Result<()> {
        let template = &self.arguments.template;
        wait_for_pools(self.client, template).await?;
        let (create, _) = create_sample(self.client, template, self.mark).await?;
        samples.creates.push(create);
        Ok(())
    }

    async fn write_beside(self, capture: &Capture, samples: &mut Samples) -> Result<()> {
        let bytes = capture.memory_bytes + capture.disk_bytes;
        let speed = write_mib_per_second(self.daemon.captures(), bytes).await?;
        samples.write_speeds.push(speed);
        Ok(())
    }

    /// All children of one capture, and what they add to the memory in use.
    async fn all_children(self, parent: &Sandbox, samples: &mut Samples) -> Result<()> {
        wait_for_pools(self.client, &self.arguments.template).await?;
        let forked = self.fork(parent, self.arguments.children).await?;
        self.write_beside(&forked.capture, samples).await?;
        samples.captures.push(forked.capture);
        let mut looks = JoinSet::new();
        for child in forked.children.iter().cloned() {
            let (client, node) = (self.client.clone(), self.daemon.node());
            looks.spawn(async move {
                exec_true(&client, &child.id).await?;
                sleep(SETTLED_AFTER).await;
                private_bytes(&node, &child)
            });
        }
        let mut added_bytes = 0;
        while let Some(look) = looks.join_next().await {
            added_bytes += look.context("a look at a child broke off")??;
        }
        samples.ram_added.push(mebibytes(added_bytes));
        for child in &forked.children {
            delete(self.client, &child.id).await?;
        }
        Ok(())
    }

    async fn fork(self, parent: &Sandbox, count: u64) -> Result<Forked> {
        let request = ForkSandbox {
            count: Some(count),
            options: ForkOptions {
                metadata: Some(self.mark.metadata()),
                ttl_seconds: Some(CHILD_TTL_SECONDS),
                ..ForkOptions::default()
            },
        };
        let forked = self.client.fork_sandbox(&parent.id, &request).await;
        let forked = forked.context("cannot fork")?;
        if let Some((id, reason)) = forked.failures.first_key_value() {
            bail!("child {id} could not be made: {reason}");
        }
        Ok(forked)
    }

    async fn private_mib(self, sandbox: &Sandbox) -> Result<f64> {
        let bytes = private_bytes(&self.daemon.node(), sandbox)?;
        Ok(mebibytes(bytes))
    }
}

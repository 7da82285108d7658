//! `dayflyd bench exec`: `true` on a warm sandbox through the API, beside the same through the
//! bare agent channel.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use dayfly_node_api::{EnsureExec, NodeApi, NodeClient};
use dayfly_types::exec::{ExecCommand, ExecEvent, ExecSpec};
use dayfly_types::{ExecId, SandboxId};
use futures::StreamExt;
use serde::Serialize;

use crate::args::BenchArguments;
use crate::bare::{BareMachine, random};
use crate::daemon::BenchDaemon;
use crate::environment::Environment;
use crate::figures::{Figures, round};
use crate::goal::Goal;
use crate::mark::Mark;
use crate::product::{create_request, delete, exec_true};
use crate::run::of_n;

/// The product may take this much of the bare channel's time, and this much more.
const RATIO_MAX: f64 = 1.2;
const MORE_MS: f64 = 1.0;
/// Calls of each kind before the measured ones: a guest under emulation translates its code then.
const WARM_UP: usize = 10;

/// Everything that the bench found. The shape is documented; fields are only added.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) product: Figures,
    pub(crate) bare: Figures,
    /// Through the node's own socket, without the public API.
    pub(crate) node: Figures,
    pub(crate) ratio_p50: f64,
    /// Where a product sample goes, by the difference of medians, in milliseconds.
    pub(crate) stages: BTreeMap<&'static str, f64>,
    pub(crate) goals: Vec<Goal>,
    #[serde(flatten)]
    pub(crate) environment: Environment,
    pub(crate) clock: Clock,
}

/// Where each clock starts and stops.
#[derive(Debug, Serialize)]
pub(crate) struct Clock {
    product: &'static str,
    bare: &'static str,
}

const CLOCK: Clock = Clock {
    product: "from sending POST exec `true` to its answer, over HTTP, sandbox warm",
    bare: "from sending the start of `true` to its exit, over the agent channel, guest warm",
};

#[derive(Default)]
struct Samples {
    product: Vec<Duration>,
    bare: Vec<Duration>,
    node: Vec<Duration>,
}

/// Runs the bench and answers what it found.
pub(crate) async fn run(arguments: &BenchArguments) -> Result<Report> {
    of_n(arguments, measure).await
}

async fn measure(daemon: &BenchDaemon, mark: &Mark, arguments: &BenchArguments) -> Result<Report> {
    let client = daemon.client();
    let template = &arguments.template;
    daemon.wait_for_template(template).await?;
    let created = client.create_sandbox(&create_request(template, mark)).await;
    let id = created.context("cannot create")?.id;
    let driver = daemon.bare_driver(template).await?;
    let machine = driver.hold().await?;
    let node = NodeClient::new(daemon.node_socket());
    let measured = samples(client, &id, &node, &machine, arguments.n).await;
    driver.release(machine).await?;
    let samples = measured?;
    delete(client, &id).await?;
    report(client, template, &samples).await
}

/// The three kinds take turns, so that whatever else the host does hits all of them.
async fn samples(
    client: &dayfly_client::Client,
    id: &str,
    node: &NodeClient,
    machine: &BareMachine,
    count: usize,
) -> Result<Samples> {
    let sandbox = SandboxId::parse(id)?;
    let mut samples = Samples::default();
    for round in 0..WARM_UP + count {
        let start = Instant::now();
        exec_true(client, id).await?;
        let product = start.elapsed();
        let start = Instant::now();
        machine.run_true().await?;
        let bare = start.elapsed();
        let start = Instant::now();
        node_true(node, &sandbox).await?;
        let through_node = start.elapsed();
        if round >= WARM_UP {
            samples.product.push(product);
            samples.bare.push(bare);
            samples.node.push(through_node);
        }
    }
    Ok(samples)
}

async fn node_true(node: &NodeClient, sandbox: &SandboxId) -> Result<()> {
    let command = ExecCommand::Argv(vec!["true".to_owned()]);
    let request = EnsureExec::new(ExecSpec::new(ExecId::from_random(random()?), command));
    let mut events = node.exec(sandbox, request).await?;
    while let Some(event) = events.next().await {
        if let ExecEvent::Exited(end) = event? {
            if end.exit.code != 0 {
                bail!("true exited with {}", end.exit.code);
            }
            return Ok(());
        }
    }
    bail!("the exec ended without an exit")
}

async fn report(
    client: &dayfly_client::Client,
    template: &str,
    samples: &Samples,
) -> Result<Report> {
    let figures = |values: &[Duration]| Figures::of(values).context("no samples");
    let product = figures(&samples.product)?;
    let (bare, node) = (figures(&samples.bare)?, figures(&samples.node)?);
    let limit = round(RATIO_MAX * bare.p50_ms + MORE_MS);
    let stages = BTreeMap::from([
        ("agent_channel", bare.p50_ms),
        ("node", round(node.p50_ms - bare.p50_ms)),
        ("api", round(product.p50_ms - node.p50_ms)),
    ]);
    Ok(Report {
        ratio_p50: round(product.p50_ms / bare.p50_ms),
        goals: vec![Goal::at_most("product_p50_ms", limit, product.p50_ms)],
        product,
        bare,
        node,
        stages,
        environment: Environment::of(client, template).await?,
        clock: CLOCK,
    })
}

/// For a person.
pub(crate) fn render(report: &Report) -> String {
    let mut text = report.product.line("product");
    text.push_str(&report.node.line("node"));
    text.push_str(&report.bare.line("bare"));
    for (stage, milliseconds) in &report.stages {
        text.push_str(&format!("  {stage:<14} {milliseconds:>8.3} ms\n"));
    }
    for goal in &report.goals {
        text.push_str(&goal.line());
    }
    text.push_str(&report.environment.line());
    text
}

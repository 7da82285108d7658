//! `dayflyd bench wake`: a hibernated sandbox to its first `true`, beside the bare engine.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use dayfly_client::Client;
use serde::Serialize;

use crate::args::BenchArguments;
use crate::bare::{BareDriver, ClockStart};
use crate::daemon::BenchDaemon;
use crate::environment::Environment;
use crate::figures::{Figures, Parts, round};
use crate::goal::Goal;
use crate::mark::Mark;
use crate::product::{create_request, delete, exec_true, wait_for_pools};
use crate::run::of_n;

const RATIO_MAX: f64 = 1.15;

/// Everything that the bench found. The shape is documented; fields are only added.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) wake: Figures,
    pub(crate) bare: Figures,
    /// Median of a wake over median of the bare engine.
    pub(crate) ratio_p50: f64,
    /// Of falling asleep: from the call to its answer. For information.
    pub(crate) hibernate: Figures,
    /// Medians of the parts of a wake, in milliseconds.
    pub(crate) stages: BTreeMap<String, f64>,
    pub(crate) goals: Vec<Goal>,
    #[serde(flatten)]
    pub(crate) environment: Environment,
    pub(crate) clock: Clock,
}

/// Where each clock starts and stops.
#[derive(Debug, Serialize)]
pub(crate) struct Clock {
    wake: &'static str,
    bare: &'static str,
}

const CLOCK: Clock = Clock {
    wake: "from sending POST exec `true` to a hibernated sandbox to its answer, over HTTP",
    bare: "from starting the engine process to the exit of `true`, over the agent channel",
};

#[derive(Default)]
struct Samples {
    wake: Vec<Duration>,
    bare: Vec<Duration>,
    hibernate: Vec<Duration>,
    stages: Parts,
}

/// Runs the bench and answers what it found.
pub(crate) async fn run(arguments: &BenchArguments) -> Result<Report> {
    of_n(arguments, measure).await
}

async fn measure(daemon: &BenchDaemon, mark: &Mark, arguments: &BenchArguments) -> Result<Report> {
    let client = daemon.client();
    let template = &arguments.template;
    daemon.wait_for_template(template).await?;
    let bare = daemon.bare_driver(template).await?;
    // One of each first, unmeasured, so that none of them pays for a cold page cache.
    round_of_samples(client, &bare, template, mark, &mut Samples::default()).await?;
    let mut samples = Samples::default();
    for _ in 0..arguments.n {
        round_of_samples(client, &bare, template, mark, &mut samples).await?;
    }
    report(client, template, &samples).await
}

async fn round_of_samples(
    client: &Client,
    bare: &BareDriver,
    template: &str,
    mark: &Mark,
    samples: &mut Samples,
) -> Result<()> {
    wake_sample(client, template, mark, samples).await?;
    wait_for_pools(client, template).await?;
    samples.bare.push(bare.sample(ClockStart::Engine).await?);
    Ok(())
}

async fn wake_sample(
    client: &Client,
    template: &str,
    mark: &Mark,
    samples: &mut Samples,
) -> Result<()> {
    let created = client.create_sandbox(&create_request(template, mark)).await;
    let id = created.context("cannot create")?.id;
    let start = Instant::now();
    let asleep = client.hibernate_sandbox(&id).await;
    asleep.context("cannot hibernate")?;
    samples.hibernate.push(start.elapsed());
    wait_for_pools(client, template).await?;
    let start = Instant::now();
    exec_true(client, &id).await?;
    let elapsed = start.elapsed();
    samples.wake.push(elapsed);
    let awake = client.get_sandbox(&id).await.context("cannot look")?;
    let stages = &awake.boot_stages_us;
    samples.stages.push_stages(elapsed, stages, "api_and_exec");
    delete(client, &id).await
}

async fn report(client: &Client, template: &str, samples: &Samples) -> Result<Report> {
    let figures = |values: &[Duration]| Figures::of(values).context("no samples");
    let (wake, bare) = (figures(&samples.wake)?, figures(&samples.bare)?);
    let ratio_p50 = round(wake.p50_ms / bare.p50_ms);
    Ok(Report {
        wake,
        bare,
        ratio_p50,
        hibernate: figures(&samples.hibernate)?,
        stages: samples.stages.medians_ms(),
        goals: vec![Goal::at_most("ratio_p50", RATIO_MAX, ratio_p50)],
        environment: Environment::of(client, template).await?,
        clock: CLOCK,
    })
}

/// For a person.
pub(crate) fn render(report: &Report) -> String {
    let mut text = report.wake.line("wake");
    for (stage, milliseconds) in &report.stages {
        text.push_str(&format!("  {stage:<14} {milliseconds:>8.1} ms\n"));
    }
    text.push_str(&report.bare.line("bare"));
    text.push_str(&report.hibernate.line("hibernate"));
    for goal in &report.goals {
        text.push_str(&goal.line());
    }
    text.push_str(&report.environment.line());
    text
}

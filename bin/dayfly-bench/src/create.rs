//! `dayflyd bench create`: product, bare engine and parked bare engine, interleaved.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use dayfly_client::Client;
use serde::Serialize;

use crate::args::BenchArguments;
use crate::bare::{BareDriver, ClockStart};
use crate::daemon::BenchDaemon;
use crate::environment::Environment;
use crate::figures::{Figures, Parts, round};
use crate::mark::Mark;
use crate::product::{create_sample, wait_for_pools};
use crate::run::of_n;

/// Everything that the bench found. The shape is documented; fields are only added.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) product: Figures,
    pub(crate) bare: Figures,
    pub(crate) bare_parked: Figures,
    /// Median of the product over median of the bare engine.
    pub(crate) ratio_p50: f64,
    /// Median of the product over median of the bare engine with parked processes.
    pub(crate) ratio_parked_p50: f64,
    /// Medians of the parts of a product sample, in milliseconds.
    pub(crate) stages: BTreeMap<String, f64>,
    #[serde(flatten)]
    pub(crate) environment: Environment,
    pub(crate) clock: Clock,
}

/// Where each clock starts and stops.
#[derive(Debug, Serialize)]
pub(crate) struct Clock {
    product: &'static str,
    bare: &'static str,
    bare_parked: &'static str,
}

const CLOCK: Clock = Clock {
    product: "from sending POST /v1/sandboxes to the answer of POST exec `true`, over HTTP",
    bare: "from starting the engine process to the exit of `true`, over the agent channel",
    bare_parked: "from the load command of a waiting engine process to the exit of `true`",
};

#[derive(Default)]
struct Samples {
    product: Vec<Duration>,
    bare: Vec<Duration>,
    bare_parked: Vec<Duration>,
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
    wait_for_pools(client, template).await?;
    let (product, sandbox) = create_sample(client, template, mark).await?;
    wait_for_pools(client, template).await?;
    let cold = bare.sample(ClockStart::Engine).await?;
    let parked = bare.sample(ClockStart::Load).await?;
    samples.product.push(product);
    samples.bare.push(cold);
    samples.bare_parked.push(parked);
    let stages = &sandbox.boot_stages_us;
    samples.stages.push_stages(product, stages, "api_and_exec");
    Ok(())
}

async fn report(client: &Client, template: &str, samples: &Samples) -> Result<Report> {
    let figures = |values: &[Duration]| Figures::of(values).context("no samples");
    let (product, bare) = (figures(&samples.product)?, figures(&samples.bare)?);
    let bare_parked = figures(&samples.bare_parked)?;
    Ok(Report {
        ratio_p50: round(product.p50_ms / bare.p50_ms),
        ratio_parked_p50: round(product.p50_ms / bare_parked.p50_ms),
        product,
        bare,
        bare_parked,
        stages: samples.stages.medians_ms(),
        environment: Environment::of(client, template).await?,
        clock: CLOCK,
    })
}

/// For a person.
pub(crate) fn render(report: &Report) -> String {
    let mut text = report.product.line("product");
    text.push_str(&report.bare.line("bare"));
    text.push_str(&report.bare_parked.line("bare parked"));
    text.push_str(&format!(
        "product / bare: {:.3}    product / bare parked: {:.3}\n",
        report.ratio_p50, report.ratio_parked_p50
    ));
    for (stage, milliseconds) in &report.stages {
        text.push_str(&format!("  {stage:<14} {milliseconds:>8.1} ms\n"));
    }
    text.push_str(&report.environment.line());
    text
}

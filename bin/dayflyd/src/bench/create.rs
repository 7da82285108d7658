//! `dayflyd bench create`: product, bare engine and parked bare engine, interleaved.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use dayfly_api::{Command, CreateSandbox, ExecRequest, Sandbox};
use dayfly_client::Client;
use serde::Serialize;
use tokio::time::sleep;

use super::bare::{BareDriver, ClockStart};
use super::daemon::BenchDaemon;
use super::figures::{Figures, round};
use crate::args::BenchArguments;

/// How long the pools may take to fill up between two samples.
const POOL_DEADLINE: Duration = Duration::from_secs(60);
const POOL_PAUSE: Duration = Duration::from_millis(20);

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
    /// Medians of the parts of a product sample, in milliseconds, in order.
    pub(crate) stages: BTreeMap<String, f64>,
    pub(crate) template: String,
    pub(crate) engine: String,
    pub(crate) engine_version: String,
    pub(crate) accelerator: String,
    pub(crate) isolation: String,
    pub(crate) kernel: String,
    pub(crate) cores: usize,
    pub(crate) parked_engines: u64,
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

struct Samples {
    product: Vec<Duration>,
    bare: Vec<Duration>,
    bare_parked: Vec<Duration>,
    stages: BTreeMap<String, Vec<Duration>>,
}

/// Runs the bench and answers what it found.
pub(crate) async fn run(arguments: &BenchArguments) -> Result<Report> {
    if arguments.n == 0 {
        bail!("--n must be at least 1");
    }
    let daemon = BenchDaemon::find_or_start(&arguments.data_dir).await?;
    let outcome = measure(&daemon, arguments).await;
    daemon.stop().await?;
    outcome
}

async fn measure(daemon: &BenchDaemon, arguments: &BenchArguments) -> Result<Report> {
    let client = daemon.client();
    daemon.wait_for_template(&arguments.template).await?;
    let bare = daemon.bare_driver(&arguments.template).await?;
    let mut samples = Samples {
        product: Vec::new(),
        bare: Vec::new(),
        bare_parked: Vec::new(),
        stages: BTreeMap::new(),
    };
    // One of each first, unmeasured, so that none of them pays for a cold page cache.
    round_of_samples(client, &bare, &arguments.template, &mut None).await?;
    for _ in 0..arguments.n {
        round_of_samples(client, &bare, &arguments.template, &mut Some(&mut samples)).await?;
    }
    report(client, arguments, &samples).await
}

async fn round_of_samples(
    client: &Client,
    bare: &BareDriver,
    template: &str,
    samples: &mut Option<&mut Samples>,
) -> Result<()> {
    // Each sample waits for full pools: a refill in the background would slow down whichever
    // sample happens to run beside it.
    wait_for_pools(client, template).await?;
    let (product, sandbox) = product_sample(client, template).await?;
    wait_for_pools(client, template).await?;
    let cold = bare.sample(ClockStart::Engine).await?;
    let parked = bare.sample(ClockStart::Load).await?;
    if let Some(samples) = samples {
        samples.product.push(product);
        samples.bare.push(cold);
        samples.bare_parked.push(parked);
        note_stages(samples, product, &sandbox);
    }
    Ok(())
}

fn note_stages(samples: &mut Samples, product: Duration, sandbox: &Sandbox) {
    let mut rest = product;
    for (name, micros) in &sandbox.boot_stages_us {
        let part = Duration::from_micros(*micros);
        rest = rest.saturating_sub(part);
        samples.stages.entry(name.clone()).or_default().push(part);
    }
    samples
        .stages
        .entry("api_and_exec".to_owned())
        .or_default()
        .push(rest);
}

async fn product_sample(client: &Client, template: &str) -> Result<(Duration, Sandbox)> {
    let request = CreateSandbox {
        template: Some(template.to_owned()),
        ttl_seconds: Some(300),
        ..CreateSandbox::default()
    };
    let start = Instant::now();
    let sandbox = client
        .create_sandbox(&request)
        .await
        .context("cannot create")?;
    let exec = ExecRequest {
        cmd: Command::Argv(vec!["true".to_owned()]),
        cwd: None,
        env: None,
        user: None,
        stdin: None,
        timeout_seconds: None,
    };
    let result = client.exec(&sandbox.id, &exec).await;
    let elapsed = start.elapsed();
    client
        .delete_sandbox(&sandbox.id)
        .await
        .context("cannot delete")?;
    let result = result.context("cannot exec")?;
    if result.exit_code != 0 {
        bail!("true exited with {}", result.exit_code);
    }
    Ok((elapsed, sandbox))
}

async fn wait_for_pools(client: &Client, template: &str) -> Result<()> {
    let deadline = Instant::now() + POOL_DEADLINE;
    loop {
        let node = client.node().await.context("cannot ask for the node")?;
        let engines_full = node
            .parked_engines
            .iter()
            .filter(|pool| pool.template == template)
            .all(|pool| pool.parked >= pool.target);
        if engines_full && node.parked_slots >= node.parked_slots_target {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("the pools did not fill up within {POOL_DEADLINE:?}");
        }
        sleep(POOL_PAUSE).await;
    }
}

async fn report(client: &Client, arguments: &BenchArguments, samples: &Samples) -> Result<Report> {
    let node = client.node().await.context("cannot ask for the node")?;
    let figures = |values: &[Duration]| Figures::of(values).context("no samples");
    let (product, bare) = (figures(&samples.product)?, figures(&samples.bare)?);
    let bare_parked = figures(&samples.bare_parked)?;
    let mut stages = BTreeMap::new();
    for (name, values) in &samples.stages {
        stages.insert(name.clone(), figures(values)?.p50_ms);
    }
    Ok(Report {
        ratio_p50: round(product.p50_ms / bare.p50_ms),
        ratio_parked_p50: round(product.p50_ms / bare_parked.p50_ms),
        product,
        bare,
        bare_parked,
        stages,
        template: arguments.template.clone(),
        engine: node.engine,
        engine_version: node.engine_version,
        accelerator: node.accelerator,
        isolation: node.isolation,
        kernel: crate::host_kernel(),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        parked_engines: node
            .parked_engines
            .iter()
            .map(|pool| pool.target)
            .max()
            .unwrap_or(0),
        clock: CLOCK,
    })
}

/// For a person.
pub(crate) fn render(report: &Report) -> String {
    let line = |name: &str, figures: &Figures| {
        format!(
            "{name:<12} p50 {:>9.1} ms   p99 {:>9.1} ms   n {}\n",
            figures.p50_ms, figures.p99_ms, figures.n
        )
    };
    let mut text = line("product", &report.product);
    text.push_str(&line("bare", &report.bare));
    text.push_str(&line("bare parked", &report.bare_parked));
    text.push_str(&format!(
        "product / bare: {:.3}    product / bare parked: {:.3}\n",
        report.ratio_p50, report.ratio_parked_p50
    ));
    for (stage, milliseconds) in &report.stages {
        text.push_str(&format!("  {stage:<14} {milliseconds:>8.1} ms\n"));
    }
    text.push_str(&format!(
        "{} {} on {}, host kernel {}\n",
        report.engine, report.engine_version, report.accelerator, report.kernel
    ));
    text
}

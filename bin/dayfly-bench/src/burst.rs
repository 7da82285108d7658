//! `dayflyd bench burst`: many creates at once, or so many a second, beside the bare engine driven
//! in the same way, and what a neighbour notices of it.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use dayfly_api::Sandbox;
use dayfly_client::Client;
use tokio::time::sleep;

use crate::args::BurstBenchArguments;
use crate::arrivals::{Arrivals, Arrived, Starter};
use crate::bare::{BareDriver, BareMachine, ClockStart};
use crate::burst_report::{Report, Samples};
use crate::daemon::BenchDaemon;
use crate::environment::Environment;
use crate::mark::Mark;
use crate::product::{create_request, create_sample, delete, exec_true, wait_for_pools};
use crate::run::on_daemon;

/// Calls of the neighbour before each burst, while nothing else goes on.
const QUIET_CALLS: usize = 40;
/// What can be told apart from standing still, and from all at once.
const RATES: RangeInclusive<f64> = 0.01..=10_000.0;
/// Between two calls of the neighbour: it is somebody who works, not somebody who loads the host.
const NEIGHBOUR_PAUSE: Duration = Duration::from_millis(50);

/// Sandboxes of the product.
struct ProductStarter {
    client: Client,
    template: String,
    mark: Mark,
    /// The measured stages of each create.
    stages: Mutex<Vec<BTreeMap<String, u64>>>,
}

impl Starter for ProductStarter {
    type Started = Sandbox;

    async fn start(&self) -> Result<Sandbox> {
        let request = create_request(&self.template, &self.mark);
        let sandbox = self.client.create_sandbox(&request).await;
        let sandbox = sandbox.context("cannot create")?;
        exec_true(&self.client, &sandbox.id).await?;
        let mut stages = self.stages.lock().unwrap_or_else(PoisonError::into_inner);
        stages.push(sandbox.boot_stages_us.clone());
        drop(stages);
        Ok(sandbox)
    }

    async fn end(&self, sandbox: Sandbox) -> Result<()> {
        delete(&self.client, &sandbox.id).await
    }
}

/// Machines without the product.
struct BareStarter(BareDriver);

impl Starter for BareStarter {
    type Started = BareMachine;

    async fn start(&self) -> Result<BareMachine> {
        let machine = self.0.hold().await?;
        match machine.run_true().await {
            Ok(()) => Ok(machine),
            Err(error) => {
                self.0.release(machine).await?;
                Err(error)
            }
        }
    }

    async fn end(&self, machine: BareMachine) -> Result<()> {
        self.0.release(machine).await
    }
}

/// One run.
struct Bench<'a> {
    client: &'a Client,
    template: &'a str,
    arrivals: Arrivals,
    product: Arc<ProductStarter>,
    bare: Arc<BareStarter>,
    neighbour: Sandbox,
}

/// Runs the bench and answers what it found.
pub(crate) async fn run(arguments: &BurstBenchArguments) -> Result<Report> {
    if arguments.n == 0 || arguments.at_once == 0 || arguments.rounds == 0 {
        bail!("--n, --at-once and --rounds must be at least 1");
    }
    if arguments.rate.is_some_and(|rate| !RATES.contains(&rate)) {
        bail!("--rate must be from {} to {}", RATES.start(), RATES.end());
    }
    on_daemon(&arguments.data_dir, async |daemon, mark| {
        measure(daemon, mark, arguments).await
    })
    .await
}

async fn measure(
    daemon: &BenchDaemon,
    mark: &Mark,
    arguments: &BurstBenchArguments,
) -> Result<Report> {
    let (client, template) = (daemon.client(), arguments.template.as_str());
    daemon.wait_for_template(template).await?;
    let bare = daemon.bare_driver(template).await?;
    // One of each first, unmeasured, so that none of them pays for a cold page cache.
    create_sample(client, template, mark).await?;
    bare.sample(ClockStart::Engine).await?;
    let neighbour = client.create_sandbox(&create_request(template, mark)).await;
    let bench = Bench {
        client,
        template,
        arrivals: Arrivals {
            n: arguments.n,
            at_once: arguments.at_once,
            rate: arguments.rate,
        },
        product: Arc::new(ProductStarter {
            client: client.clone(),
            template: template.to_owned(),
            mark: mark.clone(),
            stages: Mutex::default(),
        }),
        bare: Arc::new(BareStarter(bare)),
        neighbour: neighbour.context("cannot create the neighbour")?,
    };
    let mut samples = Samples::default();
    for number in 1..=arguments.rounds {
        tracing::info!(number, rounds = arguments.rounds, "bursts of both");
        bench.round(number, &mut samples).await?;
    }
    delete(client, &bench.neighbour.id).await?;
    let stages = bench.product.stages.lock();
    let stages = std::mem::take(&mut *stages.unwrap_or_else(PoisonError::into_inner));
    let environment = Environment::of(client, template).await?;
    Report::of(&samples, &stages, bench.arrivals, environment)
}

impl Bench<'_> {
    /// A burst of each, which take turns in going first.
    async fn round(&self, number: usize, samples: &mut Samples) -> Result<()> {
        let product_first = number % 2 == 1;
        for is_product in [product_first, !product_first] {
            wait_for_pools(self.client, self.template).await?;
            let quiet = self.quiet_calls().await?;
            samples.neighbour_quiet.extend(quiet);
            if is_product {
                let (arrived, calls) = self.beside_neighbour(&self.product).await?;
                samples.product.push(arrived);
                samples.neighbour_product.extend(calls);
            } else {
                let (arrived, calls) = self.beside_neighbour(&self.bare).await?;
                samples.bare.push(arrived);
                samples.neighbour_bare.extend(calls);
            }
        }
        Ok(())
    }

    async fn quiet_calls(&self) -> Result<Vec<Duration>> {
        let mut calls = Vec::new();
        for _ in 0..QUIET_CALLS {
            calls.push(self.one_call().await?);
            sleep(NEIGHBOUR_PAUSE).await;
        }
        Ok(calls)
    }

    async fn one_call(&self) -> Result<Duration> {
        let start = Instant::now();
        let called = exec_true(self.client, &self.neighbour.id).await;
        called.context("the neighbour")?;
        Ok(start.elapsed())
    }

    /// A burst, and how long the neighbour's calls took meanwhile.
    async fn beside_neighbour<S: Starter>(
        &self,
        starter: &Arc<S>,
    ) -> Result<(Arrived, Vec<Duration>)> {
        let mut calls = Vec::new();
        let calling = async {
            loop {
                match self.one_call().await {
                    Ok(call) => calls.push(call),
                    Err(error) => return error,
                }
                sleep(NEIGHBOUR_PAUSE).await;
            }
        };
        let arrived = tokio::select! {
            arrived = self.arrivals.drive(starter) => arrived?,
            error = calling => return Err(error),
        };
        for failure in &arrived.failures {
            tracing::warn!(error = format!("{failure:#}"), "one was not started");
        }
        Ok((arrived, calls))
    }
}

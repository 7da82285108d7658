//! What every driver must do, as one suite over the port.
//!
//! The suite boots one machine and makes the claims about booted machines on it, captures it, and
//! makes the claims about restored machines on what it captured. It looks at the guest only
//! through the agent's sockets, and at the engine only through the port and `/proc`.

mod booted;
mod copied;
mod given_back;
pub mod observe;
mod restored;

use std::error::Error;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use dayfly_types::error_chain;
use dayfly_vmm::{BootSpec, Engine, EngineProcess, RestoreSpec, Slot, SlotProvider};

/// Why a claim does not hold.
pub type Failure = Box<dyn Error + Send + Sync>;
/// Whether a claim holds.
pub type Claim = Result<(), Failure>;

/// Fails the claim around it unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err(format!($($message)+).into());
        }
    };
}
pub(crate) use ensure;

/// What differs between the machines that drivers are tested with.
#[async_trait]
pub trait Fixture: Debug + Send + Sync + 'static {
    /// A machine whose guest answers on its control port once it is up.
    fn boot_spec(&self) -> BootSpec;

    /// How long that guest may take.
    fn boot_limit(&self) -> Duration;

    /// Ends an engine process from outside, as a crash does, and waits until it is gone.
    async fn crash(&self, process: EngineProcess) -> Claim;
}

/// A driver under test.
#[derive(Debug, Clone)]
pub struct World {
    pub engine: Arc<dyn Engine>,
    pub slots: Arc<dyn SlotProvider>,
    pub fixture: Arc<dyn Fixture>,
    /// An empty directory for what is captured.
    pub directory: PathBuf,
}

/// What came of one claim.
#[derive(Debug)]
pub struct Finding {
    pub claim: &'static str,
    pub duration: Duration,
    pub result: Claim,
}

/// All that was found.
#[derive(Debug, Default)]
pub struct Report {
    pub findings: Vec<Finding>,
}

impl Report {
    #[must_use]
    pub fn is_conformant(&self) -> bool {
        !self.findings.is_empty() && self.findings.iter().all(|finding| finding.result.is_ok())
    }

    pub(crate) async fn claim<T>(
        &mut self,
        claim: &'static str,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Option<T> {
        let start = Instant::now();
        let (value, result) = match work.await {
            Ok(value) => (Some(value), Ok(())),
            Err(error) => (None, Err(error)),
        };
        self.findings.push(Finding {
            claim,
            duration: start.elapsed(),
            result,
        });
        value
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for finding in &self.findings {
            let verdict = match &finding.result {
                Ok(()) => "holds".to_owned(),
                Err(error) => format!("FAILS: {}", error_chain(error.as_ref())),
            };
            let milliseconds = finding.duration.as_millis();
            writeln!(
                formatter,
                "{:<60} {milliseconds:>6} ms  {verdict}",
                finding.claim
            )?;
        }
        Ok(())
    }
}

/// Makes every claim. Later ones are left out when nothing could be captured for them.
pub async fn run(world: &World) -> Report {
    let mut report = Report::default();
    let capabilities = booted::capabilities(world);
    report
        .claim("capabilities are complete", capabilities)
        .await;
    let bake = booted::boot_and_capture(world);
    let template = report
        .claim("a machine boots, pauses, resumes, is captured", bake)
        .await;
    if let Some(template) = template {
        claims_of_life(&mut report, world, &template).await;
        claims_of_death(&mut report, world, &template).await;
        let unchanged = template.is_unchanged();
        report
            .claim("the image is unchanged after all this", unchanged)
            .await;
    }
    report
}

async fn claims_of_life(report: &mut Report, world: &World, template: &Template) {
    let work = restored::parked_engine_is_idle_and_private(world, template);
    report
        .claim(
            "a parked engine runs no guest and maps memory privately",
            work,
        )
        .await;
    let work = restored::two_machines_run_from_one_image(world, template);
    report
        .claim("two machines run from one image at once", work)
        .await;
    let work = restored::pause_and_resume_may_be_repeated(world, template);
    report
        .claim("a restored machine pauses and resumes, repeatedly", work)
        .await;
    let work = copied::a_copy_of_a_copy_runs(world, template);
    report
        .claim("a restored machine is copied, and so is its copy", work)
        .await;
    let work = copied::a_machine_over_nothing_is_copied(world, template);
    report
        .claim("a machine boots with its own memory, and is copied", work)
        .await;
    let work = given_back::what_is_free_is_given_back(world, template);
    report
        .claim("a machine gives back memory that its guest has freed", work)
        .await;
    let work = restored::adopt_takes_over(world, template);
    report
        .claim("a machine is adopted after its handle was dropped", work)
        .await;
    let work = restored::adopt_refuses_others(world, template);
    report
        .claim("adopt refuses whoever is not the machine", work)
        .await;
}

async fn claims_of_death(report: &mut Report, world: &World, template: &Template) {
    let work = restored::kill_may_be_repeated(world, template);
    report
        .claim("kill may be repeated and wait resolves", work)
        .await;
    let work = restored::death_is_seen(world, template);
    report
        .claim("the death of an engine is seen within two seconds", work)
        .await;
    let work = restored::damaged_state_is_refused(world, template);
    report
        .claim(
            "a damaged device state is refused and leaves no process",
            work,
        )
        .await;
    let work = restored::release_ends_a_running_machine(world, template);
    report
        .claim("release ends a running machine and leaves nothing", work)
        .await;
}

/// Boots and captures a machine, for tests beyond this suite.
///
/// # Errors
/// What did not hold on the way.
pub async fn captured_machine(world: &World) -> Result<RestoreSpec, Failure> {
    Ok(booted::boot_and_capture(world).await?.spec)
}

/// What a capture left, in a directory of its own and read-only.
#[derive(Debug)]
pub(crate) struct Template {
    pub(crate) spec: RestoreSpec,
    pub(crate) memory_image: PathBuf,
    pub(crate) hash: blake3::Hash,
}

impl Template {
    async fn is_unchanged(&self) -> Claim {
        let hash = observe::hash(&self.memory_image).await?;
        ensure!(hash == self.hash, "the memory image has changed");
        Ok(())
    }
}

/// Runs `body` in a fresh slot, which is released whatever comes of it.
pub(crate) async fn in_slot<T>(
    world: &World,
    body: impl AsyncFnOnce(&Slot) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let slot = world.slots.acquire().await?;
    let result = body(&slot).await;
    world.slots.release(slot.index).await?;
    let value = result?;
    ensure!(
        !slot.run_directory.exists(),
        "the run directory is left after release"
    );
    let left = world.slots.list().await?;
    ensure!(
        !left.contains(&slot.index),
        "the slot is listed after release"
    );
    Ok(value)
}

//! `dayflyd doctor`: is this host fit, what is its isolation, what is left over.

mod checks;
mod kept;
mod leftovers;
mod production;
mod situation;
pub(crate) mod text;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use dayfly_host::leftovers::Leftover;
use dayfly_host::probe::{HostFacts, probe_host};
use dayfly_installation::DataDirectory;
use dayfly_snapshots::{RecipeCatalog, TemplateStore, file_names};
use dayfly_types::Isolation;
use dayfly_vmm::Accelerator;
use dayfly_vmm_qemu::{ENGINE_PROGRAM, EngineVersion, ProbeSpec, probe_accelerator};
use serde::Serialize;

pub(crate) use self::production::Finding;
use self::situation::Situation;
use crate::args::DoctorArguments;
use crate::engine;

/// The whole answer. The shape is documented; fields are only added.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Whether every check that must pass did.
    pub(crate) fit: bool,
    /// Absent while no guest has been booted to find out.
    pub(crate) isolation: Option<Isolation>,
    pub(crate) accelerator: Option<Accelerator>,
    pub(crate) accelerator_reason: String,
    pub(crate) engine_version: Option<String>,
    pub(crate) checks: Vec<Check>,
    /// What is not as it should be where others depend on this host.
    pub(crate) production: Vec<Finding>,
    pub(crate) facts: HostFacts,
    /// What belongs to no known sandbox.
    pub(crate) leftovers: Vec<Leftover>,
}

impl Report {
    /// Whether this host is good enough for whoever asks.
    pub(crate) fn is_well(&self, for_production: bool) -> bool {
        self.fit && (!for_production || self.production.is_empty())
    }
}

/// One question with its answer.
#[derive(Debug, Serialize)]
pub(crate) struct Check {
    pub(crate) name: &'static str,
    pub(crate) verdict: Verdict,
    pub(crate) detail: String,
    /// What to do about it.
    pub(crate) hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Ok,
    /// Works, but an operator should know.
    Warning,
    /// Sandboxes cannot run.
    Failed,
}

const NOT_PROBED: &str =
    "no guest was booted on this host with this engine yet; leave out --no-probe";

/// Looks at the host, and at a data directory when one is named.
pub(crate) async fn run(arguments: &DoctorArguments) -> Result<Report> {
    let directory = match &arguments.data_dir {
        Some(path) => Some(DataDirectory::open(path)?),
        None => None,
    };
    let probed = directory
        .as_ref()
        .map_or_else(|| PathBuf::from("/"), |d| d.root().to_owned());
    let facts = tokio::task::spawn_blocking(move || probe_host(&probed)).await?;
    let version = engine::installed_version().await;
    let remembered = directory
        .as_ref()
        .and_then(|directory| remembered(directory, version.as_ref().ok()?));
    let (accelerator, accelerator_reason) = match remembered {
        Some((accelerator, reason)) => (Some(accelerator), reason),
        None if arguments.no_probe => (None, NOT_PROBED.to_owned()),
        None => find_accelerator(directory.as_ref(), arguments.probe_seconds).await,
    };
    let mut checks = checks::of_host(&facts);
    checks.push(checks::of_engine(&version));
    checks.push(checks::of_accelerator(accelerator, &accelerator_reason));
    let left = match &directory {
        Some(directory) => leftovers::find(directory).await?,
        None => Vec::new(),
    };
    checks.extend(directory.as_ref().map(|_| checks::of_leftovers(&left)));
    if let Some(directory) = &directory {
        checks.push(kept::of_sandboxes(directory).await?);
        checks.extend(kept::of_health(directory).await?);
    }
    let situation = Situation::of(directory.as_ref()).await?;
    let engine = version.as_ref().ok().copied();
    let production = production::findings(&facts, accelerator, engine, &situation);
    Ok(Report {
        fit: checks.iter().all(|check| check.verdict != Verdict::Failed),
        isolation: accelerator.map(Accelerator::isolation),
        accelerator,
        accelerator_reason,
        engine_version: version.ok().map(|version| version.to_string()),
        checks,
        production,
        facts,
        leftovers: left,
    })
}

/// What the daemon found on this host with this engine, and goes by.
fn remembered(directory: &DataDirectory, version: &EngineVersion) -> Option<(Accelerator, String)> {
    let file = engine::probe_file(directory);
    let record = engine::remembered_probe(&file, *version)?;
    Some((record.accelerator, record.reason))
}

/// Boots a guest to find out. Needs a kernel, which a baked template has.
async fn find_accelerator(
    directory: Option<&DataDirectory>,
    seconds: u64,
) -> (Option<Accelerator>, String) {
    if !engine::has_device() {
        return (
            Some(Accelerator::Tcg),
            "there is no /dev/kvm on this host".to_owned(),
        );
    }
    let Some(kernel) = directory.and_then(any_kernel) else {
        let text =
            "/dev/kvm is there; name a --data-dir with a baked template to try a guest on it";
        return (None, text.to_owned());
    };
    let spec = ProbeSpec {
        program: PathBuf::from(ENGINE_PROGRAM),
        kernel,
        limit: Duration::from_secs(seconds),
    };
    match probe_accelerator(&spec).await {
        Ok(outcome) => (Some(outcome.accelerator), outcome.reason),
        Err(error) => (None, dayfly_types::error_chain(&error)),
    }
}

fn any_kernel(directory: &DataDirectory) -> Option<PathBuf> {
    let store = TemplateStore::new(directory.node().join("templates"));
    let catalog = RecipeCatalog::load(Some(&directory.recipes())).ok()?;
    catalog.iter().find_map(|recipe| {
        let name = &recipe.recipe.name;
        let newest = store.versions(name).ok()?.pop()?;
        let template = store.open_version(name, &newest).ok()?;
        let kernel = template.path(file_names::KERNEL);
        Path::new(&kernel).exists().then_some(kernel)
    })
}

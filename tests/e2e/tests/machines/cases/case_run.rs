//! Running cases with a driver.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Error, Result, bail, ensure};
use dayfly_e2e::{Daemon, DaemonOptions, Setting, figure};
use serde_json::{Value, json};

use crate::cases::case_files::{Case, Given, Step, cases_for, difference};

/// The templates are there already; a daemon that has just started looks at them first.
const READY_MAX: Duration = Duration::from_secs(120);

/// Calls that a client does not have: driver, call, and why. A case with such a step is skipped.
const NOT_OFFERED: &[(&str, &str, &str)] = &[
    ("cli", "run_code", "no command runs code in a context"),
    ("cli", "create_context", "no command makes a context"),
];

/// What came of a call.
#[derive(Debug)]
pub(crate) enum Answer {
    Fields(Value),
    Sandbox(String),
    Snapshot(String),
    /// Goes with its sandbox.
    Context(String),
}

impl Answer {
    /// A call that only has to go well.
    pub(crate) fn nothing() -> Self {
        Self::Fields(json!({}))
    }
}

/// How a client is asked. Names given by `as` are ids by the time that a driver sees them.
pub(crate) trait Driver {
    /// Its name in `via`.
    const NAME: &'static str;

    /// The new sandbox's id.
    async fn create(&self, template: &str, given: &mut Given) -> Result<String>;

    async fn call(&self, sandbox: &str, call: &str, given: &mut Given) -> Result<Answer>;

    /// The stable code of a failure, when it has one.
    fn code(error: &Error) -> Option<&str>;
}

/// A daemon for the cases.
pub(crate) async fn start(setting: &Setting) -> Result<Daemon> {
    let daemon = Daemon::start(setting, DaemonOptions::default()).await?;
    daemon.wait_for_template("base", READY_MAX).await?;
    Ok(daemon)
}

/// Runs every case; fails with all that did not come out as they say.
pub(crate) async fn run_all<D: Driver>(
    setting: &Setting,
    daemon: &Daemon,
    driver: &D,
) -> Result<()> {
    let (mut passed, mut failures) = (0, Vec::new());
    for case in cases_for(D::NAME)? {
        let name = case.name.clone();
        if let Some(reason) = reason_to_skip::<D>(setting, &case) {
            figure!("skipped: {name}: {reason}");
            continue;
        }
        daemon.wait_for_template(&case.template, READY_MAX).await?;
        match run_case(driver, case).await {
            Ok(()) => passed += 1,
            Err(error) => failures.push(format!("{name}: {error:#}")),
        }
    }
    ensure!(failures.is_empty(), "{}", failures.join("\n"));
    ensure!(passed > 0, "no case was run");
    figure!("{passed} cases passed with {}", D::NAME);
    Ok(())
}

fn reason_to_skip<D: Driver>(setting: &Setting, case: &Case) -> Option<String> {
    let template = &case.template;
    let path = setting.templates.join("node/templates").join(template);
    if template != "base" && !path.exists() {
        return Some(format!("there is no template {template}"));
    }
    let missing = NOT_OFFERED.iter().find(|(driver, call, _)| {
        *driver == D::NAME && case.steps.iter().any(|step| step.call == *call)
    });
    missing.map(|(_, call, why)| format!("{call}: {why}"))
}

async fn run_case<D: Driver>(driver: &D, case: Case) -> Result<()> {
    let mut create = case.create;
    let created = driver.create(&case.template, &mut create).await;
    let mut made = Made::default();
    made.keep(Some("main"), &Answer::Sandbox(created.context("create")?));
    let outcome = match create.finish() {
        Ok(()) => run_steps(driver, &mut made, case.steps).await,
        Err(error) => Err(error.context("create")),
    };
    let cleaned = made.delete_all(driver).await;
    outcome.and(cleaned)
}

async fn run_steps<D: Driver>(driver: &D, made: &mut Made, steps: Vec<Step>) -> Result<()> {
    for (index, step) in steps.into_iter().enumerate() {
        let place = format!("step {} ({} on {})", index + 1, step.call, step.on);
        run_step(driver, made, step).await.context(place)?;
    }
    Ok(())
}

async fn run_step<D: Driver>(driver: &D, made: &mut Made, step: Step) -> Result<()> {
    let mut given = step.given;
    for name in ["snapshot", "context"] {
        if let Some(wanted) = given.maybe_text(name)? {
            given.set(name, made.id(&wanted)?.into());
        }
    }
    let sandbox = made.id(&step.on)?;
    let outcome = driver.call(&sandbox, &step.call, &mut given).await;
    if let Ok(answer) = &outcome {
        made.keep(step.name.as_deref(), answer);
    }
    match (outcome, step.error) {
        (Ok(answer), None) => check(&step.expect, &answer)?,
        (Err(error), None) => return Err(error),
        (Ok(_), Some(code)) => bail!("went well, and was to fail with {code}"),
        (Err(error), Some(code)) => {
            let found = D::code(&error).map(str::to_owned);
            if found.as_deref() != Some(&code) {
                let words = format!("failed with the code {found:?}, not {code}");
                return Err(error.context(words));
            }
        }
    }
    given.finish()
}

fn check(expect: &Value, answer: &Answer) -> Result<()> {
    let told = match (expect, answer) {
        (Value::Null, _) => None,
        (expect, Answer::Fields(found)) => difference(expect, found, "result"),
        (_, Answer::Sandbox(_) | Answer::Snapshot(_) | Answer::Context(_)) => {
            Some("a call that makes something has no fields to expect".to_owned())
        }
    };
    match told {
        Some(told) => bail!("{told}"),
        None => Ok(()),
    }
}

/// What the steps of a case made.
#[derive(Debug, Default)]
struct Made {
    names: BTreeMap<String, String>,
    sandboxes: Vec<String>,
    snapshots: Vec<String>,
}

impl Made {
    fn keep(&mut self, name: Option<&str>, answer: &Answer) {
        let id = match answer {
            Answer::Fields(_) => return,
            Answer::Sandbox(id) => {
                self.sandboxes.push(id.clone());
                id
            }
            Answer::Snapshot(id) => {
                self.snapshots.push(id.clone());
                id
            }
            Answer::Context(id) => id,
        };
        if let Some(name) = name {
            self.names.insert(name.to_owned(), id.clone());
        }
    }

    fn id(&self, name: &str) -> Result<String> {
        let found = self.names.get(name).cloned();
        found.with_context(|| format!("no step made {name}"))
    }

    /// Sandboxes before the snapshots that they came from. What a step deleted already is fine.
    async fn delete_all<D: Driver>(&self, driver: &D) -> Result<()> {
        for id in &self.sandboxes {
            let deleted = driver.call(id, "delete", &mut Given::default()).await;
            deleted.context("delete at the end")?;
        }
        for id in &self.snapshots {
            let mut given = Given::default();
            given.set("snapshot", id.clone().into());
            // The driver's call is about a snapshot alone; no sandbox is looked at.
            let deleted = driver.call("", "delete_snapshot", &mut given).await;
            deleted.context("delete_snapshot at the end")?;
        }
        Ok(())
    }
}

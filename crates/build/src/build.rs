//! A build, from the text of a Dockerfile to a version of a template.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use dayfly_api::{CreateSandbox, NetworkWish, TemplateVersion};
use dayfly_client::Client;
use dayfly_dockerfile::{
    CopyFrom, Dockerfile, MountFrom, RunMount, StageBase, Step, StepKey, StepWork, parse,
};

use crate::base::{self, Base};
use crate::builder::{Builder, Ended};
use crate::context::{BuildContext, ContextError};
use crate::copy::{self, CopySource, Taken};
use crate::error::{BuildError, FailedStep};
use crate::event::{BuildEvent, Listener};
use crate::finish;
use crate::keys::{self, Sources, changes_files};
use crate::mounts;
use crate::run;
use crate::stage::{Foundation, PlannedStage};

/// How often a stage is begun, should the server be gone in the middle. Steps that were kept are not done
/// again.
const ATTEMPTS_MAX: u32 = 4;
const SERVER_LOOK: Duration = Duration::from_secs(1);
const SERVER_LOOKS: u32 = 30;

/// What somebody wants to have built.
#[derive(Debug, Clone, Default)]
pub struct BuildWish {
    pub name: String,
    pub tag: String,
    pub description: String,
    /// The text of the Dockerfile.
    pub dockerfile: String,
    pub target: Option<String>,
    pub arguments: BTreeMap<String, String>,
    pub memory_mb: Option<u64>,
    pub cpu: Option<u64>,
    pub disk_gb: Option<f64>,
    /// What steps may reach; nothing: what the project's default says.
    pub network: Option<NetworkWish>,
    /// Do every step, whatever is kept of earlier builds.
    pub is_fresh: bool,
}

/// What a build made.
#[derive(Debug, Clone)]
pub struct Built {
    pub version: TemplateVersion,
    /// The version was there already: everything that decides about it is the same.
    pub is_known: bool,
    pub steps: usize,
    pub cached: usize,
}

/// One build.
pub struct Build<'a> {
    client: &'a Client,
    wish: &'a BuildWish,
    context: &'a BuildContext,
    tell: Listener<'a>,
    stages: BTreeMap<usize, PlannedStage>,
    images: BTreeMap<String, Base>,
    /// Names of snapshots that are there.
    kept: BTreeSet<String>,
    /// Sandboxes with the files of other stages and images, to be ended.
    others: BTreeMap<String, Builder<'a>>,
    steps: usize,
    cached: usize,
}

impl std::fmt::Debug for Build<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Build")
            .field("wish", &self.wish.name)
            .finish_non_exhaustive()
    }
}

impl<'a> Build<'a> {
    pub fn new(
        client: &'a Client,
        wish: &'a BuildWish,
        context: &'a BuildContext,
        tell: Listener<'a>,
    ) -> Self {
        Self {
            client,
            wish,
            context,
            tell,
            stages: BTreeMap::new(),
            images: BTreeMap::new(),
            kept: BTreeSet::new(),
            others: BTreeMap::new(),
            steps: 0,
            cached: 0,
        }
    }

    /// Builds. What was made on the way and is not needed any more is gone in either case.
    ///
    /// # Errors
    /// [`BuildError`].
    ///
    /// # Cancel safety
    /// Dropping the future leaves a builder, which ends by itself.
    pub async fn run(mut self) -> Result<Built, BuildError> {
        let built = self.run_to_the_end().await;
        for other in std::mem::take(&mut self.others).into_values() {
            other.end().await;
        }
        built
    }

    async fn run_to_the_end(&mut self) -> Result<Built, BuildError> {
        let dockerfile = parse(&self.wish.dockerfile).map_err(BuildError::Dockerfile)?;
        let needed = dockerfile
            .needed(self.wish.target.as_deref(), &self.wish.arguments)
            .map_err(BuildError::Dockerfile)?;
        for stage in &needed {
            self.plan(&dockerfile, *stage).await?;
        }
        let Some(target) = needed
            .last()
            .and_then(|target| self.stages.get(target))
            .cloned()
        else {
            let reason = "the Dockerfile has no stage".to_owned();
            return Err(BuildError::Template { reason });
        };
        if !self.wish.is_fresh {
            self.kept = kept(self.client).await?;
        }
        let provenance = self.provenance(&target);
        let known = if self.wish.is_fresh {
            None
        } else {
            finish::find(self.client, self.wish, &provenance).await?
        };
        if let Some(version) = known {
            self.tell_cached(&target);
            let (steps, cached) = (self.steps, self.cached);
            return Ok(Built {
                version,
                is_known: true,
                steps,
                cached,
            });
        }
        let last = needed.last().copied().unwrap_or_default();
        let snapshot = self.ensure(last).await?;
        let config = &target.plan.config;
        let version = finish::make(
            self.client,
            self.wish,
            &snapshot,
            config,
            provenance,
            self.tell,
        );
        let version = version.await?;
        Ok(Built {
            version,
            is_known: false,
            steps: self.steps,
            cached: self.cached,
        })
    }

    /// Finds out what a stage is built on and what keys its steps have. Nothing is run.
    async fn plan(&mut self, dockerfile: &Dockerfile, stage: usize) -> Result<(), BuildError> {
        let arguments = &self.wish.arguments;
        let based = dockerfile
            .base(stage, arguments)
            .map_err(BuildError::Dockerfile)?;
        let foundation = match based {
            StageBase::Image(name) => {
                let base = self.image(&name).await?;
                base.check_on_build(&name)?;
                Foundation::Base(Box::new(base))
            }
            StageBase::Stage(below) => Foundation::Stage(below),
            StageBase::Scratch => {
                let what = "FROM scratch has nothing to run a step in; begin with a small image, \
                            such as busybox";
                return Err(BuildError::Unsupported {
                    line: 1,
                    what: what.to_owned(),
                });
            }
        };
        let (config, first_key) = match &foundation {
            Foundation::Base(base) => (base.config.clone(), StepKey::base(&base.identity)),
            Foundation::Stage(below) => match self.stages.get(below) {
                Some(below) => (below.plan.config.clone(), below.last_key().clone()),
                None => {
                    let reason = "a stage is built on a later one".to_owned();
                    return Err(BuildError::Template { reason });
                }
            },
        };
        let plan = dockerfile
            .plan(stage, &config, arguments)
            .map_err(BuildError::Dockerfile)?;
        for name in images_of(&plan.steps) {
            self.image(&name).await?;
        }
        let (keys, digests) = self.keys(&first_key, &plan.steps)?;
        let name = dockerfile.stage_name(stage);
        let name = name.map_or_else(|| format!("stage {}", stage + 1), str::to_owned);
        self.stages.insert(
            stage,
            PlannedStage {
                name,
                foundation,
                plan,
                first_key,
                keys,
                digests,
            },
        );
        Ok(())
    }

    /// The key behind each step, and digests of what it takes from the build context.
    fn keys(
        &self,
        first: &StepKey,
        steps: &[Step],
    ) -> Result<(Vec<StepKey>, Vec<Vec<String>>), BuildError> {
        let last_keys = self.stages.iter();
        let last_keys = last_keys.map(|(stage, one)| (*stage, one.last_key().as_str().to_owned()));
        let sources = Sources {
            context: self.context,
            stages: last_keys.collect(),
            images: self.images.clone(),
        };
        let (mut keys, mut all_digests) = (Vec::new(), Vec::new());
        let mut key = first.clone();
        for step in steps {
            let mut digests = Vec::new();
            if changes_files(&step.work) {
                (key, digests) = keys::after(&key, step, &sources)?;
            }
            keys.push(key.clone());
            all_digests.push(digests);
        }
        Ok((keys, all_digests))
    }

    async fn image(&mut self, name: &str) -> Result<Base, BuildError> {
        if let Some(known) = self.images.get(name) {
            return Ok(known.clone());
        }
        let base = base::find(self.client, self.wish, name, self.tell).await?;
        self.images.insert(name.to_owned(), base.clone());
        Ok(base)
    }

    fn provenance(&self, target: &PlannedStage) -> finish::Provenance {
        let images = self.images.iter();
        finish::Provenance {
            key: target.last_key().as_str().to_owned(),
            config: target.plan.config.clone(),
            images: images
                .map(|(name, base)| (name.clone(), base.identity.clone()))
                .collect(),
            steps: target
                .steps()
                .iter()
                .map(|step| step.text.clone())
                .collect(),
        }
    }

    fn tell_cached(&mut self, stage: &PlannedStage) {
        let steps = stage.steps().len();
        for (index, step) in stage.steps().iter().enumerate() {
            (self.tell)(BuildEvent::Cached {
                number: index + 1,
                steps,
                text: step.text.clone(),
            });
        }
        self.steps += steps;
        self.cached += steps;
    }

    /// Makes sure that what a stage leaves is kept, and gives its name. Boxed, because a stage may need
    /// others.
    fn ensure(
        &mut self,
        stage: usize,
    ) -> Pin<Box<dyn Future<Output = Result<String, BuildError>> + Send + '_>> {
        Box::pin(self.ensure_here(stage))
    }

    async fn ensure_here(&mut self, number: usize) -> Result<String, BuildError> {
        let Some(stage) = self.stages.get(&number).cloned() else {
            let reason = format!("there is no stage {number}");
            return Err(BuildError::Template { reason });
        };
        let result = stage.result();
        let done = stage.done(|name| self.kept.contains(name));
        self.tell_stage(&stage, done);
        let mut attempt = 1;
        while !self.kept.contains(&result) {
            let done = stage.done(|name| self.kept.contains(name));
            match self.build_from(&stage, done).await {
                Err(error) if error.may_pass() && attempt < ATTEMPTS_MAX => {
                    attempt += 1;
                    wait_for_server(self.client).await;
                }
                outcome => outcome?,
            }
        }
        Ok(result)
    }

    fn tell_stage(&mut self, stage: &PlannedStage, done: usize) {
        let steps = stage.steps().len();
        (self.tell)(BuildEvent::Stage {
            name: stage.name.clone(),
            steps,
        });
        self.steps += steps;
        self.cached += done;
        for (index, step) in stage.steps().iter().enumerate().take(done) {
            (self.tell)(BuildEvent::Cached {
                number: index + 1,
                steps,
                text: step.text.clone(),
            });
        }
    }

    /// Does the steps of a stage that are not done, and keeps what it leaves.
    async fn build_from(&mut self, stage: &PlannedStage, done: usize) -> Result<(), BuildError> {
        let request = self.beginning(stage, done).await?;
        let builder = Builder::start(self.client, self.wish, request).await?;
        let mut outcome = self.steps_from(&builder, stage, done).await;
        let result = stage.result();
        if outcome.is_ok() && !self.kept.contains(&result) {
            outcome = builder.keep(&result, self.wish.is_fresh).await;
            if outcome.is_ok() {
                self.kept.insert(result);
            }
        }
        match &outcome {
            Err(BuildError::Step(_)) => builder.leave().await,
            Ok(()) | Err(_) => builder.end().await,
        }
        outcome
    }

    /// What the builder of a stage is made from.
    async fn beginning(
        &mut self,
        stage: &PlannedStage,
        done: usize,
    ) -> Result<CreateSandbox, BuildError> {
        let snapshot = match (stage.snapshot_before(done), &stage.foundation) {
            (Some(name), _) => name,
            (None, Foundation::Stage(below)) => self.ensure(*below).await?,
            (None, Foundation::Base(base)) => return Ok(base.request(self.wish)),
        };
        Ok(from_snapshot(&snapshot))
    }

    async fn steps_from(
        &mut self,
        builder: &Builder<'_>,
        stage: &PlannedStage,
        done: usize,
    ) -> Result<(), BuildError> {
        let steps = stage.steps().len();
        for (index, step) in stage.steps().iter().enumerate().skip(done) {
            let (number, began) = (index + 1, Instant::now());
            (self.tell)(BuildEvent::Started {
                number,
                steps,
                text: step.text.clone(),
            });
            let (ended, taken) = self.step(builder, step).await?;
            if taken != stage.digests[index] {
                return Err(BuildError::Context(ContextError::Changed));
            }
            if ended.exit_code != 0 {
                return Err(BuildError::Step(Box::new(FailedStep {
                    number,
                    steps,
                    line: step.line,
                    text: step.text.clone(),
                    exit_code: ended.exit_code,
                    tail: ended.tail,
                    sandbox: builder.sandbox.clone(),
                })));
            }
            if changes_files(&step.work) {
                let name = keys::snapshot_name(&stage.keys[index]);
                builder.keep(&name, self.wish.is_fresh).await?;
                self.kept.insert(name);
            }
            (self.tell)(BuildEvent::Finished {
                number,
                elapsed: began.elapsed(),
            });
        }
        Ok(())
    }

    /// Does one step, and gives digests of what was taken from the build context.
    async fn step(
        &mut self,
        builder: &Builder<'_>,
        step: &Step,
    ) -> Result<(Ended, Vec<String>), BuildError> {
        match &step.work {
            StepWork::Run { mounts, .. } => self.run_step(builder, step, mounts).await,
            StepWork::Copy { from, .. } => {
                let taken = self.copy(builder, step, from).await?;
                Ok((Ended::well(), taken.digest.into_iter().collect()))
            }
            StepWork::MakeDirectory { path, user } => {
                run::make_directory(builder, step.line, path, user.as_deref()).await?;
                Ok((Ended::well(), Vec::new()))
            }
            StepWork::Nothing => Ok((Ended::well(), Vec::new())),
        }
    }

    async fn run_step(
        &mut self,
        builder: &Builder<'_>,
        step: &Step,
        mounts: &[RunMount],
    ) -> Result<(Ended, Vec<String>), BuildError> {
        let mut from = Vec::new();
        for mount in mounts {
            from.push(match mounts::origin_of(mount) {
                Some(origin) => self.files_of(origin).await?,
                None => None,
            });
        }
        let context = self.context;
        let sources = mounts.iter().zip(&from).map(|(mount, sandbox)| {
            mounts::origin_of(mount)?;
            let sandbox = sandbox.as_deref().map(CopySource::Sandbox);
            Some(sandbox.unwrap_or(CopySource::Context(context)))
        });
        let sources: Vec<Option<CopySource<'_>>> = sources.collect();
        let placed = mounts::place(builder, step, mounts, &sources).await?;
        let ended = run::run(builder, step, self.tell).await?;
        mounts::remove(builder, step, &placed).await?;
        Ok((ended, placed.digests))
    }

    async fn copy(
        &mut self,
        builder: &Builder<'_>,
        step: &Step,
        from: &CopyFrom,
    ) -> Result<Taken, BuildError> {
        let sandbox = match from {
            CopyFrom::Stage(stage) => self.files_of(&MountFrom::Stage(*stage)).await?,
            CopyFrom::Image(name) => self.files_of(&MountFrom::Image(name.clone())).await?,
            CopyFrom::Context | CopyFrom::Inline(_) => None,
        };
        let source = match (from, &sandbox) {
            (CopyFrom::Inline(files), _) => CopySource::Inline(files),
            (_, Some(sandbox)) => CopySource::Sandbox(sandbox),
            (_, None) => CopySource::Context(self.context),
        };
        copy::copy(builder, step, &source).await
    }

    /// A sandbox with the files of a stage or an image; nothing for the context.
    async fn files_of(&mut self, from: &MountFrom) -> Result<Option<String>, BuildError> {
        let (key, request) = match from {
            MountFrom::Context => return Ok(None),
            MountFrom::Stage(stage) => {
                let snapshot = self.ensure(*stage).await?;
                (snapshot.clone(), from_snapshot(&snapshot))
            }
            MountFrom::Image(name) => (
                format!("image {name}"),
                self.image(name).await?.request(self.wish),
            ),
        };
        if let Some(known) = self.others.get(&key) {
            return Ok(Some(known.sandbox.clone()));
        }
        let other = Builder::start(self.client, self.wish, request).await?;
        let sandbox = other.sandbox.clone();
        // It lives for as long as this has it.
        self.others.insert(key, other);
        Ok(Some(sandbox))
    }
}

/// A server that was ended is started again within seconds.
async fn wait_for_server(client: &Client) {
    for _ in 0..SERVER_LOOKS {
        tokio::time::sleep(SERVER_LOOK).await;
        if client.me().await.is_ok() {
            return;
        }
    }
}

fn from_snapshot(name: &str) -> CreateSandbox {
    CreateSandbox {
        from_snapshot: Some(name.to_owned()),
        ..CreateSandbox::default()
    }
}

/// Images that steps take files from.
fn images_of(steps: &[Step]) -> Vec<String> {
    let mut names = Vec::new();
    for step in steps {
        match &step.work {
            StepWork::Copy {
                from: CopyFrom::Image(name),
                ..
            } => names.push(name.clone()),
            StepWork::Run { mounts, .. } => {
                names.extend(
                    mounts
                        .iter()
                        .filter_map(|mount| match mounts::origin_of(mount) {
                            Some(MountFrom::Image(name)) => Some(name.clone()),
                            Some(MountFrom::Context | MountFrom::Stage(_)) | None => None,
                        }),
                );
            }
            StepWork::Copy { .. } | StepWork::MakeDirectory { .. } | StepWork::Nothing => {}
        }
    }
    names
}

/// Names of all snapshots of the project.
async fn kept(client: &Client) -> Result<BTreeSet<String>, BuildError> {
    let snapshots = client.list_snapshots(None).await;
    let snapshots =
        snapshots.map_err(BuildError::call("look for what is kept of earlier builds"))?;
    Ok(snapshots.into_iter().filter_map(|one| one.name).collect())
}

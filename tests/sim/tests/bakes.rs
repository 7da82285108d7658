//! Ends a node at every point of a bake, and looks at what the next one makes of it.
//!
//! The disk is copied at the moment of the end and put back before the next start: what the
//! unwinding of a test tidies up, a killed process leaves.
#![expect(
    clippy::print_stdout,
    reason = "the count of points is part of the result"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use dayfly_core::admission::Demand;
use dayfly_node::bake::{BakeDeps, BakeLimits, ImageProvider};
use dayfly_node::baker::{BakePlan, BakeUsers, Baker, BeforeFirstBoot, KeptBuilds};
use dayfly_node::engine_users::EngineUser;
use dayfly_node::journal::Journal;
use dayfly_node::{BakeWish, Effect, Effects, Point, TemplateSource as _};
use dayfly_node_api::BakeState;
use dayfly_sim::World;
use dayfly_sim::crash::MortalNode;
use dayfly_snapshots::{
    BaseFiles, ImageError, ImageParts, ImageRecipe, OrderedTemplates, ProgressReporter,
    RecipeCatalog, TemplateStore,
};
use dayfly_types::{
    DiskMib, MemoryMib, OrderedSource, OrderedTemplate, ProjectId, TemplateName, Vcpus,
};
use dayfly_vmm::SlotProvider as _;
use tokio_util::sync::CancellationToken;

const SETTLE_LIMIT: Duration = Duration::from_secs(30);
const TEMPLATE: &str = "small";
/// In the name of an image that is never there.
const SLOW: &str = "slow";

/// Parts that any file will do for, since nothing boots them.
#[derive(Debug)]
struct FixedImage(ImageParts);

#[async_trait]
impl ImageProvider for FixedImage {
    async fn ensure(
        &self,
        image: &ImageRecipe,
        _progress: &ProgressReporter,
    ) -> Result<ImageParts, ImageError> {
        if let ImageRecipe::Container(image) = image
            && image.image.to_string().contains(SLOW)
        {
            std::future::pending::<()>().await;
        }
        Ok(self.0.clone())
    }
}

#[async_trait]
impl BeforeFirstBoot for FixedImage {
    async fn image_is_there(&self, _parts: &ImageParts) {}
}

/// A host on which one template is baked.
struct Bakery {
    world: Arc<World>,
    directory: tempfile::TempDir,
    limits: BakeLimits,
}

/// A node that bakes.
struct Life {
    mortal: MortalNode,
    baker: Arc<Baker>,
}

impl Bakery {
    fn new() -> Result<Self> {
        let directory = tempfile::tempdir()?;
        for name in ["base", "kernel", "a.ko", "agent"] {
            std::fs::write(directory.path().join(name), name)?;
        }
        std::fs::create_dir(directory.path().join("recipes"))?;
        Ok(Self {
            world: Arc::new(World::with_room_for(4)?),
            directory,
            limits: BakeLimits::default(),
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn store(&self) -> TemplateStore {
        TemplateStore::new(self.path("templates"))
    }

    fn write_recipe(&self, version: u32) -> Result<()> {
        let text = format!(
            "name = '{TEMPLATE}'\nversion = {version}\nmemory_mib = 128\nvcpus = 1\ndisk_mib = 64\n"
        );
        Ok(std::fs::write(self.path("recipes/small.toml"), text)?)
    }

    fn image(&self) -> FixedImage {
        FixedImage(ImageParts {
            base: BaseFiles::whole(self.path("base")),
            kernel: self.path("kernel"),
            kernel_version: "6.12".to_owned(),
            modules: vec![self.path("a.ko")],
            container: None,
            taken: None,
        })
    }

    fn baker(&self, effects: Effects) -> Result<Arc<Baker>> {
        let deps = BakeDeps {
            engine: Arc::clone(&self.world.engine) as _,
            slots: Arc::clone(&self.world.slots) as _,
            store: self.store(),
            images: Arc::new(self.image()),
            clock: Arc::clone(&self.world.clock) as _,
            agent_program: self.path("agent"),
            make_empty_layer: Arc::new(|path, _| {
                Box::pin(async move { std::fs::write(path, "empty").map_err(Into::into) })
            }),
            limits: self.limits,
            effects,
        };
        let plan = BakePlan {
            catalog: RecipeCatalog::load(Some(&self.path("recipes")))?,
            recipes: Some(self.path("recipes")),
            ordered: OrderedTemplates::new(self.path("ordered")),
            at_start: BTreeSet::from([TemplateName::parse(TEMPLATE)?]),
        };
        let first = Arc::new(self.image());
        Ok(Baker::new(deps, plan, Arc::new(|_| {}), first))
    }

    /// Starts a node; its baker waits for [`Life::bake`].
    async fn start(&self) -> Result<Life> {
        let mortal = MortalNode::start(&self.world).await?;
        let baker = self.baker(mortal.reaper.effects())?;
        Ok(Life { mortal, baker })
    }

    /// Copies the templates as they are now to where [`Bakery::put_back`] finds them.
    fn copier(&self) -> impl Fn() + Send + Sync + 'static {
        let (from, to) = (self.path("templates"), self.path("at-death"));
        move || {
            let mut copy = Command::new("cp");
            // Before the first effect there are none.
            let _ = copy
                .args(["-a", "--sparse=always"])
                .args([&from, &to])
                .status();
        }
    }

    fn put_back(&self) -> Result<()> {
        let (templates, copy) = (self.path("templates"), self.path("at-death"));
        if templates.exists() {
            std::fs::remove_dir_all(&templates)?;
        }
        if copy.exists() {
            std::fs::rename(copy, templates)?;
        }
        Ok(())
    }

    /// How many versions can be opened.
    fn whole_versions(&self) -> Result<usize> {
        let (store, name) = (self.store(), TemplateName::parse(TEMPLATE)?);
        let versions = store.versions(&name)?;
        let opened = versions.iter().map(|one| store.open_version(&name, one));
        Ok(opened.filter(Result::is_ok).count())
    }

    /// What must hold once a bake is over and another life has removed what the one of the bake had
    /// still given away: one version, and nothing beside it.
    async fn check_end(&self) -> Result<()> {
        ensure!(self.whole_versions()? == 1, "not one version");
        let name = TemplateName::parse(TEMPLATE)?;
        ensure!(self.store().versions(&name)?.len() == 1, "an old version");
        let unfinished = entries(&self.path("templates/.staging"));
        ensure!(unfinished == 0, "{unfinished} unfinished bakes are left");
        ensure!(self.world.slots.running().is_empty(), "a machine is left");
        ensure!(self.world.slots.list().await?.is_empty(), "a slot is left");
        Ok(())
    }
}

fn entries(directory: &Path) -> usize {
    std::fs::read_dir(directory).map_or(0, Iterator::count)
}

impl Life {
    fn bake(&self, bakery: &Bakery) -> Result<()> {
        let users = BakeUsers {
            journal: Journal::open(&bakery.path("journal"))?,
            captures: self.mortal.node.captures(),
            ledger: self.mortal.node.ledger(),
            builds: Arc::new(OneBuild),
        };
        let run = Arc::clone(&self.baker).run(users, CancellationToken::new());
        self.mortal.spawn(run).context("no runtime")?;
        Ok(())
    }

    /// Waits until the template is ready and older ones were looked through.
    async fn is_done(&self) -> Result<()> {
        let name = TemplateName::parse(TEMPLATE)?;
        let removed = Point {
            effect: Effect::TemplateRemove,
            side: dayfly_node::effects::Side::After,
        };
        let deadline = Instant::now() + SETTLE_LIMIT;
        while !self.is_baked(&name) || !self.mortal.reaper.has_seen(removed) {
            let reports = self.baker.reports();
            ensure!(
                Instant::now() < deadline,
                "the bake has no end: {reports:?}"
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    /// Whether the recipe as it is now is baked.
    fn is_baked(&self, name: &TemplateName) -> bool {
        let reports = self.baker.reports();
        let mut found = reports.iter().filter(|report| report.name == *name);
        found.any(|report| report.state == BakeState::Ready)
    }

    /// Bakes undisturbed. Gives the points that this passed.
    async fn bake_to_the_end(self, bakery: &Bakery) -> Result<Vec<Point>> {
        self.mortal.reaper.record();
        self.bake(bakery)?;
        self.is_done().await?;
        let points = self.mortal.reaper.recorded();
        self.mortal.kill().await;
        Ok(points)
    }
}

/// The engine of a simulated host comes in one build.
#[derive(Debug)]
struct OneBuild;

impl KeptBuilds for OneBuild {
    fn remove_unneeded(&self, _users: &[EngineUser]) {}
}

/// What is on the disk before the bake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    /// A bake of an older recipe, that sandboxes could be made from.
    Older,
    /// That, and the bake that took its place.
    Both,
}

async fn prepared(before: Before) -> Result<Bakery> {
    let bakery = Bakery::new()?;
    bakery.write_recipe(1)?;
    if before != Before::Nothing {
        bakery.start().await?.bake_to_the_end(&bakery).await?;
        bakery.write_recipe(2)?;
    }
    if before == Before::Both {
        bakery.start().await?.bake_to_the_end(&bakery).await?;
        ensure!(bakery.whole_versions()? == 2, "a bake in use was removed");
    }
    Ok(bakery)
}

async fn die_at(before: Before, index: usize) -> Result<()> {
    let bakery = prepared(before).await?;
    let life = bakery.start().await?;
    let reaper = Arc::clone(&life.mortal.reaper);
    reaper.at_death(bakery.copier());
    reaper.die_after(index);
    life.bake(&bakery)?;
    let died = tokio::time::timeout(SETTLE_LIMIT, reaper.death()).await;
    life.mortal.kill().await;
    died.context("it did not die")?;
    bakery.put_back()?;
    let whole = bakery.whole_versions()?;
    ensure!(before == Before::Nothing || whole > 0, "no version is left");
    let next = bakery.start().await?;
    ensure!(
        bakery.world.slots.running().is_empty(),
        "its machine runs on"
    );
    next.bake_to_the_end(&bakery).await?;
    bakery.start().await?.bake_to_the_end(&bakery).await?;
    bakery.check_end().await
}

async fn die_at_every_point(before: Before) -> Result<()> {
    let bakery = prepared(before).await?;
    let points = bakery.start().await?.bake_to_the_end(&bakery).await?;
    let effects: BTreeSet<_> = points.iter().map(|point| point.effect).collect();
    let is_baked = effects.contains(&Effect::TemplatePublish);
    ensure!(is_baked != (before == Before::Both), "{points:?}");
    bakery.start().await?.bake_to_the_end(&bakery).await?;
    bakery.check_end().await?;
    for (index, point) in points.iter().enumerate() {
        let outcome = die_at(before, index).await;
        outcome.with_context(|| format!("{before:?}, dead {point} (point {index})"))?;
    }
    println!(
        "{before:?}: {} crash points, {} effects",
        points.len(),
        effects.len()
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_may_die_anywhere_in_a_first_bake() -> Result<()> {
    die_at_every_point(Before::Nothing).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_may_die_anywhere_in_a_bake_that_follows_another() -> Result<()> {
    die_at_every_point(Before::Older).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_may_die_anywhere_while_it_removes_a_bake() -> Result<()> {
    die_at_every_point(Before::Both).await
}

impl Life {
    fn version(&self) -> Result<String> {
        let name = TemplateName::parse(TEMPLATE)?;
        Ok(self.baker.ready(&name)?.version.clone())
    }

    async fn until_baked(&self, wanted: impl Fn(&str) -> bool) -> Result<String> {
        let deadline = Instant::now() + SETTLE_LIMIT;
        let name = TemplateName::parse(TEMPLATE)?;
        loop {
            let version = self.version().unwrap_or_default();
            if wanted(&version) && self.is_baked(&name) {
                return Ok(version);
            }
            let reports = self.baker.reports();
            ensure!(Instant::now() < deadline, "no such bake: {reports:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edited_recipe_is_baked_without_a_restart_and_the_old_bake_can_be_used() -> Result<()> {
    let bakery = prepared(Before::Nothing).await?;
    let name = TemplateName::parse(TEMPLATE)?;
    let life = bakery.start().await?;
    life.bake(&bakery)?;
    let first = life.until_baked(|version| !version.is_empty()).await?;
    // Nothing has changed, so nothing is baked, whoever asks.
    life.baker.order(&name, BakeWish::Renew)?;
    ensure!(life.is_baked(&name), "it is baked anew for nothing");
    bakery.write_recipe(2)?;
    life.baker.order(&name, BakeWish::IfMissing)?;
    ensure!(life.is_baked(&name), "who only uses it has it baked anew");
    life.baker.order(&name, BakeWish::Renew)?;
    life.version().context("it cannot be used meanwhile")?;
    life.until_baked(|version| version != first).await?;
    // What was made from the first may wake.
    life.baker.version(&name, &first)?;
    ensure!(bakery.whole_versions()? == 2, "the bake of before is gone");
    // A recipe that turned wrong, and a start: what is baked is used, and says so.
    std::fs::write(bakery.path("recipes/small.toml"), "nonsense")?;
    ensure!(life.baker.order(&name, BakeWish::Renew).is_err());
    life.mortal.kill().await;
    let next = bakery.start().await?;
    next.bake(&bakery)?;
    let deadline = Instant::now() + SETTLE_LIMIT;
    while next.version().is_err() {
        ensure!(Instant::now() < deadline, "{:?}", next.baker.reports());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let reports = next.baker.reports();
    let own = reports.iter().find(|report| report.name == name);
    let own = own.context("it is not told")?;
    ensure!(own.is_usable && matches!(own.state, BakeState::Failed { .. }));
    next.mortal.kill().await;
    Ok(())
}

/// An image that a project has named.
fn ordered(name: &str, image: &str) -> Result<OrderedTemplate> {
    Ok(OrderedTemplate {
        name: TemplateName::parse(name)?,
        description: String::new(),
        source: OrderedSource::Image {
            project: ProjectId::parse("team")?,
            address: format!("registry.example/{image}:1"),
        },
        memory: MemoryMib::new(128)?,
        vcpus: Vcpus::new(1)?,
        disk: DiskMib::new(64)?,
        starts_entry_point: false,
    })
}

impl Life {
    async fn until_state(&self, name: &TemplateName, is_it: fn(&BakeState) -> bool) -> Result<()> {
        let deadline = Instant::now() + SETTLE_LIMIT;
        loop {
            let report = self.baker.report(name);
            if report.as_ref().is_some_and(|report| is_it(&report.state)) {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "{name}: {report:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bake_for_a_project_waits_for_memory_and_others_do_not_wait_for_it() -> Result<()> {
    let bakery = Bakery::new()?;
    let life = bakery.start().await?;
    let ledger = life.mortal.node.ledger();
    let (capacity, _) = ledger.view();
    let left = capacity.memory_total_mib - capacity.memory_reserve_mib;
    // Enough for the second, which waits behind the first.
    let demand = Demand {
        memory_mib: left - Demand::of_guest(128, 0).memory_mib,
        disk_mib: 0,
    };
    let others = ledger.promise(demand)?;
    let (mut large, small) = (ordered("image.1", "large")?, ordered("image.2", "small")?);
    large.memory = MemoryMib::new(256)?;
    life.baker.take_order(&large)?;
    life.baker.take_order(&small)?;
    life.bake(&bakery)?;
    let is_ready = |state: &BakeState| *state == BakeState::Ready;
    life.until_state(&small.name, is_ready).await?;
    let waiting = life.baker.report(&large.name).context("it is gone")?;
    ensure!(waiting.state == BakeState::Waiting, "{waiting:?}");
    drop(others);
    life.until_state(&large.name, is_ready).await?;
    let deadline = Instant::now() + SETTLE_LIMIT;
    while ledger.view().1.memory_mib > 0 {
        ensure!(Instant::now() < deadline, "the promise was not taken back");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    life.mortal.kill().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bake_that_nobody_wants_any_more_ends_and_the_next_begins() -> Result<()> {
    let bakery = Bakery::new()?;
    let life = bakery.start().await?;
    let (slow, next) = (ordered("image.1", SLOW)?, ordered("image.2", "next")?);
    life.baker.take_order(&slow)?;
    life.bake(&bakery)?;
    life.until_state(&slow.name, |state| {
        matches!(state, BakeState::Baking { .. })
    })
    .await?;
    life.baker.take_order(&next)?;
    let waiting = life.baker.report(&next.name).context("it is gone")?;
    ensure!(waiting.state == BakeState::Waiting, "{waiting:?}");
    life.baker.give_up_order(&slow.name)?;
    life.until_state(&next.name, |state| *state == BakeState::Ready)
        .await?;
    ensure!(life.baker.report(&slow.name).is_none());
    life.mortal.kill().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bake_for_a_project_has_a_deadline_of_its_own() -> Result<()> {
    let mut bakery = Bakery::new()?;
    bakery.limits.ordered = Duration::from_millis(300);
    let life = bakery.start().await?;
    let slow = ordered("image.1", SLOW)?;
    life.baker.take_order(&slow)?;
    life.bake(&bakery)?;
    life.until_state(
        &slow.name,
        |state| matches!(state, BakeState::Failed { reason } if reason.contains("not made within")),
    )
    .await?;
    life.mortal.kill().await;
    Ok(())
}

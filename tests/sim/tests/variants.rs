//! Templates in other sizes on whole nodes: over restarts, renewals and sleep, and what is parked.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use dayfly_node::bake::{BakeDeps, BakeLimits, ImageProvider};
use dayfly_node::baker::{BakePlan, BakeUsers, Baker, BeforeFirstBoot, KeptBuilds};
use dayfly_node::engine_users::EngineUser;
use dayfly_node::journal::Journal;
use dayfly_node::{BakeWish, Effects, PoolTargets, TemplateSource as _};
use dayfly_node_api::{
    BakeState, EnsureSandbox, NodeCalls as _, SandboxReport, SnapshotReport, TemplateReport,
    VariantReport, VariantRequest,
};
use dayfly_sim::crash::MortalNode;
use dayfly_sim::{World, snapshot, wanted};
use dayfly_snapshots::{
    BaseFiles, ImageError, ImageParts, ImageRecipe, OrderedTemplates, ProgressReporter,
    RecipeCatalog, TemplateStore,
};
use dayfly_types::{
    DiskMib, ErrorCode, MemoryMib, OrderedSource, OrderedTemplate, ProjectId, SandboxState,
    TemplateName, TemplateSize, Vcpus, limits,
};
use tokio_util::sync::CancellationToken;

const PATIENCE: Duration = Duration::from_secs(30);

/// Parts that any file will do for, since nothing boots them.
#[derive(Debug, Clone)]
struct FixedImage(ImageParts);

#[async_trait]
impl ImageProvider for FixedImage {
    async fn ensure(
        &self,
        _image: &ImageRecipe,
        _progress: &ProgressReporter,
    ) -> Result<ImageParts, ImageError> {
        Ok(self.0.clone())
    }
}

#[async_trait]
impl BeforeFirstBoot for FixedImage {
    async fn image_is_there(&self, _parts: &ImageParts) {}
}

#[derive(Debug)]
struct OneBuild;

impl KeptBuilds for OneBuild {
    fn remove_unneeded(&self, _users: &[EngineUser]) {}
}

/// A host whose node makes sandboxes from what it bakes.
struct Bakery {
    world: Arc<World>,
    directory: tempfile::TempDir,
}

struct Life {
    mortal: MortalNode,
    baker: Arc<Baker>,
}

fn small() -> Result<TemplateName> {
    Ok(TemplateName::parse("small")?)
}

fn size(memory: u64) -> Result<TemplateSize> {
    Ok(TemplateSize {
        memory: MemoryMib::new(memory)?,
        vcpus: Vcpus::new(1)?,
    })
}

fn request(memory: u64) -> Result<VariantRequest> {
    Ok(VariantRequest {
        size: size(memory)?,
        by: Some(ProjectId::parse("p")?),
        is_awaited: true,
        renew: false,
    })
}

fn sandbox(number: u32, memory: Option<u64>) -> Result<EnsureSandbox> {
    Ok(EnsureSandbox {
        template: small()?,
        size: memory.map(size).transpose()?,
        ..wanted(number, "p", None)?
    })
}

impl Bakery {
    fn new(pool: PoolTargets) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        for name in ["base", "kernel", "a.ko", "agent"] {
            std::fs::write(directory.path().join(name), name)?;
        }
        std::fs::create_dir(directory.path().join("recipes"))?;
        let mut world = World::with_room_for(16)?;
        world.pool = pool;
        let world = Arc::new(world);
        let bakery = Self { world, directory };
        bakery.write_recipe(1)?;
        Ok(bakery)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn store(&self) -> TemplateStore {
        TemplateStore::new(self.path("templates"))
    }

    fn write_recipe(&self, version: u32) -> Result<()> {
        let text = format!(
            "name = 'small'\nversion = {version}\nmemory_mib = 128\nvcpus = 1\ndisk_mib = 64\n"
        );
        Ok(std::fs::write(self.path("recipes/small.toml"), text)?)
    }

    fn versions(&self) -> Result<Vec<String>> {
        let versions = self.store().versions(&small()?)?;
        Ok(versions.iter().map(|one| one.as_str().to_owned()).collect())
    }

    fn baker(&self) -> Result<Arc<Baker>> {
        let image = FixedImage(ImageParts {
            base: BaseFiles::whole(self.path("base")),
            kernel: self.path("kernel"),
            kernel_version: "6.12".to_owned(),
            modules: vec![self.path("a.ko")],
            container: None,
            taken: None,
        });
        let deps = BakeDeps {
            engine: Arc::clone(&self.world.engine) as _,
            slots: Arc::clone(&self.world.slots) as _,
            store: self.store(),
            images: Arc::new(image.clone()),
            clock: Arc::clone(&self.world.clock) as _,
            agent_program: self.path("agent"),
            make_empty_layer: Arc::new(|path, _| {
                Box::pin(async move { std::fs::write(path, "empty").map_err(Into::into) })
            }),
            limits: BakeLimits::default(),
            effects: Effects::default(),
        };
        let plan = BakePlan {
            catalog: RecipeCatalog::load(Some(&self.path("recipes")))?,
            recipes: Some(self.path("recipes")),
            ordered: OrderedTemplates::new(self.path("ordered")),
            at_start: BTreeSet::from([small()?]),
        };
        Ok(Baker::new(deps, plan, Arc::new(|_| {}), Arc::new(image)))
    }

    /// Starts a node and its baker.
    async fn begin(&self) -> Result<Life> {
        let baker = self.baker()?;
        self.world.use_templates(Arc::clone(&baker) as _);
        let mortal = MortalNode::start(&self.world).await?;
        let users = BakeUsers {
            journal: Journal::open(&self.world.journal_directory())?,
            captures: mortal.node.captures(),
            ledger: mortal.node.ledger(),
            builds: Arc::new(OneBuild),
        };
        let run = Arc::clone(&baker).run(users, CancellationToken::new());
        mortal.spawn(run).context("no runtime")?;
        Ok(Life { mortal, baker })
    }

    /// The same, and waits until the template itself can be used.
    async fn start(&self) -> Result<Life> {
        let life = self.begin().await?;
        until("it is baked", || {
            Ok(life.report()?.state == BakeState::Ready)
        })
        .await?;
        Ok(life)
    }
}

async fn until(what: &str, mut is_true: impl FnMut() -> Result<bool>) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !is_true()? {
        ensure!(Instant::now() < deadline, "{what}: not in time");
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
    Ok(())
}

impl Life {
    fn report(&self) -> Result<TemplateReport> {
        let (reports, name) = (self.baker.reports(), small()?);
        let found = reports.into_iter().find(|report| report.name == name);
        found.context("it is not told")
    }

    fn variant(&self, memory: u64) -> Result<Option<VariantReport>> {
        let size = size(memory)?;
        let variants = self.report()?.variants;
        Ok(variants.into_iter().find(|one| one.size == size))
    }

    /// Has a variant baked and waits for it.
    async fn bake(&self, memory: u64) -> Result<VariantReport> {
        let node = &self.mortal.node;
        node.ensure_variant(&small()?, request(memory)?).await?;
        until("the variant is baked", || {
            Ok(self.variant(memory)?.is_some_and(|one| one.is_usable))
        })
        .await?;
        self.variant(memory)?.context("it is gone")
    }
}

const NO_POOL: PoolTargets = PoolTargets {
    slots: 0,
    engines: 0,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sandbox_of_a_variant_sleeps_forks_and_wakes_over_renewals_and_restarts() -> Result<()> {
    let bakery = Bakery::new(NO_POOL)?;
    let life = bakery.start().await?;
    let (made, taken) = first_use(&life).await?;
    renew(&bakery, &life).await?;
    ensure!(bakery.versions()?.len() == 4, "a bake in use was removed");
    life.mortal.kill().await;
    let life = bakery.start().await?;
    goes_on(&life, &made, &taken).await?;
    // The first bake of the template itself is nobody's any more.
    until("it is removed", || Ok(bakery.versions()?.len() == 3)).await?;
    for number in 1..=5 {
        let id = sandbox(number, None)?.id;
        life.mortal.node.delete_sandbox(&id).await?;
    }
    life.mortal.node.delete_snapshot(&taken.id).await?;
    until("captures are gone", || {
        Ok(bakery.world.captures()?.is_empty())
    })
    .await?;
    life.mortal.kill().await;
    // Nothing needs the variant of before any more, and the one of now stays.
    let life = bakery.start().await?;
    until("it is removed", || Ok(bakery.versions()?.len() == 2)).await?;
    until("the variant was found", || Ok(life.variant(256)?.is_some())).await?;
    life.mortal.kill().await;
    // Its recipe goes, and it goes along.
    std::fs::remove_file(bakery.path("recipes/small.toml"))?;
    let life = bakery.begin().await?;
    until("the variant is removed", || {
        Ok(bakery.versions()?.len() == 1)
    })
    .await?;
    life.mortal.kill().await;
    Ok(())
}

/// The first create of a size, and what is promised and captured of it.
async fn first_use(life: &Life) -> Result<(SandboxReport, SnapshotReport)> {
    let node = &life.mortal.node;
    let early = node.ensure_sandbox(sandbox(1, Some(256))?).await;
    let early = early.err().context("it was there at once")?;
    ensure!(early.code == ErrorCode::TemplateBaking && early.retry_after_ms.is_some());
    let report = life.bake(256).await?;
    ensure!(report.is_awaited && report.bake_ms.is_some(), "{report:?}");
    let before = node.status().await?.memory_committed_mib;
    let made = node.ensure_sandbox(sandbox(1, Some(256))?).await?;
    ensure!((made.memory, made.vcpus) == (size(256)?.memory, size(256)?.vcpus));
    ensure!(!life.variant(256)?.context("it is gone")?.is_awaited);
    let promised = node.status().await?.memory_committed_mib - before;
    ensure!(promised == 256 + limits::ENGINE_OVERHEAD_MIB, "{promised}");
    let own = node.ensure_sandbox(sandbox(2, None)?).await?;
    ensure!(own.memory.get() == 128);
    // Nothing but the sandbox of the variant needs an old bake from then on.
    node.delete_sandbox(&own.id).await?;
    let taken = node.snapshot(&made.id, snapshot("a")?).await?;
    ensure!(taken.size == Some(size(256)?), "{taken:?}");
    node.hibernate(&made.id).await?;
    Ok((made, taken))
}

/// Another recipe: the template and then its variant are baked anew.
async fn renew(bakery: &Bakery, life: &Life) -> Result<()> {
    bakery.write_recipe(2)?;
    let first = life.baker.ready(&small()?)?.version.clone();
    life.baker.order(&small()?, BakeWish::Renew)?;
    until("it is baked anew", || {
        let is_ready = life.report()?.state == BakeState::Ready;
        Ok(is_ready && life.baker.ready(&small()?)?.version != first)
    })
    .await?;
    ensure!(
        life.variant(256)?.is_none(),
        "one of another recipe is used"
    );
    life.bake(256).await?;
    Ok(())
}

/// What sleeps on a bake of before wakes in another life, and so does what was captured of it.
async fn goes_on(life: &Life, made: &SandboxReport, taken: &SnapshotReport) -> Result<()> {
    let node = &life.mortal.node;
    until("the variant was found", || Ok(life.variant(256)?.is_some())).await?;
    let found = life.variant(256)?.context("it is gone")?;
    ensure!(found.is_usable && !found.is_awaited, "{found:?}");
    ensure!(found.bake_ms.is_some(), "it is not kept how long it took");
    let woken = node.wake(&made.id).await?;
    ensure!((woken.state, woken.memory) == (SandboxState::Running, made.memory));
    let mut copy = sandbox(3, None)?;
    copy.from_snapshot = Some(taken.id.clone());
    ensure!(node.ensure_sandbox(copy).await?.memory == made.memory);
    let booted = node.boot_sandbox(&taken.id, sandbox(4, None)?).await?;
    ensure!(booted.memory == made.memory, "not the size of its machine");
    let fresh = node.ensure_sandbox(sandbox(5, Some(256))?).await?;
    ensure!(fresh.memory == made.memory);
    Ok(())
}

fn ordered() -> Result<OrderedTemplate> {
    Ok(OrderedTemplate {
        name: TemplateName::parse("image.1")?,
        description: String::new(),
        source: OrderedSource::Image {
            project: ProjectId::parse("team")?,
            address: "registry.example/a:1".to_owned(),
        },
        memory: MemoryMib::new(128)?,
        vcpus: Vcpus::new(1)?,
        disk: DiskMib::new(64)?,
        starts_entry_point: false,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sizes_that_the_host_cannot_have_are_refused_before_a_bake() -> Result<()> {
    let bakery = Bakery::new(NO_POOL)?;
    let life = bakery.start().await?;
    let node = &life.mortal.node;
    let mut wishes = vec![request(60 * 1024)?];
    let mut many = request(256)?;
    many.size.vcpus = Vcpus::new(9)?;
    wishes.push(many);
    wishes.push(request(200)?);
    for wish in wishes {
        let refused = node.ensure_variant(&small()?, wish.clone()).await;
        let refused = refused
            .err()
            .with_context(|| format!("{wish:?} is baked"))?;
        ensure!(refused.code == ErrorCode::InvalidRequest, "{refused:?}");
    }
    ensure!(life.report()?.variants.is_empty(), "a place was taken");
    let mut large = ordered()?;
    large.memory = MemoryMib::new(60 * 1024)?;
    let mut many = ordered()?;
    many.vcpus = Vcpus::new(9)?;
    for order in [large, many] {
        let refused = node.order_template(order.clone()).await;
        let refused = refused.err().with_context(|| format!("{order:?}"))?;
        ensure!(refused.code == ErrorCode::InvalidRequest, "{refused:?}");
        ensure!(node.find_template(&order.name).await.is_err(), "it is kept");
    }
    node.order_template(ordered()?).await?;
    life.mortal.kill().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engines_are_parked_for_what_was_used_and_for_few() -> Result<()> {
    let bakery = Bakery::new(PoolTargets {
        slots: 0,
        engines: 1,
    })?;
    let life = bakery.start().await?;
    let node = &life.mortal.node;
    let parked = || bakery.world.slots.running().len();
    until("one is parked for the template of the start", || {
        Ok(parked() == 1)
    })
    .await?;
    let sizes: Vec<u64> = (2..)
        .map(|number| 128 * number)
        .take(limits::POOL_TEMPLATES_MAX + 1)
        .collect();
    for memory in &sizes {
        let mut wish = request(*memory)?;
        wish.by = None;
        node.ensure_variant(&small()?, wish).await?;
        until("it is baked", || {
            Ok(life.variant(*memory)?.is_some_and(|one| one.is_usable))
        })
        .await?;
    }
    until("the bakes have ended", || Ok(parked() <= 1)).await?;
    let target = || async { Ok::<_, anyhow::Error>(node.status().await?.pools[0].target) };
    ensure!(target().await? == 1, "somebody parks what nobody used");
    for (number, memory) in (1..).zip(&sizes) {
        let made = node.ensure_sandbox(sandbox(number, Some(*memory))?).await?;
        node.delete_sandbox(&made.id).await?;
        let most = (number as usize).min(limits::POOL_TEMPLATES_MAX);
        ensure!(target().await? == 1 + most as u64);
        until("one more is parked", || Ok(parked() == 1 + most)).await?;
    }
    // The one that was used first has given way: there is nothing parked for it.
    let pools = node.status().await?.pools;
    ensure!(
        pools.len() == 1 && pools[0].parked == pools[0].target,
        "{pools:?}"
    );
    life.mortal.kill().await;
    Ok(())
}

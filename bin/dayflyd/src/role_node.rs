//! The node process: root, because it makes slots. It serves `node-api` and nothing else.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use async_trait::async_trait;
use dayfly_host::HostClock;
use dayfly_host::unix::bind_unix;
use dayfly_installation::{DataDirectory, Instance, runtime, sibling_program};
use dayfly_node::bake::{BakeDeps, BakeLimits, EmptyLayerMaker};
use dayfly_node::baker::{BakePlan, BakeUsers, Baker, BeforeFirstBoot};
use dayfly_node::journal::Journal;
use dayfly_node::slots::{HostSlots, HostSlotsConfig};
use dayfly_node::{
    Effects, Node, NodeConfig, NodePorts, PauseGuard, PoolTargets, RealResources, Reserve,
};
use dayfly_snapshots::{
    ContainerImages, ImageBuilder, ImageCache, ImageParts, OrderedTemplates, RecipeCatalog,
    SnapshotDisks, TemplateStore, Verifier,
};
use dayfly_types::ordered_template::is_ordered_name;
use dayfly_types::{Clock, TemplateName};
use dayfly_vmm::{Accelerator, Engine, SlotProvider};
use dayfly_vmm_qemu::{DiskPace, EngineVersion, QemuEngine, create_empty_layer};
use tokio_util::sync::CancellationToken;

use crate::args::RunArguments;
use crate::bake_display::BakeDisplay;
use crate::egress::Egress;
use crate::engine_builds::EngineBuilds;
use crate::hand_over::HandOver;
use crate::pulse::Voice;
use crate::{container_images, crash_point, engine, engine_builds, pulse, role_control, slow_sync};

const MEMORY_RESERVE_MIB_MIN: u64 = 1024;
const DISK_RESERVE_MIB_MIN: u64 = 1024;

/// Serves until SIGTERM. Sandboxes go on running.
pub(crate) fn run() -> Result<()> {
    let received = HandOver::receive(std::io::stdin())?;
    runtime::block_on(async {
        let voice = pulse::give()?;
        serve(&received.words, &voice).await
    })
}

async fn serve(given: &HandOver, voice: &Voice) -> Result<()> {
    let arguments = &given.settings;
    let stop = runtime::stop_on_signal()?;
    // Engines are orphans of the jail; as their subreaper this process can collect them.
    dayfly_host::process::set_child_subreaper().context("cannot become a subreaper")?;
    let directory = DataDirectory::open(&arguments.data_dir)?;
    let instance = directory
        .instance()?
        .context("the data directory has no instance")?;
    let effects = crash_point::effects_from_environment();
    slow_sync::delay_from_environment();
    let host_slots = open_slots(&directory, &instance)?;
    let slots: Arc<dyn SlotProvider> = Arc::new(host_slots.clone());
    let host = HostEngine::find(&directory, &slots, arguments.disk_pace.pace()).await?;
    let cgroups = host_slots.cgroups();
    let egress = Egress::open(arguments, &directory, &instance, cgroups.clone())?;
    let containers = container_images::open(arguments, &directory, &instance, cgroups, &egress);
    let images = Arc::new(images(arguments, &directory, containers));
    let deps = bake_deps(&directory, &host, &slots, Arc::clone(&images), &effects)?;
    let baker = baker(arguments, &directory, &host, deps, &stop)?;
    let ports = NodePorts {
        engine: Arc::clone(&host.engine),
        slots,
        templates: Arc::clone(&baker) as _,
        clock: Arc::new(HostClock),
        resources: Box::new(RealResources {
            data_directory: directory.root().to_owned(),
        }),
        pause_guard: pause_guard()?,
        egress: egress.gate(),
        network_logs: Arc::clone(&egress.logs),
        egress_spool: Arc::clone(&egress.spool),
        effects,
    };
    let config = node_config(arguments, &directory, &instance, given.restarts)?;
    let journal = Journal::open(&config.journal_directory)?;
    let node = Node::start(config, ports, stop.clone())
        .await
        .context("cannot start the node")?;
    let connected = egress.connected();
    let keeping = egress.keep(&stop);
    connected.await;
    tracing::info!(
        adopted = node.reconciled().adopted,
        failed = node.reconciled().failed,
        removed = node.reconciled().removed,
        kept = node.reconciled().kept,
        orphan_slots = node.reconciled().orphan_slots,
        accelerator = host.accelerator.as_str(),
        isolation = host.accelerator.isolation().as_str(),
        "node ready"
    );
    images.know_snapshots(snapshot_disks(&directory, &node));
    let users = BakeUsers {
        journal,
        captures: node.captures(),
        ledger: node.ledger(),
        builds: Arc::new(EngineBuilds::of(&directory)),
    };
    let baking = tokio::spawn(Arc::clone(&baker).run(users, stop.clone()));
    let listener = listen(&directory.node_socket(), instance.control_uid())?;
    voice.is_ready();
    let stopped = stop.cancelled_owned();
    dayfly_node_api::server::serve(listener, Arc::clone(&node) as _, stopped).await;
    node.stopped().await;
    keeping.join_all().await;
    let baked = baking.await;
    host_slots.close().await;
    baked.context("the bakes ended badly")
}

/// The engine of this host.
#[derive(Debug, Clone)]
struct HostEngine {
    engine: Arc<dyn Engine>,
    accelerator: Accelerator,
    version: EngineVersion,
    record: PathBuf,
    is_probed: bool,
}

impl HostEngine {
    async fn find(
        directory: &DataDirectory,
        slots: &Arc<dyn SlotProvider>,
        pace: DiskPace,
    ) -> Result<Self> {
        let builds = EngineBuilds::of(directory);
        let (version, root) = builds.install().await?;
        let record = engine::probe_file(directory);
        let remembered = engine::remembered_probe(&record, version).map(|probe| probe.accelerator);
        // Without the device there is nothing to probe, and until a kernel is there nothing to
        // probe with.
        let is_probed = remembered.is_some() || !engine::has_device();
        let accelerator = remembered.unwrap_or(Accelerator::Tcg);
        let config = engine_builds::config(root.path, &root.id, version, accelerator);
        let engine = QemuEngine::new(config, Arc::clone(slots)).with_disk_pace(pace);
        let engine = engine.with_kept(builds.kept(accelerator)?);
        Ok(Self {
            engine: Arc::new(engine),
            accelerator,
            version,
            record,
            is_probed,
        })
    }
}

/// Probes the accelerator as soon as there is a kernel to boot. When the answer is another than
/// this process started with, it ends, and the supervisor starts one that knows better: nothing
/// runs yet at that point.
#[derive(Debug)]
struct ProbeFirst {
    host: HostEngine,
    limit: Duration,
    stop: CancellationToken,
}

#[async_trait]
impl BeforeFirstBoot for ProbeFirst {
    async fn image_is_there(&self, parts: &ImageParts) {
        if self.host.is_probed {
            return;
        }
        let HostEngine {
            record, version, ..
        } = &self.host;
        let found = engine::find_accelerator(record, *version, &parts.kernel, self.limit).await;
        match found {
            Ok(accelerator) if accelerator != self.host.accelerator => {
                tracing::info!(
                    accelerator = accelerator.as_str(),
                    "starting again to use it"
                );
                self.stop.cancel();
                // The bake must not go on with the wrong accelerator while the process ends.
                std::future::pending::<()>().await;
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(error = format!("{error:#}"), "using emulation"),
        }
    }
}

fn open_slots(directory: &DataDirectory, instance: &Instance) -> Result<HostSlots> {
    let config = HostSlotsConfig {
        instance: instance.instance.clone(),
        slots_directory: directory.node().join("slots"),
        netns_directory: directory.node().join("netns"),
        first_uid: instance.first_slot_uid(),
        jail_program: sibling_program("dayfly-jail")?,
    };
    HostSlots::open(config).context("cannot open the slots")
}

/// This program itself, under its hidden command.
fn pause_guard() -> Result<PauseGuard> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let arguments = vec![crate::pause_guard::COMMAND.to_owned()];
    Ok(PauseGuard::new(program, arguments))
}

/// A host on which images of containers cannot be read has all else.
fn images(
    arguments: &RunArguments,
    directory: &DataDirectory,
    containers: Result<ContainerImages>,
) -> ImageBuilder {
    let cache = ImageCache::new(
        directory.node().join("images"),
        arguments.image_cache.clone(),
    );
    if let Err(error) = cache.sweep() {
        let error = dayfly_types::error_chain(&error);
        tracing::warn!(error, "cannot sweep unfinished images");
    }
    let builder = ImageBuilder::new(cache);
    match containers {
        Ok(containers) => builder.with_containers(containers),
        Err(error) => {
            let error = format!("{error:#}");
            tracing::error!(error, "images of containers cannot be read here");
            builder
        }
    }
}

fn snapshot_disks(directory: &DataDirectory, node: &Node) -> SnapshotDisks {
    SnapshotDisks {
        captures: node.captures(),
        templates: template_store(directory),
        verifier: Arc::new(Verifier::new()),
    }
}

fn template_store(directory: &DataDirectory) -> TemplateStore {
    TemplateStore::new(directory.node().join("templates"))
}

fn bake_deps(
    directory: &DataDirectory,
    host: &HostEngine,
    slots: &Arc<dyn SlotProvider>,
    images: Arc<ImageBuilder>,
    effects: &Effects,
) -> Result<BakeDeps> {
    Ok(BakeDeps {
        engine: Arc::clone(&host.engine),
        slots: Arc::clone(slots),
        store: template_store(directory),
        images,
        clock: Arc::new(HostClock) as Arc<dyn Clock>,
        agent_program: sibling_program("dayfly-guest")?,
        make_empty_layer: empty_layer_maker(),
        limits: BakeLimits::default(),
        effects: effects.clone(),
    })
}

fn baker(
    arguments: &RunArguments,
    directory: &DataDirectory,
    host: &HostEngine,
    deps: BakeDeps,
    stop: &CancellationToken,
) -> Result<Arc<Baker>> {
    let display = BakeDisplay::new(arguments.log_format);
    let probe = ProbeFirst {
        host: host.clone(),
        limit: Duration::from_secs(arguments.probe_seconds),
        stop: stop.clone(),
    };
    Ok(Baker::new(
        deps,
        bake_plan(arguments, directory)?,
        Arc::new(move |report| display.show(report)),
        Arc::new(probe),
    ))
}

fn empty_layer_maker() -> EmptyLayerMaker {
    Arc::new(|path, size| {
        Box::pin(async move {
            create_empty_layer(Path::new(engine::IMAGE_PROGRAM), &path, size)
                .await
                .map_err(Into::into)
        })
    })
}

fn bake_plan(arguments: &RunArguments, directory: &DataDirectory) -> Result<BakePlan> {
    let ordered = OrderedTemplates::new(directory.node().join("ordered"));
    let catalog = RecipeCatalog::load_with_orders(Some(&directory.recipes()), &ordered)
        .context("cannot read the recipes")?;
    for error in catalog.nameless() {
        tracing::error!(error = %dayfly_types::error_chain(error), "a recipe cannot be used");
    }
    let at_start = match arguments.templates.as_slice() {
        [all] if all == "all" => {
            let of_recipes = catalog.names().filter(|name| !is_ordered_name(name));
            of_recipes.cloned().collect()
        }
        names => names
            .iter()
            .filter(|name| !name.is_empty())
            .filter_map(|name| baked_name(&catalog, name))
            .collect(),
    };
    Ok(BakePlan {
        catalog,
        recipes: Some(directory.recipes()),
        ordered,
        at_start,
    })
}

/// The template behind a name that an operator gave. A mistake in one of them, or in its recipe,
/// keeps nobody from using the others.
fn baked_name(catalog: &RecipeCatalog, text: &str) -> Option<TemplateName> {
    let name = TemplateName::parse(text).ok();
    let found = name.and_then(|name| catalog.real_name(&name).cloned());
    if found.is_none() {
        let names: Vec<&str> = catalog.names().map(TemplateName::as_str).collect();
        let known = names.join(", ");
        tracing::error!(
            template = text,
            known,
            "templates names one that cannot be baked"
        );
    }
    found
}

fn node_config(
    arguments: &RunArguments,
    directory: &DataDirectory,
    instance: &Instance,
    restarts: u64,
) -> Result<NodeConfig> {
    let memory_mib = dayfly_host::memory::host_memory()?.total_bytes >> 20;
    let disk_mib = dayfly_host::files::disk_space(directory.root())?.available_bytes >> 20;
    let reserve = Reserve {
        memory_mib: arguments
            .memory_reserve
            .unwrap_or_else(|| (memory_mib / 10).max(MEMORY_RESERVE_MIB_MIN)),
        disk_mib: arguments
            .disk_reserve
            .unwrap_or_else(|| (disk_mib / 20).max(DISK_RESERVE_MIB_MIN)),
    };
    Ok(NodeConfig {
        node: role_control::node_id(&instance.instance)?,
        journal_directory: directory.node().join("sandboxes"),
        captures_directory: directory.node().join("captures"),
        volumes_directory: directory.node().join("volumes"),
        identity_file: directory.node().join("identity.json"),
        reserve_file: Some(directory.node().join("reserve")),
        housekeeping_period: dayfly_node::HOUSEKEEPING_PERIOD,
        reserve,
        sharing: arguments.sharing.into(),
        pool: PoolTargets {
            slots: arguments.parked_slots,
            engines: arguments.parked_engines,
        },
        allow_shared_emulation: arguments.allow_shared_emulation,
        boot_id: dayfly_host::clock::boot_id().context("cannot read the boot id")?,
        restarts,
    })
}

/// Only root and the control process can connect.
fn listen(path: &Path, control_uid: u32) -> Result<tokio::net::UnixListener> {
    match std::fs::remove_file(path) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).context("cannot remove the old socket"),
    }
    let listener = bind_unix(path).context("cannot listen on the node's socket")?;
    chown(path, Some(0), Some(control_uid)).context("cannot hand over the node's socket")?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660))
        .context("cannot close the node's socket to others")?;
    listener.set_nonblocking(true)?;
    Ok(tokio::net::UnixListener::from_std(listener)?)
}

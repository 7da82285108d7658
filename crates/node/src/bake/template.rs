//! The whole of a bake, from a recipe to a published template.

use std::path::Path;
use std::time::Instant;

use dayfly_snapshots::{
    AgentIdentity, BakedTemplate, BasePartNames, EntryPointUse, ImageParts, ManifestDraft, Offer,
    ProgressReporter, Recipe, RecipeIdentity, ResolvedRecipe, Staging, TakenDisk, VariantIdentity,
    file_names, make_writable_disk, write_initial_ram_disk,
};
use dayfly_types::container_image::MadeImage;
use dayfly_vmm::{BasePart, BootMemory, BootSpec, DiskFiles, MachineSpec};

use super::error::BakeError;
use super::held_slot::HeldSlot;
use super::identity::{agent_hash, engine_identity};
use super::machine::{self, Captured};
use super::ports::BakeDeps;
use super::warm_up::WarmUp;
use crate::effects::Effect;

/// Empty disks in every template, for volumes. With the base and the writable disk, the network,
/// randomness and the agent's ports they fill the eight places that the smallest machine has.
const SPARE_DISKS: u8 = 3;

/// Bakes a template and publishes it as the newest version of its name, or as the newest of a
/// variant. That says how long it took.
///
/// # Errors
/// [`BakeError`]. Nothing is published, and nothing of the machine is left.
///
/// # Cancel safety
/// Dropping the future stops the bake. What it holds is given back in the background.
pub async fn bake_template(
    deps: &BakeDeps,
    recipe: &ResolvedRecipe,
    variant: Option<VariantIdentity>,
    progress: &ProgressReporter,
) -> Result<BakedTemplate, BakeError> {
    let started = Instant::now();
    let image_progress = progress.part(0, 60);
    let parts = deps
        .images
        .ensure(&recipe.image, &image_progress)
        .await
        .map_err(BakeError::Image)?;
    progress.report("preparing disks", 60);
    let mut made = boot_once(deps, recipe, &parts, progress).await;
    if let Err(BakeError::NoAgent { .. }) = made {
        // A kernel under emulation now and then hangs while it measures its clocks, on a host whose
        // processors are taken away in between. A second boot is cheap beside a failed bake.
        tracing::warn!(template = %recipe.recipe.name, "no agent came up; booting once more");
        made = boot_once(deps, recipe, &parts, progress).await;
    }
    let (machine, captured) = made?;
    progress.report("publishing", 94);
    let variant = variant.map(|variant| VariantIdentity {
        bake_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        ..variant
    });
    let template = publish(deps, recipe, variant, &parts, machine, captured).await?;
    progress.report("ready", 100);
    let seconds = started.elapsed().as_secs();
    let (name, version) = (&recipe.recipe.name, template.version());
    let size = recipe.size();
    tracing::info!(template = %name, %version, %size, seconds, "template baked");
    Ok(template)
}

async fn boot_once(
    deps: &BakeDeps,
    recipe: &ResolvedRecipe,
    parts: &ImageParts,
    progress: &ProgressReporter,
) -> Result<(MachineSpec, Captured), BakeError> {
    let (staging, base_parts) = prepare(deps, recipe, parts).await?;
    let spec = boot_spec(recipe, parts, &staging, base_parts);
    let what = WarmUp {
        recipe: &recipe.recipe,
        container: parts.container.as_ref(),
    };
    let captured = run_machine(deps, what, &spec, staging, &progress.part(65, 94)).await?;
    Ok((spec.machine, captured))
}

/// Puts everything that a boot needs into one new directory.
async fn prepare(
    deps: &BakeDeps,
    recipe: &ResolvedRecipe,
    parts: &ImageParts,
) -> Result<(Staging, Vec<BasePart>), BakeError> {
    let (store, name) = (deps.store.clone(), recipe.recipe.name.clone());
    let (parts, agent) = (parts.clone(), deps.agent_program.clone());
    let effects = deps.effects.clone();
    let has_taken_disk = parts.taken.is_some();
    let (staging, base_parts) = blocking(move || {
        let staging = effects
            .around(Effect::TemplateBegin, || store.begin(&name))
            .map_err(BakeError::Stage)?;
        let base_parts = staging.link_base(&parts.base).map_err(BakeError::Stage)?;
        staging
            .link(&parts.kernel, file_names::KERNEL)
            .map_err(BakeError::Stage)?;
        if let Some(TakenDisk { lowest, layer }) = &parts.taken {
            let files = [
                (lowest, file_names::LOWEST_LAYER),
                (layer, file_names::TAKEN_LAYER),
            ];
            for (file, name) in files {
                staging.link(file, name).map_err(BakeError::Stage)?;
            }
        }
        let initial_ram_disk = staging.path(file_names::INITIAL_RAM_DISK);
        write_initial_ram_disk(&initial_ram_disk, &agent, &parts.modules, &parts.defaults())
            .map_err(BakeError::InitialRamDisk)?;
        Ok((staging, base_parts))
    })
    .await?;
    let size = recipe.recipe.disk;
    if !has_taken_disk {
        make_writable_disk(&staging.path(file_names::LOWEST_LAYER), size)
            .await
            .map_err(BakeError::WritableDisk)?;
    }
    (deps.make_empty_layer)(staging.path(file_names::EMPTY_LAYER), size)
        .await
        .map_err(BakeError::EmptyLayer)?;
    Ok((staging, base_parts))
}

/// The layers that a bake begins with, lowest first.
fn first_layers(parts: &ImageParts) -> Vec<&'static str> {
    let taken = parts.taken.as_ref().map(|_| file_names::TAKEN_LAYER);
    std::iter::once(file_names::LOWEST_LAYER)
        .chain(taken)
        .collect()
}

fn boot_spec(
    recipe: &ResolvedRecipe,
    parts: &ImageParts,
    staging: &Staging,
    base_parts: Vec<BasePart>,
) -> BootSpec {
    let layers = first_layers(parts).into_iter();
    BootSpec {
        machine: MachineSpec {
            memory: recipe.recipe.memory,
            vcpus: recipe.recipe.vcpus,
            disk: recipe.recipe.disk,
            spare_disks: SPARE_DISKS,
        },
        kernel: staging.path(file_names::KERNEL),
        initial_ram_disk: staging.path(file_names::INITIAL_RAM_DISK),
        disks: DiskFiles {
            base: staging.path(file_names::BASE_IMAGE),
            base_parts,
            sealed: layers.map(|name| staging.path(name)).collect(),
            empty_layer: staging.path(file_names::EMPTY_LAYER),
        },
        memory: BootMemory::Image,
        disk: None,
        volumes: Vec::new(),
    }
}

/// Runs the machine in a slot and gives the slot back, whatever comes of it.
async fn run_machine(
    deps: &BakeDeps,
    what: WarmUp<'_>,
    spec: &BootSpec,
    staging: Staging,
    progress: &ProgressReporter,
) -> Result<Captured, BakeError> {
    let held = HeldSlot::acquire(&deps.slots, deps.limits.slot).await?;
    let limit = deps.limits.machine;
    let work = machine::boot_and_capture(deps, held.slot(), what, spec, staging, progress);
    let outcome = tokio::time::timeout(limit, work).await;
    held.release().await;
    outcome.unwrap_or(Err(BakeError::TimedOut(limit)))
}

async fn publish(
    deps: &BakeDeps,
    recipe: &ResolvedRecipe,
    variant: Option<VariantIdentity>,
    parts: &ImageParts,
    machine: MachineSpec,
    captured: Captured,
) -> Result<BakedTemplate, BakeError> {
    let draft = ManifestDraft {
        name: recipe.recipe.name.clone(),
        project: None,
        parent: None,
        recipe: RecipeIdentity {
            version: recipe.recipe.version,
            hash: recipe.hash(),
        },
        variant,
        offer: offer(&recipe.recipe, parts.container.as_ref()),
        created_at: deps.clock.wall(),
        machine,
        engine: engine_identity(deps.engine.capabilities()),
        kernel_version: parts.kernel_version.clone(),
        agent: AgentIdentity {
            protocol_generation: captured.protocol_generation,
            hash: hash_agent(&deps.agent_program).await?,
        },
        sealed_layers: first_layers(parts)
            .into_iter()
            .chain([file_names::BAKED_LAYER])
            .map(str::to_owned)
            .collect(),
        base_parts: BasePartNames::of(parts.base.count()),
    };
    let (store, staging) = (deps.store.clone(), captured.staging);
    let effects = deps.effects.clone();
    blocking(move || {
        let publish = || store.publish(staging, draft);
        let published = effects.around(Effect::TemplatePublish, publish);
        published.map_err(BakeError::Publish)
    })
    .await
}

/// What is kept of a recipe that may be another, or gone, when this bake is still used.
pub(crate) fn offer(recipe: &Recipe, container: Option<&MadeImage>) -> Offer {
    let is_started = recipe.entry_point == EntryPointUse::Start;
    let entry_point = container.filter(|_| is_started);
    Offer {
        description: recipe.description.clone(),
        run: recipe.run,
        contexts: recipe.contexts.clone(),
        start: recipe.start.clone(),
        entry_point: entry_point.map_or_else(Vec::new, MadeImage::program),
        image: container.cloned(),
    }
}

async fn hash_agent(program: &Path) -> Result<String, BakeError> {
    let program = program.to_owned();
    blocking(move || agent_hash(&program).map_err(BakeError::Agent)).await
}

/// Runs work on the disk where it may block.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BakeError> + Send + 'static,
) -> Result<T, BakeError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or(Err(BakeError::Stopped))
}

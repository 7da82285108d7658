//! What is left after a bake that went wrong. The way that goes right needs a guest with an agent
//! and is tested with real machines.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use dayfly_snapshots::{
    BaseFiles, ImageError, ImageParts, ImageRecipe, ProgressReporter, RecipeCatalog,
    ResolvedRecipe, TemplateStore,
};
use dayfly_testkit::{EngineOperation, FakeEngine, FakeSlots, Fault, SlotOperation, TestClock};
use dayfly_types::TemplateName;
use dayfly_vmm::{SlotProvider, VmExit};

use super::*;
use crate::effects::Effects;

/// Long enough for a loaded machine, never waited for in full by a test that passes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Parts that any file will do for, since nothing boots them.
#[derive(Debug)]
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

struct World {
    directory: tempfile::TempDir,
    slots: Arc<FakeSlots>,
    engine: Arc<FakeEngine>,
    deps: BakeDeps,
    recipe: ResolvedRecipe,
}

fn world() -> World {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, name).unwrap();
        path
    };
    let parts = ImageParts {
        base: BaseFiles::whole(file("base")),
        kernel: file("kernel"),
        kernel_version: "6.12".to_owned(),
        modules: vec![file("a.ko")],
        container: None,
        taken: None,
    };
    let slots = Arc::new(FakeSlots::new().unwrap());
    let engine = Arc::new(FakeEngine::with_guest(
        Arc::clone(&slots),
        Arc::new(|_sockets| Box::pin(std::future::pending())),
    ));
    let limits = BakeLimits {
        boot: Duration::from_millis(300),
        ..BakeLimits::default()
    };
    let deps = BakeDeps {
        engine: engine.clone(),
        slots: slots.clone(),
        store: TemplateStore::new(directory.path().join("templates")),
        images: Arc::new(FixedImage(parts)),
        clock: Arc::new(TestClock::default()),
        agent_program: file("agent"),
        make_empty_layer: Arc::new(|path, _| {
            Box::pin(async move { std::fs::write(path, "empty").map_err(Into::into) })
        }),
        limits,
        effects: Effects::default(),
    };
    let recipes = directory.path().join("recipes");
    std::fs::create_dir(&recipes).unwrap();
    let text = "name = 'small'\nversion = 1\nmemory_mib = 128\nvcpus = 1\ndisk_mib = 64\n";
    std::fs::write(recipes.join("small.toml"), text).unwrap();
    let catalog = RecipeCatalog::load(Some(&recipes)).unwrap();
    let recipe = catalog.get(&name()).unwrap().clone();
    World {
        directory,
        slots,
        engine,
        deps,
        recipe,
    }
}

fn name() -> TemplateName {
    TemplateName::parse("small").unwrap()
}

impl World {
    async fn bake(&self) -> BakeError {
        let silent = ProgressReporter::silent();
        let bake = bake_template(&self.deps, &self.recipe, None, &silent);
        tokio::time::timeout(PATIENCE, bake)
            .await
            .unwrap()
            .unwrap_err()
    }

    /// Waits until nothing is left of the bake.
    async fn settle(&self) {
        let wait = async {
            while !self.slots.list().await.unwrap().is_empty() || !self.slots.running().is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, wait)
            .await
            .expect("the slot is given back");
        assert_eq!(self.deps.store.versions(&name()).unwrap(), []);
        let staging = self.directory.path().join("templates/.staging");
        assert_eq!(entries(&staging), 0);
    }
}

fn entries(directory: &Path) -> usize {
    std::fs::read_dir(directory).map_or(0, Iterator::count)
}

#[tokio::test]
async fn refused_boot_leaves_nothing() {
    let world = world();
    world
        .engine
        .faults()
        .order(EngineOperation::Boot, 1, Fault::Fail);
    let error = world.bake().await;
    assert!(matches!(error, BakeError::Boot(_)), "{error:?}");
    world.settle().await;
}

#[tokio::test]
async fn silent_guest_is_given_up_with_its_console() {
    let world = world();
    let error = world.bake().await;
    assert!(matches!(error, BakeError::NoAgent { .. }), "{error:?}");
    world.settle().await;
}

#[tokio::test]
async fn silent_guest_is_booted_once_more() {
    let world = world();
    world
        .engine
        .faults()
        .order(EngineOperation::Boot, 2, Fault::Fail);
    let error = world.bake().await;
    assert!(matches!(error, BakeError::Boot(_)), "{error:?}");
    world.settle().await;
}

#[tokio::test]
async fn machine_that_ends_is_noticed_at_once() {
    let mut world = world();
    world.deps.limits.boot = PATIENCE * 2;
    let end_it = async {
        loop {
            if let Some(process) = world.slots.running().first() {
                world.slots.end(*process, VmExit::Exited { code: 1 });
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let (error, ()) = tokio::join!(world.bake(), end_it);
    let noticed = matches!(error, BakeError::Ended { .. } | BakeError::Boot(_));
    assert!(noticed, "{error:?}");
    world.settle().await;
}

#[tokio::test]
async fn abandoned_bake_gives_its_slot_back() {
    let world = world();
    world
        .engine
        .faults()
        .order(EngineOperation::Boot, 1, Fault::Hang);
    {
        let silent = ProgressReporter::silent();
        let bake = bake_template(&world.deps, &world.recipe, None, &silent);
        tokio::pin!(bake);
        let booting = async {
            while world.slots.running().is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            _ = &mut bake => panic!("the boot hangs"),
            () = booting => {}
        }
    }
    world.settle().await;
}

#[tokio::test]
async fn slow_machine_is_stopped() {
    let mut world = world();
    world.deps.limits.machine = Duration::from_millis(200);
    world
        .engine
        .faults()
        .order(EngineOperation::Boot, 1, Fault::Hang);
    let error = world.bake().await;
    assert!(matches!(error, BakeError::TimedOut(_)), "{error:?}");
    world.settle().await;
}

#[tokio::test]
async fn no_slot_is_an_error_and_nothing_is_staged() {
    let world = world();
    world
        .slots
        .faults()
        .order(SlotOperation::Acquire, 1, Fault::Fail);
    let error = world.bake().await;
    assert!(matches!(error, BakeError::Slot(_)), "{error:?}");
    world.settle().await;
}

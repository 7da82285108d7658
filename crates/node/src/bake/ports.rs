//! What a bake is given.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use dayfly_snapshots::{
    ImageBuilder, ImageError, ImageParts, ImageRecipe, ProgressReporter, TemplateStore,
};
use dayfly_types::{Clock, DiskMib};
use dayfly_vmm::{Engine, SlotProvider};

use crate::effects::{Effects, ObservedEngine, ObservedSlots};

/// Makes an empty disk layer of the given size at the given path, in the engine's own format.
pub type EmptyLayerMaker = Arc<
    dyn Fn(
            PathBuf,
            DiskMib,
        )
            -> Pin<Box<dyn Future<Output = Result<(), Box<dyn Error + Send + Sync>>> + Send>>
        + Send
        + Sync,
>;

/// Where image parts come from. The real one builds them, which needs root and minutes.
#[async_trait]
pub trait ImageProvider: Send + Sync + fmt::Debug + 'static {
    /// Finds or builds the parts of an image.
    async fn ensure(
        &self,
        image: &ImageRecipe,
        progress: &ProgressReporter,
    ) -> Result<ImageParts, ImageError>;

    /// Drops disks that were made for one template and that none of `needed` is. Blocks.
    fn remove_unneeded(&self, _needed: &[&ImageRecipe]) {}
}

#[async_trait]
impl ImageProvider for ImageBuilder {
    async fn ensure(
        &self,
        image: &ImageRecipe,
        progress: &ProgressReporter,
    ) -> Result<ImageParts, ImageError> {
        Self::ensure(self, image, progress).await
    }

    fn remove_unneeded(&self, needed: &[&ImageRecipe]) {
        Self::remove_unneeded(self, needed);
    }
}

/// The ports of a bake.
#[derive(Clone)]
pub struct BakeDeps {
    pub engine: Arc<dyn Engine>,
    pub slots: Arc<dyn SlotProvider>,
    pub store: TemplateStore,
    pub images: Arc<dyn ImageProvider>,
    pub clock: Arc<dyn Clock>,
    /// The guest agent's static binary on the host.
    pub agent_program: PathBuf,
    pub make_empty_layer: EmptyLayerMaker,
    pub limits: BakeLimits,
    pub effects: Effects,
}

impl BakeDeps {
    /// With a point around each effect of the engine and the slots.
    #[must_use]
    pub(crate) fn observed(mut self) -> Self {
        let effects = &self.effects;
        self.engine = Arc::new(ObservedEngine::new(self.engine, effects.clone()));
        self.slots = Arc::new(ObservedSlots::new(self.slots, effects.clone()));
        self
    }
}

/// How long the parts of a bake may take. Emulated machines set the figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BakeLimits {
    /// From the start of the engine to the agent's first answer.
    pub boot: Duration,
    /// One command of the recipe.
    pub command: Duration,
    /// Everything between taking the slot and giving it back.
    pub machine: Duration,
    /// Taking the slot, and giving it back.
    pub slot: Duration,
    /// All of a bake that a project has ordered, with fetching its image.
    pub ordered: Duration,
}

impl Default for BakeLimits {
    fn default() -> Self {
        Self {
            boot: dayfly_types::limits::BOOT_DEADLINE,
            command: Duration::from_secs(15 * 60),
            machine: Duration::from_secs(60 * 60),
            slot: Duration::from_secs(60),
            ordered: dayfly_types::limits::ORDERED_BAKE_DEADLINE,
        }
    }
}

impl fmt::Debug for BakeDeps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BakeDeps")
            .field("engine", &self.engine)
            .field("slots", &self.slots)
            .field("store", &self.store)
            .field("agent_program", &self.agent_program)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

//! Builds the parts of a template that do not depend on a boot, or finds them in the cache.

use std::path::{Path, PathBuf};

use tokio::sync::Mutex;

use crate::debian::RELEASE;
use crate::image_cache::{CacheEntry, CacheError, ImageCache, ImageKey};
use crate::kernel::{self, KernelError};
use crate::modules;
use crate::progress::ProgressReporter;
use crate::recipe::ImageRecipe;
use crate::root::{self, RootError};
use crate::sources::Sources;
use crate::staging::StagingError;
use crate::template::file_names;

/// Raised when the same recipe would be built differently, so that cached images are not reused
/// and templates are baked anew.
pub(crate) const BUILDER_VERSION: u32 = 2;
/// The same for the kernel and its modules, which do not depend on a recipe.
const KERNEL_BUILDER_VERSION: u32 = 1;
const HOST_SOURCES: &str = "/etc/apt";

/// Why the parts could not be had.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    #[error("cannot stage the image")]
    Stage(#[source] StagingError),
    #[error("cannot build the root image")]
    Root(#[source] RootError),
    #[error("cannot get a kernel")]
    Kernel(#[source] KernelError),
    #[error("cannot keep the image")]
    Keep(#[source] CacheError),
    #[error("the cached image {key} does not hold what it should")]
    Incomplete { key: ImageKey },
    #[error("the image work was stopped")]
    Stopped,
}

/// Where the parts of an image are. They are sealed, and may be linked to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageParts {
    pub base: PathBuf,
    pub kernel: PathBuf,
    pub kernel_version: String,
    /// In the order of loading.
    pub modules: Vec<PathBuf>,
}

/// Builds images, one at a time.
#[derive(Debug)]
pub struct ImageBuilder {
    cache: ImageCache,
    host_sources: PathBuf,
    /// Two builds at once would only share the line and the disk, and could be of the same image.
    turn: Mutex<()>,
}

impl ImageBuilder {
    #[must_use]
    pub fn new(cache: ImageCache) -> Self {
        Self {
            cache,
            host_sources: PathBuf::from(HOST_SOURCES),
            turn: Mutex::new(()),
        }
    }

    /// Finds or builds the parts for `image`. Needs root.
    ///
    /// # Errors
    /// [`ImageError`]. What was finished stays in the cache.
    ///
    /// # Cancel safety
    /// Dropping the future kills the programs that it runs and removes what they made.
    pub async fn ensure(
        &self,
        image: &ImageRecipe,
        progress: &ProgressReporter,
    ) -> Result<ImageParts, ImageError> {
        let _turn = self.turn.lock().await;
        let sources = Sources::of_host(&self.host_sources, RELEASE);
        let kernel = self.ensure_kernel(&sources, &progress.part(0, 20)).await?;
        let root = self
            .ensure_root(image, &sources, &progress.part(20, 100))
            .await?;
        progress.report("image ready", 100);
        parts(kernel, root)
    }

    async fn ensure_kernel(
        &self,
        sources: &Sources,
        progress: &ProgressReporter,
    ) -> Result<Keyed, ImageError> {
        let key = kernel_key();
        if let Some(entry) = self.open(&key).await? {
            return Ok(Keyed { key, entry });
        }
        let work = self.cache.stage().map_err(ImageError::Stage)?;
        let staging = self.cache.stage().map_err(ImageError::Stage)?;
        let fetched = kernel::fetch(sources, work.path(), staging.path(), progress)
            .await
            .map_err(ImageError::Kernel)?;
        let (cache, label) = (self.cache.clone(), fetched.version);
        let names = fetched.files;
        let wanted = key.clone();
        blocking(move || {
            // The unpacked package is large; it goes before anything is added.
            drop(work);
            let entry = cache
                .commit(&wanted, staging, &label, names)
                .map_err(ImageError::Keep)?;
            Ok(Keyed { key: wanted, entry })
        })
        .await?
    }

    async fn ensure_root(
        &self,
        image: &ImageRecipe,
        sources: &Sources,
        progress: &ProgressReporter,
    ) -> Result<Keyed, ImageError> {
        let key = root_key(image);
        if let Some(entry) = self.open(&key).await? {
            return Ok(Keyed { key, entry });
        }
        let work = self.cache.stage().map_err(ImageError::Stage)?;
        let staging = self.cache.stage().map_err(ImageError::Stage)?;
        let target = staging.path().join(file_names::BASE_IMAGE);
        root::build(image, sources, work.path(), &target, progress)
            .await
            .map_err(ImageError::Root)?;
        let cache = self.cache.clone();
        blocking(move || {
            drop(work);
            let names = vec![file_names::BASE_IMAGE.to_owned()];
            let entry = cache
                .commit(&key, staging, RELEASE, names)
                .map_err(ImageError::Keep)?;
            Ok(Keyed { key, entry })
        })
        .await?
    }

    async fn open(&self, key: &ImageKey) -> Result<Option<CacheEntry>, ImageError> {
        let (cache, key) = (self.cache.clone(), key.clone());
        blocking(move || cache.open(&key)).await
    }
}

/// The name of the entry that every template takes its kernel from.
pub(crate) fn kernel_key() -> ImageKey {
    ImageKey::new(
        "kernel",
        &(KERNEL_BUILDER_VERSION, RELEASE, modules::WANTED),
    )
}

/// The name of the entry with the disk of an image.
pub(crate) fn root_key(image: &ImageRecipe) -> ImageKey {
    ImageKey::new("root", &(BUILDER_VERSION, RELEASE, image))
}

/// An entry and the key under which it was found.
#[derive(Debug)]
struct Keyed {
    key: ImageKey,
    entry: CacheEntry,
}

fn parts(kernel: Keyed, root: Keyed) -> Result<ImageParts, ImageError> {
    let named = |path: &Path, name: &str| path.file_name().is_some_and(|found| found == name);
    let base = root
        .entry
        .files
        .into_iter()
        .find(|path| named(path, file_names::BASE_IMAGE));
    let Some(base) = base else {
        return Err(ImageError::Incomplete { key: root.key });
    };
    let mut files = kernel.entry.files.into_iter();
    match files.next() {
        Some(first) if named(&first, kernel::KERNEL_FILE) => Ok(ImageParts {
            base,
            kernel: first,
            kernel_version: kernel.entry.label,
            modules: files.collect(),
        }),
        _ => Err(ImageError::Incomplete { key: kernel.key }),
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ImageError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| ImageError::Stopped)
}

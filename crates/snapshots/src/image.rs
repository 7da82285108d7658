//! Builds the parts of a template that do not depend on a boot, or finds them in the cache.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use dayfly_types::GuestDefaults;
use dayfly_types::container_image::MadeImage;
use tokio::sync::Mutex;

use crate::base_disk::BaseFiles;
use crate::container::{ContainerError, ContainerImages};
use crate::debian::RELEASE;
use crate::files;
use crate::image_address::ImageAddress;
use crate::image_cache::{CacheEntry, CacheError, ImageCache, ImageKey};
use crate::kernel::{self, KernelError};
use crate::modules;
use crate::progress::ProgressReporter;
use crate::recipe::{ContainerImage, ImageRecipe, PackageImage, SnapshotImage};
use crate::root::{self, RootError};
use crate::snapshot_disk::{SnapshotDiskError, SnapshotDisks};
use crate::sources::Sources;
use crate::staging::StagingError;
use crate::template::file_names;

/// Raised when the same recipe would be built differently, so that cached images are not reused
/// and templates are baked anew.
pub(crate) const BUILDER_VERSION: u32 = 2;
/// The same for the kernel and its modules, which do not depend on a recipe.
const KERNEL_BUILDER_VERSION: u32 = 1;
/// And for disks of images of containers.
const CONTAINER_BUILDER_VERSION: u32 = 1;
/// Beside the disk of such an image: what it says of its use.
pub(crate) const MADE_IMAGE_FILE: &str = "image.json";
const CONTAINER_KIND: &str = "container";
const SNAPSHOT_KIND: &str = "snapshot";
const HOST_SOURCES: &str = "/etc/apt";

/// Why the parts could not be had.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    #[error("cannot stage the image")]
    Stage(#[source] StagingError),
    #[error("cannot build the root image")]
    Root(#[source] RootError),
    #[error("cannot make a disk of the image")]
    Container(#[source] ContainerError),
    #[error("cannot take over the disk of the snapshot")]
    Snapshot(#[source] SnapshotDiskError),
    #[error("cannot write or read what the image says of itself")]
    MadeImage(#[source] io::Error),
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
    pub base: BaseFiles,
    pub kernel: PathBuf,
    pub kernel_version: String,
    /// In the order of loading.
    pub modules: Vec<PathBuf>,
    /// What is said of the use of the disk; nothing for a disk of packages.
    pub container: Option<MadeImage>,
    /// What the writable disk begins with, if it is not empty.
    pub taken: Option<TakenDisk>,
}

/// The writable disk of a sandbox, as it was when its snapshot was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenDisk {
    /// The empty raw disk that the bake of its template began with.
    pub lowest: PathBuf,
    /// All that was written since.
    pub layer: PathBuf,
}

impl ImageParts {
    /// What commands start with in a guest with this disk.
    #[must_use]
    pub fn defaults(&self) -> GuestDefaults {
        let container = self.container.as_ref();
        container.map_or_else(GuestDefaults::default, |image| image.defaults.clone())
    }
}

/// Builds images, one at a time.
#[derive(Debug)]
pub struct ImageBuilder {
    cache: ImageCache,
    host_sources: PathBuf,
    containers: Option<ContainerImages>,
    snapshots: OnceLock<SnapshotDisks>,
    /// Two builds at once would only share the line and the disk, and could be of the same image.
    turn: Mutex<()>,
}

impl ImageBuilder {
    #[must_use]
    pub fn new(cache: ImageCache) -> Self {
        Self {
            cache,
            host_sources: PathBuf::from(HOST_SOURCES),
            containers: None,
            snapshots: OnceLock::new(),
            turn: Mutex::new(()),
        }
    }

    /// One that makes disks of images of containers too.
    #[must_use]
    pub fn with_containers(mut self, containers: ContainerImages) -> Self {
        self.containers = Some(containers);
        self
    }

    /// From now on it takes over disks of snapshots too. Where these are is known later than what
    /// bakes templates, and does not change.
    pub fn know_snapshots(&self, snapshots: SnapshotDisks) {
        let _ = self.snapshots.set(snapshots);
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
        let disk_progress = progress.part(20, 100);
        let root = match image {
            ImageRecipe::Packages(packages) => {
                self.ensure_root(packages, &sources, &disk_progress).await?
            }
            ImageRecipe::Container(container) => {
                self.ensure_container(container, &disk_progress).await?
            }
            ImageRecipe::Snapshot(snapshot) => self.ensure_snapshot(snapshot).await?,
        };
        let mut found = blocking(move || parts(kernel, root)).await??;
        if let ImageRecipe::Snapshot(snapshot) = image {
            found.container = Some(snapshot.about.as_ref().clone());
        }
        progress.report("image ready", 100);
        Ok(found)
    }

    /// Drops the disks of images and snapshots that none of `needed` is. Disks that were built from
    /// packages stay: they took minutes, and there are few. Not while something is built. Blocks.
    pub fn remove_unneeded(&self, needed: &[&ImageRecipe]) {
        let needed: Vec<ImageKey> = needed.iter().map(|image| disk_key(image)).collect();
        for kind in [CONTAINER_KIND, SNAPSHOT_KIND] {
            self.cache.remove_others(kind, &needed);
        }
    }

    async fn ensure_container(
        &self,
        image: &ContainerImage,
        progress: &ProgressReporter,
    ) -> Result<Keyed, ImageError> {
        let key = container_key(image);
        let cache = match image.image {
            ImageAddress::Registry(_) => self.cache.clone(),
            // A path of this host says nothing on another.
            ImageAddress::Layout { .. } | ImageAddress::Archive { .. } => self.cache.alone(),
        };
        if let Some(entry) = open(&cache, &key).await? {
            return Ok(Keyed { key, entry });
        }
        let containers = self.containers.as_ref();
        let containers = containers.ok_or(ImageError::Container(ContainerError::NotHere))?;
        let work = self.cache.stage().map_err(ImageError::Stage)?;
        let staging = self.cache.stage().map_err(ImageError::Stage)?;
        let made = containers.make(image, work.path(), staging.path(), progress);
        let (made, mut names) = made.await.map_err(ImageError::Container)?;
        blocking(move || {
            drop(work);
            let text = serde_json::to_vec_pretty(&made).map_err(io::Error::from);
            let about = staging.path().join(MADE_IMAGE_FILE);
            text.and_then(|text| files::write_new(&about, &text, files::SEALED_MODE))
                .map_err(ImageError::MadeImage)?;
            names.push(MADE_IMAGE_FILE.to_owned());
            let entry = cache
                .commit(&key, staging, &made.digest, names)
                .map_err(ImageError::Keep)?;
            Ok(Keyed { key, entry })
        })
        .await?
    }

    async fn ensure_snapshot(&self, image: &SnapshotImage) -> Result<Keyed, ImageError> {
        let key = snapshot_key(image);
        // What is in a snapshot is its project's, and of this host.
        let cache = self.cache.alone();
        if let Some(entry) = open(&cache, &key).await? {
            return Ok(Keyed { key, entry });
        }
        let snapshots = self.snapshots.get().cloned();
        let snapshots = snapshots.ok_or(ImageError::Snapshot(SnapshotDiskError::NotHere))?;
        let staging = cache.stage().map_err(ImageError::Stage)?;
        let image = image.clone();
        blocking(move || {
            let taken = snapshots.take(&image, staging.path());
            let mut names = taken.map_err(ImageError::Snapshot)?;
            names.extend([file_names::LOWEST_LAYER, file_names::TAKEN_LAYER].map(str::to_owned));
            let entry = cache
                .commit(&key, staging, image.snapshot.as_str(), names)
                .map_err(ImageError::Keep)?;
            Ok(Keyed { key, entry })
        })
        .await?
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
        image: &PackageImage,
        sources: &Sources,
        progress: &ProgressReporter,
    ) -> Result<Keyed, ImageError> {
        let key = package_key(image);
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
        open(&self.cache, key).await
    }
}

async fn open(cache: &ImageCache, key: &ImageKey) -> Result<Option<CacheEntry>, ImageError> {
    let (cache, key) = (cache.clone(), key.clone());
    blocking(move || cache.open(&key)).await
}

/// The name of the entry that every template takes its kernel from.
pub(crate) fn kernel_key() -> ImageKey {
    ImageKey::new(
        "kernel",
        &(KERNEL_BUILDER_VERSION, RELEASE, modules::wanted()),
    )
}

/// The name of the entry with the disk of an image.
pub(crate) fn disk_key(image: &ImageRecipe) -> ImageKey {
    match image {
        ImageRecipe::Packages(image) => package_key(image),
        ImageRecipe::Container(image) => container_key(image),
        ImageRecipe::Snapshot(image) => snapshot_key(image),
    }
}

fn package_key(image: &PackageImage) -> ImageKey {
    ImageKey::new("root", &(BUILDER_VERSION, RELEASE, image))
}

fn container_key(image: &ContainerImage) -> ImageKey {
    ImageKey::new(CONTAINER_KIND, &(CONTAINER_BUILDER_VERSION, image))
}

/// What is said of the use of the disk changes nothing on it.
fn snapshot_key(image: &SnapshotImage) -> ImageKey {
    ImageKey::new(SNAPSHOT_KIND, &(&image.project, &image.snapshot))
}

/// An entry and the key under which it was found.
#[derive(Debug)]
struct Keyed {
    key: ImageKey,
    entry: CacheEntry,
}

fn parts(kernel: Keyed, root: Keyed) -> Result<ImageParts, ImageError> {
    let named = |path: &Path, name: &str| path.file_name().is_some_and(|found| found == name);
    let base = BaseFiles::among(&root.entry.files);
    let mut about = None;
    let (mut lowest, mut layer) = (None, None);
    for path in root.entry.files {
        if named(&path, file_names::LOWEST_LAYER) {
            lowest = Some(path);
        } else if named(&path, file_names::TAKEN_LAYER) {
            layer = Some(path);
        } else if named(&path, MADE_IMAGE_FILE) {
            about = Some(read_made(&path).map_err(ImageError::MadeImage)?);
        }
    }
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
            container: about,
            taken: lowest
                .zip(layer)
                .map(|(lowest, layer)| TakenDisk { lowest, layer }),
        }),
        _ => Err(ImageError::Incomplete { key: kernel.key }),
    }
}

fn read_made(path: &Path) -> io::Result<MadeImage> {
    serde_json::from_slice(&std::fs::read(path)?).map_err(io::Error::from)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ImageError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| ImageError::Stopped)
}

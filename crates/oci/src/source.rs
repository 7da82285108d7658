//! Where an image comes from: the one front of everything that finds images and gives their layers.

use std::path::{Path, PathBuf};

use tokio::sync::watch;
use tokio::task::{JoinError, spawn_blocking};

use crate::archive::{self, ImageArchive};
use crate::blob::{FetchBlobError, write_verified};
use crate::disk::{ImageFiles as _, OpenBlob, ReadImageError, blob_name};
use crate::document::{Image, InvalidDocument, LayerBlob};
use crate::layout::{self, LayoutDirectory};
use crate::registry::{RegistryClient, RegistryError};

/// Why no image was found.
#[derive(Debug, thiserror::Error)]
pub enum FindImageError {
    #[error("the image on this host cannot be read")]
    Disk(#[from] ReadImageError),
    #[error("the registry did not give the image")]
    Registry(#[from] RegistryError),
    #[error("a document of the image is refused")]
    Document(#[from] InvalidDocument),
    #[error("the search for the image was given up")]
    GivenUp,
}

/// Where an image is.
#[derive(Debug)]
pub enum ImageOrigin {
    Registry(Box<RegistryClient>),
    /// An OCI layout in a directory of this host.
    Layout {
        path: PathBuf,
        /// The name of the image in the layout. None when it has only one.
        tag: Option<String>,
    },
    /// A tar of this host, as `docker save` writes it, or of an OCI layout.
    Archive {
        path: PathBuf,
        /// The name of the image in the archive. None when it has only one.
        name: Option<String>,
    },
}

impl ImageOrigin {
    /// Finds the image. Its config is verified; its layers were not looked at yet.
    ///
    /// # Errors
    /// [`FindImageError`]
    pub async fn find(&self) -> Result<Image, FindImageError> {
        match self {
            Self::Registry(client) => client.find().await,
            Self::Layout { path, tag } => {
                let (path, tag) = (path.clone(), tag.clone());
                let found = spawn_blocking(move || {
                    layout::find(&LayoutDirectory::open(&path)?, tag.as_deref())
                });
                joined(found.await)
            }
            Self::Archive { path, name } => {
                let (path, name) = (path.clone(), name.clone());
                let found = spawn_blocking(move || {
                    archive::find(&ImageArchive::open(&path)?, name.as_deref())
                });
                joined(found.await)
            }
        }
    }

    /// Writes the bytes of a layer, as they are stored, to a new file that only we can read, and
    /// verifies size and digest. `progress` is told how many bytes are there. On any error there is
    /// no file.
    ///
    /// # Errors
    /// [`FetchBlobError`]
    pub async fn fetch(
        &self,
        layer: &LayerBlob,
        into: &Path,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<(), FetchBlobError> {
        match self {
            Self::Registry(client) => client.fetch(layer, into, progress).await,
            Self::Layout { path, .. } => {
                let (path, name) = (path.clone(), blob_name(&layer.digest));
                let open = move || LayoutDirectory::open(&path)?.open(&name);
                copy(open, layer, into, progress).await
            }
            Self::Archive { path, name } => {
                let (path, name, layer_named) = (path.clone(), name.clone(), layer.clone());
                let open = move || {
                    let archive = ImageArchive::open(&path)?;
                    archive::open_layer(&archive, name.as_deref(), &layer_named)
                };
                copy(open, layer, into, progress).await
            }
        }
    }
}

fn joined(
    found: Result<Result<Image, ReadImageError>, JoinError>,
) -> Result<Image, FindImageError> {
    Ok(found.map_err(|_| FindImageError::GivenUp)??)
}

/// Reads and writes on another thread, which stops when this is dropped.
async fn copy(
    open: impl FnOnce() -> Result<OpenBlob, ReadImageError> + Send + 'static,
    layer: &LayerBlob,
    into: &Path,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<(), FetchBlobError> {
    let (told, mut heard) = watch::channel(0);
    let (layer, into) = (layer.clone(), into.to_owned());
    let written = spawn_blocking(move || {
        let blob = open()?;
        if blob.size != layer.size {
            return Err(FetchBlobError::OtherSize {
                digest: layer.digest,
                wanted: layer.size,
            });
        }
        write_verified(blob.content, &layer, &into, |bytes| {
            told.send(bytes).is_ok()
        })
    });
    while heard.changed().await.is_ok() {
        let bytes = *heard.borrow_and_update();
        progress(bytes);
    }
    written.await.map_err(|_| FetchBlobError::GivenUp)?
}

//! Templates on a node's disk: how their parts are built, stored, checked and opened.
//!
//! A template is a snapshot with a name. It begins as a [`recipe`], whose disk [`image`] and
//! [`kernel`] are built once and kept in an [`image_cache`]; a bake boots them and captures the
//! machine; the [`store`] publishes the result with a [`manifest`], and [`verify`] proves before a
//! restore that the bytes are still those that were published.
//!
//! This crate must not know engines, slots, guests or the wire: it handles files and says which of
//! them a machine is made of. Functions that are not `async` may block on the disk; call them from
//! a blocking task. Start reading at [`manifest`] and [`store`].
#![forbid(unsafe_code)]

mod base_disk;
pub mod bridge;
pub mod capture;
pub mod catalog;
pub mod container;
mod container_lend;
mod cpio;
mod debian;
pub mod digest;
mod files;
pub mod image;
mod image_address;
pub mod image_archive;
pub mod image_cache;
pub mod initial_ram_disk;
pub mod kernel;
pub mod manifest;
mod modules;
pub mod ordered;
mod package_name;
pub mod program;
pub mod progress;
pub mod qcow2;
pub mod recipe;
mod recipe_file;
pub mod registries;
mod registry_files;
mod root;
mod root_hooks;
mod sealing;
mod sharing;
pub mod snapshot_disk;
mod sources;
mod sparse;
pub mod staging;
pub mod store;
pub mod template;
pub mod variant;
pub mod verify;
pub mod writable_disk;

pub use base_disk::{BaseFiles, BasePartNames};
pub use capture::{CaptureDraft, CaptureManifest, CapturePurpose, CaptureStore};
pub use catalog::{CatalogError, RecipeCatalog, ResolvedRecipe, WrongRecipe, recipe_files};
pub use container::{ContainerError, ContainerImages};
pub use digest::{ContentDigest, DIGEST_KIND};
pub use image::{ImageBuilder, ImageError, ImageParts, TakenDisk};
pub use image_address::{ImageAddress, InvalidImageAddress};
pub use image_archive::{ArchivedImage, ExportError, ImportError};
pub use image_cache::{IMAGE_CACHE_ENVIRONMENT, ImageCache, ImageKey};
pub use initial_ram_disk::{InitialRamDiskError, write_initial_ram_disk};
pub use manifest::{
    AgentIdentity, EngineIdentity, Fingerprint, HostFingerprint, MANIFEST_FORMAT, ManifestDraft,
    ManifestError, Mismatch, Offer, ParentIdentity, RecipeIdentity, SealedFile, TemplateManifest,
};
pub use ordered::{OrderError, OrderedTemplates, Orders};
pub use progress::{Progress, ProgressReporter};
pub use recipe::{
    Alias, ContainerImage, EntryPointUse, ImageRecipe, PackageImage, Recipe, RecipeError,
    RecipeText, RegistryPackages, SnapshotImage,
};
pub use registries::{InvalidRegistries, Registries, RegistrySettings};
pub use registry_files::RegistryFileError;
pub use sealing::SealFilesError;
pub use snapshot_disk::{SnapshotDiskError, SnapshotDisks};
pub use staging::{Staging, StagingError};
pub use store::{OpenError, OpenVersionError, PublishError, RemoveError, TemplateStore};
pub use template::{BakedTemplate, TemplateDisk, VersionId, file_names};
pub use variant::VariantIdentity;
pub use verify::{Verifier, VerifyError};
pub use writable_disk::{WritableDiskError, make_writable_disk};

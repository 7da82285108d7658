//! Captures: what a running sandbox left of itself at one moment.
//!
//! ```text
//! captures/
//!   snap-local-....new/     being made; a running machine may need its disk layer already
//!   snap-local-.../         published; what its manifest names never changes
//!     manifest.json device.state memory.layer disk.layer
//!     memory-1.layer disk-1.layer   in the place of the former, once it is flattened
//!   snap-local-....old/     being removed
//! ```
//! A capture holds what differs from the template and from the captures below it, and its manifest
//! names those. A snapshot, the image of a hibernated sandbox and the source of a fork are all
//! captures; they differ in who keeps them. Start reading at [`manifest`], then [`store`].

pub mod collect;
pub mod document;
pub mod error;
pub mod flatten;
pub mod manifest;
mod pages;
pub mod stack;
pub mod store;
mod upkeep;

pub use collect::Collector;
pub use error::CaptureError;
pub use flatten::FlattenError;
pub use manifest::{CAPTURE_FORMAT, CaptureDraft, CaptureManifest, CapturePurpose, MemoryBase};
pub use stack::{Below, StackedFiles};
pub use store::{CaptureStore, survey};

/// Names of the files in a capture's directory. The manifest of one that was flattened names other
/// layers.
pub mod file_names {
    pub const MANIFEST: &str = "manifest.json";
    pub const DEVICE_STATE: &str = "device.state";
    /// The pages of guest memory that differ, each at its own place.
    pub const MEMORY_LAYER: &str = "memory.layer";
    /// What was the writable disk, in the driver's format.
    pub const DISK_LAYER: &str = "disk.layer";
}

#[cfg(test)]
mod damage_tests;

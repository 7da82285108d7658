//! Images of containers as disks of machines: reads them from registries and files, applies their
//! layers by the rules, and writes the result as one read-only file system.
//!
//! Everything in an image is a stranger's word. No name of it becomes a name on this host: contents of
//! files go to the disk that is made, names and modes into a tree in memory, and the file system is
//! written around the contents byte by byte. Nothing is unpacked and nothing is mounted. Start reading
//! at [`assemble`].
#![forbid(unsafe_code)]

mod archive;
pub mod assemble;
mod attributes;
pub mod blob;
mod compression;
pub mod config;
pub mod data;
pub mod digest;
pub mod disk;
pub mod document;
pub mod entry;
pub mod erofs;
pub mod layer;
mod layout;
mod pax;
pub mod reference;
pub mod registry;
pub mod source;
mod tar_kind;
pub mod tree;

pub use attributes::InvalidAttribute;
pub use data::{BLOCK_BYTES, DataWriter};
pub use digest::{Digest, InvalidDigest};
pub use layer::{Budget, EntryProblem, ReadLayerError, read_layer};
pub use pax::PaxError;
pub use reference::ImageReference;
pub use tree::{ApplyError, Tree};

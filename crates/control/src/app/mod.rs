//! The use cases: one file each, with its error beside it. No HTTP here.

pub mod exec;
pub mod exec_output;
pub mod fork_plan;
pub mod ids;
pub mod invalid;
pub(crate) mod lifecycle_wish;
pub(crate) mod metadata;
pub mod origin;
pub mod path;
pub(crate) mod quantity;
pub mod sandbox_create;
pub mod sandbox_delete;
pub mod sandbox_fork;
pub mod sandbox_new;
pub mod sandbox_promote;
pub mod sandbox_read;
pub mod sandbox_state;
pub mod snapshot_read;
pub mod snapshot_take;
pub mod template;
pub mod volume;
pub(crate) mod volume_mounts;

pub use invalid::Invalid;

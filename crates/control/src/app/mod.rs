//! The use cases: one file each, with its error beside it. No HTTP here.

pub mod exec;
pub mod exec_output;
pub mod invalid;
pub mod path;
pub mod sandbox_create;
pub mod sandbox_delete;
pub mod sandbox_new;
pub mod sandbox_read;
pub mod template;

pub use invalid::Invalid;

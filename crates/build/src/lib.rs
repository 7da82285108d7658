//! Builds a template from a Dockerfile, with nothing but the public API.
//!
//! A step runs in a builder sandbox, and a snapshot of it is the cache of the step: it is named by a
//! key of everything that decided what is on the disk, so that a later build finds it by its name. The
//! snapshot of the last step becomes a version of a template.
//!
//! ```text
//! base image --> sandbox: RUN --> snapshot step-KEY1 --> COPY --> snapshot step-KEY2 --> ...
//!                                                           last snapshot --> version of a template
//! ```
//! Whoever builds needs no right but to create sandboxes, and a step reaches what a sandbox of the
//! project may reach. Nothing is kept anywhere else, so a build that was cut off begins again at the
//! last snapshot; its builder ends by itself. Start reading at [`Build::run`].
#![forbid(unsafe_code)]

mod base;
mod build;
mod builder;
mod context;
mod copy;
mod error;
mod event;
mod finish;
mod keys;
mod mounts;
mod owner;
mod passage;
mod place;
mod run;
mod stage;
mod uploaded;

pub use build::{Build, BuildWish, Built};
pub use context::{BuildContext, ContextError};
pub use error::{BuildError, FailedStep};
pub use event::BuildEvent;
pub use uploaded::ContextFile;

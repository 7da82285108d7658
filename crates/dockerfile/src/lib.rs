//! What a Dockerfile says: its stages, their steps, and a key for each step.
//!
//! Pure: text goes in, and what has to be done comes out; nothing is read, fetched or run here. The
//! text is a stranger's. It is bounded, and what is not known is refused with its line and what to
//! do instead. Where Docker's own documents leave something open, `BuildKit` decides. Start reading at
//! [`parse`] and [`Dockerfile::plan`]; [`Ignored`] and [`select`] say which files of a build context
//! a COPY takes, and [`StepKey`] whether a step was done before.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod config;
mod copy_text;
mod dockerfile;
mod duration;
mod error;
mod expand;
mod flags;
mod glob;
mod health;
mod here;
mod ignore;
mod instruction;
mod key;
mod lines;
mod mount_text;
mod path;
mod plan;
mod run_text;
mod select;
mod stage_text;
mod step;
mod syntax;
mod words;

pub use config::{StageConfig, StageHealth, StageHealthCommand};
pub use dockerfile::{Dockerfile, parse};
pub use error::{DockerfileError, LineProblem};
pub use glob::PatternProblem;
pub use ignore::{Ignored, InvalidIgnored};
pub use key::StepKey;
pub use select::{ContextEntry, SelectError, SelectedEntry, select};
pub use step::{
    CacheSharing, CopyFrom, InlineFile, MountFrom, RunCommand, RunMount, StageBase, StagePlan,
    Step, StepWork,
};

//! The words that every part of Dayfly shares: ids, sizes, states, limits, error codes, time.
//!
//! This crate must not know I/O, a clock or a source of randomness; it is linked into the guest
//! agent, so it also stays small. Start reading at [`ids`] and [`state`].
#![forbid(unsafe_code)]

pub mod backoff;
pub mod capture;
pub mod class;
pub mod clock;
pub mod code;
pub mod container_image;
pub mod context_path;
pub mod egress;
pub mod engine;
pub mod error_chain;
pub mod exec;
pub mod file;
pub mod generation;
pub mod guest_defaults;
pub mod ids;
pub mod isolation;
pub mod lifecycle;
pub mod limits;
pub mod log_format;
pub mod ordered_template;
pub mod percent;
pub mod port;
pub mod registry_host;
pub mod size;
pub mod state;
pub mod template;
pub mod trace;
pub mod volume;

pub use backoff::Backoff;
pub use class::{SandboxClass, SleepReason};
pub use clock::{Clock, Moment};
pub use code::ErrorCode;
pub use context_path::{ContextPath, InvalidContextPath};
pub use engine::{EngineProcess, SlotIndex};
pub use error_chain::{error_chain, error_chain_once};
pub use generation::Generation;
pub use guest_defaults::GuestDefaults;
pub use ids::{
    CellName, ExecId, InvalidId, NodeId, ProjectId, RequestId, SandboxId, SnapshotId, TemplateName,
    VolumeName,
};
pub use isolation::Isolation;
pub use lifecycle::{EndReason, IdleAction, LifetimeRules};
pub use log_format::{LogFormat, NoSuchLogFormat};
pub use ordered_template::{OrderedSource, OrderedTemplate};
pub use percent::{percent_decode, percent_encode};
pub use registry_host::{InvalidRegistryHost, RegistryHost};
pub use size::{CpuMillis, DiskMib, InvalidSize, MemoryMib, TemplateSize, UnfitSize, Vcpus};
pub use state::{SandboxCondition, SandboxState};
pub use template::{ContextLanguage, RESERVED_TEMPLATE_NAMES, RunMeaning};
pub use trace::{SpanId, TraceId, TraceParent};

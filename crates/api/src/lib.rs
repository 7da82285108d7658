//! The public REST types, version 1, and the error envelope. Source of `openapi/v1.json`.
//!
//! Wire types only: they cross into domain types in `control`. Names follow the published
//! PandaStack clients where these exist, so that both work against this server. Additive only
//! from release 0.1 on. No node or engine words may appear here.
#![forbid(unsafe_code)]

pub mod context;
mod environment;
pub mod error;
pub mod exec;
pub mod files;
pub mod fork;
pub mod hint;
pub mod lifecycle;
pub mod network;
mod number;
pub mod ports;
pub mod sandbox;
pub mod snapshot;
pub mod system;
pub mod template;
pub mod template_build;
pub mod template_version;
pub mod tenancy;
pub mod usage;
pub mod utf8;
pub mod volume;

pub use context::{
    Context, ContextList, CreateContext, RunCode, RunRequest, RunResult, RunStreamEvent,
};
pub use error::ErrorBody;
pub use exec::{
    Command, ExecExitEvent, ExecOutputEvent, ExecRequest, ExecResult, ExecStreamEvent, Omission,
    Process, ProcessList, SOCKET_HEADER_BYTES, SOCKET_STDERR, SOCKET_STDOUT, SignalRequest,
    SocketCall, SocketEvent, StdinTaken, StreamExtent, TerminalSize,
};
pub use files::{
    ChangeList, ChangeMode, ChangedFile, CreateFileLink, DirectoryListing, FileChange, FileEntry,
    FileLink, FileLinkOperation, FileWritten, MakeDirectory, MoveFile,
};
pub use fork::{ForkOptions, ForkSandbox, ForkTree, Forked, PromoteSandbox, Promoted};
pub use hint::{Advice, Hint, HintCode};
pub use lifecycle::{ChangeLifecycle, Lifecycle, OnTimeout, PromiseClass, WakeSandbox};
pub use network::{
    AllowNetwork, Network, NetworkDefault, NetworkLog, NetworkLost, NetworkMode, NetworkPreset,
    NetworkPresetList, NetworkRecord, NetworkRule, NetworkSuggestion, NetworkWish, RuleParts,
    RuleWish,
};
pub use number::whole_milliseconds;
pub use ports::{CreatePortLink, Port, PortLink, PortLinkList, PortList, WaitForPort};
pub use sandbox::{CreateSandbox, Sandbox, SandboxList, SandboxVariant};
pub use snapshot::{Capture, CreateSnapshot, RollbackSandbox, Snapshot, SnapshotList};
pub use system::{Health, HealthCondition, Me, NodeView, PoolView};
pub use template::{BakeTemplate, Template, TemplateRun, TemplateState, TemplateVariant};
pub use template_build::{
    BuildTemplateForm, FailedBuildStep, TemplateBuild, TemplateBuildEvent, TemplateBuildStatus,
};
pub use template_version::{
    CreateTemplate, EnsureImage, ImageTemplate, SetTemplateTag, TemplateHealthCheck,
    TemplateVersion, TemplateVersionList,
};
pub use tenancy::{
    AuditEntry, AuditList, ChangeLimits, CreateProject, CreateToken, ExportPage, ExportedAudit,
    ExportedDecision, ExportedDecisions, ExportedEgress, NewToken, Project, ProjectLimits,
    ProjectList, ProjectSuspension, ProjectUsage, ProjectUsageList, SandboxEvent, SandboxLoad,
    SandboxLoadList, SignInOffer, SignInRequest, SuspendProject, Token, TokenList,
};
pub use usage::{SandboxMetrics, SandboxSample, UsageHour, UsageHourList};
pub use volume::{CreateVolume, GrowVolume, Volume, VolumeList, VolumeMount};

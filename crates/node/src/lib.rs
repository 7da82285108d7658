//! The node: it owns the sandboxes of one host and is the truth about what runs there.
//!
//! It keeps a journal on its own disk, enforces deadlines by itself, and adopts its running
//! machines after a crash or an upgrade. Engines, slots, time and templates are behind traits, so
//! that whole nodes can be simulated. It must not know the public API, the database or a concrete
//! engine. Start reading at [`node`] and at the drawing in `sandbox/mod.rs`.
#![forbid(unsafe_code)]

pub mod bake;
pub mod baker;
mod boots;
mod bring_up_line;
mod calls;
pub mod capacity;
mod console;
mod disk_lane;
mod disk_watch;
pub mod effects;
pub mod egress;
pub mod engine_users;
mod engines;
mod execs;
mod failure;
mod files;
mod followed;
mod give_back;
pub mod glimpse;
pub mod guest;
mod host_resources;
mod housekeeping;
mod identity;
mod ingress;
pub mod journal;
mod kept;
mod network_calls;
pub mod node;
mod node_streams;
mod origin;
mod parts;
pub mod pause_guard;
pub mod pool;
mod port_wait;
pub mod reconcile;
mod relief;
pub mod reserve;
mod sandbox;
mod sandbox_table;
pub mod slots;
mod snapshot_reports;
mod state_answers;
mod state_calls;
mod template_forgotten;
mod template_known;
mod template_line;
mod template_list;
mod template_reports;
mod template_target;
pub mod templates;
mod variant_bounds;
mod volume_shares;
mod volume_tools;
mod volume_turns;
pub mod volumes;
mod written;

// Everybody here logs with it.
use dayfly_types::error_chain;

pub use dayfly_core::admission::Sharing;

pub use capacity::{HostResources, RealResources, Reserve};
pub use effects::{Effect, Effects, ObservedSlots, Point};
pub use housekeeping::HOUSEKEEPING_PERIOD;
pub use identity::IdentityError;
pub use node::{Node, NodeConfig, NodePorts, StartError};
pub use pause_guard::PauseGuard;
pub use pool::PoolTargets;
pub use templates::{
    BakeWish, BootableTemplate, ReadyTemplate, TemplateSource, TemplateUnavailable,
};

//! Makes a template from its recipe: builds or finds the image, boots it once, warms it up,
//! freezes it and publishes what was captured.
//!
//! ```text
//! image parts --> staging --> slot: boot --> agent --> start, warm, rehearse
//!                                     --> quiesce --> pause --> capture --> kill
//! memory, device state, disk <-- taken from the slot --> release --> publish
//! ```
//! Nothing of a template is visible before it is published, and the slot is released on every
//! path, also when nobody waits for the bake any more. When to bake is not decided here; see
//! `baker`. Start reading at [`bake_template`].

mod bridge;
mod entry_point;
mod error;
mod held_slot;
mod identity;
mod machine;
mod ports;
mod template;
mod warm_up;

pub use error::BakeError;
pub use identity::{agent_hash, engine_identity, fingerprint, host_fingerprint};
pub use ports::{BakeDeps, BakeLimits, EmptyLayerMaker, ImageProvider};
pub use template::bake_template;
pub(crate) use template::offer;
pub use warm_up::WarmUpError;
pub(crate) use warm_up::start as start_program;

#[cfg(test)]
mod tests;

//! One sandbox: one owner task, which alone changes its state.
//!
//! Requests come in through a bounded queue; the state goes out through a `watch` with a
//! generation that only grows. The bytes of execs and files never pass through the owner: callers
//! take the agent handle from the published state and talk to the guest themselves.
//!
//! ```text
//!   ensure ──> owner: bring up ──> serve ──(delete, expiry)──> teardown ──> gone
//!                       │           │ └──(engine died)──> failed ──(delete, expiry)──┘
//!                       │           └──(request, idleness)──> capture, pause, sleep, wake
//!                       └──(any step failed)──> teardown, and the caller is told why
//! ```
//!
//! A delete does not wait for what the owner is busy with: it cuts it short. `core::lifecycle`
//! decides which changes are legal. Start reading at [`owner`].

mod activity;
mod ahead;
pub(crate) mod bring_up;
pub(crate) mod capture;
mod connect;
mod disk;
mod failed;
mod fork;
mod give_back;
mod handle;
pub(crate) mod layer;
mod network;
mod noted;
mod occasions;
pub(crate) mod owner;
mod permit;
mod report;
mod requests;
mod room;
mod rules;
mod settle;
mod sleep;
mod stages;
mod volumes;

pub(crate) use activity::{Activity, OpenCall};
pub(crate) use capture::blocking;
pub(crate) use fork::{EarlyCapture, ForkSource};
pub(crate) use handle::{Published, SandboxHandle, wrong_state};
pub(crate) use permit::permit_of;
pub(crate) use requests::{CaptureWish, Reply, Request};
pub(crate) use room::waits_for_room;
pub(crate) use sleep::disk_of;

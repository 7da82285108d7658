//! The kernel calls that have no safe wrapper. All unsafe code of the guest is in here.
#![expect(
    unsafe_code,
    reason = "this module is the guest's one place for raw kernel calls"
)]

pub(crate) mod copy_mark;
mod disk;
mod interval_timer;
mod network;
mod process;
mod random;
mod signal;

pub(crate) use disk::resize_ext4;
pub(crate) use interval_timer::stop_interval_timer;
pub(crate) use network::{Kind, Setting, add_default_route, set_interface};
pub(crate) use process::{Fork, close_all_but, exit_now, fork, take_group_for_root};
pub(crate) use random::{random_bytes, reseed};
pub(crate) use signal::{ChildSignals, unblock_all};

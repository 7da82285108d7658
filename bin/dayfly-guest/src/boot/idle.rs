//! What a guest that has nothing to do need not do. Each wake of its CPU costs the host a part of a
//! millisecond under emulation, and a host has hundreds of idle guests.
//!
//! A guest without it still works, so nothing of it is a reason to stop.

use std::fs;
use std::io;

use super::{BootError, write_setting};
use crate::sys;

/// Looks by the kernel at itself: memory that could be put together, twice a second; counters of
/// memory, each second; whether a CPU hangs, every four seconds.
const SETTINGS: [(&str, &str); 3] = [
    ("/proc/sys/vm/compaction_proactiveness", "0"),
    ("/proc/sys/vm/stat_interval", "10"),
    ("/proc/sys/kernel/watchdog_thresh", "60"),
];
/// What wakes the CPU when its time has come.
const CLOCK_EVENTS: &str = "/sys/devices/system/clockevents/clockevent0/current_device";
const INTERVAL_TIMER: &str = "pit";

/// Each part is tried, whatever became of those before.
pub(super) fn quieten() -> Vec<BootError> {
    let settings = SETTINGS.into_iter().map(write_setting);
    let timer = stop_interval_timer().map_err(BootError::at("stop the interval timer"));
    settings.chain([timer]).filter_map(Result::err).collect()
}

/// A kernel that finds its devices by ACPI alone never looks at the interval timer, which so runs on
/// from the reset and wakes the engine 36 times in a second.
fn stop_interval_timer() -> io::Result<()> {
    if fs::read_to_string(CLOCK_EVENTS)?.trim() == INTERVAL_TIMER {
        return Ok(());
    }
    sys::stop_interval_timer()
}

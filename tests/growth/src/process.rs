//! What this process takes from the host.

use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// A machine that runs has some ten descriptors in this process: its engine and guest are in it too.
pub(crate) fn raise_descriptor_limit() -> Result<()> {
    let most = getrlimit(Resource::Nofile).maximum;
    let wanted = Rlimit {
        current: most,
        maximum: most,
    };
    setrlimit(Resource::Nofile, wanted).context("cannot have as many descriptors as allowed")
}

/// Memory that is this process's own and in RAM, in KiB.
pub(crate) fn resident_kib() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("RssAnon:"));
    let words = line.context("the kernel does not tell RssAnon")?;
    let number = words.split_whitespace().nth(1).context("RssAnon")?;
    Ok(number.parse()?)
}

/// CPU time that this process has used.
pub(crate) fn cpu_time() -> Result<Duration> {
    let clock = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let seconds = u64::try_from(clock.tv_sec)?;
    Ok(Duration::new(seconds, u32::try_from(clock.tv_nsec)?))
}

//! The unified hierarchy of cgroup version 2.

use std::path::{Path, PathBuf};

use super::files::{make_directory, read_field, read_number, read_text, write_value};
use super::hierarchy::MountedPath;
use super::{CgroupError, CgroupLimits, CgroupUsage};

pub(super) const CONTROLLERS: [&str; 3] = ["cpu", "memory", "pids"];
const PERIOD_MICROS: u64 = 100_000;

/// Where the unified hierarchy is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    pub(super) path: MountedPath,
}

impl Mount {
    pub(super) fn directory(&self, relative: &str) -> PathBuf {
        self.path.outer(relative)
    }

    /// A group's controllers work only after its parent has been told to pass them down.
    pub(super) fn prepare(&self, relative: &str) -> Result<(), CgroupError> {
        let (parent, group) = (self.directory(""), self.directory(relative));
        if !parent.is_dir() {
            return Err(CgroupError::Undelegated { path: parent });
        }
        let all = CONTROLLERS
            .map(|controller| format!("+{controller}"))
            .join(" ");
        write_value(&parent.join("cgroup.subtree_control"), &all)?;
        make_directory(&group)?;
        write_value(&group.join("cgroup.subtree_control"), &all)
    }
}

pub(super) fn set_limits(group: &Path, limits: &CgroupLimits) -> Result<(), CgroupError> {
    write_value(&group.join("memory.max"), &limits.memory_bytes.to_string())?;
    // A kernel without swap accounting does not have the file.
    let swap = group.join("memory.swap.max");
    if swap.exists() {
        write_value(&swap, "0")?;
    }
    let quota = PERIOD_MICROS * u64::from(limits.cpu_quota_percent) / 100;
    write_value(&group.join("cpu.max"), &format!("{quota} {PERIOD_MICROS}"))?;
    write_value(&group.join("pids.max"), &limits.pids_max.to_string())
}

pub(super) fn set_cpu_weight(group: &Path, percent: u32) -> Result<(), CgroupError> {
    write_value(&group.join("cpu.weight"), &percent.to_string())
}

pub(super) fn cpu_weight(group: &Path) -> Result<u64, CgroupError> {
    read_number(&group.join("cpu.weight"))
}

pub(super) fn limits(group: &Path) -> Result<CgroupLimits, CgroupError> {
    let path = group.join("cpu.max");
    let text = read_text(&path)?;
    let cpu_quota_percent = parse_cpu_max(&text).ok_or(CgroupError::Malformed { path, text })?;
    let path = group.join("pids.max");
    let pids = read_number(&path)?;
    let malformed = |_| CgroupError::Malformed {
        path,
        text: pids.to_string(),
    };
    Ok(CgroupLimits {
        memory_bytes: read_number(&group.join("memory.max"))?,
        cpu_quota_percent,
        pids_max: u32::try_from(pids).map_err(malformed)?,
    })
}

pub(super) fn usage(group: &Path) -> Result<CgroupUsage, CgroupError> {
    Ok(CgroupUsage {
        memory_bytes: read_number(&group.join("memory.current"))?,
        cpu_micros: read_field(&group.join("cpu.stat"), "usage_usec ")?,
        oom_kills: read_field(&group.join("memory.events"), "oom_kill ")?,
    })
}

fn parse_cpu_max(text: &str) -> Option<u32> {
    let (quota, period) = text.split_once(' ')?;
    let quota: u64 = quota.parse().ok()?;
    let period: u64 = period.parse().ok()?;
    u32::try_from(quota.checked_mul(100)?.checked_div(period)?).ok()
}

//! The separate hierarchies of cgroup version 1.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::files::{read_field, read_number, write_value};
use super::hierarchy::MountedPath;
use super::{CgroupError, CgroupLimits, CgroupUsage};

const PERIOD_MICROS: u64 = 100_000;
/// What a group has that nobody has said anything of.
const SHARES: u32 = 1024;

/// Where each controller is mounted. Some may share one hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mounts {
    memory: MountedPath,
    cpu: MountedPath,
    accounting: MountedPath,
    pids: MountedPath,
}

impl Mounts {
    pub(super) fn from_controllers(
        by_controller: &BTreeMap<&str, MountedPath>,
    ) -> Result<Self, CgroupError> {
        let get = |name: &str| {
            let missing = || CgroupError::Unsupported {
                missing: name.to_owned(),
            };
            by_controller.get(name).cloned().ok_or_else(missing)
        };
        Ok(Self {
            memory: get("memory")?,
            cpu: get("cpu")?,
            accounting: get("cpuacct")?,
            pids: get("pids")?,
        })
    }

    pub(super) fn directories(&self, relative: &str) -> Vec<PathBuf> {
        let all = [&self.memory, &self.cpu, &self.accounting, &self.pids];
        let distinct: BTreeSet<_> = all.into_iter().map(|path| path.outer(relative)).collect();
        distinct.into_iter().collect()
    }

    pub(super) fn membership(&self, relative: &str) -> BTreeMap<String, String> {
        [
            ("memory", &self.memory),
            ("cpu", &self.cpu),
            ("cpuacct", &self.accounting),
            ("pids", &self.pids),
        ]
        .map(|(name, path)| (name.to_owned(), path.inner(relative)))
        .into()
    }

    pub(super) fn set_limits(
        &self,
        relative: &str,
        limits: &CgroupLimits,
    ) -> Result<(), CgroupError> {
        let memory = self.memory.outer(relative);
        let bytes = limits.memory_bytes.to_string();
        write_value(&memory.join("memory.limit_in_bytes"), &bytes)?;
        // The limit with swap may not be below the one without, so it comes second. A kernel
        // without swap accounting does not have the file.
        let with_swap = memory.join("memory.memsw.limit_in_bytes");
        if with_swap.exists() {
            write_value(&with_swap, &bytes)?;
        }
        let cpu = self.cpu.outer(relative);
        let quota = PERIOD_MICROS * u64::from(limits.cpu_quota_percent) / 100;
        write_value(&cpu.join("cpu.cfs_period_us"), &PERIOD_MICROS.to_string())?;
        write_value(&cpu.join("cpu.cfs_quota_us"), &quota.to_string())?;
        write_value(&self.pids_max(relative), &limits.pids_max.to_string())
    }

    pub(super) fn set_cpu_weight(&self, relative: &str, percent: u32) -> Result<(), CgroupError> {
        let shares = SHARES * percent / 100;
        write_value(
            &self.cpu.outer(relative).join("cpu.shares"),
            &shares.to_string(),
        )
    }

    pub(super) fn cpu_weight(&self, relative: &str) -> Result<u64, CgroupError> {
        let shares = read_number(&self.cpu.outer(relative).join("cpu.shares"))?;
        Ok(shares * 100 / u64::from(SHARES))
    }

    pub(super) fn limits(&self, relative: &str) -> Result<CgroupLimits, CgroupError> {
        let cpu = self.cpu.outer(relative);
        let quota_path = cpu.join("cpu.cfs_quota_us");
        let quota = read_number(&quota_path)?;
        let period = read_number(&cpu.join("cpu.cfs_period_us"))?.max(1);
        let malformed = |path: PathBuf, value: u64| CgroupError::Malformed {
            path,
            text: value.to_string(),
        };
        let percent = quota.saturating_mul(100) / period;
        let pids = read_number(&self.pids_max(relative))?;
        Ok(CgroupLimits {
            memory_bytes: read_number(&self.memory.outer(relative).join("memory.limit_in_bytes"))?,
            cpu_quota_percent: percent
                .try_into()
                .map_err(|_| malformed(quota_path, quota))?,
            pids_max: pids
                .try_into()
                .map_err(|_| malformed(self.pids_max(relative), pids))?,
        })
    }

    pub(super) fn usage(&self, relative: &str) -> Result<CgroupUsage, CgroupError> {
        let memory = self.memory.outer(relative);
        let nanoseconds = read_number(&self.accounting.outer(relative).join("cpuacct.usage"))?;
        Ok(CgroupUsage {
            memory_bytes: read_number(&memory.join("memory.usage_in_bytes"))?,
            cpu_micros: nanoseconds / 1000,
            oom_kills: read_field(&memory.join("memory.oom_control"), "oom_kill ")?,
        })
    }

    pub(super) fn pids_max(&self, relative: &str) -> PathBuf {
        self.pids.outer(relative).join("pids.max")
    }
}

//! One group.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::files::{is_absent, make_directory, remove_directories, write_value};
use super::hierarchy::Hierarchy;
use super::{CgroupError, CgroupLimits, CgroupUsage, kill, v2};

/// One group.
#[derive(Debug, Clone)]
pub struct Cgroup {
    pub(super) name: String,
    pub(super) hierarchy: Hierarchy,
    pub(super) relative: String,
    pub(super) directories: Vec<PathBuf>,
}

impl Cgroup {
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The files that a process writes its pid to in order to join.
    #[must_use]
    pub fn procs_paths(&self) -> Vec<PathBuf> {
        self.directories
            .iter()
            .map(|directory| directory.join("cgroup.procs"))
            .collect()
    }

    /// What `/proc/PID/cgroup` says of a member: path by controller. The unified hierarchy's
    /// controller is the empty name.
    #[must_use]
    pub fn membership(&self) -> BTreeMap<String, String> {
        self.hierarchy.membership(&self.relative)
    }

    /// Moves a process in.
    ///
    /// # Errors
    /// [`CgroupError::Write`] when the kernel refuses.
    pub fn add(&self, pid: i32) -> Result<(), CgroupError> {
        self.procs_paths()
            .iter()
            .try_for_each(|path| write_value(path, &pid.to_string()))
    }

    /// The members now, by pid. A group that is gone has none.
    ///
    /// # Errors
    /// When a list cannot be read.
    pub fn pids(&self) -> Result<BTreeSet<i32>, CgroupError> {
        let mut pids = BTreeSet::new();
        for path in self.procs_paths() {
            match fs::read_to_string(&path) {
                Ok(text) => pids.extend(text.lines().filter_map(|line| line.parse::<i32>().ok())),
                // ENODEV is what an open list answers once its group has been removed.
                Err(error) if is_absent(&error) => {}
                Err(source) => return Err(CgroupError::Read { path, source }),
            }
        }
        Ok(pids)
    }

    /// Ends every member, also those that are forking, and waits until none is left.
    ///
    /// The group admits no new process afterwards: remove it.
    ///
    /// # Errors
    /// [`CgroupError::StillRunning`] when some are left when the limit has passed.
    pub fn kill_all(&self, limit: Duration) -> Result<(), CgroupError> {
        kill::kill_all(self, Instant::now() + limit)
    }

    /// Removes the group. One that is gone already is no error.
    ///
    /// # Errors
    /// [`CgroupError::Busy`] when it has members when the limit has passed.
    pub fn remove(&self, limit: Duration) -> Result<(), CgroupError> {
        remove_directories(&self.directories, limit)
    }

    /// What the group has used until now.
    ///
    /// # Errors
    /// When a counter cannot be read.
    pub fn usage(&self) -> Result<CgroupUsage, CgroupError> {
        match &self.hierarchy {
            Hierarchy::V1(mounts) => mounts.usage(&self.relative),
            Hierarchy::V2(mount) => v2::usage(&mount.directory(&self.relative)),
        }
    }

    /// The limits as the kernel keeps them.
    ///
    /// # Errors
    /// When a limit cannot be read or is not set.
    pub fn limits(&self) -> Result<CgroupLimits, CgroupError> {
        match &self.hierarchy {
            Hierarchy::V1(mounts) => mounts.limits(&self.relative),
            Hierarchy::V2(mount) => v2::limits(&mount.directory(&self.relative)),
        }
    }

    /// Changes the limits of a group that may have members.
    ///
    /// # Errors
    /// [`CgroupError::Write`] when the kernel refuses; some may be set then.
    pub fn set_limits(&self, limits: &CgroupLimits) -> Result<(), CgroupError> {
        match &self.hierarchy {
            Hierarchy::V1(mounts) => mounts.set_limits(&self.relative, limits),
            Hierarchy::V2(mount) => v2::set_limits(&mount.directory(&self.relative), limits),
        }
    }

    /// Says how the group stands beside others that want the same CPU, as a percentage of a group of
    /// which nobody has said anything.
    ///
    /// # Errors
    /// [`CgroupError::Write`] when the kernel refuses.
    pub fn set_cpu_weight(&self, percent: u32) -> Result<(), CgroupError> {
        match &self.hierarchy {
            Hierarchy::V1(mounts) => mounts.set_cpu_weight(&self.relative, percent),
            Hierarchy::V2(mount) => v2::set_cpu_weight(&mount.directory(&self.relative), percent),
        }
    }

    /// How the group stands beside others, as the kernel keeps it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn cpu_weight(&self) -> Result<u64, CgroupError> {
        match &self.hierarchy {
            Hierarchy::V1(mounts) => mounts.cpu_weight(&self.relative),
            Hierarchy::V2(mount) => v2::cpu_weight(&mount.directory(&self.relative)),
        }
    }

    pub(super) fn exists(&self) -> bool {
        self.directories.iter().any(|directory| directory.is_dir())
    }

    pub(super) fn make(&self, limits: &CgroupLimits) -> Result<(), CgroupError> {
        for directory in &self.directories {
            make_directory(directory)?;
        }
        self.set_limits(limits)
    }
}

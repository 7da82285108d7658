//! Which cgroup version a host uses, and where.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{CgroupError, v1, v2};
use crate::mounts::{MountEntry, own_mounts};

/// The unit of the package that has nothing but a part of the hierarchy. systemd leaves that part
/// alone, and a restart of the daemon's own unit does not touch it.
const DELEGATED: &str = "system.slice/dayfly-sandboxes.service";

/// The two interfaces that Linux has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CgroupVersion {
    V1,
    V2,
}

/// Where the controllers are that Dayfly uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Hierarchy {
    V1(v1::Mounts),
    V2(v2::Mount),
}

impl Hierarchy {
    #[must_use]
    pub(super) fn version(&self) -> CgroupVersion {
        match self {
            Self::V1(_) => CgroupVersion::V1,
            Self::V2(_) => CgroupVersion::V2,
        }
    }

    /// The part of the hierarchy that systemd leaves to Dayfly, if there is one.
    pub(super) fn delegated(&self) -> Option<Self> {
        let Self::V2(mount) = self else {
            return None;
        };
        let path = mount.path.below(DELEGATED);
        let is_there = path.mount_point.is_dir();
        is_there.then_some(Self::V2(v2::Mount { path }))
    }

    /// The directories of a group, one for each hierarchy.
    pub(super) fn directories(&self, relative: &str) -> Vec<PathBuf> {
        match self {
            Self::V1(mounts) => mounts.directories(relative),
            Self::V2(mount) => vec![mount.directory(relative)],
        }
    }

    /// Makes a group that holds other groups.
    pub(super) fn prepare(&self, relative: &str) -> Result<(), CgroupError> {
        match self {
            Self::V1(mounts) => mounts
                .directories(relative)
                .iter()
                .try_for_each(|path| super::files::make_directory(path)),
            Self::V2(mount) => mount.prepare(relative),
        }
    }

    pub(super) fn membership(&self, relative: &str) -> BTreeMap<String, String> {
        match self {
            Self::V1(mounts) => mounts.membership(relative),
            Self::V2(mount) => BTreeMap::from([(String::new(), mount.path.inner(relative))]),
        }
    }
}

/// A mounted hierarchy: its directory, and which part of the hierarchy is mounted there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MountedPath {
    pub(super) mount_point: PathBuf,
    pub(super) root: PathBuf,
}

impl MountedPath {
    pub(super) fn outer(&self, relative: &str) -> PathBuf {
        if relative.is_empty() {
            self.mount_point.clone()
        } else {
            self.mount_point.join(relative)
        }
    }

    /// The same for a group in it.
    fn below(&self, relative: &str) -> Self {
        Self {
            mount_point: self.mount_point.join(relative),
            root: self.root.join(relative),
        }
    }

    /// The group as the kernel names it.
    pub(super) fn inner(&self, relative: &str) -> String {
        self.root.join(relative).to_string_lossy().into_owned()
    }

    pub(super) fn of(mount: &MountEntry) -> Self {
        Self {
            mount_point: mount.mount_point.clone(),
            root: mount.root.clone(),
        }
    }
}

/// Finds the hierarchy to use: the unified one if it has all controllers, else the separate ones.
///
/// # Errors
/// [`CgroupError::Unsupported`] when neither has them all.
pub(super) fn detect() -> Result<Hierarchy, CgroupError> {
    let mounts = own_mounts().map_err(|source| CgroupError::Mounts { source })?;
    from_mounts(&mounts, |mount_point| {
        fs::read_to_string(mount_point.join("cgroup.controllers")).unwrap_or_default()
    })
}

pub(super) fn from_mounts(
    mounts: &[MountEntry],
    unified_controllers: impl Fn(&Path) -> String,
) -> Result<Hierarchy, CgroupError> {
    for mount in mounts.iter().filter(|mount| mount.file_system == "cgroup2") {
        let offered = unified_controllers(&mount.mount_point);
        let offered: Vec<_> = offered.split_ascii_whitespace().collect();
        if v2::CONTROLLERS
            .iter()
            .all(|controller| offered.contains(controller))
        {
            return Ok(Hierarchy::V2(v2::Mount {
                path: MountedPath::of(mount),
            }));
        }
    }
    let mut by_controller = BTreeMap::new();
    for mount in mounts.iter().filter(|mount| mount.file_system == "cgroup") {
        for option in &mount.super_options {
            by_controller.insert(option.as_str(), MountedPath::of(mount));
        }
    }
    v1::Mounts::from_controllers(&by_controller).map(Hierarchy::V1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn mount(file_system: &str, mount_point: &str, super_options: &[&str]) -> MountEntry {
        MountEntry {
            mount_point: PathBuf::from(mount_point),
            root: PathBuf::from("/"),
            file_system: file_system.to_owned(),
            source: "none".to_owned(),
            options: BTreeSet::new(),
            super_options: super_options
                .iter()
                .map(|&option| option.to_owned())
                .collect(),
        }
    }

    #[test]
    fn a_unified_hierarchy_with_all_controllers_wins() {
        let mounts = [mount("cgroup2", "/sys/fs/cgroup", &["rw"])];
        let found = from_mounts(&mounts, |_| "cpuset cpu io memory pids".to_owned()).unwrap();
        assert_eq!(found.version(), CgroupVersion::V2);
        let groups = found.directories("dayfly-a/b");
        assert_eq!(groups, [PathBuf::from("/sys/fs/cgroup/dayfly-a/b")]);
        assert_eq!(found.membership("dayfly-a/b")[""], "/dayfly-a/b");
    }

    #[test]
    fn separate_hierarchies_serve_when_the_unified_one_is_empty() {
        let mounts = [
            mount("cgroup", "/cg/cpu", &["rw", "cpu", "cpuacct"]),
            mount("cgroup", "/cg/memory", &["rw", "memory"]),
            mount("cgroup", "/cg/pids", &["rw", "pids"]),
            mount("cgroup2", "/cg/unified", &["rw"]),
        ];
        let found = from_mounts(&mounts, |_| "hugetlb".to_owned()).unwrap();
        assert_eq!(found.version(), CgroupVersion::V1);
        // cpu and cpuacct share one hierarchy here, which must be joined once.
        assert_eq!(found.directories("x").len(), 3);
        assert_eq!(found.membership("x").len(), 4);
    }

    #[test]
    fn a_host_without_a_controller_is_refused_with_its_name() {
        let mounts = [mount("cgroup", "/cg/cpu", &["cpu", "cpuacct", "pids"])];
        let error = from_mounts(&mounts, |_| String::new()).unwrap_err();
        assert!(matches!(error, CgroupError::Unsupported { missing } if missing == "memory"));
    }
}

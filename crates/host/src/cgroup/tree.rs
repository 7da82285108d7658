//! The groups of an instance.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use super::files::{remove_directories, subdirectories};
use super::hierarchy::{Hierarchy, detect};
use super::{Cgroup, CgroupError, CgroupLimits, CgroupVersion, INSTANCE_PREFIX, check_name};

/// All groups of one daemon instance.
#[derive(Debug, Clone)]
pub struct CgroupTree {
    pub(super) instance: String,
    hierarchy: Hierarchy,
}

impl CgroupTree {
    /// Finds the host's hierarchy and makes the instance's group in it.
    ///
    /// # Errors
    /// [`CgroupError::Name`] for a name that is no plain label, [`CgroupError::Unsupported`] when
    /// a controller is missing.
    pub fn open(instance: &str) -> Result<Self, CgroupError> {
        let tree = Self::find(instance)?;
        tree.hierarchy.prepare(&tree.relative(None))?;
        Ok(tree)
    }

    /// The same for looking only: nothing is made, and an instance without groups has none.
    ///
    /// # Errors
    /// As [`CgroupTree::open`].
    pub fn find(instance: &str) -> Result<Self, CgroupError> {
        check_name(instance)?;
        Ok(Self {
            instance: instance.to_owned(),
            hierarchy: detect()?,
        })
    }

    #[must_use]
    pub fn version(&self) -> CgroupVersion {
        self.hierarchy.version()
    }

    /// Makes a group with its limits set.
    ///
    /// # Errors
    /// [`CgroupError::Exists`] when there is one of this name; nothing is left on any error.
    pub fn create(&self, name: &str, limits: &CgroupLimits) -> Result<Cgroup, CgroupError> {
        let group = self.open_group(name)?;
        if group.exists() {
            return Err(CgroupError::Exists {
                name: name.to_owned(),
            });
        }
        let made = group.make(limits);
        if made.is_err() {
            for directory in &group.directories {
                // The first failure is what the caller needs to hear of.
                let _ = fs::remove_dir(directory);
            }
        }
        made.map(|()| group)
    }

    /// Takes up a group that exists, whole or in part.
    ///
    /// # Errors
    /// [`CgroupError::Absent`] when there is none.
    pub fn open_existing(&self, name: &str) -> Result<Cgroup, CgroupError> {
        let group = self.open_group(name)?;
        if group.exists() {
            Ok(group)
        } else {
            Err(CgroupError::Absent {
                name: name.to_owned(),
            })
        }
    }

    /// The names of all groups, also of those that a crash left half made.
    ///
    /// # Errors
    /// When the hierarchy cannot be read.
    pub fn list(&self) -> Result<Vec<String>, CgroupError> {
        let mut names = BTreeSet::new();
        for directory in self.hierarchy.directories(&self.relative(None)) {
            names.extend(subdirectories(&directory)?);
        }
        Ok(names.into_iter().collect())
    }

    /// Removes the instance's own group. All others must be gone.
    ///
    /// # Errors
    /// [`CgroupError::Busy`] when it is not empty when the limit has passed.
    pub fn remove(&self, limit: Duration) -> Result<(), CgroupError> {
        remove_directories(&self.hierarchy.directories(&self.relative(None)), limit)
    }

    /// The group that a process is in, given its `cgroup` table, when it is one of this instance.
    pub(crate) fn group_of(&self, table: &BTreeMap<String, String>) -> Option<String> {
        let own = self.hierarchy.membership(&self.relative(None));
        own.iter().find_map(|(controller, path)| {
            let rest = table.get(controller)?.strip_prefix(path.as_str())?;
            let name = rest.strip_prefix('/').unwrap_or(rest);
            // The instance's own group is a prefix of another instance's with a longer name.
            (rest.is_empty() || rest.starts_with('/')).then(|| name.to_owned())
        })
    }

    fn open_group(&self, name: &str) -> Result<Cgroup, CgroupError> {
        check_name(name)?;
        let relative = self.relative(Some(name));
        let directories = self.hierarchy.directories(&relative);
        Ok(Cgroup {
            name: name.to_owned(),
            hierarchy: self.hierarchy.clone(),
            relative,
            directories,
        })
    }

    fn relative(&self, name: Option<&str>) -> String {
        let instance = &self.instance;
        name.map_or_else(
            || format!("{INSTANCE_PREFIX}{instance}"),
            |name| format!("{INSTANCE_PREFIX}{instance}/{name}"),
        )
    }
}

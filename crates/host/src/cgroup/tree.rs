//! The groups of an instance.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use super::files::{is_absent, remove_directories, subdirectories};
use super::hierarchy::{Hierarchy, detect};
use super::home;
use super::{Cgroup, CgroupError, CgroupLimits, CgroupVersion, INSTANCE_PREFIX, check_name};

/// All groups of one daemon instance.
#[derive(Debug, Clone)]
pub struct CgroupTree {
    pub(super) instance: String,
    hierarchy: Hierarchy,
}

impl CgroupTree {
    /// Finds the host's hierarchy, decides where the instance's groups belong in it, and makes the
    /// instance's own. Whoever needs a group of the instance afterwards needs this tree: another
    /// one that is opened later may decide otherwise.
    ///
    /// # Errors
    /// [`CgroupError::Name`] for a name that is no plain label, [`CgroupError::Unsupported`] when
    /// a controller is missing.
    pub fn open(instance: &str) -> Result<Self, CgroupError> {
        let tree = Self::find(instance)?;
        tree.hierarchy.prepare(&tree.relative(None))?;
        for other in Self::find_everywhere(instance)? {
            if other.hierarchy != tree.hierarchy {
                // An empty group of an earlier start. One that is not empty is somebody's.
                let _ = other.remove(Duration::ZERO);
            }
        }
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
            hierarchy: home::of_instance(detect()?, &group_of_instance(instance))?,
        })
    }

    /// Every place in which the instance may have groups, for who looks for what is left.
    ///
    /// # Errors
    /// As [`CgroupTree::open`].
    pub fn find_everywhere(instance: &str) -> Result<Vec<Self>, CgroupError> {
        check_name(instance)?;
        let places = home::places(detect()?).into_iter();
        let trees = places.map(|hierarchy| Self {
            instance: instance.to_owned(),
            hierarchy,
        });
        Ok(trees.collect())
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
        let made = match group.make(limits) {
            // The unit that has our part of the hierarchy was started anew, and the part with it.
            Err(CgroupError::Make { source, .. }) if is_absent(&source) => self
                .hierarchy
                .prepare(&self.relative(None))
                .and_then(|()| group.make(limits)),
            made => made,
        };
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
        let own = group_of_instance(&self.instance);
        match name {
            Some(name) => format!("{own}/{name}"),
            None => own,
        }
    }
}

fn group_of_instance(instance: &str) -> String {
    format!("{INSTANCE_PREFIX}{instance}")
}

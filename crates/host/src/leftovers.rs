//! What exists of a daemon instance, by the kernel's word and not by anybody's records.
//!
//! A daemon that starts, and `doctor`, compare this with what should exist. It must not know what
//! should.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use crate::cgroup::list_instances;
use crate::cgroup::{CgroupError, CgroupTree};
use crate::mounts::{FileSystemPlace, MountEntry, in_file_system, mounts_of, own_mounts};
use crate::netns::{self, NetnsError};
use crate::posture::parse_cgroups;
use crate::process::{ProcessError, ProcessIdentity, all_pids, read_process_file};

/// Where an instance keeps things.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstancePlaces {
    pub instance: String,
    /// Canonical. All that is mounted or rooted below it belongs to the instance.
    pub data_directory: PathBuf,
    /// Network namespaces are kept here.
    pub netns_directory: PathBuf,
    /// One directory for each slot.
    pub slots_directory: PathBuf,
}

/// One thing that exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Leftover {
    Cgroup {
        name: String,
    },
    Process {
        identity: ProcessIdentity,
        command: String,
        /// Absent when the process was found by its root directory. Empty for the instance's own.
        cgroup: Option<String>,
    },
    NetworkNamespace {
        path: PathBuf,
        is_mounted: bool,
    },
    Mount {
        mount_point: PathBuf,
    },
    SlotDirectory {
        path: PathBuf,
    },
}

/// Lists all that exists of an instance: processes first, then what they hold on to. That is also
/// the order in which it can be removed.
///
/// # Errors
/// See [`FindLeftoversError`].
pub fn find_leftovers(places: &InstancePlaces) -> Result<Vec<Leftover>, FindLeftoversError> {
    let trees = CgroupTree::find_everywhere(&places.instance)
        .map_err(|source| FindLeftoversError::Cgroups { source })?;
    let mounts = own_mounts().map_err(|source| FindLeftoversError::Mounts { source })?;
    let mut found = find_processes(places, &trees, &mounts)
        .map_err(|source| FindLeftoversError::Processes { source })?;
    for tree in &trees {
        let groups = tree
            .list()
            .map_err(|source| FindLeftoversError::Cgroups { source })?;
        found.extend(groups.into_iter().map(|name| Leftover::Cgroup { name }));
    }
    let namespaces = netns::list(&places.netns_directory)
        .map_err(|source| FindLeftoversError::Namespaces { source })?;
    found.extend(mounts_below(places, &mounts));
    found.extend(
        namespaces
            .into_iter()
            .map(|entry| Leftover::NetworkNamespace {
                path: entry.path,
                is_mounted: entry.is_mounted,
            }),
    );
    found.extend(slot_directories(&places.slots_directory).map_err(|source| {
        FindLeftoversError::Slots {
            path: places.slots_directory.clone(),
            source,
        }
    })?);
    Ok(found)
}

/// Why the host could not be looked through.
#[derive(Debug, thiserror::Error)]
pub enum FindLeftoversError {
    #[error("cannot look through the control groups")]
    Cgroups { source: CgroupError },
    #[error("cannot look through the processes")]
    Processes { source: io::Error },
    #[error("cannot look through the mounts")]
    Mounts { source: ProcessError },
    #[error("cannot look through the network namespaces")]
    Namespaces { source: NetnsError },
    #[error("cannot look through {path}")]
    Slots { path: PathBuf, source: io::Error },
}

fn find_processes(
    places: &InstancePlaces,
    trees: &[CgroupTree],
    mounts: &[MountEntry],
) -> io::Result<Vec<Leftover>> {
    let data = in_file_system(&places.data_directory, mounts);
    let found = all_pids()?.into_iter().filter_map(|pid| {
        // A process that ends while it is looked at is not left over.
        let identity = ProcessIdentity::of(pid).ok()?;
        let table = parse_cgroups(&read_process_file(pid, "cgroup").ok()?);
        let cgroup = trees.iter().find_map(|tree| tree.group_of(&table));
        if cgroup.is_none() && !is_rooted_below(pid, data.as_ref()) {
            return None;
        }
        let command = read_process_file(pid, "comm").ok()?.trim().to_owned();
        // A zombie holds nothing but its pid, and its parent will take that.
        let is_zombie = fs::read_link(format!("/proc/{pid}/exe")).is_err();
        (!is_zombie).then_some(Leftover::Process {
            identity,
            command,
            cgroup,
        })
    });
    Ok(found.collect())
}

/// Whether the root of a process is a directory below `data`, in whichever mount namespace.
fn is_rooted_below(pid: i32, data: Option<&FileSystemPlace>) -> bool {
    let Some(data) = data else { return false };
    let Ok(mounts) = mounts_of(pid) else {
        return false;
    };
    let root = mounts
        .iter()
        .rfind(|mount| mount.mount_point == Path::new("/"));
    root.is_some_and(|root| {
        root.source == data.source && root.root != data.root && root.root.starts_with(&data.root)
    })
}

fn mounts_below(places: &InstancePlaces, mounts: &[MountEntry]) -> Vec<Leftover> {
    mounts
        .iter()
        .map(|mount| &mount.mount_point)
        .filter(|point| point.starts_with(&places.data_directory))
        .filter(|point| **point != places.data_directory)
        .filter(|point| point.parent() != Some(&places.netns_directory))
        .map(|point| Leftover::Mount {
            mount_point: point.clone(),
        })
        // The last one mounted has to go first.
        .rev()
        .collect()
}

fn slot_directories(directory: &Path) -> io::Result<Vec<Leftover>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths
        .into_iter()
        .map(|path| Leftover::SlotDirectory { path })
        .collect())
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};
    use std::time::Duration;

    use rustix::mount::{UnmountFlags, mount_bind, unmount};

    use super::*;
    use crate::cgroup::{Cgroup, CgroupLimits};

    const LIMIT: Duration = Duration::from_secs(20);

    fn places(instance: &str, data_directory: &Path) -> InstancePlaces {
        InstancePlaces {
            instance: instance.to_owned(),
            data_directory: data_directory.to_owned(),
            netns_directory: data_directory.join("netns"),
            slots_directory: data_directory.join("slots"),
        }
    }

    /// One of everything, gone when it is dropped.
    struct Traces {
        tree: CgroupTree,
        group: Cgroup,
        child: Child,
        namespace: PathBuf,
        mount_point: PathBuf,
    }

    impl Traces {
        fn leave(places: &InstancePlaces) -> Self {
            let mount_point = places.slots_directory.join("s1/mounted");
            fs::create_dir_all(&mount_point).unwrap();
            fs::create_dir(&places.netns_directory).unwrap();
            let namespace = places.netns_directory.join("n1");
            netns::create(&namespace).unwrap();
            mount_bind(&places.netns_directory, &mount_point).unwrap();
            let tree = CgroupTree::open(&places.instance).unwrap();
            let limits = CgroupLimits {
                memory_bytes: 64 << 20,
                cpu_quota_percent: 100,
                pids_max: 8,
            };
            let group = tree.create("g1", &limits).unwrap();
            let child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
            group.add(i32::try_from(child.id()).unwrap()).unwrap();
            Self {
                tree,
                group,
                child,
                namespace,
                mount_point,
            }
        }
    }

    impl Drop for Traces {
        fn drop(&mut self) {
            self.group.kill_all(LIMIT).unwrap();
            self.child.wait().unwrap();
            self.group.remove(LIMIT).unwrap();
            self.tree.remove(LIMIT).unwrap();
            unmount(&self.mount_point, UnmountFlags::DETACH).unwrap();
            netns::remove(&self.namespace).unwrap();
        }
    }

    #[test]
    fn everything_of_an_instance_is_found_and_nothing_of_another() {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: control groups and namespaces need root");
            return;
        }
        let scratch = tempfile::tempdir().unwrap();
        let data = scratch.path().canonicalize().unwrap();
        let places_of_one = places(&format!("left-{}-one", std::process::id()), &data);
        assert_eq!(find_leftovers(&places_of_one).unwrap(), []);
        let traces = Traces::leave(&places_of_one);
        let wanted = [
            Leftover::Process {
                identity: ProcessIdentity::of(i32::try_from(traces.child.id()).unwrap()).unwrap(),
                command: "cat".to_owned(),
                cgroup: Some("g1".to_owned()),
            },
            Leftover::Cgroup {
                name: "g1".to_owned(),
            },
            Leftover::Mount {
                mount_point: traces.mount_point.clone(),
            },
            Leftover::NetworkNamespace {
                path: traces.namespace.clone(),
                is_mounted: true,
            },
            Leftover::SlotDirectory {
                path: places_of_one.slots_directory.join("s1"),
            },
        ];
        assert_eq!(find_leftovers(&places_of_one).unwrap(), wanted);
        // Its name begins the other's, and its data is elsewhere.
        let shorter = format!("left-{}", std::process::id());
        let places_of_other = places(&shorter, Path::new("/nowhere"));
        assert_eq!(find_leftovers(&places_of_other).unwrap(), []);
    }
}

//! What a confined process should look like.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::DescriptorClass;
use super::threads::{parse_status, read_namespaces};
use crate::jail::{JAIL_FILTERS, JailSpec, MountAccess};
use crate::mounts::{MountEntry, in_file_system, own_mounts};

/// The options of a mount that confine.
pub(super) const CONFINING_OPTIONS: [&str; 5] = ["ro", "rw", "nosuid", "nodev", "noexec"];

/// The facts that must hold. Capabilities must be empty, new privileges off and a filter on in
/// every case; there is nothing to choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    pub uid: u32,
    pub gid: u32,
    pub executable: PathBuf,
    /// The namespaces of the host, by kind.
    pub host_namespaces: BTreeMap<String, u64>,
    /// The kinds in which the process must not share the host's.
    pub own_namespaces: BTreeSet<String>,
    pub network_namespace: u64,
    /// Exactly these.
    pub mounts: Vec<ExpectedMount>,
    /// Every descriptor must fit the first rule of its class and name, and every rule its count.
    pub descriptors: Vec<DescriptorRule>,
    /// By controller. Controllers that are not named may be anything.
    pub cgroups: BTreeMap<String, String>,
    /// Soft and hard; `None` is unlimited.
    pub limits: BTreeMap<String, Option<u64>>,
    /// Filters of system calls: the jail's, those of whoever runs the daemon, and the program's own.
    pub filters: u32,
    pub is_dumpable: bool,
    pub out_of_memory_adjustment: i16,
}

/// One mount that must be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedMount {
    pub mount_point: PathBuf,
    /// What of its file system is mounted.
    pub root: PathBuf,
    /// All of `ro`, `rw`, `nosuid`, `nodev` and `noexec` that must be set; the others must not.
    pub options: BTreeSet<String>,
}

/// Descriptors that may be open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescriptorRule {
    pub class: DescriptorClass,
    /// Any when absent.
    pub name: Option<String>,
    pub may_write: bool,
    pub count_min: usize,
    pub count_max: usize,
}

impl DescriptorRule {
    /// Exactly `count` descriptors of one name.
    #[must_use]
    pub fn exactly(class: DescriptorClass, name: impl Into<String>, count: usize) -> Self {
        let name = Some(name.into());
        Self {
            class,
            name,
            may_write: true,
            count_min: count,
            count_max: count,
        }
    }

    /// Any number up to `count_max` of a class, whatever they are called.
    #[must_use]
    pub fn up_to(class: DescriptorClass, count_max: usize) -> Self {
        Self {
            class,
            name: None,
            may_write: true,
            count_min: 0,
            count_max,
        }
    }

    /// The same rule for descriptors that cannot be written through.
    #[must_use]
    pub fn read_only(self) -> Self {
        Self {
            may_write: false,
            ..self
        }
    }
}

impl Expected {
    /// What a process must look like that `dayfly-jail` launched with `spec`. Its descriptors
    /// depend on the program, so the caller says them. A program that filters its own calls has
    /// more filters.
    ///
    /// # Errors
    /// When the host's own facts cannot be read.
    pub fn of_jail(
        spec: &JailSpec,
        cgroups: BTreeMap<String, String>,
        descriptors: Vec<DescriptorRule>,
    ) -> io::Result<Self> {
        let host_mounts = own_mounts().map_err(io::Error::other)?;
        Ok(Self {
            uid: spec.uid,
            gid: spec.gid,
            executable: executable_of(spec)?,
            host_namespaces: read_namespaces("/proc/self/ns")?,
            own_namespaces: ["mnt", "pid", "ipc", "uts", "net", "cgroup"]
                .map(str::to_owned)
                .into(),
            network_namespace: fs::metadata(&spec.netns)?.ino(),
            mounts: expected_mounts(spec, &host_mounts),
            descriptors,
            cgroups,
            limits: expected_limits(spec),
            filters: own_filters()? + JAIL_FILTERS,
            is_dumpable: false,
            out_of_memory_adjustment: spec.out_of_memory_adjustment,
        })
    }
}

/// A filter is never lost, so a jail has those of the process that it was started by.
fn own_filters() -> io::Result<u32> {
    let status = fs::read_to_string("/proc/self/status")?;
    let own = parse_status(&status).ok_or(io::ErrorKind::InvalidData)?;
    Ok(own.seccomp_filters)
}

/// The path that the kernel will name: links inside the root are resolved.
fn executable_of(spec: &JailSpec) -> io::Result<PathBuf> {
    let relative = spec.program.strip_prefix("/").unwrap_or(&spec.program);
    let root = spec.root.canonicalize()?;
    let resolved = spec.root.join(relative).canonicalize()?;
    let inside = resolved.strip_prefix(&root).map_err(io::Error::other)?;
    Ok(Path::new("/").join(inside))
}

fn expected_mounts(spec: &JailSpec, host: &[MountEntry]) -> Vec<ExpectedMount> {
    let mount = |point: &Path, root: PathBuf, options: &[&str]| ExpectedMount {
        mount_point: point.to_owned(),
        root,
        options: options.iter().map(|&option| option.to_owned()).collect(),
    };
    let root = mount(
        Path::new("/"),
        root_in_file_system(&spec.root, host),
        &["ro", "nosuid", "nodev"],
    );
    let devices = mount(
        Path::new("/dev"),
        PathBuf::from("/"),
        &["ro", "nosuid", "noexec"],
    );
    let binds = spec.mounts.iter().map(|bind| {
        let access = match bind.access {
            MountAccess::ReadOnly => "ro",
            MountAccess::ReadWrite => "rw",
        };
        let root = root_in_file_system(&bind.source, host);
        mount(&bind.target, root, &[access, "nosuid", "nodev", "noexec"])
    });
    [root, devices].into_iter().chain(binds).collect()
}

fn expected_limits(spec: &JailSpec) -> BTreeMap<String, Option<u64>> {
    [
        ("Max core file size", Some(0)),
        ("Max open files", Some(spec.limits.open_files)),
        ("Max locked memory", Some(spec.limits.locked_memory_bytes)),
        ("Max file size", spec.limits.file_size_bytes),
    ]
    .map(|(name, limit)| (name.to_owned(), limit))
    .into()
}

fn root_in_file_system(path: &Path, host: &[MountEntry]) -> PathBuf {
    in_file_system(path, host).map_or_else(|| path.to_owned(), |place| place.root)
}

//! What a slot is made of.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::calls::JailCalls;

/// The most that a specification may take as JSON.
pub const SPEC_BYTES_MAX: u64 = 256 * 1024;
/// In every jail, because it is the engine's standard input.
pub const NULL_DEVICE: &str = "/dev/null";
const HOSTNAME_BYTES_MAX: usize = 64;
const ADJUSTMENTS: std::ops::RangeInclusive<i16> = -1000..=1000;

/// Everything that an engine process can see and use. All host paths are absolute and free of
/// symbolic links; all targets are paths inside the jail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JailSpec {
    /// Must not be root; should belong to this slot alone.
    pub uid: u32,
    pub gid: u32,
    /// The `cgroup.procs` files to join, see [`crate::Cgroup::procs_paths`].
    pub cgroup_procs: Vec<PathBuf>,
    /// A kept network namespace, see [`crate::netns`].
    pub netns: PathBuf,
    pub hostname: String,
    /// The directory that becomes `/`, read-only, see [`crate::engine_root`].
    pub root: PathBuf,
    /// In order; a later one may stand inside an earlier one.
    pub mounts: Vec<BindMount>,
    /// Character devices of the host to offer at the same path. [`NULL_DEVICE`] is always there.
    pub devices: Vec<PathBuf>,
    pub limits: ResourceLimits,
    /// What it may ask of the kernel.
    pub calls: JailCalls,
    /// From -1000 (never) to 1000 (first): whom the kernel ends when the host runs out of memory.
    /// Said outright, because an engine must not inherit the protection of its daemon.
    pub out_of_memory_adjustment: i16,
    /// Inside the jail.
    pub program: PathBuf,
    /// Without the program's own name.
    pub arguments: Vec<String>,
    /// The whole environment; nothing is inherited.
    pub environment: BTreeMap<String, String>,
    pub working_directory: PathBuf,
}

/// One file or directory of the host inside the jail. Never executable, no devices, no
/// set-user-id; mounts below the source do not come along.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BindMount {
    pub source: PathBuf,
    /// Must exist in the root, or in an earlier mount, as the same kind of thing.
    pub target: PathBuf,
    pub access: MountAccess,
}

/// What may be done through a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MountAccess {
    ReadOnly,
    ReadWrite,
}

/// Limits that the kernel keeps for each process. Core files are always off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResourceLimits {
    pub open_files: u64,
    pub locked_memory_bytes: u64,
    /// The largest file that it can write; none when absent.
    pub file_size_bytes: Option<u64>,
}

impl JailSpec {
    /// Checks what can be checked without looking at the host.
    ///
    /// # Errors
    /// [`InvalidSpec`] with the field that is wrong.
    pub fn validate(&self) -> Result<(), InvalidSpec> {
        if self.uid == 0 || self.gid == 0 {
            return Err(InvalidSpec::Root);
        }
        if self.hostname.is_empty() || self.hostname.len() > HOSTNAME_BYTES_MAX {
            return Err(InvalidSpec::Hostname);
        }
        if !ADJUSTMENTS.contains(&self.out_of_memory_adjustment) {
            return Err(InvalidSpec::Adjustment);
        }
        if self.cgroup_procs.is_empty() {
            return Err(InvalidSpec::NoCgroup);
        }
        let sources = self.mounts.iter().map(|mount| &mount.source);
        let paths = [
            &self.netns,
            &self.root,
            &self.program,
            &self.working_directory,
        ];
        for path in sources
            .chain(&self.cgroup_procs)
            .chain(&self.devices)
            .chain(paths)
        {
            check_path(path)?;
        }
        for target in self.mounts.iter().map(|mount| &mount.target) {
            check_path(target)?;
            // The root and the devices are not for a mount to replace.
            if target.parent().is_none() || target.starts_with("/dev") {
                return Err(InvalidSpec::Target {
                    path: target.clone(),
                });
            }
        }
        for device in &self.devices {
            if !device.starts_with("/dev/") {
                return Err(InvalidSpec::Device {
                    path: device.clone(),
                });
            }
        }
        Ok(())
    }
}

/// Why a specification makes no jail.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSpec {
    #[error("the user and the group of a jail must not be root")]
    Root,
    #[error("the host name must have between 1 and {HOSTNAME_BYTES_MAX} bytes")]
    Hostname,
    #[error("the out-of-memory adjustment must be between -1000 and 1000")]
    Adjustment,
    #[error("a jail must be in a control group")]
    NoCgroup,
    #[error("{path} is not an absolute path without '..'")]
    Path { path: PathBuf },
    #[error("nothing may be mounted at {path}")]
    Target { path: PathBuf },
    #[error("{path} is not below /dev")]
    Device { path: PathBuf },
}

fn check_path(path: &Path) -> Result<(), InvalidSpec> {
    let plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
    if path.is_absolute() && path.components().all(plain) {
        Ok(())
    } else {
        Err(InvalidSpec::Path {
            path: path.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> JailSpec {
        JailSpec {
            uid: 700_001,
            gid: 700_001,
            cgroup_procs: vec![PathBuf::from("/sys/fs/cgroup/a/cgroup.procs")],
            netns: PathBuf::from("/n"),
            hostname: "engine".to_owned(),
            root: PathBuf::from("/r"),
            mounts: vec![BindMount {
                source: PathBuf::from("/s"),
                target: PathBuf::from("/run"),
                access: MountAccess::ReadWrite,
            }],
            devices: vec![PathBuf::from("/dev/kvm")],
            limits: ResourceLimits {
                open_files: 64,
                locked_memory_bytes: 0,
                file_size_bytes: None,
            },
            calls: JailCalls::EmulatedEngine,
            out_of_memory_adjustment: 500,
            program: PathBuf::from("/usr/bin/engine"),
            arguments: Vec::new(),
            environment: BTreeMap::new(),
            working_directory: PathBuf::from("/"),
        }
    }

    #[test]
    fn a_plain_specification_is_valid_and_survives_json() {
        assert_eq!(spec().validate(), Ok(()));
        let text = serde_json::to_string(&spec()).unwrap();
        assert_eq!(serde_json::from_str::<JailSpec>(&text).unwrap(), spec());
        let extended = text.replacen('{', "{\"capabilities\":1,", 1);
        assert!(serde_json::from_str::<JailSpec>(&extended).is_err());
    }

    #[test]
    fn what_would_open_the_jail_is_refused() {
        type Change = fn(&mut JailSpec);
        let changes: [Change; 9] = [
            |spec| spec.out_of_memory_adjustment = 1001,
            |spec| spec.uid = 0,
            |spec| spec.gid = 0,
            |spec| spec.cgroup_procs.clear(),
            |spec| spec.mounts[0].target = PathBuf::from("/"),
            |spec| spec.mounts[0].target = PathBuf::from("/dev/null"),
            |spec| spec.mounts[0].target = PathBuf::from("/run/../usr"),
            |spec| spec.mounts[0].source = PathBuf::from("relative"),
            |spec| spec.devices[0] = PathBuf::from("/etc/shadow"),
        ];
        for (index, change) in changes.iter().enumerate() {
            let mut spec = spec();
            change(&mut spec);
            assert!(spec.validate().is_err(), "change {index}");
        }
    }
}

//! Control groups of one daemon instance: `dayfly-<instance>/<name>`, on either cgroup version, and
//! in the part of the unified hierarchy that systemd has left to Dayfly if there is one.
//!
//! It must not know what a group is for. The version is found out once, when the tree is opened:
//! the unified hierarchy when it carries cpu, memory and pids, the separate ones otherwise.

mod files;
mod group;
mod hierarchy;
mod home;
mod kill;
mod tree;
mod v1;
mod v2;

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use group::Cgroup;
pub use hierarchy::CgroupVersion;
pub use tree::CgroupTree;

use files::subdirectories;
use hierarchy::detect;

/// What the name of an instance's group begins with.
const INSTANCE_PREFIX: &str = "dayfly-";
const NAME_CHARACTERS_MAX: usize = 100;
/// Upper bounds of one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupLimits {
    /// Memory and swap together. The kernel rounds down to whole pages.
    pub memory_bytes: u64,
    /// 100 for each core.
    pub cpu_quota_percent: u32,
    pub pids_max: u32,
}

/// What a group has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupUsage {
    pub memory_bytes: u64,
    pub cpu_micros: u64,
    pub oom_kills: u64,
}

/// Which version this host's groups would be made with.
///
/// # Errors
/// [`CgroupError::Unsupported`] when a controller is missing.
pub fn detect_version() -> Result<CgroupVersion, CgroupError> {
    detect().map(|hierarchy| hierarchy.version())
}

/// The instances that have a group on this host, whether their daemon runs or not.
///
/// # Errors
/// When the hierarchy cannot be found or read.
pub fn list_instances() -> Result<Vec<String>, CgroupError> {
    let mut instances = BTreeSet::new();
    let places = home::places(detect()?);
    for directory in places.iter().flat_map(|place| place.directories("")) {
        let names = subdirectories(&directory)?;
        instances.extend(
            names
                .iter()
                .filter_map(|name| name.strip_prefix(INSTANCE_PREFIX))
                .map(str::to_owned),
        );
    }
    Ok(instances.into_iter().collect())
}

/// Why an operation on control groups failed.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    #[error("{name:?} is no name for a control group")]
    Name { name: String },
    #[error("this host has no control group hierarchy with {missing}")]
    Unsupported { missing: String },
    #[error("cannot read the mount table")]
    Mounts {
        source: crate::process::ProcessError,
    },
    #[error("control group {name} exists")]
    Exists { name: String },
    #[error("there is no control group {name}")]
    Absent { name: String },
    #[error("control group {path} is gone; its unit has to be started again")]
    Undelegated { path: PathBuf },
    #[error("cannot make control group {path}")]
    Make { path: PathBuf, source: io::Error },
    #[error("cannot read {path}")]
    Read { path: PathBuf, source: io::Error },
    #[error("{path} holds {text:?}, which is not understood")]
    Malformed { path: PathBuf, text: String },
    #[error("cannot write {value:?} to {path}")]
    Write {
        path: PathBuf,
        value: String,
        source: io::Error,
    },
    #[error("{count} processes of control group {name} did not end in time")]
    StillRunning { name: String, count: usize },
    #[error("control group {path} was not empty in time")]
    Busy { path: PathBuf, source: io::Error },
    #[error("cannot remove control group {path}")]
    Remove { path: PathBuf, source: io::Error },
}

fn check_name(name: &str) -> Result<(), CgroupError> {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_".contains(&b);
    if name.is_empty() || name.len() > NAME_CHARACTERS_MAX || !name.bytes().all(plain) {
        return Err(CgroupError::Name {
            name: name.to_owned(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests;

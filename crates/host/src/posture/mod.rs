//! What the kernel says about how a process is confined, and how that differs from what it should
//! be.
//!
//! Everything here is read from outside, so the process has no say in it. It must not know what a
//! jail is meant to protect: it compares facts with an [`Expected`] that a caller made.

mod compare;
mod descriptors;
mod expected;
mod threads;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;

use serde::{Deserialize, Serialize};

pub use compare::differences;
pub use descriptors::{Descriptor, DescriptorClass};
pub use expected::{DescriptorRule, Expected, ExpectedMount};
pub use threads::{CapabilitySets, Ids, ThreadPosture};

use crate::memory::parse_mapping_header;
use crate::mounts::{MountEntry, mounts_of};
use crate::process::{Pidfd, ProcessError, ProcessIdentity, gone_or, malformed, read_process_file};

/// Every fact about the confinement of one process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Posture {
    pub identity: ProcessIdentity,
    /// The program's path inside its root.
    pub executable: String,
    pub threads: Vec<ThreadPosture>,
    pub mounts: Vec<MountEntry>,
    pub descriptors: Vec<Descriptor>,
    /// Path by controller; the unified hierarchy's controller is the empty name.
    pub cgroups: BTreeMap<String, String>,
    /// By the kernel's name for it, such as `Max open files`.
    pub limits: BTreeMap<String, LimitPair>,
    /// Whether processes of the same user may trace it and whether it would leave a core file.
    pub is_dumpable: bool,
    /// From -1000 to 1000: whom the kernel ends first when memory runs out.
    pub out_of_memory_adjustment: i16,
    pub mappings: MappingSummary,
}

/// A resource limit; `None` is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitPair {
    pub soft: Option<u64>,
    pub hard: Option<u64>,
}

/// What a process has mapped, in short.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MappingSummary {
    pub count: u32,
    pub writable_and_executable: u32,
    /// Files that it can execute from.
    pub executable_files: BTreeSet<String>,
    /// Files that it changes by writing to memory.
    pub shared_writable_files: BTreeSet<String>,
}

/// Reads every fact about a process. A process that changes meanwhile may give a mixture.
///
/// # Errors
/// When it is gone or something cannot be read, which for a process of another user takes root.
pub fn read_posture(identity: ProcessIdentity) -> Result<Posture, ProcessError> {
    let handle = Pidfd::open(identity)?;
    let pid = identity.pid;
    let posture = Posture {
        identity,
        executable: read_executable(pid)?,
        threads: threads::read_threads(pid)?,
        mounts: mounts_of(pid)?,
        descriptors: descriptors::read_descriptors(pid)?,
        cgroups: parse_cgroups(&read_process_file(pid, "cgroup")?),
        limits: parse_limits(&read_process_file(pid, "limits")?),
        is_dumpable: read_dumpable(pid)?,
        out_of_memory_adjustment: read_adjustment(pid)?,
        mappings: summarise_mappings(&read_process_file(pid, "maps")?),
    };
    // Files of a process that has ended read as empty, which must not pass for an empty jail.
    if handle.is_alive() {
        Ok(posture)
    } else {
        Err(ProcessError::Gone { pid })
    }
}

fn read_executable(pid: i32) -> Result<String, ProcessError> {
    let link = fs::read_link(format!("/proc/{pid}/exe"));
    let path = link.map_err(|source| gone_or(pid, "exe", source))?;
    Ok(path.to_string_lossy().into_owned())
}

fn read_adjustment(pid: i32) -> Result<i16, ProcessError> {
    let text = read_process_file(pid, "oom_score_adj")?;
    text.trim()
        .parse()
        .map_err(|_| malformed(pid, "oom_score_adj"))
}

/// The kernel gives the files of a process that is not dumpable to root.
fn read_dumpable(pid: i32) -> Result<bool, ProcessError> {
    let status = fs::metadata(format!("/proc/{pid}/stat"));
    let owner = status.map_err(|source| gone_or(pid, "stat", source))?.uid();
    let text = read_process_file(pid, "status")?;
    let thread = threads::parse_status(&text).ok_or_else(|| malformed(pid, "status"))?;
    Ok(owner == thread.user_ids.effective && owner != 0)
}

/// Path by controller, from a `cgroup` file of `/proc`.
pub(crate) fn parse_cgroups(text: &str) -> BTreeMap<String, String> {
    let mut cgroups = BTreeMap::new();
    for line in text.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        for controller in controllers.split(',') {
            cgroups.insert(controller.to_owned(), path.to_owned());
        }
    }
    cgroups
}

/// The table has a column of names with blanks in them, then two values and perhaps a unit.
fn parse_limits(text: &str) -> BTreeMap<String, LimitPair> {
    const NAME_COLUMNS: usize = 26;
    let parse = |value: &str| value.parse().ok();
    text.lines()
        .skip(1)
        .filter_map(|line| {
            let (name, values) = line.split_at_checked(NAME_COLUMNS)?;
            let mut values = values.split_ascii_whitespace();
            let pair = LimitPair {
                soft: parse(values.next()?),
                hard: parse(values.next()?),
            };
            Some((name.trim().to_owned(), pair))
        })
        .collect()
}

fn summarise_mappings(text: &str) -> MappingSummary {
    let mut summary = MappingSummary::default();
    for header in text.lines().filter_map(parse_mapping_header) {
        let has = |permission| header.permissions.contains(permission);
        let is_file = header.path.starts_with('/');
        summary.count += 1;
        summary.writable_and_executable += u32::from(has('w') && has('x'));
        if is_file && has('x') {
            summary.executable_files.insert(header.path.clone());
        }
        if is_file && has('w') && has('s') {
            summary.shared_writable_files.insert(header.path);
        }
    }
    summary
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_the_kernel_are_understood() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max core file size        0                    unlimited            bytes     \n\
                      Max nice priority         0                    0                    \n";
        let limits = parse_limits(limits);
        assert_eq!(
            limits["Max core file size"],
            LimitPair {
                soft: Some(0),
                hard: None
            }
        );
        assert_eq!(limits.len(), 2);
        let cgroups = parse_cgroups("4:cpu,cpuacct:/a\n1:name=systemd:/\n0::/x:y\n");
        assert_eq!(cgroups["cpuacct"], "/a");
        assert_eq!(cgroups[""], "/x:y");
        let maps = "1-2 rwxp 0 0:0 0 \n3-4 r-xp 0 0:0 9 /lib/a\n5-6 rw-s 0 0:0 9 /run/ram\n";
        let summary = summarise_mappings(maps);
        assert_eq!((summary.count, summary.writable_and_executable), (3, 1));
        assert!(summary.executable_files.contains("/lib/a"));
        assert!(summary.shared_writable_files.contains("/run/ram"));
    }

    #[test]
    fn own_posture_can_be_read() {
        let own = i32::try_from(std::process::id()).unwrap();
        let posture = read_posture(ProcessIdentity::of(own).unwrap()).unwrap();
        assert!(!posture.threads.is_empty());
        assert!(posture.limits.contains_key("Max open files"));
        assert!(
            posture
                .descriptors
                .iter()
                .any(|descriptor| descriptor.number == 0)
        );
    }
}

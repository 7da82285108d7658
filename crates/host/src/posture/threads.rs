//! Facts that each thread has for itself.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

use serde::{Deserialize, Serialize};

use crate::process::{ProcessError, gone_or, malformed, read_process_file};

/// The kinds that are read; a kernel without one of them has no entry for it.
pub(super) const NAMESPACES: [&str; 8] =
    ["mnt", "pid", "ipc", "uts", "net", "cgroup", "user", "time"];

/// The confinement of one thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadPosture {
    pub thread: i32,
    pub user_ids: Ids,
    pub group_ids: Ids,
    pub groups: Vec<u32>,
    pub capabilities: CapabilitySets,
    pub no_new_privileges: bool,
    /// 0 off, 1 strict, 2 filter.
    pub seccomp_mode: u32,
    /// How many filters every call passes.
    pub seccomp_filters: u32,
    /// Inode number by kind.
    pub namespaces: BTreeMap<String, u64>,
}

/// The four ids that a thread has of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ids {
    pub real: u32,
    pub effective: u32,
    pub saved: u32,
    pub file_system: u32,
}

impl Ids {
    /// Whether all four are `id`.
    #[must_use]
    pub fn are_all(self, id: u32) -> bool {
        [self.real, self.effective, self.saved, self.file_system] == [id; 4]
    }
}

/// The five capability sets, a bit for each capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CapabilitySets {
    pub inheritable: u64,
    pub permitted: u64,
    pub effective: u64,
    pub bounding: u64,
    pub ambient: u64,
}

pub(super) fn read_threads(pid: i32) -> Result<Vec<ThreadPosture>, ProcessError> {
    let failed = |source| gone_or(pid, "task", source);
    let mut threads = Vec::new();
    for entry in fs::read_dir(format!("/proc/{pid}/task")).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let Some(thread) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        match read_thread(pid, thread) {
            Ok(posture) => threads.push(posture),
            // A thread may end while its process is looked at.
            Err(ProcessError::Gone { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    threads.sort_by_key(|thread| thread.thread);
    if threads.is_empty() {
        Err(ProcessError::Gone { pid })
    } else {
        Ok(threads)
    }
}

fn read_thread(pid: i32, thread: i32) -> Result<ThreadPosture, ProcessError> {
    let file = format!("task/{thread}/status");
    let mut posture =
        parse_status(&read_process_file(pid, &file)?).ok_or_else(|| malformed(pid, "status"))?;
    posture.thread = thread;
    posture.namespaces = read_namespaces(&format!("/proc/{pid}/task/{thread}/ns"))
        .map_err(|source| gone_or(pid, "ns", source))?;
    Ok(posture)
}

/// Inode number by kind, from an `ns` directory of `/proc`.
pub(super) fn read_namespaces(directory: &str) -> std::io::Result<BTreeMap<String, u64>> {
    // A thread that ends takes the directory along; that is told apart from a missing kind here.
    fs::metadata(directory)?;
    let mut namespaces = BTreeMap::new();
    for kind in NAMESPACES {
        match fs::metadata(format!("{directory}/{kind}")) {
            Ok(status) => {
                namespaces.insert(kind.to_owned(), status.ino());
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(namespaces)
}

/// Reads a `status` file of `/proc`; the thread's number and namespaces are not in it.
pub(super) fn parse_status(text: &str) -> Option<ThreadPosture> {
    let field = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim))
    };
    let set = |name: &str| u64::from_str_radix(field(name)?, 16).ok();
    let groups = field("Groups")?
        .split_ascii_whitespace()
        .map(|group| group.parse().ok());
    Some(ThreadPosture {
        thread: field("Pid")?.parse().ok()?,
        user_ids: parse_ids(field("Uid")?)?,
        group_ids: parse_ids(field("Gid")?)?,
        groups: groups.collect::<Option<_>>()?,
        capabilities: CapabilitySets {
            inheritable: set("CapInh")?,
            permitted: set("CapPrm")?,
            effective: set("CapEff")?,
            bounding: set("CapBnd")?,
            ambient: set("CapAmb")?,
        },
        no_new_privileges: field("NoNewPrivs")? == "1",
        // A kernel without filters has no such line, and then there is no filter.
        seccomp_mode: field("Seccomp").unwrap_or("0").parse().ok()?,
        seccomp_filters: field("Seccomp_filters").unwrap_or("0").parse().ok()?,
        namespaces: BTreeMap::new(),
    })
}

fn parse_ids(text: &str) -> Option<Ids> {
    let mut ids = text.split_ascii_whitespace().map(|id| id.parse().ok());
    Some(Ids {
        real: ids.next()??,
        effective: ids.next()??,
        saved: ids.next()??,
        file_system: ids.next()??,
    })
}

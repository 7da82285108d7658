//! Ending every process of a group.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::files::{is_absent, write_value};
use super::hierarchy::Hierarchy;
use super::{Cgroup, CgroupError};
use crate::process::{Pidfd, ProcessIdentity, read_process_file};

/// How long to wait for one generation of members before looking for their children.
const ROUND_MAX: Duration = Duration::from_millis(100);
const BETWEEN_ROUNDS: Duration = Duration::from_millis(1);

pub(super) fn kill_all(group: &Cgroup, deadline: Instant) -> Result<(), CgroupError> {
    if let Hierarchy::V2(mount) = &group.hierarchy {
        let directory = mount.directory(&group.relative);
        if kill_in_kernel(&directory)? {
            return match wait_until_unpopulated(&directory, deadline) {
                Ok(true) => Ok(()),
                Ok(false) => Err(still_running(group)?),
                Err(source) => Err(CgroupError::Read {
                    path: directory.join("cgroup.events"),
                    source,
                }),
            };
        }
    }
    forbid_forks(group)?;
    kill_in_rounds(group, deadline)
}

/// Asks the kernel to end the whole group at once; `false` when it does not know how.
pub(super) fn kill_in_kernel(directory: &Path) -> Result<bool, CgroupError> {
    let file = directory.join("cgroup.kill");
    if !file.exists() {
        // Either the group is gone, and then the wait finds nobody, or the kernel is older.
        return Ok(!directory.exists());
    }
    match write_value(&file, "1") {
        Err(CgroupError::Write { source, .. }) if is_absent(&source) => Ok(true),
        other => other.map(|()| true),
    }
}

/// Waits for the kernel's word that no process is left; `false` at the deadline.
pub(super) fn wait_until_unpopulated(directory: &Path, deadline: Instant) -> io::Result<bool> {
    let mut events = match File::open(directory.join("cgroup.events")) {
        Err(error) if is_absent(&error) => return Ok(true),
        other => other?,
    };
    loop {
        let mut text = String::new();
        events.rewind()?;
        match events.read_to_string(&mut text) {
            Err(error) if is_absent(&error) => return Ok(true),
            other => other?,
        };
        if text.lines().any(|line| line == "populated 0") {
            return Ok(true);
        }
        let remaining = deadline.saturating_duration_since(Instant::now());
        if remaining.is_zero() {
            return Ok(false);
        }
        let timeout = Timespec::try_from(remaining).ok();
        // The kernel flags a change of this file as an exceptional condition.
        poll(
            &mut [PollFd::new(&events, PollFlags::PRI)],
            timeout.as_ref(),
        )?;
    }
}

/// Without this a member that forks faster than it is found would never be caught.
fn forbid_forks(group: &Cgroup) -> Result<(), CgroupError> {
    let path = match &group.hierarchy {
        Hierarchy::V1(mounts) => mounts.pids_max(&group.relative),
        Hierarchy::V2(mount) => mount.directory(&group.relative).join("pids.max"),
    };
    if path.exists() {
        write_value(&path, "0")
    } else {
        Ok(())
    }
}

fn kill_in_rounds(group: &Cgroup, deadline: Instant) -> Result<(), CgroupError> {
    loop {
        let pids = group.pids()?;
        if pids.is_empty() {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(CgroupError::StillRunning {
                name: group.name.clone(),
                count: pids.len(),
            });
        }
        let killed: Vec<_> = pids
            .into_iter()
            .filter_map(|pid| kill_member(group, pid))
            .collect();
        let round_end = deadline.min(Instant::now() + ROUND_MAX);
        for member in &killed {
            let _ended = member.wait_blocking(round_end.saturating_duration_since(Instant::now()));
        }
        if killed.is_empty() {
            // All that were listed are on their way out.
            std::thread::sleep(BETWEEN_ROUNDS);
        }
    }
}

/// Kills a process if it is a member. The handle is opened before its membership is read, so a
/// pid that has been handed on to an outsider is spared.
fn kill_member(group: &Cgroup, pid: i32) -> Option<Pidfd> {
    let handle = Pidfd::open(ProcessIdentity::of(pid).ok()?).ok()?;
    let lines = read_process_file(pid, "cgroup").ok()?;
    let expected = group.membership();
    let is_member = lines.lines().any(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            return false;
        };
        controllers
            .split(',')
            .any(|name| expected.get(name).is_some_and(|group| group == path))
    });
    if !is_member || !handle.is_alive() {
        return None;
    }
    handle.kill().ok()?;
    Some(handle)
}

fn still_running(group: &Cgroup) -> Result<CgroupError, CgroupError> {
    let count = group.pids()?.len();
    Ok(CgroupError::StillRunning {
        name: group.name.clone(),
        count,
    })
}

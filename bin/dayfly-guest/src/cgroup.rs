//! Control groups: where user processes live, how they are frozen, killed and counted.
//!
//! User processes, and whatever engine of containers they run, see the group of users as the root
//! of all groups. So the groups that they make are below it, and are frozen and limited with it.

use std::fs;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use dayfly_types::exec::ExecLimits;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};

use crate::clock::monotonic_ms;
use crate::sys;

/// Where the hierarchy is mounted, for the agent at first and for users later.
pub(crate) const ROOT: &str = "/sys/fs/cgroup";
/// Processes and threads of all users together: a fork bomb ends here.
const USER_PIDS_MAX: &str = "4096";
/// Processes and threads of hooks.
const HOOK_PIDS_MAX: &str = "512";
/// What stays for the kernel and the agent when user processes take all they can.
const RESERVED_BYTES: u64 = 64 << 20;
/// How long every user process has to stop at a point where it can be frozen.
pub(crate) const FREEZE_DEADLINE: Duration = Duration::from_secs(5);

/// The group of all user processes.
#[derive(Debug)]
pub(crate) struct UserGroup {
    path: PathBuf,
    hooks: PathBuf,
    /// The real root, under which both paths go; no path of the guest's leads there any more.
    _root: OwnedFd,
}

/// The group of one exec, or of hooks.
#[derive(Debug)]
pub(crate) struct ExecGroup {
    path: PathBuf,
}

impl UserGroup {
    /// Makes the group and its limits, and takes it for the root of what is seen from now on. What
    /// is mounted at [`ROOT`] still shows the real one; that mount may go afterwards.
    pub(crate) fn create() -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(ROOT, flags, Mode::empty())?;
        let real = PathBuf::from(format!("/proc/self/fd/{}", root.as_raw_fd()));
        let path = real.join("user");
        enable_controllers(&real);
        match fs::create_dir(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        // The agent is in the group for this one call: no process may be in it once it gives its
        // controllers on, and the agent shall not share its limits.
        fs::write(path.join("cgroup.procs"), "0")?;
        let taken = sys::take_group_for_root();
        fs::write(real.join("cgroup.procs"), "0")?;
        taken?;
        enable_controllers(&path);
        // A kernel without a controller still gives a working guest, only a less fair one.
        let _ = fs::write(path.join("pids.max"), USER_PIDS_MAX);
        let memory = memory_total_bytes()?.saturating_sub(RESERVED_BYTES);
        let _ = fs::write(path.join("memory.max"), memory.to_string());
        Ok(Self {
            path,
            hooks: real.join("hooks"),
            _root: root,
        })
    }

    /// Makes the group of hooks. It is no part of this one, which is frozen when they run.
    pub(crate) fn create_for_hooks(&self) -> io::Result<ExecGroup> {
        match fs::create_dir(&self.hooks) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let _ = fs::write(self.hooks.join("pids.max"), HOOK_PIDS_MAX);
        Ok(ExecGroup {
            path: self.hooks.clone(),
        })
    }

    /// Makes the group of one exec.
    pub(crate) fn create_exec(&self, number: u64) -> io::Result<ExecGroup> {
        let path = self.path.join(format!("exec-{number}"));
        fs::create_dir(&path)?;
        Ok(ExecGroup { path })
    }

    /// Stops all user processes and waits until the last one stands.
    pub(crate) fn freeze(&self) -> io::Result<()> {
        fs::write(self.path.join("cgroup.freeze"), "1")?;
        let mut events = fs::File::open(self.path.join("cgroup.events"))?;
        let end = monotonic_ms() + u64::try_from(FREEZE_DEADLINE.as_millis()).unwrap_or(0);
        let mut text = String::new();
        loop {
            text.clear();
            events.rewind()?;
            events.read_to_string(&mut text)?;
            if text.lines().any(|line| line == "frozen 1") {
                return Ok(());
            }
            let left_ms = end.saturating_sub(monotonic_ms());
            if left_ms == 0 {
                return Err(io::ErrorKind::TimedOut.into());
            }
            wait_for_change(&events, left_ms)?;
        }
    }

    /// Lets user processes go on.
    pub(crate) fn thaw(&self) -> io::Result<()> {
        fs::write(self.path.join("cgroup.freeze"), "0")
    }
}

impl ExecGroup {
    /// The file that takes the number of a process which shall live here.
    pub(crate) fn entrance(&self) -> PathBuf {
        self.path.join("cgroup.procs")
    }

    /// Ends every process in the group at once.
    pub(crate) fn kill(&self) -> io::Result<()> {
        fs::write(self.path.join("cgroup.kill"), "1")
    }

    /// Sets what its processes may use together. Processor time is no rate but a sum, which the
    /// kernel only counts.
    pub(crate) fn limit(&self, limits: &ExecLimits) -> io::Result<()> {
        if let Some(bytes) = limits.memory_bytes {
            fs::write(self.path.join("memory.max"), bytes.to_string())?;
            // A kernel without swap has no such file.
            let _ = fs::write(self.path.join("memory.swap.max"), "0");
            // All or none: half of an exec helps nobody.
            let _ = fs::write(self.path.join("memory.oom.group"), "1");
        }
        if let Some(count) = limits.processes_max {
            fs::write(self.path.join("pids.max"), count.to_string())?;
        }
        Ok(())
    }

    /// Processor time that its processes have used.
    pub(crate) fn cpu_used_us(&self) -> Option<u64> {
        self.number("cpu.stat", "usage_usec")
    }

    /// Whether the kernel has killed a process of this group for want of memory.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        self.has_counted("memory.events", "oom_kill")
    }

    /// Whether it did so because of the limit of this very group: of all groups above it, only the
    /// one whose limit was reached counts an `oom`.
    pub(crate) fn went_over_its_memory(&self) -> bool {
        self.ran_out_of_memory() && self.has_counted("memory.events", "oom")
    }

    /// Whether a process of the group wanted to start one too many.
    pub(crate) fn was_refused_a_process(&self) -> bool {
        self.has_counted("pids.events", "max")
    }

    fn has_counted(&self, file: &str, name: &str) -> bool {
        self.number(file, name).is_some_and(|count| count > 0)
    }

    /// One number of a file that has a name and a number in each line.
    fn number(&self, file: &str, name: &str) -> Option<u64> {
        let text = fs::read_to_string(self.path.join(file)).ok()?;
        let mut fields = text.lines().filter_map(|line| line.split_once(' '));
        let (_, number) = fields.find(|(field, _)| *field == name)?;
        number.parse().ok()
    }

    /// Removes the group if no process is left in it. Gives whether it is gone.
    pub(crate) fn try_remove(&self) -> bool {
        match fs::remove_dir(&self.path) {
            Ok(()) => true,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }
}

fn enable_controllers(group: &Path) {
    // The last two are for engines of containers; the agent has no use for them.
    for controller in ["+cpu", "+memory", "+pids", "+cpuset", "+io"] {
        // One by one, so that a kernel that lacks one still enables the others.
        let _ = fs::write(group.join("cgroup.subtree_control"), controller);
    }
}

fn wait_for_change(events: &fs::File, left_ms: u64) -> io::Result<()> {
    // The kernel announces at most every ten milliseconds; look again after that at the latest,
    // so that a missed announcement costs little.
    let nanos = i64::try_from(left_ms.min(10) * 1_000_000).unwrap_or(0);
    let timeout = Timespec {
        tv_sec: 0,
        tv_nsec: nanos,
    };
    poll(
        &mut [PollFd::new(&events.as_fd(), PollFlags::PRI)],
        Some(&timeout),
    )?;
    Ok(())
}

fn memory_total_bytes() -> io::Result<u64> {
    let text = fs::read_to_string("/proc/meminfo")?;
    let field = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = field.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.map(|kib| kib * 1024)
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

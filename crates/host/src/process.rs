//! Processes named so that a recycled pid cannot be mistaken for them.
//!
//! It must not know which program a process runs or why.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid,
};
use serde::{Deserialize, Serialize};

use crate::sys::watch_readable;

/// A process of this boot: its pid, and when it started, which no later holder of the pid shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessIdentity {
    pub pid: i32,
    pub start_time_ticks: u64,
}

impl ProcessIdentity {
    /// Reads who holds `pid` now. A zombie still holds its pid.
    ///
    /// # Errors
    /// [`ProcessError::Gone`] when nobody does.
    pub fn of(pid: i32) -> Result<Self, ProcessError> {
        let stat = read_stat(pid)?;
        Ok(Self {
            pid,
            start_time_ticks: stat.start_time_ticks,
        })
    }

    /// Processor time of all its threads since its start.
    ///
    /// # Errors
    /// [`ProcessError::Gone`] when it has ended, [`ProcessError::Recycled`] when somebody else has
    /// its pid.
    pub fn cpu_time(self) -> Result<Duration, ProcessError> {
        let Self { pid, .. } = self;
        let stat = read_process_file(pid, "stat")?;
        if Self::from_stat(pid, &stat)? != self {
            return Err(ProcessError::Recycled { pid });
        }
        cpu_time_in(pid, &stat)
    }

    /// Reads a `stat` file of `/proc` that the caller opened.
    ///
    /// # Errors
    /// [`ProcessError::Unreadable`] when the text is not such a file.
    pub fn from_stat(pid: i32, stat: &str) -> Result<Self, ProcessError> {
        let start_time_ticks = parse_stat(stat)
            .ok_or_else(|| malformed(pid, "stat"))?
            .start_time_ticks;
        Ok(Self {
            pid,
            start_time_ticks,
        })
    }
}

/// Processor time of all threads of a process since its start.
///
/// # Errors
/// [`ProcessError::Gone`] when there is no such process.
pub fn cpu_time(pid: i32) -> Result<Duration, ProcessError> {
    cpu_time_in(pid, &read_process_file(pid, "stat")?)
}

fn cpu_time_in(pid: i32, text: &str) -> Result<Duration, ProcessError> {
    // The name in parentheses may hold anything, so fields are counted behind it.
    let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let mut fields = rest.split_whitespace().skip(11);
    let mut ticks = || fields.next().and_then(|field| field.parse::<u64>().ok());
    let (Some(user), Some(system)) = (ticks(), ticks()) else {
        return Err(malformed(pid, "stat"));
    };
    // Linux reports these in hundredths of a second on every machine that we run on.
    Ok(Duration::from_millis((user + system) * 10))
}

/// Memory that a process alone has: what it wrote to, and not the pages of files that it shares.
///
/// # Errors
/// [`ProcessError::Gone`] when there is no such process.
pub fn own_memory_bytes(pid: i32) -> Result<u64, ProcessError> {
    let text = read_process_file(pid, "status")?;
    let field = text.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = field.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    // A zombie has none.
    Ok(kib.unwrap_or(0) << 10)
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Status(i32),
    Signal(i32),
    /// It ended, and its status went to another parent.
    Unknown,
}

/// A handle that stays with one process whatever becomes of its pid.
#[derive(Debug)]
pub struct Pidfd {
    identity: ProcessIdentity,
    descriptor: OwnedFd,
}

impl Pidfd {
    /// Opens the process and checks afterwards that the pid had not been handed on.
    ///
    /// # Errors
    /// [`ProcessError::Gone`] when it has ended and been reaped, [`ProcessError::Recycled`] when
    /// somebody else has its pid.
    pub fn open(identity: ProcessIdentity) -> Result<Self, ProcessError> {
        let pid = identity.pid;
        let raw = Pid::from_raw(pid).ok_or(ProcessError::Gone { pid })?;
        let descriptor = pidfd_open(raw, PidfdFlags::NONBLOCK).map_err(|error| {
            if error == rustix::io::Errno::SRCH {
                ProcessError::Gone { pid }
            } else {
                ProcessError::Open {
                    pid,
                    source: error.into(),
                }
            }
        })?;
        // The order matters: the handle is fixed first, so a match now is a match for good.
        if ProcessIdentity::of(pid)? != identity {
            return Err(ProcessError::Recycled { pid });
        }
        Ok(Self {
            identity,
            descriptor,
        })
    }

    #[must_use]
    pub fn identity(&self) -> ProcessIdentity {
        self.identity
    }

    /// Sends `SIGKILL`. A process that has ended already is no error.
    ///
    /// # Errors
    /// [`ProcessError::Signal`] when the kernel refused.
    pub fn kill(&self) -> Result<(), ProcessError> {
        self.signal(Signal::KILL)
    }

    /// Sends a signal. A process that has ended already is no error.
    ///
    /// # Errors
    /// [`ProcessError::Signal`] when the kernel refused.
    pub fn signal(&self, signal: Signal) -> Result<(), ProcessError> {
        match pidfd_send_signal(&self.descriptor, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => Err(ProcessError::Signal {
                pid: self.identity.pid,
                source: error.into(),
            }),
        }
    }

    /// Whether it still runs. A zombie does not.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        !self.wait_blocking(Duration::ZERO)
    }

    /// Waits on the calling thread until the process has ended; `false` when the limit came first.
    #[must_use]
    pub fn wait_blocking(&self, limit: Duration) -> bool {
        let timeout = Timespec::try_from(limit).ok();
        let mut watched = [PollFd::new(&self.descriptor, PollFlags::IN)];
        matches!(poll(&mut watched, timeout.as_ref()), Ok(ready) if ready > 0)
    }

    /// Waits until the process has ended, and reaps it when it is a child of this process.
    ///
    /// # Errors
    /// [`ProcessError::Wait`] when the runtime cannot watch the handle.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing; call again.
    pub async fn wait(&self) -> Result<Exit, ProcessError> {
        let pid = self.identity.pid;
        let failed = |source| ProcessError::Wait { pid, source };
        // A copy, because a runtime watches a descriptor once and two callers may wait.
        let copy = self.descriptor.try_clone().map_err(failed)?;
        let watched = watch_readable(copy).map_err(failed)?;
        drop(watched.readable().await.map_err(failed)?);
        Ok(self.reap())
    }

    /// Collects the exit status if the process has ended and is a child of this one.
    #[must_use]
    pub fn reap(&self) -> Exit {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        match waitid(WaitId::PidFd(self.descriptor.as_fd()), options) {
            Ok(Some(status)) => status
                .exit_status()
                .map(Exit::Status)
                .or_else(|| status.terminating_signal().map(Exit::Signal))
                .unwrap_or(Exit::Unknown),
            // Not a child (ECHILD), or reaped by somebody else.
            Ok(None) | Err(_) => Exit::Unknown,
        }
    }
}

impl AsFd for Pidfd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Makes orphaned descendants children of this process, so that it learns how they end.
///
/// # Errors
/// What the kernel said.
pub fn set_child_subreaper() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(
        rustix::process::getpid(),
    ))?)
}

/// All pids of this pid namespace, at about one moment.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn all_pids() -> io::Result<Vec<i32>> {
    let mut pids = Vec::new();
    for entry in fs::read_dir("/proc")? {
        if let Some(pid) = entry?
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        {
            pids.push(pid);
        }
    }
    Ok(pids)
}

/// Why a process could not be looked at or acted upon.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    #[error("process {pid} is gone")]
    Gone { pid: i32 },
    #[error("pid {pid} belongs to another process now")]
    Recycled { pid: i32 },
    #[error("cannot open a handle on process {pid}")]
    Open { pid: i32, source: io::Error },
    #[error("cannot read {file} of process {pid}")]
    Unreadable {
        pid: i32,
        file: String,
        source: io::Error,
    },
    #[error("cannot signal process {pid}")]
    Signal { pid: i32, source: io::Error },
    #[error("cannot wait for process {pid}")]
    Wait { pid: i32, source: io::Error },
}

struct Stat {
    start_time_ticks: u64,
}

/// Reads a file of `/proc/PID`, telling an ended process from a failure.
pub(crate) fn read_process_file(pid: i32, file: &str) -> Result<String, ProcessError> {
    let bytes =
        fs::read(format!("/proc/{pid}/{file}")).map_err(|source| gone_or(pid, file, source))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

pub(crate) fn gone_or(pid: i32, file: &str, source: io::Error) -> ProcessError {
    let gone = source.kind() == io::ErrorKind::NotFound
        || source.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error());
    if gone {
        ProcessError::Gone { pid }
    } else {
        ProcessError::Unreadable {
            pid,
            file: file.to_owned(),
            source,
        }
    }
}

pub(crate) fn malformed(pid: i32, file: &str) -> ProcessError {
    let source = io::Error::new(io::ErrorKind::InvalidData, "unexpected format");
    ProcessError::Unreadable {
        pid,
        file: file.to_owned(),
        source,
    }
}

fn read_stat(pid: i32) -> Result<Stat, ProcessError> {
    parse_stat(&read_process_file(pid, "stat")?).ok_or_else(|| malformed(pid, "stat"))
}

/// The command name stands in parentheses and may hold anything, parentheses included, so fields
/// are counted after the last one. The start time is field 22 of proc(5), the 20th after the name.
fn parse_stat(text: &str) -> Option<Stat> {
    let (_, fields) = text.rsplit_once(')')?;
    let start_time_ticks = fields.split_ascii_whitespace().nth(19)?.parse().ok()?;
    Some(Stat { start_time_ticks })
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn start_time_is_found_behind_a_hostile_command_name() {
        let fields = (3..=52)
            .map(|n| n.to_string())
            .collect::<Vec<_>>()
            .join(" ");
        let text = format!("7 (a) b (c)) {fields}\n");
        assert_eq!(parse_stat(&text).unwrap().start_time_ticks, 22);
        assert!(parse_stat("7 (x) S 1 2").is_none());
    }

    #[test]
    fn memory_that_is_written_to_is_counted() {
        let own = i32::try_from(std::process::id()).unwrap();
        let before = own_memory_bytes(own).unwrap();
        let written = vec![7_u8; 64 << 20];
        let after = own_memory_bytes(own).unwrap();
        assert!(after >= before + (60 << 20), "{before} {after}");
        drop(written);
        assert!(matches!(
            own_memory_bytes(i32::MAX),
            Err(ProcessError::Gone { .. })
        ));
    }

    #[test]
    fn a_recycled_pid_is_not_mistaken_for_the_process() {
        let own = i32::try_from(std::process::id()).unwrap();
        let mut identity = ProcessIdentity::of(own).unwrap();
        assert!(Pidfd::open(identity).unwrap().is_alive());
        identity.start_time_ticks += 1;
        assert!(matches!(Pidfd::open(identity), Err(ProcessError::Recycled { pid }) if pid == own));
    }

    #[tokio::test]
    async fn wait_reaps_a_child_and_tells_how_it_ended() {
        #[expect(clippy::zombie_processes, reason = "the handle under test reaps it")]
        let child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let identity = ProcessIdentity::of(i32::try_from(child.id()).unwrap()).unwrap();
        let handle = Pidfd::open(identity).unwrap();
        assert!(handle.is_alive());
        handle.kill().unwrap();
        let exit = tokio::time::timeout(Duration::from_secs(10), handle.wait())
            .await
            .unwrap();
        assert_eq!(exit.unwrap(), Exit::Signal(9));
        assert!(!handle.is_alive());
        handle.kill().unwrap();
        assert!(matches!(
            Pidfd::open(identity),
            Err(ProcessError::Gone { .. })
        ));
    }
}

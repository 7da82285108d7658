//! Programs of the template that run when the guest becomes a sandbox, before user code does.
//!
//! They do for programs what the agent does for the kernel: renew what two copies must not share.
//! Each runs as root, outside the frozen group of users, for a short time; nothing that a hook
//! leaves running outlives it. What a hook returns is reported and changes nothing.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use dayfly_guest_proto::{HookResult, Identity};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, kill_process, kill_process_group, pidfd_open,
    waitpid,
};

use crate::cgroup::{ExecGroup, UserGroup};
use crate::clock::monotonic_ms;
use crate::sys;

/// How long one hook may take.
const EACH_MS: u64 = 8000;
/// How long all hooks of one identity may take; shorter than the host waits for the identity.
const ALL_MS: u64 = 12_000;
/// How long a killed hook may take to be gone.
const KILL_PATIENCE_MS: u64 = 500;
/// More are not run: an identity is no boot.
const HOOKS_MAX: usize = 64;
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const EXIT_NOT_EXECUTABLE: i32 = 126;
/// Added to a signal's number to make an exit code, as shells do.
const SIGNAL_CODE_BASE: i32 = 128;

/// Runs the hooks of a directory in the order of their names.
pub(crate) fn run(
    directory: &Path,
    identity: &Identity,
    users: Option<&UserGroup>,
) -> Vec<HookResult> {
    let hooks = find(directory);
    // Most guests have none, and pay one failed look for it.
    if hooks.is_empty() {
        return Vec::new();
    }
    let group = users.map(UserGroup::create_for_hooks).transpose();
    let Ok(group) = group else {
        return hooks.iter().map(|hook| result(hook, None, false)).collect();
    };
    let limits = Limits {
        each_ms: EACH_MS,
        end_ms: monotonic_ms() + ALL_MS,
    };
    let environment = environment(identity);
    let results = hooks
        .iter()
        .map(|hook| limits.run(hook, &environment, group.as_ref()))
        .collect();
    // One that is still dying keeps the group, which the next identity uses again.
    let _ = group.is_some_and(|group| group.try_remove());
    results
}

/// The hooks of a directory: regular files that only their owner can change, who is the agent's
/// own user, and that can be executed.
fn find(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    // Whoever may write to the directory may put a program of root's there under a new name.
    if !fs::metadata(directory).is_ok_and(|metadata| is_ours_alone(&metadata)) {
        return Vec::new();
    }
    let mut names: Vec<OsString> = entries
        .flatten()
        .map(|entry| entry.file_name())
        .filter(|name| is_hook(&directory.join(name)))
        .collect();
    names.sort();
    names.truncate(HOOKS_MAX);
    names.iter().map(|name| directory.join(name)).collect()
}

fn is_hook(path: &Path) -> bool {
    // Without following links: what they lead to may belong to anybody.
    fs::symlink_metadata(path).is_ok_and(|metadata| {
        metadata.is_file() && is_ours_alone(&metadata) && metadata.mode() & 0o111 != 0
    })
}

fn is_ours_alone(metadata: &fs::Metadata) -> bool {
    let owner = rustix::process::geteuid().as_raw();
    metadata.uid() == owner && metadata.mode() & 0o022 == 0
}

fn environment(identity: &Identity) -> Vec<(&'static str, String)> {
    let event = identity.event.map_or("create", |event| event.name());
    let mut environment = vec![
        ("PATH", PATH.to_owned()),
        ("HOME", "/root".to_owned()),
        ("LANG", "C.UTF-8".to_owned()),
        ("DAYFLY_EVENT", event.to_owned()),
        ("DAYFLY_SANDBOX_ID", identity.sandbox_id.to_string()),
    ];
    if identity.reseed_user_space {
        environment.push(("DAYFLY_RESEED", "1".to_owned()));
    }
    environment
}

/// How long hooks may take.
#[derive(Debug, Clone, Copy)]
struct Limits {
    each_ms: u64,
    end_ms: u64,
}

impl Limits {
    fn run(
        self,
        hook: &Path,
        environment: &[(&'static str, String)],
        group: Option<&ExecGroup>,
    ) -> HookResult {
        let left_ms = self.end_ms.saturating_sub(monotonic_ms());
        let limit_ms = left_ms.min(self.each_ms);
        if limit_ms == 0 {
            return result(hook, None, true);
        }
        let Ok(pid) = start(hook, environment, group) else {
            return result(hook, None, false);
        };
        let ended = wait_for_end(pid, limit_ms);
        // Also what a hook that ended has left behind.
        kill_all(pid, group, ended.is_none());
        match ended {
            Some(status) => result(hook, Some(exit_code(status)), false),
            None => {
                let status = wait_for_end(pid, KILL_PATIENCE_MS);
                result(hook, status.map(exit_code), true)
            }
        }
    }
}

fn result(hook: &Path, exit_code: Option<i32>, timed_out: bool) -> HookResult {
    let name = hook.file_name().unwrap_or_default();
    HookResult {
        name: name.to_string_lossy().into_owned(),
        exit_code,
        timed_out,
    }
}

fn start(
    hook: &Path,
    environment: &[(&'static str, String)],
    group: Option<&ExecGroup>,
) -> io::Result<Pid> {
    let mut command = Command::new(hook);
    command
        .env_clear()
        .envs(environment.iter().map(|(key, value)| (key, value)))
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let entrance = group.map(ExecGroup::entrance);
    match sys::fork()? {
        sys::Fork::Parent(pid) => Ok(pid),
        sys::Fork::Child => {
            sys::unblock_all();
            let is_in = entrance.is_none_or(|entrance| fs::write(entrance, "0").is_ok());
            // The agent must never be chosen when memory runs out, its children may be.
            let _ = fs::write("/proc/self/oom_score_adj", "0");
            if is_in && rustix::process::setsid().is_ok() {
                let _ = command.exec();
            }
            sys::exit_now(EXIT_NOT_EXECUTABLE)
        }
    }
}

/// Waits for a child, at most this long.
fn wait_for_end(pid: Pid, limit_ms: u64) -> Option<WaitStatus> {
    let child = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    let limit = Timespec::try_from(Duration::from_millis(limit_ms)).ok()?;
    let mut waiting = [PollFd::new(&child, PollFlags::IN)];
    // An interrupted wait only gives less time, and the agent has blocked its signals.
    let _ = poll(&mut waiting, Some(&limit));
    let (_, status) = waitpid(Some(pid), WaitOptions::NOHANG).ok()??;
    Some(status)
}

fn kill_all(pid: Pid, group: Option<&ExecGroup>, is_alive: bool) {
    match group {
        Some(group) => {
            let _ = group.kill();
        }
        None => {
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
    if is_alive {
        // It may not have entered its group yet.
        let _ = kill_process(pid, Signal::KILL);
    }
}

fn exit_code(status: WaitStatus) -> i32 {
    let signal = status.terminating_signal();
    signal.map_or_else(
        || status.exit_status().unwrap_or(SIGNAL_CODE_BASE),
        |signal| SIGNAL_CODE_BASE + signal,
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn put(directory: &Path, name: &str, text: &str, mode: u32) {
        let path = directory.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn names(hooks: &[PathBuf]) -> Vec<&str> {
        hooks
            .iter()
            .map(|hook| hook.file_name().unwrap().to_str().unwrap())
            .collect()
    }

    fn run_all(directory: &Path, each_ms: u64, all_ms: u64) -> Vec<HookResult> {
        let limits = Limits {
            each_ms,
            end_ms: monotonic_ms() + all_ms,
        };
        let hooks = find(directory);
        let results = hooks.iter().map(|hook| limits.run(hook, &[], None));
        results.collect()
    }

    #[test]
    fn hooks_are_regular_executable_files_that_only_their_owner_can_change() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        assert!(find(&path.join("missing")).is_empty());
        put(path, "20-fine", "#!/bin/sh\n", 0o755);
        put(path, "10-also-fine", "#!/bin/sh\n", 0o500);
        put(path, "30-not-executable", "#!/bin/sh\n", 0o644);
        put(path, "40-group-writable", "#!/bin/sh\n", 0o775);
        put(path, "50-world-writable", "#!/bin/sh\n", 0o757);
        fs::create_dir(path.join("60-directory")).unwrap();
        std::os::unix::fs::symlink(path.join("20-fine"), path.join("70-link")).unwrap();
        put(path, "80-of-another-user", "#!/bin/sh\n", 0o755);
        let changed = std::os::unix::fs::chown(path.join("80-of-another-user"), Some(1000), None);
        if changed.is_err() {
            fs::remove_file(path.join("80-of-another-user")).unwrap();
        }
        assert_eq!(names(&find(path)), ["10-also-fine", "20-fine"]);
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(find(path).is_empty(), "anybody could have put them there");
    }

    #[test]
    fn results_tell_how_each_hook_ended_in_their_order() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        put(path, "2", "#!/bin/sh\nexit 3\n", 0o755);
        put(path, "1", "#!/bin/sh\nexit 0\n", 0o755);
        put(path, "3", "#!/bin/sh\nkill -TERM $$\n", 0o755);
        put(path, "4", "#!/no/such/program\n", 0o755);
        let results = run_all(path, 5000, 10_000);
        let codes: Vec<_> = results.iter().map(|hook| hook.exit_code).collect();
        assert_eq!(codes, [Some(0), Some(3), Some(143), Some(126)]);
        assert!(results.iter().all(|hook| !hook.timed_out));
    }

    #[test]
    fn slow_hook_is_killed_and_the_next_ones_share_what_time_is_left() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        for name in ["1", "2", "3"] {
            put(path, name, "#!/bin/sh\nsleep 100\n", 0o755);
        }
        let start_ms = monotonic_ms();
        let results = run_all(path, 200, 300);
        assert!(monotonic_ms() - start_ms < 5000);
        let ends: Vec<_> = results
            .iter()
            .map(|hook| (hook.exit_code, hook.timed_out))
            .collect();
        assert_eq!(ends, [(Some(137), true), (Some(137), true), (None, true)]);
    }
}

//! The process of an exec: its group, its deadlines, and how it ended.

use std::fs;
use std::path::PathBuf;

use dayfly_guest_proto::{GuestError, GuestErrorCode};
use dayfly_types::exec::{ExecExit, ExecLimits, ExitReason, LimitKind};
use rustix::process::{Pid, Signal, WaitStatus, kill_process, kill_process_group};

use super::limits::CpuBudget;
use super::terminal;
use crate::cgroup::ExecGroup;
use crate::clock::monotonic_ms;
use crate::refusal::guest_error;

/// Added to a signal's number to make the exit code of the process it ended, as shells do.
const SIGNAL_CODE_BASE: i32 = 128;

#[derive(Debug)]
pub(super) struct Process {
    pid: Pid,
    /// `None` outside a guest, and after the last process of it is gone.
    group: Option<ExecGroup>,
    script: Option<PathBuf>,
    limits: ExecLimits,
    started_ms: u64,
    deadline_ms: Option<u64>,
    cpu: Option<CpuBudget>,
    /// Why the agent killed it, if it did.
    killed_because: Option<ExitReason>,
    ended: Option<Ended>,
}

#[derive(Debug)]
pub(super) struct Ended {
    pub(super) exit: ExecExit,
    pub(super) duration_ms: u64,
}

impl Process {
    pub(super) fn new(
        pid: Pid,
        group: Option<ExecGroup>,
        script: Option<PathBuf>,
        limits: ExecLimits,
        timeout_ms: Option<u64>,
    ) -> Self {
        let started_ms = monotonic_ms();
        Self {
            pid,
            group,
            script,
            limits,
            started_ms,
            deadline_ms: timeout_ms.map(|timeout| started_ms.saturating_add(timeout)),
            cpu: limits
                .cpu_ms
                .map(|budget_ms| CpuBudget::new(budget_ms, started_ms)),
            killed_because: None,
            ended: None,
        }
    }

    pub(super) const fn pid(&self) -> Pid {
        self.pid
    }

    pub(super) const fn ended(&self) -> Option<&Ended> {
        self.ended.as_ref()
    }

    pub(super) const fn is_running(&self) -> bool {
        self.ended.is_none()
    }

    /// Until now, or until its end.
    pub(super) fn duration_ms(&self) -> u64 {
        self.ended.as_ref().map_or_else(
            || monotonic_ms().saturating_sub(self.started_ms),
            |ended| ended.duration_ms,
        )
    }

    /// When the agent must look at it again, whatever happens.
    pub(super) fn deadline_ms(&self) -> Option<u64> {
        let look_ms = self.cpu_to_watch().map(CpuBudget::look_ms);
        self.timeout_ms().into_iter().chain(look_ms).min()
    }

    fn timeout_ms(&self) -> Option<u64> {
        self.deadline_ms
            .filter(|_| self.is_running() && self.killed_because.is_none())
    }

    /// Children that a process left behind spend of its budget, too.
    fn cpu_to_watch(&self) -> Option<&CpuBudget> {
        self.cpu.as_ref().filter(|_| self.group.is_some())
    }

    pub(super) fn expire(&mut self, now_ms: u64) {
        if self.timeout_ms().is_some_and(|end_ms| end_ms <= now_ms) {
            self.kill(ExitReason::TimedOut);
        }
        let is_due = |budget: &CpuBudget| budget.look_ms() <= now_ms;
        if self.cpu_to_watch().is_some_and(is_due) && self.has_spent_its_time(now_ms) {
            self.kill(ExitReason::LimitExceeded);
        }
    }

    fn has_spent_its_time(&mut self, now_ms: u64) -> bool {
        let used_us = self.group.as_ref().and_then(ExecGroup::cpu_used_us);
        let budget = self.cpu.as_mut().zip(used_us);
        budget.is_some_and(|(budget, used_us)| budget.is_spent(used_us, now_ms))
    }

    /// Moves the deadlines, for time that does not count.
    pub(super) fn allow_more_time(&mut self, more_ms: u64) {
        self.deadline_ms = self
            .deadline_ms
            .map(|deadline| deadline.saturating_add(more_ms));
        if let Some(budget) = &mut self.cpu {
            budget.allow_more_time(more_ms);
        }
    }

    /// Ends every process of the exec.
    pub(super) fn kill(&mut self, reason: ExitReason) {
        if self.is_running() {
            self.killed_because.get_or_insert(reason);
            // The process itself first: it may not have entered its group yet.
            let _ = kill_process(self.pid, Signal::KILL);
            if self.group.is_none() {
                let _ = kill_process_group(self.pid, Signal::KILL);
            }
        }
        if let Some(group) = &self.group {
            let _ = group.kill();
        }
    }

    /// Passes a signal on to the process group, and to the group in front of the terminal.
    pub(super) fn signal(
        &mut self,
        number: i32,
        foreground: Option<Pid>,
    ) -> Result<(), GuestError> {
        let signal = Signal::from_named_raw(number).ok_or_else(|| {
            GuestError::new(GuestErrorCode::Invalid, format!("{number} is no signal"))
        })?;
        // Its number may be another's by now; only the group knows what it has left behind.
        if !self.is_running() && (signal != Signal::KILL || self.group.is_none()) {
            let text = "the process has ended";
            return Err(GuestError::new(GuestErrorCode::NotFound, text));
        }
        if signal == Signal::KILL {
            self.kill(ExitReason::Killed);
            return Ok(());
        }
        let in_front = foreground.filter(|group| *group != self.pid);
        let is_sent = in_front.is_some_and(|group| kill_process_group(group, signal).is_ok());
        if is_sent && terminal::is_typed(signal) {
            return Ok(());
        }
        // Until it leads its own group there is only the process itself.
        kill_process_group(self.pid, signal)
            .or_else(|_| kill_process(self.pid, signal))
            .map_err(|error| guest_error("cannot send the signal", &error.into()))
    }

    /// Notes that the main process is over.
    pub(super) fn note_end(&mut self, status: WaitStatus) {
        let duration_ms = self.duration_ms();
        let exit = self.explain(status);
        self.ended = Some(Ended { exit, duration_ms });
        self.remove_empty_group();
        if let Some(script) = self.script.take() {
            let _ = fs::remove_file(script);
        }
    }

    /// Lets go of the group if nobody is left in it.
    pub(super) fn remove_empty_group(&mut self) {
        if !self.is_running() {
            self.group = self.group.take().filter(|group| !group.try_remove());
        }
    }

    pub(super) fn into_group(self) -> Option<ExecGroup> {
        self.group
    }

    fn explain(&self, status: WaitStatus) -> ExecExit {
        let signal = status.terminating_signal();
        let code = match signal {
            Some(signal) => SIGNAL_CODE_BASE + signal,
            None => status.exit_status().unwrap_or(SIGNAL_CODE_BASE),
        };
        let was_killed = code == SIGNAL_CODE_BASE + Signal::KILL.as_raw();
        let limits_hit = self.limits_hit();
        let is_over_memory = limits_hit.contains(&LimitKind::Memory);
        let reason = match (self.killed_because, signal) {
            (Some(reason), Some(_)) if was_killed => reason,
            // A shell whose child was killed for memory exits with the same code.
            _ if was_killed && is_over_memory => ExitReason::LimitExceeded,
            _ if was_killed && self.ran_out_of_memory() => ExitReason::OutOfMemory,
            (_, Some(_)) => ExitReason::Signaled,
            (_, None) => ExitReason::Exited,
        };
        ExecExit {
            code,
            signal,
            reason,
            limits_hit,
        }
    }

    /// The limits of its own that it ran into.
    fn limits_hit(&self) -> Vec<LimitKind> {
        let Some(group) = &self.group else {
            return Vec::new();
        };
        let hit = [
            (
                LimitKind::Memory,
                self.limits.memory_bytes.is_some() && group.went_over_its_memory(),
            ),
            (
                LimitKind::Cpu,
                self.killed_because == Some(ExitReason::LimitExceeded),
            ),
            (
                LimitKind::Processes,
                self.limits.processes_max.is_some() && group.was_refused_a_process(),
            ),
        ];
        hit.into_iter()
            .filter_map(|(kind, is_hit)| is_hit.then_some(kind))
            .collect()
    }

    fn ran_out_of_memory(&self) -> bool {
        self.group
            .as_ref()
            .is_some_and(ExecGroup::ran_out_of_memory)
    }
}

//! Execs: one process tree each, its streams, its deadline and its end.

mod spawn;
mod streams;

use std::fs;
use std::path::PathBuf;

use dayfly_guest_proto::{
    ChannelId, Event, ExecExit, ExitReason, FrameEncoder, GuestError, GuestErrorCode, StartExec,
    StdinMode, StreamKind,
};
use rustix::process::{Pid, Signal, WaitStatus, kill_process, kill_process_group};

use crate::account::Account;
use crate::cgroup::ExecGroup;
use crate::clock::monotonic_ms;
use crate::machine::Machine;
use crate::poller::{Poller, Source};

pub(crate) use streams::{Input, Output};

/// Added to a signal's number to make the exit code of the process it ended, as shells do.
const SIGNAL_CODE_BASE: i32 = 128;

#[derive(Debug)]
pub(crate) struct Exec {
    /// `None` once nobody listens: the host is gone, or a capture came between.
    pub(crate) channel: Option<ChannelId>,
    pub(crate) pid: Pid,
    pub(crate) input: Option<Input>,
    pub(crate) stdout: Output,
    pub(crate) stderr: Output,
    group: Option<ExecGroup>,
    script: Option<PathBuf>,
    started_ms: u64,
    deadline_ms: Option<u64>,
    /// Why the agent killed it, if it did.
    killed_because: Option<ExitReason>,
    ended: Option<Ended>,
}

#[derive(Debug)]
struct Ended {
    status: WaitStatus,
    duration_ms: u64,
}

/// What an exec leaves behind when it is over.
#[derive(Debug)]
pub(crate) struct Remains {
    /// Pipes that background children may still write to.
    pub(crate) pipes: Vec<Source>,
    /// The group, if background children are still in it.
    pub(crate) group: Option<ExecGroup>,
}

impl Exec {
    /// Starts a process. It is in its group before it runs anything of the user's.
    pub(crate) fn start(
        spec: &StartExec,
        number: u64,
        machine: &Machine,
        poller: &Poller,
    ) -> Result<Self, GuestError> {
        spawn::check(spec)?;
        let account = Account::find(spec.user.as_deref())?;
        let group = machine
            .user_group
            .as_ref()
            .map(|user| user.create_exec(number))
            .transpose();
        let group = group.map_err(|error| refused("cannot make a control group", &error))?;
        let spawned = spawn::Plan::new(spec, &account, group.as_ref(), machine, number)
            .and_then(|plan| plan.launch(spec.stdin, poller));
        let spawned = match spawned {
            Ok(spawned) => spawned,
            Err(error) => {
                let _ = group.is_some_and(|group| group.try_remove());
                return Err(refused("cannot start a process", &error));
            }
        };
        let started_ms = monotonic_ms();
        Ok(Self {
            channel: Some(spec.channel),
            pid: spawned.pid,
            input: spawned.stdin.map(Input::new),
            stdout: Output::new(StreamKind::Stdout, spawned.stdout),
            stderr: Output::new(StreamKind::Stderr, spawned.stderr),
            group,
            script: spawned.script,
            started_ms,
            deadline_ms: spec
                .timeout_ms
                .map(|timeout| started_ms.saturating_add(timeout)),
            killed_because: None,
            ended: None,
        })
    }

    /// When the agent must look at this exec again, whatever happens.
    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        self.deadline_ms
            .filter(|_| self.ended.is_none() && self.killed_because.is_none())
    }

    pub(crate) fn expire(&mut self, now_ms: u64) {
        if self
            .deadline_ms()
            .is_some_and(|deadline| deadline <= now_ms)
        {
            self.kill(ExitReason::TimedOut);
        }
    }

    /// Moves the deadline, for time that does not count.
    pub(crate) fn allow_more_time(&mut self, more_ms: u64) {
        self.deadline_ms = self
            .deadline_ms
            .map(|deadline| deadline.saturating_add(more_ms));
    }

    /// Ends every process of the exec.
    pub(crate) fn kill(&mut self, reason: ExitReason) {
        if self.ended.is_none() {
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

    /// Passes a signal on to the process group of the exec.
    pub(crate) fn signal(&mut self, number: i32) -> Result<(), GuestError> {
        let signal = Signal::from_named_raw(number).ok_or_else(|| {
            GuestError::new(GuestErrorCode::Invalid, format!("{number} is no signal"))
        })?;
        if self.ended.is_some() {
            return Err(GuestError::new(
                GuestErrorCode::NotFound,
                "the process has ended",
            ));
        }
        if signal == Signal::KILL {
            self.kill(ExitReason::Killed);
            return Ok(());
        }
        // Until it leads its own group there is only the process itself.
        kill_process_group(self.pid, signal)
            .or_else(|_| kill_process(self.pid, signal))
            .map_err(|error| refused("cannot send the signal", &error.into()))
    }

    /// Notes that the main process is over. What is in the pipes now still belongs to it.
    pub(crate) fn note_end(&mut self, status: WaitStatus) {
        let duration_ms = monotonic_ms().saturating_sub(self.started_ms);
        self.ended = Some(Ended {
            status,
            duration_ms,
        });
        self.input = None;
        self.stdout.drain();
        self.stderr.drain();
        if let Some(script) = self.script.take() {
            let _ = fs::remove_file(script);
        }
    }

    /// Moves bytes between the process and the bulk port. Gives whether any moved.
    pub(crate) fn pump(
        &mut self,
        encoder: FrameEncoder,
        out: &mut Vec<u8>,
        scratch: &mut [u8],
    ) -> bool {
        let Some(channel) = self.channel else {
            return false;
        };
        let stdout = self.stdout.pump(channel, encoder, out, scratch);
        let stderr = self.stderr.pump(channel, encoder, out, scratch);
        let stdin = self
            .input
            .as_mut()
            .is_some_and(|input| input.pump(channel, encoder, out));
        if self.input.as_ref().is_some_and(Input::is_done) {
            self.input = None;
        }
        stdout | stderr | stdin
    }

    /// Whether nothing more will happen on this exec.
    pub(crate) fn is_over(&self) -> bool {
        let is_silent = self.channel.is_none();
        self.ended.is_some() && (is_silent || (self.stdout.is_over() && self.stderr.is_over()))
    }

    /// Takes the exec apart. The event is the last word about it.
    pub(crate) fn finish(self) -> (Option<Event>, Remains) {
        let event = self
            .ended
            .as_ref()
            .zip(self.channel)
            .map(|(ended, channel)| {
                let exit = self.explain(ended.status);
                Event::ExecExited {
                    channel,
                    exit,
                    duration_ms: ended.duration_ms,
                }
            });
        let pipes = [self.stdout.into_pipe(), self.stderr.into_pipe()];
        let group = self.group.filter(|group| !group.try_remove());
        (
            event,
            Remains {
                pipes: pipes.into_iter().flatten().collect(),
                group,
            },
        )
    }

    /// Nobody listens any more, but the process goes on. Gives its pipes, to be emptied.
    pub(crate) fn detach(&mut self) -> Vec<Source> {
        self.channel = None;
        self.input = None;
        [self.stdout.take_pipe(), self.stderr.take_pipe()]
            .into_iter()
            .flatten()
            .collect()
    }

    fn explain(&self, status: WaitStatus) -> ExecExit {
        let signal = status.terminating_signal();
        let code = match signal {
            Some(signal) => SIGNAL_CODE_BASE + signal,
            None => status.exit_status().unwrap_or(SIGNAL_CODE_BASE),
        };
        let was_killed = code == SIGNAL_CODE_BASE + Signal::KILL.as_raw();
        let reason = match (self.killed_because, signal) {
            (Some(reason), Some(_)) if was_killed => reason,
            // A shell whose child was killed for memory exits with the same code.
            _ if was_killed && self.ran_out_of_memory() => ExitReason::OutOfMemory,
            (_, Some(_)) => ExitReason::Signaled,
            (_, None) => ExitReason::Exited,
        };
        ExecExit {
            code,
            signal,
            reason,
        }
    }

    fn ran_out_of_memory(&self) -> bool {
        self.group
            .as_ref()
            .is_some_and(ExecGroup::ran_out_of_memory)
    }

    /// Tells every descriptor of the exec about news.
    pub(crate) fn wake(&mut self, number: i32) {
        self.stdout.wake(number);
        self.stderr.wake(number);
        if let Some(input) = &mut self.input {
            input.wake(number);
        }
    }
}

fn refused(what: &str, error: &std::io::Error) -> GuestError {
    crate::files::guest_error(what, error)
}

/// Whether the exec asked for a pipe as its input.
pub(crate) const fn wants_input(mode: StdinMode) -> bool {
    matches!(mode, StdinMode::Piped)
}

//! What each call does.

use std::io;
use std::time::Duration;

use dayfly_guest_proto::message::AnswerResult;
use dayfly_guest_proto::{
    Answer, Call, ChannelId, ExitReason, GuestError, GuestErrorCode, GuestMessage, Identity,
    Request, Response, StartExec, Status,
};
use dayfly_types::limits::{AGENT_FILE_OPERATIONS_MAX, EXECS_MAX};
use rustix::process::{Pid, WaitOptions, waitpid};

use crate::account::Account;
use crate::agent::Agent;
use crate::clock::{monotonic_ms, uptime_ms};
use crate::exec::Exec;
use crate::files::{Job, Operation, Worker, WriteOptions, guest_error};
use crate::identity;
use crate::machine::Machine;

/// How long file operations have to clean up before a capture.
const WORKERS_END_MS: u64 = 2000;

impl Agent {
    pub(crate) fn answer(&mut self, call: u64, result: Result<Response, GuestError>) {
        let result = AnswerResult::from(result);
        self.send(&GuestMessage::Answer(Answer { call, result }));
    }

    /// Serves one call. File operations answer later, everything else at once.
    pub(crate) fn serve(&mut self, call: Call) {
        let Call { call, request } = call;
        if self.is_ending {
            return self.answer(call, Err(wrong_state("the guest is quiesced")));
        }
        match self.begin(request) {
            Work::Done(result) => self.answer(call, result),
            Work::File { operation, user } => self.start_worker(call, operation, user.as_deref()),
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "every known request has an arm; the lint does not see those behind a binding"
    )]
    fn begin(&mut self, request: Request) -> Work {
        Work::Done(match request {
            Request::Status => Ok(Response::Status(self.status())),
            Request::Identify(identity) => self.identify(identity),
            Request::Thaw {
                wall_clock_unix_nanos,
            } => self.thaw(wall_clock_unix_nanos),
            Request::Quiesce => self.quiesce(),
            Request::StartExec(spec) => self.start_exec(&spec),
            Request::SignalExec { channel, signal } => self
                .exec(channel)
                .and_then(|exec| exec.signal(signal))
                .map(|()| Response::Done),
            Request::CloseStdin { channel } => self.close_stdin(channel),
            Request::CancelChannel { channel } => {
                self.cancel(channel);
                Ok(Response::Done)
            }
            request @ (Request::OpenRead { .. }
            | Request::OpenWrite { .. }
            | Request::Stat { .. }
            | Request::ListDirectory { .. }
            | Request::MakeDirectory { .. }
            | Request::Remove { .. }) => return file_work(request),
            _ => Err(unsupported()),
        })
    }

    fn status(&self) -> Status {
        Status {
            agent_version: env!("CARGO_PKG_VERSION").to_owned(),
            generation: self.generation,
            boot_id: Machine::boot_id(),
            uptime_ms: uptime_ms(),
            state: self.life.state(),
        }
    }

    fn identify(&mut self, identity: Identity) -> Result<Response, GuestError> {
        identity::apply(&identity, &self.machine).map_err(|error| identify_error(&error))?;
        let sandbox_id = identity.sandbox_id.clone();
        self.life.note_identity(identity);
        Ok(Response::Identified { sandbox_id })
    }

    fn thaw(&mut self, wall_clock_unix_nanos: Option<u64>) -> Result<Response, GuestError> {
        if !self.life.may_thaw() {
            return Err(wrong_state("no identity since the last quiesce"));
        }
        if let Some(nanos) = wall_clock_unix_nanos
            && self.machine.is_guest()
        {
            identity::set_clock(nanos)
                .map_err(|error| guest_error("cannot set the clock", &error))?;
        }
        if let Some(group) = &self.machine.user_group {
            group
                .thaw()
                .map_err(|error| guest_error("cannot thaw", &error))?;
        }
        self.life.note_thaw();
        Ok(Response::Done)
    }

    /// Stops user code, then the agent's own children, then makes the disks current.
    fn quiesce(&mut self) -> Result<Response, GuestError> {
        if let Some(group) = &self.machine.user_group
            && let Err(error) = group.freeze()
        {
            // Half frozen is worse than running: the caller gives up the capture.
            let _ = group.thaw();
            return Err(guest_error("cannot freeze user processes", &error));
        }
        let children = self.drop_workers();
        await_children(children);
        if self.machine.is_guest() {
            rustix::fs::sync();
        }
        self.life.note_quiesce();
        self.is_ending = true;
        Ok(Response::Done)
    }

    fn start_exec(&mut self, spec: &StartExec) -> Result<Response, GuestError> {
        if !self.life.is_running() {
            return Err(wrong_state("user code may not run yet"));
        }
        if self.execs.len() >= EXECS_MAX {
            return Err(GuestError::new(
                GuestErrorCode::TooMany,
                "too many execs at once",
            ));
        }
        if self.is_open(spec.channel) {
            return Err(GuestError::new(
                GuestErrorCode::Exists,
                "the channel is in use",
            ));
        }
        self.execs_started += 1;
        let exec = Exec::start(spec, self.execs_started, &self.machine, &self.poller)?;
        let pid = exec.pid.as_raw_nonzero().get().unsigned_abs();
        self.execs.push(exec);
        Ok(Response::ExecStarted { pid })
    }

    fn start_worker(&mut self, call: u64, operation: Operation, user: Option<&str>) {
        if let Err(error) = self.try_start_worker(call, operation, user) {
            self.answer(call, Err(error));
        }
    }

    fn try_start_worker(
        &mut self,
        call: u64,
        operation: Operation,
        user: Option<&str>,
    ) -> Result<(), GuestError> {
        if self.workers.len() >= AGENT_FILE_OPERATIONS_MAX {
            let text = "too many file operations at once";
            return Err(GuestError::new(GuestErrorCode::TooMany, text));
        }
        if operation.path().is_empty() || operation.path().contains('\0') {
            return Err(GuestError::new(
                GuestErrorCode::Invalid,
                "the path is empty or not text",
            ));
        }
        if operation
            .channel()
            .is_some_and(|channel| self.is_open(channel))
        {
            return Err(GuestError::new(
                GuestErrorCode::Exists,
                "the channel is in use",
            ));
        }
        let account = Account::find(user)?;
        let worker = Worker::start(
            Job {
                call,
                account,
                operation,
            },
            &self.poller,
        )
        .map_err(|error| guest_error("cannot start the file operation", &error))?;
        self.workers.push(worker);
        Ok(())
    }

    fn is_open(&self, channel: ChannelId) -> bool {
        let channel = Some(channel);
        self.execs.iter().any(|exec| exec.channel == channel)
            || self
                .workers
                .iter()
                .any(|worker| worker.channel() == channel)
    }

    fn exec(&mut self, channel: ChannelId) -> Result<&mut Exec, GuestError> {
        let exec = self
            .execs
            .iter_mut()
            .find(|exec| exec.channel == Some(channel));
        exec.ok_or_else(|| GuestError::new(GuestErrorCode::NotFound, "no such exec"))
    }

    fn close_stdin(&mut self, channel: ChannelId) -> Result<Response, GuestError> {
        if let Some(input) = &mut self.exec(channel)?.input {
            input.close();
        }
        Ok(Response::Done)
    }

    fn cancel(&mut self, channel: ChannelId) {
        if let Ok(exec) = self.exec(channel) {
            exec.kill(ExitReason::Killed);
            let pipes = exec.detach();
            self.background.adopt_pipes(pipes);
        }
        let is_it = |worker: &Worker| worker.channel() == Some(channel);
        if let Some(index) = self.workers.iter().position(is_it) {
            self.workers.swap_remove(index).discard();
        }
    }
}

/// How a call goes on.
enum Work {
    Done(Result<Response, GuestError>),
    /// In a child, which answers by itself.
    File {
        operation: Operation,
        user: Option<String>,
    },
}

/// What a request about files asks for.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the caller has sorted out everything else"
)]
fn file_work(request: Request) -> Work {
    let (operation, user) = match request {
        Request::OpenRead {
            channel,
            path,
            user,
            offset,
            limit,
        } => (
            Operation::Read {
                channel,
                path,
                offset,
                limit,
            },
            user,
        ),
        Request::OpenWrite {
            channel,
            path,
            user,
            mode,
            make_parents,
            append,
        } => {
            let options = WriteOptions {
                mode,
                make_parents,
                append,
            };
            (
                Operation::Write {
                    channel,
                    path,
                    options,
                },
                user,
            )
        }
        Request::Stat { path, user } => (Operation::Stat { path }, user),
        Request::ListDirectory {
            path,
            user,
            after,
            limit,
        } => {
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            (Operation::List { path, after, limit }, user)
        }
        Request::MakeDirectory {
            path,
            user,
            mode,
            make_parents,
        } => (
            Operation::MakeDirectory {
                path,
                mode,
                make_parents,
            },
            user,
        ),
        Request::Remove {
            path,
            user,
            recursive,
        } => (Operation::Remove { path, recursive }, user),
        _ => return Work::Done(Err(unsupported())),
    };
    Work::File { operation, user }
}

fn unsupported() -> GuestError {
    GuestError::new(GuestErrorCode::Unsupported, "not served by this guest")
}

/// Waits for children to end by themselves; those that do not are killed.
fn await_children(mut children: Vec<Pid>) {
    let end_ms = monotonic_ms() + WORKERS_END_MS;
    while !children.is_empty() {
        children.retain(|pid| matches!(waitpid(Some(*pid), WaitOptions::NOHANG), Ok(None)));
        if monotonic_ms() >= end_ms {
            for pid in children.drain(..) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
        std::thread::sleep(Duration::from_millis(u64::from(!children.is_empty())));
    }
}

fn wrong_state(text: &str) -> GuestError {
    GuestError::new(GuestErrorCode::WrongState, text)
}

fn identify_error(error: &identity::IdentifyError) -> GuestError {
    match error {
        identity::IdentifyError::BadHostname => {
            GuestError::new(GuestErrorCode::Invalid, error.to_string())
        }
        identity::IdentifyError::Step { source, .. } => {
            let source: &io::Error = source;
            guest_error(&error.to_string(), source)
        }
    }
}

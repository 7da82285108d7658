//! What each call does.

use std::io;

use dayfly_guest_proto::message::AnswerResult;
use dayfly_guest_proto::{
    Activity, Answer, Call, ChannelId, ExitReason, GuestError, GuestErrorCode, GuestMessage,
    Identity, Request, Response, StartExec, Status,
};
use dayfly_types::limits::{AGENT_FILE_OPERATIONS_MAX, EXECS_MAX};

use crate::account::Account;
use crate::activity;
use crate::agent::Agent;
use crate::clock::uptime_ms;
use crate::exec::Exec;
use crate::files::{Job, Operation, Worker, WriteOptions, guest_error};
use crate::identity;
use crate::machine::Machine;
use crate::volumes::DiskOperation;

impl Agent {
    pub(crate) fn answer(&mut self, call: u64, result: Result<Response, GuestError>) {
        let result = AnswerResult::from(result);
        self.send(&GuestMessage::Answer(Answer { call, result }));
    }

    /// Serves one call. File operations answer later, everything else at once.
    pub(crate) fn serve(&mut self, call: Call) {
        let Call { call, request } = call;
        match self.begin(request) {
            Work::Done(result) => self.answer(call, result),
            Work::File { operation, user } => self.start_worker(call, operation, user.as_deref()),
            Work::Disk(operation) => {
                self.start_job(call, Operation::Disk(operation), Ok(Account::root()));
            }
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
            Request::Quiesce { lease_ms, mark } => self.quiesce(lease_ms, mark.as_ref()),
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
            request @ (Request::MountVolume { .. }
            | Request::UnmountVolume { .. }
            | Request::GrowDisk { .. }) => match self.disk_work(request) {
                Ok(Some(operation)) => return Work::Disk(operation),
                Ok(None) => Ok(Response::Done),
                Err(error) => Err(error),
            },
            Request::Activity => Ok(Response::Activity(self.activity())),
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
        let identified = identity::become_sandbox(&identity, &self.machine)
            .map_err(|error| identify_error(&error))?;
        self.life.note_identity(identity);
        Ok(Response::Identified(identified))
    }

    fn activity(&self) -> Activity {
        let execs = self.execs.iter().filter(|exec| !exec.is_over()).count();
        Activity {
            execs: u32::try_from(execs).unwrap_or(u32::MAX),
            busy_ms: activity::busy_ms(&self.machine.busy_file()),
        }
    }

    /// What a request about disks asks for; `None` when there is nothing to do.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the caller has sorted out everything else"
    )]
    fn disk_work(&mut self, request: Request) -> Result<Option<DiskOperation>, GuestError> {
        if !self.machine.is_guest() {
            return Err(unsupported());
        }
        match request {
            Request::MountVolume {
                serial,
                path,
                read_only,
                expect_bytes,
            } => self
                .volumes
                .mount(serial, &path, read_only, expect_bytes)
                .map(Some),
            Request::UnmountVolume { path } => self.volumes.unmount(&path),
            Request::GrowDisk { expect_bytes } => {
                let writable = self.machine.writable_disk()?;
                Ok(Some(DiskOperation::Grow {
                    writable,
                    expect_bytes,
                }))
            }
            _ => Err(unsupported()),
        }
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
        self.start_job(call, operation, Account::find(user));
    }

    fn start_job(&mut self, call: u64, operation: Operation, account: Result<Account, GuestError>) {
        if let Err(error) = self.try_start_job(call, operation, account) {
            self.answer(call, Err(error));
        }
    }

    fn try_start_job(
        &mut self,
        call: u64,
        operation: Operation,
        account: Result<Account, GuestError>,
    ) -> Result<(), GuestError> {
        if self.workers.len() >= AGENT_FILE_OPERATIONS_MAX {
            let text = "too many file operations at once";
            return Err(GuestError::new(GuestErrorCode::TooMany, text));
        }
        let is_no_path = |path: &str| path.is_empty() || path.contains('\0');
        if operation.path().is_some_and(is_no_path) {
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
        let job = Job {
            call,
            account: account?,
            operation,
        };
        let worker = Worker::start(job, &self.poller)
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
    /// In a child of root.
    Disk(DiskOperation),
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

pub(crate) fn wrong_state(text: &str) -> GuestError {
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

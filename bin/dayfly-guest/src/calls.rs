//! What each call does.

use std::io;

use dayfly_guest_proto::message::AnswerResult;
use dayfly_guest_proto::{
    Activity, Answer, Call, ChannelId, GuestError, GuestErrorCode, GuestMessage, Identity, Request,
    Response, Status,
};

use crate::activity;
use crate::agent::Agent;
use crate::clock::{file_clock_unix_nanos, monotonic_ms, uptime_ms};
use crate::files::Worker;
use crate::free_memory::{self, FreePagesWanted};
use crate::identity;
use crate::machine::Machine;
use crate::refusal::{guest_error, unsupported};
use crate::volumes::DiskOperation;

impl Agent {
    pub(crate) fn answer(&mut self, call: u64, result: Result<Response, GuestError>) {
        let result = AnswerResult::from(result);
        self.send(&GuestMessage::Answer(Answer { call, result }));
    }

    /// Serves one call. File operations and waits answer later, everything else at once.
    pub(crate) fn serve(&mut self, call: Call) {
        let Call { call, request } = call;
        match self.begin(request) {
            Work::Done(result) => self.answer(call, result),
            Work::File(request) => self.start_file(call, request),
            Work::Disk(operation) => self.start_disk(call, operation),
            Work::FreePages(wanted) => self.start_free_pages(call, wanted),
            Work::WaitPort { port, timeout_ms } => {
                let now_ms = monotonic_ms();
                if let Err(error) = self.port_waits.add(call, port, timeout_ms, now_ms) {
                    self.answer(call, Err(error));
                }
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
            request @ (Request::StartExec(_)
            | Request::AttachExec { .. }
            | Request::DescribeExec { .. }
            | Request::ListExecs { .. }
            | Request::SignalExec { .. }
            | Request::SignalProcess { .. }
            | Request::ResizeTerminal { .. }
            | Request::CloseStdin { .. }
            | Request::ForgetExec { .. }) => self.exec_call(request),
            Request::ConnectSocket { channel, path } => self.connect_socket(channel, &path),
            Request::ConnectPort { channel, port } => self.connect_port(channel, port),
            Request::ListPorts => Ok(Response::Ports {
                ports: crate::ports::listening(),
            }),
            Request::WaitPort { port, timeout_ms } => return Work::WaitPort { port, timeout_ms },
            Request::CancelChannel { channel } => {
                self.cancel(channel);
                Ok(Response::Done)
            }
            request @ (Request::OpenRead { .. }
            | Request::OpenWrite { .. }
            | Request::Stat { .. }
            | Request::ListDirectory { .. }
            | Request::MakeDirectory { .. }
            | Request::Remove { .. }
            | Request::Move { .. }
            | Request::ChangeMode { .. }
            | Request::WatchDirectory { .. }
            | Request::PackTree { .. }
            | Request::UnpackTree { .. }
            | Request::ListChanges { .. }) => return Work::File(request),
            request @ (Request::MountVolume { .. }
            | Request::UnmountVolume { .. }
            | Request::GrowDisk { .. }) => match self.disk_work(request) {
                Ok(Some(operation)) => return Work::Disk(operation),
                Ok(None) => Ok(Response::Done),
                Err(error) => Err(error),
            },
            Request::Activity => Ok(Response::Activity(self.activity())),
            // They would be those of somebody else's machine.
            Request::FreeMemory | Request::ListFreePages { .. } if !self.machine.is_guest() => {
                Err(unsupported())
            }
            Request::FreeMemory => free_memory::amount(),
            Request::ListFreePages {
                block_pages,
                ranges_max,
            } => {
                return Work::FreePages(FreePagesWanted {
                    block_pages,
                    ranges_max,
                });
            }
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
        self.life.note_identity(identity, file_clock_unix_nanos());
        Ok(Response::Identified(identified))
    }

    fn activity(&self) -> Activity {
        Activity {
            execs: u32::try_from(self.execs.active()).unwrap_or(u32::MAX),
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

    pub(crate) fn is_open(&self, channel: ChannelId) -> bool {
        let mut workers = self.workers.iter();
        self.execs.has_channel(channel)
            || self.sockets.has_channel(channel)
            || workers.any(|worker| worker.channel() == Some(channel))
    }

    /// Ends what a channel does. An exec only has one reader less.
    fn cancel(&mut self, channel: ChannelId) {
        self.execs.drop_reader(channel);
        self.sockets.close(channel);
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
    File(Request),
    /// In a child of root.
    Disk(DiskOperation),
    /// The same.
    FreePages(FreePagesWanted),
    /// When something listens on the port.
    WaitPort {
        port: u16,
        timeout_ms: u64,
    },
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

//! All execs of the guest: those that run, and the newest of those that have ended.

use std::rc::Rc;

use dayfly_guest_proto::{
    ChannelId, DataHeader, ExecPage, GuestError, GuestErrorCode, StartExec, StreamKind, WindowError,
};
use dayfly_types::ExecId;
use dayfly_types::exec::{ExitReason, StdinMode};
use dayfly_types::limits::{EXEC_LOGS_KEPT_BYTES_MAX, EXECS_KEPT_MAX, EXECS_MAX};
use rustix::process::{Pid, WaitStatus};

use super::describe::Words;
use super::directory::LogDirectory;
use super::reader::Attachment;
use super::{Exec, Remains};
use crate::files::Outlets;
use crate::machine::Machine;
use crate::poller::Poller;

/// Execs of one page of the list.
const PAGE_EXECS_MAX: usize = 100;

#[derive(Debug)]
pub(crate) struct Execs {
    /// In the order of their numbers.
    list: Vec<Exec>,
    started: u64,
    ended: u64,
    directory: Rc<LogDirectory>,
    /// Who comes first next time, so that nobody always does.
    turn: usize,
    /// Whether ended execs have become more, or larger.
    has_grown: bool,
}

impl Execs {
    pub(crate) fn new(machine: &Machine) -> Self {
        let directory = LogDirectory::new(machine.log_directory.clone());
        if machine.is_guest() {
            // Before any user code can put something else in its place. Without it, logs stay in
            // memory.
            let _ = directory.open();
        }
        Self {
            list: Vec::new(),
            started: 0,
            ended: 0,
            directory: Rc::new(directory),
            turn: 0,
            has_grown: false,
        }
    }

    /// Starts an exec with a channel that reads from the first byte, or attaches the channel to
    /// the one that was started from the same words before.
    pub(crate) fn start(
        &mut self,
        start: &StartExec,
        machine: &Machine,
        poller: &Poller,
    ) -> Result<u32, GuestError> {
        let spec = &start.spec;
        let attachment = Attachment {
            channel: start.channel,
            stdout: Some(0),
            stderr: Some(0),
            stdin: spec.stdin == StdinMode::Piped,
        };
        if let Ok(exec) = self.find(&spec.exec_id) {
            if exec.about.words != Words::of(spec) {
                let text = "another exec has this id";
                return Err(GuestError::new(GuestErrorCode::Exists, text));
            }
            exec.attach(attachment)?;
            return Ok(exec.pid());
        }
        let running = self.list.iter().filter(|exec| exec.process.is_running());
        if running.count() >= EXECS_MAX {
            let text = "too many execs at once";
            return Err(GuestError::new(GuestErrorCode::TooMany, text));
        }
        self.started += 1;
        let mut exec = Exec::start(spec, self.started, machine, poller, &self.directory)?;
        exec.attach(attachment)?;
        let pid = exec.pid();
        self.list.push(exec);
        Ok(pid)
    }

    /// The exec of this id, unless it was asked to be forgotten.
    pub(super) fn find(&mut self, id: &ExecId) -> Result<&mut Exec, GuestError> {
        self.list
            .iter_mut()
            .find(|exec| exec.id() == id && exec.farewell.is_none())
            .ok_or_else(no_such_exec)
    }

    /// The exec that this channel reads.
    pub(super) fn find_by_channel(&mut self, channel: ChannelId) -> Result<&mut Exec, GuestError> {
        self.list
            .iter_mut()
            .find(|exec| exec.has_reader(channel))
            .ok_or_else(no_such_exec)
    }

    pub(crate) fn has_channel(&self, channel: ChannelId) -> bool {
        self.list.iter().any(|exec| exec.has_reader(channel))
    }

    /// Execs with a higher number than `after`, oldest first; services are nobody's.
    pub(super) fn page(&self, after: u64, limit: u32) -> ExecPage {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let limit = limit.clamp(1, PAGE_EXECS_MAX);
        let mut rest = self.list.iter().filter(|exec| {
            exec.about.number > after && !exec.about.is_service && exec.farewell.is_none()
        });
        let execs = rest.by_ref().take(limit).map(Exec::info).collect();
        ExecPage {
            execs,
            has_more: rest.next().is_some(),
        }
    }

    /// How many run for a user.
    pub(crate) fn active(&self) -> usize {
        let running = self.list.iter().filter(|exec| exec.process.is_running());
        running.filter(|exec| !exec.about.is_service).count()
    }

    /// Ends an exec and everything of it.
    pub(super) fn forget(&mut self, id: &ExecId) {
        if let Ok(exec) = self.find(id) {
            exec.forget();
        }
    }

    pub(crate) fn kill_all(&mut self) {
        for exec in &mut self.list {
            exec.process.kill(ExitReason::Killed);
        }
    }

    /// Takes input for whichever exec the channel is of. Bytes for a channel that nobody has are
    /// late, not wrong.
    pub(crate) fn accept_input(
        &mut self,
        header: DataHeader,
        bytes: Vec<u8>,
    ) -> Result<(), WindowError> {
        let is_of = |exec: &&mut Exec| exec.knows_channel(header.channel);
        let exec = self.list.iter_mut().find(is_of);
        exec.map_or(Ok(()), |exec| exec.accept_input(header, bytes))
    }

    pub(crate) fn grant(
        &mut self,
        channel: ChannelId,
        stream: StreamKind,
        bytes: u32,
    ) -> Result<(), WindowError> {
        let exec = self.find_by_channel(channel);
        exec.map_or(Ok(()), |exec| exec.grant(channel, stream, bytes))
    }

    pub(crate) fn drop_reader(&mut self, channel: ChannelId) {
        if let Ok(exec) = self.find_by_channel(channel) {
            exec.drop_reader(channel);
        }
    }

    /// The conversation is over. Execs go on, and wait for the next one.
    pub(crate) fn drop_readers(&mut self) {
        self.list.iter_mut().for_each(Exec::drop_readers);
    }

    /// Notes the end of a child, if it is the main process of an exec.
    pub(crate) fn note_end(&mut self, pid: Pid, status: WaitStatus) {
        // Processes that ended before may have had the same number.
        let is_it = |exec: &&mut Exec| exec.process.is_running() && exec.process.pid() == pid;
        if let Some(exec) = self.list.iter_mut().find(is_it) {
            self.ended += 1;
            exec.note_end(status, self.ended);
            self.has_grown = true;
        }
    }

    pub(crate) fn remove_empty_groups(&mut self) {
        for exec in &mut self.list {
            exec.process.remove_empty_group();
        }
    }

    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        let deadlines = self.list.iter();
        deadlines
            .filter_map(|exec| exec.process.deadline_ms())
            .min()
    }

    pub(crate) fn expire(&mut self, now_ms: u64) {
        for exec in &mut self.list {
            exec.process.expire(now_ms);
        }
    }

    pub(crate) fn allow_more_time(&mut self, more_ms: u64) {
        for exec in &mut self.list {
            exec.process.allow_more_time(more_ms);
        }
    }

    pub(crate) fn wake(&mut self, number: i32) {
        self.list.iter_mut().for_each(|exec| exec.wake(number));
    }

    /// Moves bytes of every exec: into logs always, to readers while there is a conversation.
    pub(crate) fn pump(
        &mut self,
        mut outlets: Option<&mut Outlets<'_>>,
        buffer: &mut [u8],
    ) -> bool {
        let mut is_busy = false;
        let count = self.list.len();
        self.turn = (self.turn + 1) % count.max(1);
        for index in (self.turn..count).chain(0..self.turn) {
            let exec = &mut self.list[index];
            let has_moved = exec.pump(outlets.as_deref_mut(), buffer);
            // Children of an ended one may go on for long, and write much.
            self.has_grown |= has_moved && !exec.process.is_running();
            is_busy |= has_moved;
        }
        is_busy
    }

    /// Takes those out of the table that nobody needs.
    pub(crate) fn bury(&mut self) -> Vec<Remains> {
        if std::mem::take(&mut self.has_grown) {
            self.make_room();
        }
        let gone = self.list.extract_if(.., |exec| exec.is_gone());
        gone.map(Exec::into_remains).collect()
    }

    /// Evicts the oldest ended execs until the others are few and small enough.
    fn make_room(&mut self) {
        let mut ended: Vec<&mut Exec> = self
            .list
            .iter_mut()
            .filter(|exec| exec.end_number.is_some() && exec.farewell.is_none())
            .collect();
        // One that is being read goes last.
        ended.sort_by_key(|exec| (!exec.readers.is_empty(), exec.end_number));
        let mut count = ended.len();
        let mut bytes: u64 = ended.iter().map(|exec| exec.disk_bytes()).sum();
        for exec in ended {
            if count <= EXECS_KEPT_MAX && bytes <= EXEC_LOGS_KEPT_BYTES_MAX {
                return;
            }
            count -= 1;
            bytes -= exec.disk_bytes();
            exec.evict();
        }
    }
}

fn no_such_exec() -> GuestError {
    GuestError::new(GuestErrorCode::NotFound, "no such exec")
}

//! Execs: a process tree each, the logs of what it said, and whoever reads them.
//!
//! ```text
//! process --> pipe or terminal --> log --> readers (channels, which come and go)
//!         <------------------- input <----
//! ```
//! An exec belongs to the guest. It ends when its process does, and is kept after that, so that
//! nobody who was cut off misses its end; the oldest ended ones make room for new ones. Neither a
//! lost conversation nor a capture ends one.
//!
//! Start reading at [`table`], then [`output`] and [`log`].

mod calls;
mod describe;
mod directory;
mod input;
mod limits;
mod log;
mod output;
mod process;
mod reader;
mod ring;
mod spawn;
mod table;
mod terminal;

use std::rc::Rc;

use dayfly_guest_proto::{
    ChannelId, DataHeader, Event, GuestError, GuestErrorCode, GuestMessage, StreamKind, WindowError,
};
use dayfly_types::ExecId;
use dayfly_types::exec::{ExecSpec, ExitReason, LogRule, WindowSize};
use dayfly_types::limits::EXEC_READERS_MAX;
use rustix::process::WaitStatus;

use self::describe::Description;
use self::directory::LogDirectory;
use self::input::Input;
use self::log::Log;
use self::output::{Mouth, Output};
use self::process::{Ended, Process};
use self::reader::{Attachment, Reader, Upstream};
use crate::account::Account;
use crate::cgroup::ExecGroup;
use crate::files::Outlets;
use crate::machine::Machine;
use crate::poller::{Poller, Source};
use crate::refusal::guest_error;

pub(crate) use self::table::Execs;

#[derive(Debug)]
pub(crate) struct Exec {
    about: Description,
    process: Process,
    input: Input,
    stdout: Output,
    stderr: Output,
    readers: Vec<Reader>,
    /// Which one it was of those that ended, as long as it has.
    end_number: Option<u64>,
    farewell: Option<Farewell>,
}

/// Why an exec leaves the table, once its readers know of its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Farewell {
    /// Its place is needed. What it left running goes on.
    Evicted,
    /// Somebody asked for it, and for the end of everything it started.
    Forgotten,
}

/// What an exec leaves behind.
#[derive(Debug)]
pub(crate) struct Remains {
    /// Pipes that background children may still write to.
    pub(crate) pipes: Vec<Source>,
    /// The group, if background children are still in it.
    pub(crate) group: Option<ExecGroup>,
}

impl Exec {
    /// Starts a process. It is in its group before it runs anything of the user's.
    fn start(
        spec: &ExecSpec,
        number: u64,
        machine: &Machine,
        poller: &Poller,
        directory: &Rc<LogDirectory>,
    ) -> Result<Self, GuestError> {
        spawn::check(spec)?;
        limits::check(&spec.limits, machine.user_group.is_some())?;
        let account = Account::find(spec.user.as_deref(), &machine.defaults)?;
        let group = make_group(spec, number, machine)?;
        let spawned = spawn::Plan::new(spec, &account, group.as_ref(), machine, number)
            .and_then(|plan| plan.launch(spec, poller));
        let spawned = match spawned {
            Ok(spawned) => spawned,
            Err(error) => {
                let _ = group.is_some_and(|group| group.try_remove());
                return Err(guest_error("cannot start a process", &error));
            }
        };
        let mouth = if spec.terminal.is_some() {
            Mouth::Terminal
        } else {
            Mouth::Pipe
        };
        let log = |stream: &str| log(directory, number, stream, spec.log);
        let (stdout, stderr) = (Some(spawned.stdout), spawned.stderr);
        Ok(Self {
            about: Description::new(spec, number, &account),
            process: Process::new(
                spawned.pid,
                group,
                spawned.script,
                spec.limits,
                spec.timeout_ms,
            ),
            input: Input::new(mouth, spawned.stdin),
            stdout: Output::new(StreamKind::Stdout, mouth, stdout, log("stdout")),
            stderr: Output::new(StreamKind::Stderr, mouth, stderr, log("stderr")),
            readers: Vec::new(),
            end_number: None,
            farewell: None,
        })
    }

    fn id(&self) -> &ExecId {
        &self.about.id
    }

    fn pid(&self) -> u32 {
        self.process.pid().as_raw_nonzero().get().unsigned_abs()
    }

    /// Lets a channel read from offsets on, and send input if it asks for that.
    fn attach(&mut self, attachment: Attachment) -> Result<(), GuestError> {
        let too_many = |text: &str| GuestError::new(GuestErrorCode::TooMany, text);
        if self.readers.len() >= EXEC_READERS_MAX {
            return Err(too_many("too many readers of this exec"));
        }
        if attachment.stdin && !self.input.has_room(&self.readers) {
            return Err(too_many("too much input waits for this process"));
        }
        check_offset(&self.stdout, attachment.stdout)?;
        check_offset(&self.stderr, attachment.stderr)?;
        let reader = Reader {
            channel: attachment.channel,
            stdout: attachment.stdout.map(|offset| self.stdout.position(offset)),
            stderr: attachment.stderr.map(|offset| self.stderr.position(offset)),
            stdin: attachment.stdin.then(Upstream::default),
        };
        self.readers.push(reader);
        Ok(())
    }

    /// Whether the channel is, or was in this conversation, one that may send input here.
    fn knows_channel(&self, channel: ChannelId) -> bool {
        self.has_reader(channel) || self.input.knows_closed(channel)
    }

    fn has_reader(&self, channel: ChannelId) -> bool {
        let mut readers = self.readers.iter();
        readers.any(|reader| reader.channel == channel)
    }

    fn reader(&mut self, channel: ChannelId) -> Option<&mut Reader> {
        self.readers
            .iter_mut()
            .find(|reader| reader.channel == channel)
    }

    fn accept_input(&mut self, header: DataHeader, bytes: Vec<u8>) -> Result<(), WindowError> {
        let mut readers = self.readers.iter_mut();
        match readers.find(|reader| reader.channel == header.channel) {
            Some(reader) => self.input.accept(reader, header, bytes),
            None => self.input.accept_late(header, bytes).unwrap_or(Ok(())),
        }
    }

    fn grant(
        &mut self,
        channel: ChannelId,
        stream: StreamKind,
        bytes: u32,
    ) -> Result<(), WindowError> {
        let output = match stream {
            StreamKind::Stdout => &mut self.stdout,
            StreamKind::Stderr => &mut self.stderr,
            StreamKind::Stdin | StreamKind::File => return Ok(()),
        };
        let mut readers = self.readers.iter_mut();
        let reader = readers.find(|reader| reader.channel == channel);
        let position = reader.and_then(|reader| reader.position(stream));
        position.map_or(Ok(()), |position| output.grant(position, bytes))
    }

    /// Closes the input, if the channel is one that may send some.
    fn close_input(&mut self, channel: ChannelId) {
        if self
            .reader(channel)
            .is_some_and(|reader| reader.stdin.is_some())
        {
            self.input.close();
        }
    }

    /// A reader wants no more. The process does not notice.
    fn drop_reader(&mut self, channel: ChannelId) {
        let index = self
            .readers
            .iter()
            .position(|reader| reader.channel == channel);
        let Some(index) = index else { return };
        self.input.forget_channel(channel);
        if let Some(upstream) = self.readers.swap_remove(index).stdin {
            self.input.keep_closed(channel, upstream.window);
        }
    }

    /// The conversation is over, and with it everybody who read.
    fn drop_readers(&mut self) {
        self.readers.clear();
        self.input.forget_conversation();
    }

    fn signal(&mut self, number: i32) -> Result<(), GuestError> {
        let foreground = self.terminal().and_then(terminal::foreground);
        self.process.signal(number, foreground)
    }

    fn resize(&self, size: WindowSize) -> Result<(), GuestError> {
        if !self.about.is_terminal {
            let text = "this exec has no terminal";
            return Err(GuestError::new(GuestErrorCode::Invalid, text));
        }
        let ended = || GuestError::new(GuestErrorCode::NotFound, "the process has ended");
        let terminal = self.terminal().ok_or_else(ended)?;
        terminal::resize(terminal, size)
            .map_err(|error| guest_error("cannot size the terminal", &error))
    }

    /// The agent's side of the terminal, while the process runs.
    fn terminal(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        let is_there = self.about.is_terminal && self.process.is_running();
        is_there.then(|| self.stdout.descriptor()).flatten()
    }

    /// Notes that the main process is over.
    fn note_end(&mut self, status: WaitStatus, end_number: u64) {
        self.process.note_end(status);
        self.end_number = Some(end_number);
        self.input.abandon(&mut self.readers);
        self.stdout.note_process_end();
        self.stderr.note_process_end();
        if self.farewell.is_some() {
            self.drop_logs();
        }
    }

    /// Ends everything that it started and drops what it said.
    fn forget(&mut self) {
        self.process.kill(ExitReason::Killed);
        self.farewell = Some(Farewell::Forgotten);
        self.drop_logs();
    }

    /// Makes room for others. Only for one that has ended.
    fn evict(&mut self) {
        self.farewell.get_or_insert(Farewell::Evicted);
        self.drop_logs();
    }

    fn drop_logs(&mut self) {
        self.stdout.forget();
        self.stderr.forget();
    }

    fn disk_bytes(&self) -> u64 {
        self.stdout.disk_bytes() + self.stderr.disk_bytes()
    }

    /// Moves bytes between the process, its logs and its readers. Gives whether any moved.
    fn pump(&mut self, mut outlets: Option<&mut Outlets<'_>>, buffer: &mut [u8]) -> bool {
        let is_silent = self.stdout.is_closed() && self.stderr.is_closed();
        if is_silent && self.readers.is_empty() && !self.process.is_running() {
            return false;
        }
        let readers = &mut self.readers;
        let mut is_busy = self.stdout.pump(readers, outlets.as_deref_mut(), buffer);
        is_busy |= self.stderr.pump(readers, outlets.as_deref_mut(), buffer);
        is_busy |= self.input.pump(readers);
        if let Some(outlets) = outlets {
            for reader in readers {
                reader.pay_credit(outlets);
            }
            is_busy |= self.tell_end(outlets);
        }
        is_busy
    }

    /// Tells readers that have everything how the process ended. That is the last they hear.
    fn tell_end(&mut self, outlets: &mut Outlets<'_>) -> bool {
        let Some(Ended { exit, duration_ms }) = self.process.ended() else {
            return false;
        };
        let before = self.readers.len();
        self.readers.retain(|reader| {
            let is_done = reader.has_everything();
            if is_done {
                outlets.send(&GuestMessage::Event(Event::ExecExited {
                    channel: reader.channel,
                    exit: exit.clone(),
                    duration_ms: *duration_ms,
                }));
            }
            !is_done
        });
        self.readers.len() < before
    }

    /// Whether it can leave the table.
    fn is_gone(&self) -> bool {
        self.farewell.is_some() && !self.process.is_running() && self.readers.is_empty()
    }

    /// Takes the exec apart.
    fn into_remains(self) -> Remains {
        let pipes = if self.farewell == Some(Farewell::Forgotten) {
            Vec::new()
        } else {
            let pipes = [self.stdout.into_source(), self.stderr.into_source()];
            pipes.into_iter().flatten().collect()
        };
        Remains {
            pipes,
            group: self.process.into_group(),
        }
    }

    /// Tells every descriptor of the exec about news.
    fn wake(&mut self, number: i32) {
        self.stdout.wake(number);
        self.stderr.wake(number);
        self.input.wake(number);
    }
}

fn make_group(
    spec: &ExecSpec,
    number: u64,
    machine: &Machine,
) -> Result<Option<ExecGroup>, GuestError> {
    let Some(users) = &machine.user_group else {
        return Ok(None);
    };
    let group = users
        .create_exec(number)
        .map_err(|error| guest_error("cannot make a control group", &error))?;
    if let Err(error) = group.limit(&spec.limits) {
        let _ = group.try_remove();
        let text = format!("this guest cannot keep the limits: {error}");
        return Err(GuestError::new(GuestErrorCode::Unsupported, text));
    }
    Ok(Some(group))
}

fn log(directory: &Rc<LogDirectory>, number: u64, stream: &str, rule: LogRule) -> Log {
    Log::new(directory, directory::file_name(number, stream), rule)
}

/// Refuses an offset that the stream has not come to yet.
fn check_offset(output: &Output, offset: Option<u64>) -> Result<(), GuestError> {
    let end = output.extent().end;
    match offset.filter(|offset| *offset > end) {
        None => Ok(()),
        Some(offset) => {
            let text = format!("byte {offset} is behind the end of the output, which is {end}");
            Err(GuestError::new(GuestErrorCode::Invalid, text))
        }
    }
}

//! Changes of a directory, one line each, for as long as somebody reads them.
//!
//! ```text
//! kernel queue --> translate --> lines --> socket
//! ```
//! A reader that is slow lets the lines pile up to a limit, then the kernel's own queue, which
//! says itself when it overflows. That is the one place where events are lost, and it leaves a
//! mark.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dayfly_guest_proto::{ChannelId, Response};
use dayfly_types::file::{WatchEvent, WatchKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{ReadFlags, Reader};
use rustix::io::Errno;

use super::line::Line;
use super::stream::fail;
use super::watch_tree::{Added, WatchTree, below, entries};
use super::{CHUNK_BYTES, TAG_DATA, TAG_END, guest_error, names};

/// Lines that wait for a slow reader before the kernel's queue has to hold the rest.
const LINES_BYTES_MAX: usize = 1 << 20;
/// How long events may gather before they are read. One wake-up and one packet for each of ten
/// thousand files would cost a guest more than the files.
const GATHER: Duration = Duration::from_millis(20);
/// Events of one read.
const BUFFER_BYTES: usize = 32 << 10;
/// Entries of new directories that are remembered until the queue is empty. One beyond them may
/// be told twice.
const SEEN_MAX: usize = 65_536;
/// How long the second half of a move may come after the first. Usually it is behind it already.
const MOVE_PATIENCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 20_000_000,
};

/// Reports changes until nobody listens or the directory is gone.
pub(super) fn watch(
    line: &Line<'_>,
    channel: ChannelId,
    path: &Path,
    is_recursive: bool,
) -> io::Result<()> {
    let tree = match WatchTree::open(path, is_recursive) {
        Ok(tree) => tree,
        Err(error) => return line.answer(Err(error)),
    };
    line.answer(Ok(Response::Done))?;
    rustix::io::ioctl_fionbio(line.socket(), true)?;
    let mut watch = Watch {
        tree,
        line,
        lines: VecDeque::new(),
        half: None,
        seen: HashSet::new(),
        is_over: false,
    };
    watch.tell(WatchKind::Ready, Path::new(""), false, None);
    let outcome = watch.run();
    rustix::io::ioctl_fionbio(line.socket(), false)?;
    match outcome {
        Ok(()) => line.send(TAG_END, &[]),
        Err(error) => fail(line, channel, guest_error("cannot watch", &error)),
    }
}

struct Watch<'a> {
    tree: WatchTree,
    line: &'a Line<'a>,
    lines: VecDeque<u8>,
    /// The first half of a move.
    half: Option<Half>,
    /// What was told because it was found in a new directory. An event of its creation may still
    /// be in the queue; it would be told twice.
    seen: HashSet<PathBuf>,
    is_over: bool,
}

struct Half {
    cookie: u32,
    path: PathBuf,
    is_dir: bool,
}

/// One event of the kernel.
struct Raw {
    watch: i32,
    flags: ReadFlags,
    cookie: u32,
    name: Option<Vec<u8>>,
}

impl Watch<'_> {
    fn run(&mut self) -> io::Result<()> {
        loop {
            self.send_lines()?;
            if self.is_over && self.lines.is_empty() {
                return Ok(());
            }
            if !self.wait()? {
                continue;
            }
            std::thread::sleep(GATHER);
            while self.lines.len() < LINES_BYTES_MAX {
                let events = self.read()?;
                if events.is_empty() {
                    break;
                }
                for event in events {
                    self.take(event)?;
                }
            }
        }
    }

    /// Waits for news. Gives whether there are events to read.
    fn wait(&mut self) -> io::Result<bool> {
        let has_room = self.lines.len() < LINES_BYTES_MAX && !self.is_over;
        let socket = if self.lines.is_empty() {
            PollFlags::empty()
        } else {
            PollFlags::OUT
        };
        let events = if has_room {
            PollFlags::IN
        } else {
            PollFlags::empty()
        };
        let patience = self.half.as_ref().map(|_| &MOVE_PATIENCE);
        let mut waiting = [
            PollFd::from_borrowed_fd(self.tree.inotify().as_fd(), events),
            PollFd::from_borrowed_fd(self.line.socket(), socket),
        ];
        let count = match poll(&mut waiting, patience) {
            Ok(count) => count,
            Err(Errno::INTR) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let [events, socket] = waiting.map(|descriptor| descriptor.revents());
        if socket.intersects(PollFlags::HUP | PollFlags::ERR) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if count == 0 {
            self.settle_half();
        }
        if has_room && !events.contains(PollFlags::IN) {
            // Nothing of the time before the last scan is in the queue any more.
            self.seen.clear();
        }
        Ok(events.contains(PollFlags::IN))
    }

    fn read(&mut self) -> io::Result<Vec<Raw>> {
        let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
        let mut reader = Reader::new(self.tree.inotify(), &mut buffer);
        let mut found = Vec::new();
        loop {
            match reader.next() {
                Ok(event) => found.push(Raw {
                    watch: event.wd(),
                    flags: event.events(),
                    cookie: event.cookie(),
                    name: event.file_name().map(|name| name.to_bytes().to_vec()),
                }),
                Err(Errno::AGAIN | Errno::INTR) => return Ok(found),
                Err(error) => return Err(error.into()),
            }
            if reader.is_buffer_empty() {
                return Ok(found);
            }
        }
    }

    fn take(&mut self, event: Raw) -> io::Result<()> {
        let pairs = event.flags.contains(ReadFlags::MOVED_TO)
            && self
                .half
                .as_ref()
                .is_some_and(|half| half.cookie == event.cookie);
        if !pairs {
            self.settle_half();
        }
        if event.flags.contains(ReadFlags::QUEUE_OVERFLOW) {
            self.lost();
            if self.tree.add_all() == Added::Full {
                self.lost();
            }
            return Ok(());
        }
        let Some(name) = &event.name else {
            self.take_own(&event);
            return Ok(());
        };
        let Some(directory) = self.tree.path(event.watch) else {
            return Ok(());
        };
        let path = below(directory, name);
        self.take_entry(&event, path)
    }

    /// An event of a watched directory itself. Those of an inner one come from its parent, too.
    fn take_own(&mut self, event: &Raw) {
        let is_gone = event.flags.intersects(
            ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::UNMOUNT | ReadFlags::IGNORED,
        );
        if is_gone && self.tree.is_top(event.watch) && !self.is_over {
            let top = self.tree.top_path().to_owned();
            self.tell(WatchKind::Removed, &top, true, None);
            self.is_over = true;
        }
        if event.flags.contains(ReadFlags::IGNORED) {
            self.tree.forget(event.watch);
        }
    }

    fn take_entry(&mut self, event: &Raw, path: PathBuf) -> io::Result<()> {
        let is_dir = event.flags.contains(ReadFlags::ISDIR);
        if event.flags.contains(ReadFlags::CREATE) {
            if self.seen.remove(&path) {
                return Ok(());
            }
            self.tell(WatchKind::Created, &path, is_dir, None);
            return self.came(path, is_dir);
        }
        if event.flags.contains(ReadFlags::MOVED_FROM) {
            self.half = Some(Half {
                cookie: event.cookie,
                path,
                is_dir,
            });
            return Ok(());
        }
        if event.flags.contains(ReadFlags::MOVED_TO) {
            return self.moved(path, is_dir);
        }
        if event.flags.contains(ReadFlags::DELETE) {
            self.seen.remove(&path);
            self.tell(WatchKind::Removed, &path, is_dir, None);
        } else if event
            .flags
            .intersects(ReadFlags::CLOSE_WRITE | ReadFlags::ATTRIB)
        {
            self.tell(WatchKind::Modified, &path, is_dir, None);
        }
        Ok(())
    }

    fn moved(&mut self, path: PathBuf, is_dir: bool) -> io::Result<()> {
        let Some(half) = self.half.take() else {
            self.tell(WatchKind::Moved, &path, is_dir, None);
            return self.came(path, is_dir);
        };
        self.tell(WatchKind::Moved, &path, is_dir, Some(&half.path));
        if is_dir {
            self.tree.rename(&half.path, &path);
        }
        Ok(())
    }

    /// The second half did not come: it was moved out of what is watched.
    fn settle_half(&mut self) {
        if let Some(half) = self.half.take() {
            self.tell(WatchKind::Removed, &half.path, half.is_dir, None);
            if half.is_dir {
                self.tree.remove(&half.path);
            }
        }
    }

    /// Watches a new directory, and tells what came into it before it was watched.
    fn came(&mut self, path: PathBuf, is_dir: bool) -> io::Result<()> {
        let mut waiting = Vec::new();
        if is_dir {
            waiting.push(path);
        }
        while let Some(directory) = waiting.pop() {
            match self.tree.add(&directory) {
                Added::Watched => {}
                Added::Nothing => continue,
                Added::Full => {
                    self.lost();
                    continue;
                }
            }
            for (path, is_dir) in entries(&directory) {
                self.tell(WatchKind::Created, &path, is_dir, None);
                if self.seen.len() < SEEN_MAX {
                    self.seen.insert(path.clone());
                }
                if is_dir {
                    waiting.push(path);
                }
                if self.lines.len() > 2 * LINES_BYTES_MAX {
                    self.send_all_lines()?;
                }
            }
        }
        Ok(())
    }

    fn lost(&mut self) {
        self.tell(WatchKind::Overflow, Path::new(""), false, None);
    }

    fn tell(&mut self, kind: WatchKind, path: &Path, is_dir: bool, from: Option<&Path>) {
        let event = WatchEvent {
            kind,
            path: names::path_text(path),
            is_dir,
            from: from.map(names::path_text),
        };
        // Plain data always serialises.
        self.lines
            .extend(serde_json::to_vec(&event).unwrap_or_default());
        self.lines.push_back(b'\n');
    }

    /// Sends as much as the socket takes now.
    fn send_lines(&mut self) -> io::Result<()> {
        while !self.lines.is_empty() {
            let count = self.lines.len().min(CHUNK_BYTES);
            let packet: Vec<u8> = self.lines.range(..count).copied().collect();
            match self.line.send(TAG_DATA, &packet) {
                Ok(()) => drop(self.lines.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits until everything is sent; the kernel's queue holds what comes meanwhile.
    fn send_all_lines(&mut self) -> io::Result<()> {
        loop {
            self.send_lines()?;
            if self.lines.is_empty() {
                return Ok(());
            }
            let mut waiting = [PollFd::from_borrowed_fd(self.line.socket(), PollFlags::OUT)];
            match poll(&mut waiting, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

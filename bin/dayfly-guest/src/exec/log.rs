//! What one stream of an exec has said, addressed by byte.
//!
//! ```text
//! memory --more than a little--> ring in a file --the disk takes nothing--> ring in memory
//! ```
//! Memory of the agent is part of every capture, so it keeps a log as well as the disk does; a
//! short log never touches the disk. Offsets only grow: whatever is dropped is seen as a gap.

use std::collections::VecDeque;
use std::rc::Rc;

use dayfly_types::exec::{LogExtent, LogRule, WhenFull};
use dayfly_types::limits::{
    EXEC_LOG_BEHIND_BYTES, EXEC_LOG_BYTES_MAX, EXEC_LOG_BYTES_MIN, EXEC_LOG_MEMORY_BYTES,
    STREAM_CREDIT_BYTES,
};

use super::directory::LogDirectory;
use super::ring::{Ring, clamp};

#[derive(Debug)]
pub(super) struct Log {
    directory: Rc<LogDirectory>,
    name: String,
    bytes_max: u64,
    when_full: WhenFull,
    start: u64,
    end: u64,
    /// The furthest byte that any reader has taken.
    delivered: u64,
    store: Store,
}

#[derive(Debug)]
enum Store {
    /// Everything so far, and little of it.
    Memory(VecDeque<u8>),
    File(Ring),
    /// The newest bytes of a log for which the disk has no place.
    MemoryRing(VecDeque<u8>),
}

/// What a log without a disk keeps: with less, a reader could not give credit back in the steps
/// in which it does.
const MEMORY_RING_BYTES: u64 = EXEC_LOG_BYTES_MIN;

impl Log {
    pub(super) fn new(directory: &Rc<LogDirectory>, name: String, rule: LogRule) -> Self {
        Self {
            directory: Rc::clone(directory),
            name,
            bytes_max: rule.bytes_max.clamp(EXEC_LOG_BYTES_MIN, EXEC_LOG_BYTES_MAX),
            when_full: rule.when_full,
            start: 0,
            end: 0,
            delivered: 0,
            store: Store::Memory(VecDeque::new()),
        }
    }

    /// The part that can still be read.
    pub(super) const fn extent(&self) -> LogExtent {
        LogExtent {
            start: self.start,
            end: self.end,
        }
    }

    /// What it takes of the disk.
    pub(super) fn disk_bytes(&self) -> u64 {
        match &self.store {
            Store::File(ring) => self.end.min(ring.capacity()),
            Store::Memory(_) | Store::MemoryRing(_) => 0,
        }
    }

    /// Notes how far a reader has come: under `block` that makes room.
    pub(super) fn note_delivered(&mut self, offset: u64) {
        self.delivered = self.delivered.max(offset);
    }

    /// How many more bytes may be taken in now.
    pub(super) fn room(&mut self) -> u64 {
        match self.when_full {
            WhenFull::DropOldest => u64::MAX,
            WhenFull::Block => self.room_without_loss(),
        }
    }

    fn room_without_loss(&mut self) -> u64 {
        let waiting = self.end.saturating_sub(self.delivered);
        if let Store::Memory(held) = &self.store {
            let left = EXEC_LOG_MEMORY_BYTES.saturating_sub(held.len());
            if left > 0 {
                return left as u64;
            }
            self.spill();
        }
        if let Store::File(ring) = &mut self.store
            && self.end < ring.capacity()
        {
            let reserved = ring.reserve(self.end);
            if reserved > 0 {
                let room = ahead_max(ring.capacity()).saturating_sub(waiting);
                return room.min(reserved);
            }
            // What fits is all there will be.
            if !ring.shrink_to(self.end) {
                self.leave_disk();
            }
        }
        let capacity = match &self.store {
            Store::File(ring) => ring.capacity(),
            Store::Memory(_) | Store::MemoryRing(_) => MEMORY_RING_BYTES,
        };
        ahead_max(capacity).saturating_sub(waiting)
    }

    /// Adds bytes at the end; the oldest ones go if there are too many.
    pub(super) fn append(&mut self, bytes: &[u8]) {
        let is_short = |held: &VecDeque<u8>| held.len() + bytes.len() <= EXEC_LOG_MEMORY_BYTES;
        if matches!(&self.store, Store::Memory(held) if !is_short(held)) {
            self.spill();
        }
        let mut rest = bytes;
        while let Store::File(ring) = &mut self.store {
            let excess = rest.len() - clamp(ring.capacity(), rest.len());
            if excess > 0 {
                // More than a whole ring: nothing from before stays.
                rest = &rest[excess..];
                self.end += excess as u64;
                self.start = self.end;
            }
            let stored = ring.write(self.end, rest);
            rest = &rest[stored..];
            self.end += stored as u64;
            self.start = self.start.max(self.end.saturating_sub(ring.capacity()));
            if rest.is_empty() {
                return;
            }
            // The disk is full, or broken: go on in what there is of the file, if that is whole.
            if self.start > 0 || !ring.shrink_to(self.end) {
                self.leave_disk();
            }
        }
        self.hold(rest);
    }

    /// Reads from an offset on. Gives how much it could; what cannot be read is dropped.
    pub(super) fn read(&mut self, offset: u64, into: &mut [u8]) -> usize {
        let from = offset.saturating_sub(self.start);
        let wanted = clamp(self.end.saturating_sub(offset), into.len());
        match &mut self.store {
            Store::Memory(held) | Store::MemoryRing(held) => {
                let from = clamp(from, held.len());
                let held = &held.make_contiguous()[from..];
                let count = wanted.min(held.len());
                into[..count].copy_from_slice(&held[..count]);
                count
            }
            Store::File(ring) => {
                let count = ring.read(offset, &mut into[..wanted]);
                if count < wanted {
                    self.start = self.start.max(offset + wanted as u64);
                    return 0;
                }
                count
            }
        }
    }

    /// Drops everything that was said so far.
    pub(super) fn clear(&mut self) {
        self.start = self.end;
        self.store = Store::MemoryRing(VecDeque::new());
    }

    /// Moves to a file, or to a ring in memory when there can be none.
    fn spill(&mut self) {
        let Store::Memory(held) = &mut self.store else {
            return;
        };
        let held = std::mem::take(held);
        self.store = match self.write_first(&held) {
            Some(ring) => Store::File(ring),
            None => Store::MemoryRing(held),
        };
    }

    fn write_first(&self, held: &VecDeque<u8>) -> Option<Ring> {
        let mut ring = Ring::create(&self.directory, &self.name, self.bytes_max).ok()?;
        if self.when_full == WhenFull::Block && ring.reserve(0) < held.len() as u64 {
            return None;
        }
        let mut offset = 0;
        for part in [held.as_slices().0, held.as_slices().1] {
            if ring.write(offset, part) < part.len() {
                return None;
            }
            offset += part.len() as u64;
        }
        Some(ring)
    }

    /// Gives the file up and keeps its newest bytes, as far as they can be read.
    fn leave_disk(&mut self) {
        let kept = (self.end - self.start).min(MEMORY_RING_BYTES);
        let mut held = vec![0; clamp(kept, usize::MAX)];
        if let Store::File(ring) = &self.store
            && ring.read(self.end - kept, &mut held) < held.len()
        {
            held.clear();
        }
        self.start = self.end - held.len() as u64;
        self.store = Store::MemoryRing(held.into());
    }

    fn hold(&mut self, bytes: &[u8]) {
        let (Store::Memory(held) | Store::MemoryRing(held)) = &mut self.store else {
            return;
        };
        self.end += bytes.len() as u64;
        let most = clamp(MEMORY_RING_BYTES, usize::MAX);
        let bytes = &bytes[bytes.len().saturating_sub(most)..];
        let excess = (held.len() + bytes.len()).saturating_sub(most);
        held.drain(..excess);
        held.extend(bytes);
        self.start = self.end - held.len() as u64;
    }
}

/// How far a stream under `block` may be ahead of its readers. What is left of the log holds bytes
/// that were taken already, for a reader that lost them on its way; but never so much that a
/// reader could not have a window of new ones.
fn ahead_max(capacity: u64) -> u64 {
    let behind = EXEC_LOG_BEHIND_BYTES.min(capacity / 2);
    (capacity - behind).max(capacity.min(u64::from(STREAM_CREDIT_BYTES)))
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;

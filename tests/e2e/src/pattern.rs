//! Output whose every byte is known, so that a lost, doubled or moved one shows.

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hasher as _};

/// The numbers from 1 on, a line each, as `seq` prints them.
#[derive(Debug)]
pub struct Pattern {
    next: u64,
    last: u64,
    line_end: &'static str,
    ready: String,
}

impl Pattern {
    /// The numbers up to `last`, as a pipe gives them.
    #[must_use]
    pub const fn plain(last: u64) -> Self {
        Self::new(last, "\n")
    }

    /// The same as a terminal gives them, which turns each line's end into two characters.
    #[must_use]
    pub const fn in_a_terminal(last: u64) -> Self {
        Self::new(last, "\r\n")
    }

    const fn new(last: u64, line_end: &'static str) -> Self {
        Self {
            next: 1,
            last,
            line_end,
            ready: String::new(),
        }
    }

    /// The last number of a pattern of about this many bytes.
    #[must_use]
    pub fn last_for(bytes: u64, line_end_bytes: u64) -> u64 {
        let (mut last, mut total, mut digits, mut count) = (0, 0, 1, 9);
        loop {
            let width = digits + line_end_bytes;
            if total + count * width >= bytes {
                return last + (bytes - total) / width;
            }
            total += count * width;
            last += count;
            digits += 1;
            count *= 10;
        }
    }

    /// Checks the next bytes. Gives how many were right.
    pub fn check(&mut self, bytes: &[u8]) -> Result<(), usize> {
        let mut at = 0;
        while at < bytes.len() {
            if self.ready.is_empty() && !self.make() {
                return Err(at);
            }
            let count = self.ready.len().min(bytes.len() - at);
            if self.ready.as_bytes()[..count] != bytes[at..at + count] {
                return Err(at);
            }
            self.ready.drain(..count);
            at += count;
        }
        Ok(())
    }

    /// Whether everything was seen.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.ready.is_empty() && self.next > self.last
    }

    fn make(&mut self) -> bool {
        if self.next > self.last {
            return false;
        }
        for _ in 0..1000 {
            if self.next > self.last {
                break;
            }
            // Writing to a string cannot fail.
            let _ = write!(self.ready, "{}{}", self.next, self.line_end);
            self.next += 1;
        }
        true
    }
}

/// Numbers that look random and are the same in every run.
#[derive(Debug)]
pub struct Dice {
    state: u64,
}

impl Dice {
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.state);
        self.state = hasher.finish();
        self.state % limit.max(1)
    }
}

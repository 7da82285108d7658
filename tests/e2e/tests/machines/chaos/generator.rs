//! Numbers that follow from a seed alone (xorshift64*).

use std::ops::Range;
use std::time::Duration;

#[derive(Debug, Clone)]
pub(crate) struct Generator(u64);

impl Generator {
    /// The generator of one part of a run; parts do not disturb each other.
    pub(crate) fn new(seed: u64, part: u64) -> Self {
        let mixed = (seed ^ part.rotate_left(32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Self(mixed.max(1))
    }

    fn number(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit.max(1)).unwrap_or(1);
        usize::try_from(self.number() % limit).unwrap_or(0)
    }

    pub(crate) fn time(&mut self, range: Range<Duration>) -> Duration {
        let width = u64::try_from((range.end - range.start).as_millis()).unwrap_or(0);
        range.start + Duration::from_millis(self.number() % width.max(1))
    }

    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len()))
    }
}

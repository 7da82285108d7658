//! Credit of one stream: how many bytes may be on their way before the reader takes some.
//!
//! Every stream starts with [`STREAM_CREDIT_BYTES`]. A sender stops at zero; a receiver gives
//! credit back as its consumer takes bytes, so a reader that stops reading stalls its own stream
//! and holds one window of memory.

use dayfly_types::limits::STREAM_CREDIT_BYTES;

/// How a peer broke the rules of a stream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    #[error("{bytes} bytes on a stream with credit for {credit}")]
    Overrun { bytes: u64, credit: u32 },
    #[error("bytes at offset {offset} where {expected} comes next")]
    Offset { offset: u64, expected: u64 },
    #[error("bytes after the end of the stream")]
    AfterEnd,
    #[error("data frame without bytes or end")]
    Empty,
    #[error("credit of {bytes} bytes for a stream that used {used}")]
    Overgrant { bytes: u32, used: u32 },
}

/// The sender's side of a stream.
#[derive(Debug)]
pub struct SendWindow {
    credit: u32,
    offset: u64,
    has_ended: bool,
}

impl Default for SendWindow {
    fn default() -> Self {
        Self {
            credit: STREAM_CREDIT_BYTES,
            offset: 0,
            has_ended: false,
        }
    }
}

impl SendWindow {
    /// A stream whose first byte is at `offset`.
    #[must_use]
    pub fn starting_at(offset: u64) -> Self {
        Self {
            offset,
            ..Self::default()
        }
    }

    /// Leaves bytes out: the next frame begins at `offset`. Only streams of execs may have gaps.
    pub fn skip_to(&mut self, offset: u64) {
        self.offset = self.offset.max(offset);
    }

    /// How many bytes may be sent now.
    #[must_use]
    pub fn credit(&self) -> usize {
        usize::try_from(self.credit).unwrap_or(usize::MAX)
    }

    #[must_use]
    pub const fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// The offset of the next byte.
    #[must_use]
    pub const fn sent_bytes(&self) -> u64 {
        self.offset
    }

    /// Spends credit for `bytes` and gives the offset that the frame carries.
    ///
    /// # Errors
    /// [`WindowError::Overrun`] without enough credit, [`WindowError::AfterEnd`] after the end.
    /// Nothing is spent then.
    pub fn send(&mut self, bytes: usize, is_end: bool) -> Result<u64, WindowError> {
        if self.has_ended {
            return Err(WindowError::AfterEnd);
        }
        let overrun = WindowError::Overrun {
            bytes: bytes as u64,
            credit: self.credit,
        };
        let bytes = u32::try_from(bytes).map_err(|_| overrun.clone())?;
        self.credit = self.credit.checked_sub(bytes).ok_or(overrun)?;
        let offset = self.offset;
        self.offset += u64::from(bytes);
        self.has_ended = is_end;
        Ok(offset)
    }

    /// Takes credit back from the receiver.
    ///
    /// # Errors
    /// [`WindowError::Overgrant`] when the receiver gives more than was used, or nothing.
    pub fn grant(&mut self, bytes: u32) -> Result<(), WindowError> {
        let used = STREAM_CREDIT_BYTES - self.credit;
        if bytes == 0 || bytes > used {
            return Err(WindowError::Overgrant { bytes, used });
        }
        self.credit += bytes;
        Ok(())
    }
}

/// Credit is given back in steps of this size, so that small reads make no storm of frames.
const GRANT_STEP_BYTES: u32 = STREAM_CREDIT_BYTES / 4;

/// The receiver's side of a stream.
#[derive(Debug)]
pub struct ReceiveWindow {
    credit: u32,
    taken: u32,
    offset: u64,
    has_ended: bool,
}

impl Default for ReceiveWindow {
    fn default() -> Self {
        Self {
            credit: STREAM_CREDIT_BYTES,
            taken: 0,
            offset: 0,
            has_ended: false,
        }
    }
}

impl ReceiveWindow {
    /// A stream whose first byte is at `offset`.
    #[must_use]
    pub fn starting_at(offset: u64) -> Self {
        Self {
            offset,
            ..Self::default()
        }
    }

    /// The offset of the next byte.
    #[must_use]
    pub const fn next_offset(&self) -> u64 {
        self.offset
    }

    /// Like [`ReceiveWindow::accept`] for a stream that may have gaps. Gives how many bytes the
    /// sender left out before this frame.
    ///
    /// # Errors
    /// [`WindowError`] when the frame breaks the rules. The conversation must end then.
    pub fn accept_after_gap(
        &mut self,
        offset: u64,
        bytes: usize,
        is_end: bool,
    ) -> Result<u64, WindowError> {
        let gap = offset.saturating_sub(self.offset);
        let before = self.offset;
        self.offset += gap;
        let accepted = self.accept(offset, bytes, is_end);
        if accepted.is_err() {
            self.offset = before;
        }
        accepted.map(|()| gap)
    }

    #[must_use]
    pub const fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Checks one data frame of the peer.
    ///
    /// # Errors
    /// [`WindowError`] when the frame breaks the rules. The conversation must end then.
    pub fn accept(&mut self, offset: u64, bytes: usize, is_end: bool) -> Result<(), WindowError> {
        if self.has_ended {
            return Err(WindowError::AfterEnd);
        }
        if bytes == 0 && !is_end {
            return Err(WindowError::Empty);
        }
        if offset != self.offset {
            return Err(WindowError::Offset {
                offset,
                expected: self.offset,
            });
        }
        let overrun = WindowError::Overrun {
            bytes: bytes as u64,
            credit: self.credit,
        };
        let bytes = u32::try_from(bytes).map_err(|_| overrun.clone())?;
        self.credit = self.credit.checked_sub(bytes).ok_or(overrun)?;
        self.offset += u64::from(bytes);
        self.has_ended = is_end;
        Ok(())
    }

    /// Notes that the consumer took accepted bytes; gives the credit to send back, if it is time.
    pub fn take(&mut self, bytes: usize) -> Option<u32> {
        let held = STREAM_CREDIT_BYTES - self.credit - self.taken;
        debug_assert!(
            bytes as u64 <= u64::from(held),
            "only accepted bytes can be taken"
        );
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(held);
        self.taken += bytes;
        // An ended stream needs no more credit.
        if self.has_ended || self.taken < GRANT_STEP_BYTES {
            return None;
        }
        self.credit += self.taken;
        Some(std::mem::take(&mut self.taken))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        Send(usize),
        Deliver,
        Take(usize),
        Grant,
    }

    fn any_step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (1_usize..100_000).prop_map(Step::Send),
            Just(Step::Deliver),
            (1_usize..100_000).prop_map(Step::Take),
            Just(Step::Grant),
        ]
    }

    proptest! {
        #[test]
        fn honest_peers_never_break_a_window_and_memory_is_bounded(
            steps in proptest::collection::vec(any_step(), 0..300),
        ) {
            let mut sender = SendWindow::default();
            let mut receiver = ReceiveWindow::default();
            let mut wire = std::collections::VecDeque::new();
            let mut grants = std::collections::VecDeque::new();
            let mut held = 0_usize;
            for step in steps {
                match step {
                    Step::Send(bytes) => {
                        let bytes = bytes.min(sender.credit());
                        if bytes > 0 {
                            wire.push_back((sender.send(bytes, false).unwrap(), bytes));
                        }
                    }
                    Step::Deliver => {
                        if let Some((offset, bytes)) = wire.pop_front() {
                            receiver.accept(offset, bytes, false).unwrap();
                            held += bytes;
                        }
                    }
                    Step::Take(bytes) => {
                        let bytes = bytes.min(held);
                        held -= bytes;
                        grants.extend(receiver.take(bytes));
                    }
                    Step::Grant => {
                        if let Some(bytes) = grants.pop_front() {
                            sender.grant(bytes).unwrap();
                        }
                    }
                }
                prop_assert!(held <= STREAM_CREDIT_BYTES as usize);
            }
            // Nothing is lost: once everything is delivered, taken and granted, the sender can
            // send again. A stream that got stuck here would hang an exec for ever.
            for (offset, bytes) in wire {
                receiver.accept(offset, bytes, false).unwrap();
                held += bytes;
            }
            grants.extend(receiver.take(held));
            for bytes in grants {
                sender.grant(bytes).unwrap();
            }
            prop_assert!(sender.credit() > (STREAM_CREDIT_BYTES / 2) as usize);
        }

        #[test]
        fn overrun_is_refused_whatever_the_sizes(sizes in proptest::collection::vec(1_usize..90_000, 1..40)) {
            let mut receiver = ReceiveWindow::default();
            let mut total = 0_usize;
            for size in sizes {
                let result = receiver.accept(total as u64, size, false);
                if total + size > STREAM_CREDIT_BYTES as usize {
                    let is_overrun = matches!(result, Err(WindowError::Overrun { .. }));
                    prop_assert!(is_overrun);
                    return Ok(());
                }
                prop_assert!(result.is_ok());
                total += size;
            }
        }
    }

    #[test]
    fn gap_repeat_and_late_bytes_are_refused() {
        let mut receiver = ReceiveWindow::default();
        receiver.accept(0, 10, false).unwrap();
        let gap = receiver.accept(11, 1, false);
        assert_eq!(
            gap,
            Err(WindowError::Offset {
                offset: 11,
                expected: 10
            })
        );
        let repeat = receiver.accept(0, 10, false);
        assert_eq!(
            repeat,
            Err(WindowError::Offset {
                offset: 0,
                expected: 10
            })
        );
        assert_eq!(receiver.accept(10, 0, false), Err(WindowError::Empty));
        receiver.accept(10, 0, true).unwrap();
        assert_eq!(receiver.accept(10, 1, false), Err(WindowError::AfterEnd));
    }

    #[test]
    fn credit_for_bytes_never_sent_is_refused() {
        let mut sender = SendWindow::default();
        assert_eq!(
            sender.grant(1),
            Err(WindowError::Overgrant { bytes: 1, used: 0 })
        );
        sender.send(5, false).unwrap();
        sender.grant(5).unwrap();
        assert_eq!(
            sender.grant(0),
            Err(WindowError::Overgrant { bytes: 0, used: 0 })
        );
    }
}

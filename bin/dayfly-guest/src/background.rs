//! What outlives the memory of its exec: pipes of background processes, and control groups that are
//! not empty.

use crate::cgroup::ExecGroup;
use crate::exec::Remains;
use crate::poller::{ReadOutcome, Source};

/// Pipes that are kept open and emptied. Beyond it the oldest is closed, and its writers get the
/// signal that a closed pipe gives.
const PIPES_MAX: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct Background {
    pipes: Vec<Source>,
    groups: Vec<ExecGroup>,
}

impl Background {
    pub(crate) fn adopt(&mut self, remains: Remains) {
        self.groups
            .extend(remains.group.filter(|group| !group.try_remove()));
        self.pipes.extend(remains.pipes);
        if self.pipes.len() > PIPES_MAX {
            self.pipes.drain(..self.pipes.len() - PIPES_MAX);
        }
    }

    pub(crate) fn wake(&mut self, number: i32) {
        self.pipes.iter_mut().for_each(|pipe| pipe.wake(number));
    }

    /// Empties the pipes, so that a background process is neither stopped by a full one nor
    /// killed by a closed one. One read each: the loop must get back to its hosts.
    pub(crate) fn discard(&mut self, scratch: &mut [u8]) -> bool {
        let mut is_busy = false;
        self.pipes.retain_mut(|pipe| {
            if !pipe.may_read {
                return true;
            }
            match pipe.read(scratch) {
                ReadOutcome::Bytes(_) => {
                    is_busy = true;
                    true
                }
                ReadOutcome::Blocked => true,
                ReadOutcome::Ended => false,
            }
        });
        is_busy
    }

    pub(crate) fn remove_empty_groups(&mut self) {
        self.groups.retain(|group| !group.try_remove());
    }
}

//! Giving memory that the guest has freed back to the host.
//!
//! ```text
//! noted      what is written from now on counts as in use
//! (the guest says which frames are free)
//! stopped    of those that differ from what was restored, what was not written: discarded
//! ```
//! A page that was free after the writes were noted, and was not written until the machine stood
//! still, is free or was taken by somebody who has not written to it. Nobody has a use for what is
//! in it. The machine is stopped for a bounded number of pages at a time.

use std::time::{Duration, Instant};

use dayfly_host::guest_memory::{
    GuestMemory, GuestMemoryError, Pages, WriteTracker, both, without,
};
use dayfly_types::limits::{GIVE_BACK_PAUSE, GIVE_BACK_STOP_BYTES, GIVE_BACK_STOPS_MAX};
use dayfly_vmm::{ControlError, FrameRange, GiveBackError, GivenBack, PAGE_BYTES, Vm};

use crate::discarding::{Discarding, ORDER_RANGES_MAX};
use crate::error::MonitorError;
use crate::frames::pages_of;
use crate::layout::MEMORY_SOCKET;
use crate::memory::guest_memory;
use crate::vm::QemuVm;

/// A machine whose writes are noted.
#[derive(Debug)]
pub(crate) struct Noted {
    memory: GuestMemory,
    tracker: WriteTracker,
    line: Discarding,
}

/// Notes writes from now on. `None` when the kernel cannot.
fn note(pid: i32, memory_bytes: u64) -> Result<Option<(GuestMemory, WriteTracker)>, GiveBackError> {
    let memory = guest_memory(pid, memory_bytes).map_err(unknown)?;
    let Some(mut tracker) = memory.track().map_err(unknown)? else {
        return Ok(None);
    };
    tracker.take().map_err(unknown)?;
    Ok(Some((memory, tracker)))
}

/// What is discarded while the machine stands still once.
type Step = Vec<Pages>;

/// What came of that.
#[derive(Debug, Clone, Copy)]
struct Stop {
    bytes: u64,
    /// From the word that it shall stand still to the engine's word that it runs.
    time: Duration,
}

/// Cuts a list into steps of so many pages and ranges.
fn steps(pages: &[Pages], pages_max: u64, ranges_max: usize) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut room = 0;
    for range in pages {
        let (mut first, mut left) = (range.first, range.count);
        while left > 0 {
            let is_full = steps.last().is_none_or(|step| step.len() >= ranges_max);
            if room == 0 || is_full {
                steps.push(Vec::new());
                room = pages_max;
            }
            let count = left.min(room);
            if let Some(step) = steps.last_mut() {
                step.push(Pages { first, count });
            }
            first += count;
            left -= count;
            room -= count;
        }
    }
    steps
}

/// From the first page of a list to its last.
fn span(pages: &[Pages]) -> Option<Pages> {
    let (first, last) = (pages.first()?, pages.last()?);
    Some(Pages {
        first: first.first,
        count: last.first + last.count - first.first,
    })
}

fn bytes_of(pages: &[Pages]) -> u64 {
    pages.iter().map(|range| range.bytes()).sum()
}

fn unknown(error: GuestMemoryError) -> GiveBackError {
    GiveBackError::Memory(error.into())
}

async fn off_runtime<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, GiveBackError> + Send + 'static,
) -> Result<T, GiveBackError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| GiveBackError::Memory(error.into()))?
}

impl QemuVm {
    pub(crate) async fn note_writes_now(
        &mut self,
        memory_bytes: u64,
    ) -> Result<Option<Noted>, GiveBackError> {
        let socket = self.slot.run_directory.join(MEMORY_SOCKET);
        let line = Discarding::dial(&socket);
        let line = line.map_err(|error| GiveBackError::Discard(error.into()))?;
        let Some(line) = line else {
            return Ok(None);
        };
        let pid = self.process().pid;
        let noted = off_runtime(move || note(pid, memory_bytes)).await?;
        Ok(noted.map(|(memory, tracker)| Noted {
            memory,
            tracker,
            line,
        }))
    }

    pub(crate) async fn give_back_noted(
        &mut self,
        mut noted: Noted,
        free: &[FrameRange],
        least_bytes: u64,
    ) -> Result<GivenBack, GiveBackError> {
        let memory = noted.memory;
        let free = pages_of(free, memory.bytes());
        let find = move || Ok(both(&free, &memory.changed().map_err(unknown)?));
        let wanted = off_runtime(find).await?;
        let mut done = GivenBack {
            left_bytes: bytes_of(&wanted),
            ..GivenBack::default()
        };
        if done.left_bytes < least_bytes {
            return Ok(done);
        }
        let pages_max = GIVE_BACK_STOP_BYTES / PAGE_BYTES;
        let steps = steps(&wanted, pages_max, ORDER_RANGES_MAX);
        for step in steps.into_iter().take(GIVE_BACK_STOPS_MAX) {
            let all = bytes_of(&step);
            let (rest, step) = unwritten(noted, step).await?;
            noted = rest;
            // A guest that has taken most of it meanwhile does not stand still for the rest.
            if bytes_of(&step) * 4 < all {
                continue;
            }
            if done.stops > 0 {
                // The guest has its time between two stops.
                tokio::time::sleep(GIVE_BACK_PAUSE).await;
            }
            let (stop, rest) = self.stop_and_discard(noted, step).await?;
            noted = rest;
            done.stops += 1;
            done.longest_stop = done.longest_stop.max(stop.time);
            done.bytes += stop.bytes;
            done.left_bytes = done.left_bytes.saturating_sub(stop.bytes);
        }
        Ok(done)
    }

    /// One step. The machine runs again afterwards, unless it did not run before.
    async fn stop_and_discard(
        &mut self,
        noted: Noted,
        step: Step,
    ) -> Result<(Stop, Noted), GiveBackError> {
        let monitor = self.take_monitor().await?;
        self.monitor = Some(monitor);
        let began = Instant::now();
        self.pause().await.map_err(not_stopped)?;
        match self.paused_monitor().await {
            Ok(monitor) => self.monitor = Some(monitor),
            // It stands still for another reason, which ends in another way.
            Err(MonitorError::WrongStatus { .. }) => return Err(GiveBackError::NotRunning),
            Err(error) => return Err(GiveBackError::MayStandStill(error.into())),
        }
        let discarded = discard_unwritten(noted, step).await;
        let resumed = self.resume().await;
        resumed.map_err(|error| GiveBackError::MayStandStill(error.into()))?;
        let (bytes, noted) = discarded?;
        let time = began.elapsed();
        Ok((Stop { bytes, time }, noted))
    }
}

/// What of a step was not written since the writes were noted.
async fn unwritten(noted: Noted, step: Step) -> Result<(Noted, Step), GiveBackError> {
    off_runtime(move || {
        let mut noted = noted;
        let written = match span(&step) {
            Some(span) => noted.tracker.look_at(span).map_err(unknown)?,
            None => Vec::new(),
        };
        Ok((noted, without(&step, &written)))
    })
    .await
}

async fn discard_unwritten(noted: Noted, step: Step) -> Result<(u64, Noted), GiveBackError> {
    let (mut noted, unwritten) = unwritten(noted, step).await?;
    // What was written in the middle of a range makes two of it.
    for order in unwritten.chunks(ORDER_RANGES_MAX) {
        let discarded = noted.line.discard(order).await;
        discarded.map_err(|error| GiveBackError::Discard(error.into()))?;
    }
    Ok((bytes_of(&unwritten), noted))
}

/// Why the machine was not stopped.
fn not_stopped(error: ControlError) -> GiveBackError {
    match error {
        ControlError::Gone => GiveBackError::Gone,
        // It may do it later.
        ControlError::TimedOut(_) => GiveBackError::MayStandStill(error.into()),
        ControlError::Refused(source) => GiveBackError::Refused(source),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn numbers(pages: &[Pages]) -> BTreeSet<u64> {
        let each = |range: &Pages| range.first..range.first + range.count;
        pages.iter().flat_map(each).collect()
    }

    fn ranges(numbers: &BTreeSet<u64>) -> Vec<Pages> {
        let each = numbers.iter().map(|&first| Pages { first, count: 1 });
        dayfly_host::guest_memory::sorted(each.collect())
    }

    proptest! {
        #[test]
        fn what_is_discarded_is_free_and_changed_and_not_written(
            free in proptest::collection::btree_set(0u64..200, 0..150),
            changed in proptest::collection::btree_set(0u64..200, 0..150),
            written in proptest::collection::btree_set(0u64..200, 0..60),
            pages_max in 1u64..40,
            ranges_max in 1usize..9,
        ) {
            let wanted = both(&ranges(&free), &ranges(&changed));
            let mut discarded = BTreeSet::new();
            for step in steps(&wanted, pages_max, ranges_max) {
                prop_assert!(!step.is_empty() && step.len() <= ranges_max);
                prop_assert!(bytes_of(&step) <= pages_max * PAGE_BYTES);
                // The kernel is asked from the first page of a step to the last.
                let span = span(&step).unwrap();
                let seen: BTreeSet<u64> = written
                    .iter()
                    .copied()
                    .filter(|page| (span.first..span.first + span.count).contains(page))
                    .collect();
                discarded.extend(numbers(&without(&step, &ranges(&seen))));
            }
            let expected: BTreeSet<u64> = free
                .intersection(&changed)
                .copied()
                .filter(|page| !written.contains(page))
                .collect();
            prop_assert_eq!(discarded, expected);
        }
    }
}

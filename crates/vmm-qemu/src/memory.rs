//! Saving the memory of a machine: in rounds while it runs, and the rest while it is paused.
//!
//! ```text
//! round 0    note writes from now on; copy every page that differs from what was restored
//! round n    copy what was written since the round before
//! paused     copy what was written since the last round
//! ```
//! A page that is written while it is copied may be torn in the layer; it counts as written then,
//! so a later round or the pause copies it again. Where writes cannot be noted, everything is
//! copied in the pause.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use dayfly_host::guest_memory::{
    GuestMemory, GuestMemoryError, Pages, Patch, WriteTracker, join, merge_to, without,
};
use dayfly_types::error_chain::error_chain;
use dayfly_types::limits::{MEMORY_EXTENTS_MAX, SNAPSHOT_LAYERS_MAX};
use dayfly_vmm::{EngineCaptureError, MemoryCapture, PAGE_BYTES, PageRange};

use crate::layout::is_guest_memory;

/// How many ranges a layer may consist of.
const RANGES_MAX: usize = MEMORY_EXTENTS_MAX / SNAPSHOT_LAYERS_MAX;

/// What lies in a layer already.
#[derive(Debug)]
pub(crate) struct Ahead {
    layer: Layer,
    memory: GuestMemory,
    tracker: WriteTracker,
    /// In order. Each page of these was copied after it had been noted as unwritten.
    copied: Vec<Pages>,
}

/// The file that was copied into. A capture that is begun anew may have another of the same name,
/// with nothing in it.
#[derive(Debug)]
struct Layer(File);

impl Layer {
    fn open(path: &Path) -> io::Result<Self> {
        File::open(path).map(Self)
    }

    /// Held open, so no other file has its number.
    fn is_at(&self, path: &Path) -> bool {
        let same = |own: fs::Metadata, there: fs::Metadata| {
            (own.dev(), own.ino()) == (there.dev(), there.ino())
        };
        let both = self
            .0
            .metadata()
            .and_then(|own| Ok(same(own, fs::metadata(path)?)));
        both.unwrap_or(false)
    }
}

/// Copies one round. Answers how many bytes that were, or `None` when writes cannot be noted.
pub(crate) fn copy_ahead(
    pid: i32,
    capture: &MemoryCapture,
    ahead: Option<Ahead>,
) -> Result<Option<(Ahead, u64)>, EngineCaptureError> {
    let begun = match ahead.filter(|ahead| ahead.layer.is_at(&capture.layer)) {
        Some(mut ahead) => ahead.tracker.take().map(|written| Some((ahead, written))),
        None => {
            let memory = guest_memory(pid, capture.bytes).map_err(failed)?;
            begin(memory, &capture.layer)
        }
    };
    let (mut ahead, written) = match begun {
        Ok(Some(begun)) => begun,
        Ok(None) => return Ok(None),
        // The pause copies everything then.
        Err(error) => {
            tracing::warn!(
                pid,
                error = error_chain(&error),
                "cannot note what the guest writes"
            );
            return Ok(None);
        }
    };
    let (pages, copy) = next_round(&ahead.copied, &written);
    check_room(&pages, capture)?;
    // The mark of a copy is written later, when the guest stands still.
    ahead
        .memory
        .copy(&copy, &capture.layer, None)
        .map_err(failed)?;
    ahead.copied = pages;
    Ok(Some((ahead, bytes_of(&copy))))
}

/// Notes writes from now on, and finds what was changed until then.
fn begin(
    memory: GuestMemory,
    layer: &Path,
) -> Result<Option<(Ahead, Vec<Pages>)>, GuestMemoryError> {
    let layer = Layer::open(layer).map_err(GuestMemoryError::Write)?;
    let Some(mut tracker) = memory.track()? else {
        return Ok(None);
    };
    tracker.take()?;
    let changed = memory.changed()?;
    let ahead = Ahead {
        layer,
        memory,
        tracker,
        copied: Vec::new(),
    };
    Ok(Some((ahead, changed)))
}

/// Saves what is not yet in the layer. The machine is paused. Answers the pages of the layer, and
/// how many of them carry the mark of a copy.
pub(crate) fn save(
    pid: i32,
    capture: &MemoryCapture,
    ahead: Option<Ahead>,
) -> Result<(Vec<PageRange>, u64), EngineCaptureError> {
    let memory = guest_memory(pid, capture.bytes).map_err(failed)?;
    let ahead = ahead.filter(|ahead| ahead.layer.is_at(&capture.layer) && ahead.memory == memory);
    let (copied, written) = match ahead.and_then(written_since) {
        Some(known) => known,
        None => (Vec::new(), memory.changed().map_err(failed)?),
    };
    let (pages, copy) = next_round(&copied, &written);
    check_room(&pages, capture)?;
    let patch = capture.patch.as_ref().map(|patch| Patch {
        prefix: &patch.prefix,
        offset: patch.offset,
        value: patch.value,
    });
    let patched = memory.copy(&copy, &capture.layer, patch).map_err(failed)?;
    let extents = pages.iter().map(|pages| PageRange {
        first: pages.first,
        count: pages.count,
    });
    Ok((extents.collect(), patched))
}

/// What lies in the layer, and what of it was written again. `None` when that cannot be told any
/// more, and so everything has to be copied.
fn written_since(mut ahead: Ahead) -> Option<(Vec<Pages>, Vec<Pages>)> {
    match ahead.tracker.look() {
        Ok(written) => Some((ahead.copied, written)),
        Err(error) => {
            let error = error_chain(&error);
            tracing::warn!(error, "cannot tell what was written since the last round");
            None
        }
    }
}

/// The ranges of the layer after a round, and what has to be copied for that: what was written, and
/// what lies between ranges that are now one.
fn next_round(copied: &[Pages], written: &[Pages]) -> (Vec<Pages>, Vec<Pages>) {
    let pages = merge_to(join(copied, written), RANGES_MAX);
    let copy = join(&without(&pages, copied), written);
    (pages, copy)
}

/// Where the engine has guest memory, if it is of the size that it was started with: one that a
/// guest has taken over may map whatever it likes.
pub(crate) fn guest_memory(pid: i32, bytes: u64) -> Result<GuestMemory, GuestMemoryError> {
    let memory = GuestMemory::find(pid, is_guest_memory)?;
    if memory.bytes() == bytes {
        Ok(memory)
    } else {
        Err(GuestMemoryError::NotMapped)
    }
}

fn check_room(pages: &[Pages], capture: &MemoryCapture) -> Result<(), EngineCaptureError> {
    let wanted_bytes = bytes_of(pages);
    if wanted_bytes > capture.bytes_max {
        return Err(EngineCaptureError::TooMuch {
            wanted_bytes,
            limit_bytes: capture.bytes_max,
        });
    }
    Ok(())
}

fn bytes_of(pages: &[Pages]) -> u64 {
    pages.iter().map(|pages| pages.count * PAGE_BYTES).sum()
}

fn failed(error: GuestMemoryError) -> EngineCaptureError {
    EngineCaptureError::Memory(error.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(ranges: &[(u64, u64)]) -> Vec<Pages> {
        let made = ranges.iter().map(|&(first, count)| Pages { first, count });
        made.collect()
    }

    #[test]
    fn another_file_of_the_same_name_is_not_the_layer_that_was_copied_into() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("memory");
        File::create(&path).unwrap();
        let layer = Layer::open(&path).unwrap();
        assert!(layer.is_at(&path));
        fs::remove_file(&path).unwrap();
        assert!(!layer.is_at(&path));
        File::create(&path).unwrap();
        assert!(!layer.is_at(&path));
    }

    #[test]
    fn a_round_copies_what_was_written_and_keeps_what_was_copied() {
        let (layer, copy) = next_round(&pages(&[(0, 4), (10, 2)]), &pages(&[(3, 2), (20, 1)]));
        assert_eq!(layer, pages(&[(0, 5), (10, 2), (20, 1)]));
        assert_eq!(copy, pages(&[(3, 2), (20, 1)]));
    }

    #[test]
    fn a_gap_that_is_closed_is_copied() {
        // Each second page, one more than a layer may have ranges.
        let copied: Vec<Pages> = (0..RANGES_MAX as u64)
            .map(|index| Pages {
                first: index * 2,
                count: 1,
            })
            .collect();
        let last = RANGES_MAX as u64 * 2;
        let (layer, copy) = next_round(&copied, &pages(&[(last, 1)]));
        assert_eq!(layer, pages(&[(0, last + 1)]));
        assert_eq!(bytes_of(&copy) / PAGE_BYTES, RANGES_MAX as u64 + 1);
        assert!(
            without(&copy, &copied) == copy,
            "what was not written was copied again"
        );
    }
}
